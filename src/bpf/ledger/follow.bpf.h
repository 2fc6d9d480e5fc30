/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who follows whom, and where producers ran. Only tasks that take part have an
 * entry; the others are told by one byte of struct artis_task.
 *
 * A consumer names its producers by thread id and time of birth, and looks them
 * up when it wakes: one that has ended is found out then, and nothing keeps a
 * dead task's memory. Lists of producers are written by ops.select_cpu of the
 * consumer and by the daemon, each entry as one word.
 */
#ifndef ARTIS_LEDGER_FOLLOW_BPF_H
#define ARTIS_LEDGER_FOLLOW_BPF_H

#include "../policy/follow.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_follow);
} follow_stor SEC(".maps");

static __always_inline u64 who_is(const struct task_struct *p)
{
	return artis_who(p->pid, p->start_time);
}

/* The task that @who means, to be released; NULL: it has ended, or is about to. */
static __always_inline struct task_struct *task_of_who(u64 who)
{
	struct task_struct *p = bpf_task_from_pid(artis_who_pid(who));

	if (!p)
		return NULL;
	if (who_is(p) == who && !(p->flags & PF_EXITING))
		return p;
	bpf_task_release(p);
	return NULL;
}

/* From now on it is noted where @p runs. NULL: there is no memory for that. */
static __always_inline struct artis_follow *follow_remember(struct task_struct *p, u8 as)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);
	struct artis_follow *f =
		bpf_task_storage_get(&follow_stor, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t && f)
		t->follow |= as;
	return f;
}

/* Producers in the list of @f. */
static __always_inline u32 follow_count(const struct artis_follow *f)
{
	u32 i, nr = 0;

	for (i = 0; i < ARTIS_FOLLOW_MAX; i++)
		nr += !!f->producer[i].who;
	return nr;
}

/* @p, which takes part, stops on @cpu. */
static __noinline void follow_stopped(struct task_struct *p, s32 cpu)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	u64 now = scx_bpf_now();
	u32 kind = is_rt_cpu(cpu);

	if (!f)
		return;
	f->ran_ns[kind & 1] = now;
	f->cpu[kind & 1] = cpu;
	if (!f->woke_ns)
		return;
	f->tail_ns = artis_tail_next(f->tail_ns, now - f->woke_ns);
	f->woke_ns = 0;
}

/* Entry @i of @f becomes @pid, or free. Returns false if there is no such task. */
static __always_inline bool follow_set(struct artis_follow *f, u32 i, u32 pid)
{
	struct task_struct *p;
	struct artis_producer *e = &f->producer[i];

	e->who = 0;
	if (!pid)
		return true;
	p = bpf_task_from_pid(pid);
	if (!p)
		return false;
	e->turn = 0;
	if (follow_remember(p, ARTIS_FOLLOW_PRODUCER))
		e->who = who_is(p);
	bpf_task_release(p);
	return e->who;
}

/* Is there a task with this thread id, and could it be followed? */
static __always_inline bool follow_exists(u32 pid)
{
	struct task_struct *p;
	bool lives;

	if (!pid)
		return true;
	p = bpf_task_from_pid(pid);
	if (!p)
		return false;
	lives = !(p->flags & PF_EXITING);
	bpf_task_release(p);
	return lives;
}

/* The first of @pids that no task has, 0: all are there. */
static __always_inline u32 follow_missing(const u32 *pids)
{
	u32 i;

	for (i = 0; i < ARTIS_FOLLOW_MAX; i++) {
		if (!follow_exists(pids[i]))
			return pids[i];
	}
	return 0;
}

/*
 * Run by the daemon. Returns 0; -ESRCH: args->missing tells which task is not there, and nothing
 * has changed; -EPERM: the consumer is a kernel thread; -ENOMEM.
 */
SEC("syscall")
int artis_set_follow(struct artis_set_follow *args)
{
	/* a copy: the verifier knows arguments at fixed places only */
	struct artis_set_follow a = *args;
	struct task_struct *p = bpf_task_from_pid(a.pid);
	struct artis_follow *f = NULL;
	struct artis_task *t;
	int err = -ESRCH;
	u32 i;

	a.missing = a.pid;
	if (!p)
		goto gone;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (!t || (p->flags & PF_EXITING))
		goto out;
	a.nr_cpus = p->nr_cpus_allowed;
	a.realtime = is_realtime(p);
	a.missing = follow_missing(a.producer);
	if (a.missing)
		goto out;
	err = -EPERM;
	if (is_kernel_task(p))
		goto out;
	err = 0;
	f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	a.old_nr = f ? follow_count(f) : 0;
	if (!a.nr && !f)
		goto out;
	err = -ENOMEM;
	f = follow_remember(p, a.nr ? ARTIS_FOLLOW_CONSUMER : 0);
	if (!f)
		goto out;
	err = 0;
	for (i = 0; i < ARTIS_FOLLOW_MAX; i++) {
		if (!follow_set(f, i, a.producer[i]))
			err = -ENOMEM;
	}
	if (!a.nr)
		t->follow &= ~ARTIS_FOLLOW_CONSUMER;
out:
	bpf_task_release(p);
gone:
	*args = a;
	return err;
}

struct artis_follow_pairs follow_pairs SEC(".bss.follow");

/* Adds what @p follows to follow_pairs. */
static __noinline void follow_tell(struct task_struct *p)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	u32 i;

	if (!f || (p->flags & PF_EXITING))
		return;
	bpf_for(i, 0, ARTIS_FOLLOW_MAX) {
		struct artis_producer *e = &f->producer[i & (ARTIS_FOLLOW_MAX - 1)];
		struct task_struct *q;
		struct artis_follow_pair *pair;

		if (!e->who)
			continue;
		q = task_of_who(e->who);
		if (!q)
			continue;
		if (follow_pairs.nr < ARTIS_FOLLOW_PAIRS) {
			pair = &follow_pairs.pair[follow_pairs.nr & (ARTIS_FOLLOW_PAIRS - 1)];
			pair->consumer = p->pid;
			pair->producer = q->pid;
			__builtin_memcpy(pair->consumer_comm, p->comm, sizeof(pair->consumer_comm));
			__builtin_memcpy(pair->producer_comm, q->comm, sizeof(pair->producer_comm));
		}
		follow_pairs.nr++;
		bpf_task_release(q);
	}
}

/* kernel/bpf/task_iter.c; scx's headers do not declare them */
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym __weak;

/* Run by the daemon, which then reads follow_pairs. */
SEC("syscall")
int artis_list_follow(void *ctx)
{
	struct task_struct *p;

	follow_pairs.nr = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, p, NULL, BPF_TASK_ITER_ALL_THREADS)
		follow_tell(p);
	bpf_rcu_read_unlock();
	return 0;
}

#endif /* ARTIS_LEDGER_FOLLOW_BPF_H */
