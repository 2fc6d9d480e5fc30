// SPDX-License-Identifier: GPL-2.0-only
/*
 * Remembers what the daemon has changed of tasks outside the scheduler, so that it
 * can be put back (docs/decisions/0016-adoption.md). An object of its own, loaded
 * for --adopt and --confine only: its maps and links are pinned, so records follow
 * forks and calls of the tasks also while no daemon runs.
 *
 * A record is made in two ways: by the daemon, for a task that has a real-time
 * policy at that moment (of a confined one: the CPUs that it is bound to), and for
 * a child that a task with a record forks while it is changed. It goes when a call
 * that is not the daemon's sets what was changed, and with the task. So nothing that a
 * task says about itself makes a record, or makes it say more than the kernel has granted.
 */
#include <scx/common.bpf.h>

#include "abi/change.h"
#include "config/sched.bpf.h"

char _license[] SEC("license") = "GPL";

/*
 * By the address of the task_struct, which stays what it is when a thread executes a program.
 * Allocated beforehand: on PREEMPT_RT a thread refills BPF's allocator, and the sixth record
 * in a row finds no memory.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ARTIS_MAX_CHANGES);
	__type(key, u64);
	__type(value, struct artis_change);
} changes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct artis_keeper);
} keeper SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct artis_aim);
} aim SEC(".maps");

#define SETPARAM_POLICY (-1) /* kernel/sched/sched.h */

#define NSEC_PER_TICK (1000000000ULL / 100) /* USER_HZ is 100 */

static __always_inline u64 start_ticks(const struct task_struct *p)
{
	return p->start_boottime / NSEC_PER_TICK;
}

static __always_inline struct artis_keeper *the_keeper(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&keeper, &first);
}

/* Is this a call of the daemon, or of the process that restores for it? */
static __always_inline bool is_keepers_call(void)
{
	const struct artis_keeper *k = the_keeper();

	return k && k->tgid == bpf_get_current_pid_tgid() >> 32;
}

/*
 * A copy of the record of the task with the address @key. An element that is deleted
 * meanwhile may be another task's before it is copied whole: callers compare its tid.
 */
static __always_inline bool get_change(u64 key, struct artis_change *copy)
{
	const struct artis_change *found = bpf_map_lookup_elem(&changes, &key);

	if (!found)
		return false;
	*copy = *found;
	return true;
}

/* Is @p, which was forked by a task with the record @c, born as the daemon had made that task? */
static __always_inline bool is_born_changed(const struct task_struct *p,
					    const struct artis_change *c)
{
	if (c->kind == ARTIS_CHANGE_CONFINED)
		return p->nr_cpus_allowed == c->nr_to;
	/* a child of a real-time task with SCHED_RESET_ON_FORK is none itself */
	return !c->reset_on_fork && !has_rt_policy(p);
}

/*
 * The last moment of a fork, for threads that the kernel adds to a process, too. That the
 * parent has been put back meanwhile does not matter: the child has what the parent had.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(artis_change_fork, struct task_struct *child)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct artis_change c;
	u64 key = (u64)child;

	if (!get_change((u64)parent, &c) || c.tid != parent->pid || !is_born_changed(child, &c))
		return 0;
	c.tid = child->pid;
	c.start_ticks = start_ticks(child);
	if (bpf_map_update_elem(&changes, &key, &c, BPF_ANY)) {
		struct artis_keeper *k = the_keeper();

		if (k)
			__sync_fetch_and_add(&k->lost, 1);
	}
	return 0;
}

/* A thread that executes a program takes over the id and the start of its process's first one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(artis_change_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct artis_change c;
	u64 key = (u64)p;

	if (old_pid == p->pid || !get_change(key, &c) || c.tid != old_pid)
		return 0;
	c.tid = p->pid;
	c.start_ticks = start_ticks(p);
	bpf_map_update_elem(&changes, &key, &c, BPF_EXIST);
	return 0;
}

/* Another process that gets the keeper's id later is not the keeper. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(artis_change_exit, struct task_struct *p)
{
	struct artis_keeper *k = the_keeper();
	u64 key = (u64)p;

	bpf_map_delete_elem(&changes, &key);
	if (k && k->tgid == p->pid)
		k->tgid = 0;
	return 0;
}

/*
 * A call has set a policy. If the daemon's own call undid it before this program runs, the
 * record tells what was asked for; if it was no real-time policy, there is none any more.
 */
SEC("fexit/__sched_setscheduler")
int BPF_PROG(artis_change_policy, struct task_struct *p, const struct sched_attr *attr, bool user,
	     bool pi, int err)
{
	s32 policy = attr->sched_policy;
	struct artis_change c;
	u64 key = (u64)p;

	if (err || is_keepers_call() || !get_change(key, &c) || c.tid != p->pid ||
	    c.kind != ARTIS_CHANGE_ADOPTED)
		return 0;
	if (policy == SETPARAM_POLICY && !attr->sched_priority)
		return 0; /* the nice value or a clamp of utilization */
	if (policy == SCHED_FIFO || policy == SCHED_RR) {
		c.policy = policy;
		c.reset_on_fork = attr->sched_flags & SCHED_FLAG_RESET_ON_FORK;
	} else if (policy != SETPARAM_POLICY) {
		bpf_map_delete_elem(&changes, &key);
		return 0;
	}
	c.priority = attr->sched_priority;
	bpf_map_update_elem(&changes, &key, &c, BPF_EXIST);
	return 0;
}

/* A call has bound a task to CPUs: that is its own affair from now on. */
SEC("fexit/__sched_setaffinity")
int BPF_PROG(artis_change_affinity, struct task_struct *p, struct affinity_context *to, int err)
{
	const struct artis_change *c;
	u64 key = (u64)p;

	if (err || is_keepers_call())
		return 0;
	c = bpf_map_lookup_elem(&changes, &key);
	if (c && c->kind == ARTIS_CHANGE_CONFINED)
		bpf_map_delete_elem(&changes, &key);
	return 0;
}

/*
 * The keeper changes policies and affinities by thread id, which may be another task's since it
 * looked. The kernel asks here before it does: another task than the keeper means is not changed.
 */
SEC("fmod_ret/security_task_setscheduler")
int BPF_PROG(artis_change_refuse, struct task_struct *p, int ret)
{
	const struct artis_aim *a;
	u32 first = 0;

	if (ret || !is_keepers_call())
		return ret;
	a = bpf_map_lookup_elem(&aim, &first);
	if (a && a->tid == p->pid && a->start_ticks != start_ticks(p))
		return -ESRCH;
	return ret;
}

/* The task that @args names by id and start; to be released. NULL: it is gone. */
static __always_inline struct task_struct *named_task(const struct artis_change *args)
{
	struct task_struct *p = bpf_task_from_pid(args->tid);

	if (!p || start_ticks(p) == args->start_ticks)
		return p;
	bpf_task_release(p);
	return NULL;
}

/*
 * Run by the daemon before it changes a task, which @args names by id and start. Of a task
 * that is to be adopted, @args tells afterwards what it is. Returns 0; -ESRCH: it is gone;
 * -EINVAL: it is to be adopted, and neither SCHED_FIFO nor SCHED_RR; or no room.
 */
SEC("syscall")
int artis_change_note(struct artis_change *args)
{
	struct task_struct *p = named_task(args);
	struct artis_change c;
	int err = -EINVAL;
	u64 key = (u64)p;

	if (!p)
		return -ESRCH;
	if (args->kind == ARTIS_CHANGE_ADOPTED) {
		args->policy = p->policy;
		args->priority = p->rt_priority;
		args->reset_on_fork = p->sched_reset_on_fork;
		if (args->policy != SCHED_FIFO && args->policy != SCHED_RR)
			goto out;
	}
	__builtin_memcpy(&c, args, sizeof(c));
	err = bpf_map_update_elem(&changes, &key, &c, BPF_ANY);
out:
	bpf_task_release(p);
	return err;
}

/* Run by the daemon: fills in the record of a task. Returns 0, or -ENOENT: there is none. */
SEC("syscall")
int artis_change_get(struct artis_change *args)
{
	struct task_struct *p = named_task(args);
	struct artis_change c;
	int err = -ENOENT;

	if (!p)
		return err;
	if (get_change((u64)p, &c) && c.tid == args->tid) {
		__builtin_memcpy(args, &c, sizeof(c));
		err = 0;
	}
	bpf_task_release(p);
	return err;
}
