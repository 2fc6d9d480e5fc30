// SPDX-License-Identifier: GPL-2.0-only
/* Records what --adopt and --confine change of tasks (docs/decisions/0016-adoption.md), to restore
 * it. Maps and links are pinned: records follow forks and calls without a daemon, too. Only the
 * daemon and a fork of a changed task make a record, none of more than the kernel has granted. */
#include <scx/common.bpf.h>
#include "abi/abi.h"
#include "config/sched.bpf.h"

char _license[] SEC("license") = "GPL";

/* By address of the task_struct, which exec keeps. Preallocated: on PREEMPT_RT a thread refills the
 * BPF allocator, so the sixth record in a row would get no memory. */
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

static __always_inline struct artis_keeper *the_keeper(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&keeper, &first);
}

/* Is this a call of the daemon or of the process that restores for it? */
static __always_inline bool is_keepers_call(void)
{
	const struct artis_keeper *k = the_keeper();

	return k && k->tgid == bpf_get_current_pid_tgid() >> 32;
}

/* Copies the record of @key; one deleted meanwhile may hold another task's than that of @tid. */
static __always_inline bool get_change(u64 key, u32 tid, struct artis_change *copy)
{
	const struct artis_change *found = bpf_map_lookup_elem(&changes, &key);

	if (!found)
		return false;
	*copy = *found;
	return copy->tid == tid;
}

/* Last step of a fork, also for threads that the kernel adds to a process. The parent may have been
 * restored meanwhile: the child has what the parent had. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(artis_change_fork, struct task_struct *child)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct artis_change c;
	u64 key = (u64)child;

	if (!get_change((u64)parent, parent->pid, &c))
		return 0;
	/* SCHED_RESET_ON_FORK: the child of a real-time task is none */
	if (c.kind == ARTIS_CHANGE_CONFINED ? child->nr_cpus_allowed != c.nr_to :
					      c.reset_on_fork || has_rt_policy(child))
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

/* A thread that calls exec takes the id and the start time of the first thread of its process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(artis_change_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct artis_change c;
	u64 key = (u64)p;

	if (old_pid == p->pid || !get_change(key, old_pid, &c))
		return 0;
	c.tid = p->pid;
	c.start_ticks = start_ticks(p);
	bpf_map_update_elem(&changes, &key, &c, BPF_EXIST);
	return 0;
}

/* A later process with the keeper's id is not the keeper. */
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

/* Another caller set a policy: records a real-time one, even if the daemon has undone it by now;
 * deletes the record for any other. */
SEC("fexit/__sched_setscheduler")
int BPF_PROG(artis_change_policy, struct task_struct *p, const struct sched_attr *attr, bool user,
	     bool pi, int err)
{
	s32 policy = attr->sched_policy;
	struct artis_change c;
	u64 key = (u64)p;

	if (err || is_keepers_call() || !get_change(key, p->pid, &c) ||
	    c.kind != ARTIS_CHANGE_ADOPTED)
		return 0;
	if (policy == SETPARAM_POLICY && !attr->sched_priority)
		return 0; /* the nice value or a uclamp value */
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

/* Another caller set the affinity of a task: it is no longer restored. */
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

/* Refuses a change by the keeper if the thread id that it names belongs to another task by now. */
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

/* The task with tid and start_ticks of @args, to be released, or NULL. */
static __always_inline struct task_struct *named_task(const struct artis_change *args)
{
	struct task_struct *p = bpf_task_from_pid(args->tid);

	if (!p || start_ticks(p) == args->start_ticks)
		return p;
	bpf_task_release(p);
	return NULL;
}

/* Records a task before the daemon changes it; for adoption, fills in its policy. Of no kind: copies its
 * record to @args. Returns 0, -ESRCH (it is gone), -ENOENT (it has no record), -EINVAL (adoption:
 * neither SCHED_FIFO nor SCHED_RR) or another error: no room. */
SEC("syscall")
int artis_change_note(struct artis_change *args)
{
	struct task_struct *p = named_task(args);
	struct artis_change c;
	u64 key = (u64)p;
	int err;

	if (!p)
		return -ESRCH;
	if (args->kind == ARTIS_CHANGE_ADOPTED) {
		args->policy = p->policy;
		args->priority = p->rt_priority;
		args->reset_on_fork = p->sched_reset_on_fork;
	}
	__builtin_memcpy(&c, args, sizeof(c));
	if (!c.kind)
		err = get_change(key, args->tid, args) ? 0 : -ENOENT;
	else if (c.kind == ARTIS_CHANGE_ADOPTED && c.policy != SCHED_FIFO && c.policy != SCHED_RR)
		err = -EINVAL;
	else
		err = bpf_map_update_elem(&changes, &key, &c, BPF_ANY);
	if (!err && p->flags & PF_EXITING) { /* perhaps after artis_change_exit() */
		bpf_map_delete_elem(&changes, &key);
		err = -ESRCH;
	}
	bpf_task_release(p);
	return err;
}
