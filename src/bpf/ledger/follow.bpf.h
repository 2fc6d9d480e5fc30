/* SPDX-License-Identifier: GPL-2.0-only */
/* Consumers and their producers; tasks that do not take part have no entry. */
#pragma once
#include "../policy/follow.h"

/* Producers are named by thread id and start time: a consumer drops ended ones when it wakes.
 * ops.select_cpu of the consumer and the daemon write its list, each entry as one word. */
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

/* The task that @who names, to be released. NULL: it has ended or is about to. */
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

/* Begins to record where @p runs. NULL: no memory. */
static __always_inline struct artis_follow *follow_remember(struct task_struct *p, u8 as)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);
	struct artis_follow *f =
		bpf_task_storage_get(&follow_stor, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t && f)
		t->follow |= as;
	return f;
}

static __noinline void follow_stopped(struct task_struct *p, s32 cpu)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	u64 now = scx_bpf_now();

	if (!f)
		return;
	if (!is_rt_cpu(cpu)) {
		f->ran_ns = now;
		f->cpu = cpu;
	}
	if (!f->woke_ns)
		return;
	f->tail_ns = artis_tail_next(f->tail_ns, now - f->woke_ns);
	f->woke_ns = 0;
}

/* With @set, entry @e becomes @pid, 0: free. Returns its old thread id; 0: that task has ended. */
static __always_inline u32 follow_set(struct artis_producer *e, u32 pid, bool set)
{
	struct task_struct *p = e->who ? task_of_who(e->who) : NULL;
	u32 was = 0;

	if (p) {
		was = p->pid;
		bpf_task_release(p);
	}
	if (!set)
		return was;
	e->who = 0;
	e->turn = 0;
	p = pid ? bpf_task_from_pid(pid) : NULL;
	if (p) {
		if (follow_remember(p, ARTIS_FOLLOW_PRODUCER))
			e->who = who_is(p);
		bpf_task_release(p);
	}
	return was;
}

/* Run by the daemon: gets, with @args->set sets, what a task follows. 0, -ESRCH or -ENOMEM. */
SEC("syscall")
int artis_set_follow(struct artis_set_follow *args)
{
	struct artis_set_follow a = *args; /* the verifier wants constant offsets into *args */
	struct task_struct *p = bpf_task_from_pid(a.pid);
	struct artis_follow *f;
	u32 i, nr = 0;
	int err = 0;

	if (!p)
		return -ESRCH;
	for (i = 0; i < ARTIS_FOLLOW_MAX; i++)
		nr += !!a.producer[i];
	f = a.set && nr ? follow_remember(p, ARTIS_FOLLOW_CONSUMER) :
			  bpf_task_storage_get(&follow_stor, p, 0, 0);
	if (f) { /* follow() clears ARTIS_FOLLOW_CONSUMER if none is left */
		for (i = 0; i < ARTIS_FOLLOW_MAX; i++)
			a.producer[i] = follow_set(&f->producer[i], a.producer[i], a.set);
	} else {
		__builtin_memset(a.producer, 0, sizeof(a.producer));
		err = a.set && nr ? -ENOMEM : 0;
	}
	bpf_task_release(p);
	*args = a;
	return err;
}
