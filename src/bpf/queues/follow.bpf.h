/* SPDX-License-Identifier: GPL-2.0-only */
/* A consumer wakes on the NRT CPU of its producers, or waits there (policy/room.h). */
#pragma once
#include "insert.bpf.h"

/* Producers are named by thread id and start time: a consumer drops ended ones when it wakes.
 * ops.select_cpu of the consumer and the daemon write its list, each entry as one word. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_follow);
} follow_stor SEC(".maps");

static __always_inline u64 task_id_of(const struct task_struct *p)
{
	return artis_task_id(p->pid, p->start_time);
}

/* The task that @id names, to be released. NULL: it has ended or is about to. */
static __always_inline struct task_struct *task_of_id(u64 id)
{
	struct task_struct *p = bpf_task_from_pid(artis_task_id_pid(id));

	if (!p || (task_id_of(p) == id && !(p->flags & PF_EXITING)))
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
	if (f->woke_ns)
		f->tail_ns = artis_tail_next(f->tail_ns, now - f->woke_ns);
	f->woke_ns = 0;
}

/* With @set, entry @e becomes @pid, 0: free. Returns its old thread id; 0: that task has ended. */
static __always_inline u32 follow_set(struct artis_producer *e, u32 pid, bool set)
{
	struct task_struct *p = e->id ? task_of_id(e->id) : NULL;
	u32 was = 0;

	if (p) {
		was = p->pid;
		bpf_task_release(p);
	}
	if (!set)
		return was;
	e->id = 0;
	e->turn = 0;
	p = pid ? bpf_task_from_pid(pid) : NULL;
	if (p) {
		if (follow_remember(p, ARTIS_FOLLOW_PRODUCER))
			e->id = task_id_of(p);
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
	if (!f && a.set && nr)
		err = -ENOMEM;
	for (i = 0; i < ARTIS_FOLLOW_MAX; i++) /* if all are 0, follow() clears its flag */
		a.producer[i] = f ? follow_set(&f->producer[i], a.producer[i], a.set) : 0;
	bpf_task_release(p);
	*args = a;
	return err;
}

/* Where producer @i of @f ran becomes @best if it is better; it is cleared if it has ended. @home: last
 * NRT CPU of the consumer. Returns 1: the producer is alive. Global: verified once. */
__noinline int find_spot(struct artis_spot *best, struct artis_follow *f, u32 i, s32 home)
{
	struct artis_spot s = {};
	struct artis_producer *e;
	struct artis_follow *g;
	struct task_struct *q;
	u64 id;

	if (!best || !f)
		return 0;
	e = &f->producer[i & (ARTIS_FOLLOW_MAX - 1)];
	id = e->id;
	if (!id)
		return 0;
	q = task_of_id(id);
	if (!q) {
		/* the daemon may have written another one meanwhile */
		__sync_val_compare_and_swap(&e->id, id, 0);
		return 0;
	}
	g = bpf_task_storage_get(&follow_stor, q, 0, 0);
	if (id == task_id_of(bpf_get_current_task_btf())) {
		e->turn = ++f->turn;
		if (g && !g->woke_ns)
			g->woke_ns = scx_bpf_now();
	}
	s.cpu = cpu_of_task(q);
	s.runs = scx_bpf_task_running(q);
	if (s.runs) {
		s.ran_ns = scx_bpf_now();
	} else if (g && !is_realtime(q)) { /* of which follow_stopped() sees nothing */
		s.cpu = g->cpu;
		s.ran_ns = g->ran_ns;
	}
	s.home = s.cpu == home && artis_follow_is_active(e->turn, f->turn);
	s.ends_soon = !g || g->tail_ns < ARTIS_FOLLOW_TAIL_NS;
	if (is_nrt_cpu(s.cpu) && (s.ran_ns || is_realtime(q)) && artis_spot_is_better(&s, best))
		*best = s;
	bpf_task_release(q);
	return 1;
}

/* Does @order come before all that waits there? Global: its loop is verified once. */
__noinline bool follow_passes(u64 order, u32 queue, u32 where)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq_of(queue, where));

	return !head || artis_before(order, common_order(head->scx.dsq_vtime, queue, where));
}

/* Is @t the next on @cpu of @group? Tasks ahead by less than the preemption margin do not count. */
static __always_inline bool is_next(const struct artis_task *t, s32 cpu, u32 group)
{
	u64 order = common_order(order_of(t), t->queue, t->where);

	if (!t->rt1)
		order -= policy.preempt_margin_ns;
	return !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) &&
	       follow_passes(order, ARTIS_QUEUE_BOUND, group) &&
	       follow_passes(order, ARTIS_QUEUE_CALM, group) &&
	       follow_passes(order, ARTIS_QUEUE_OWN, cpu);
}

/* In ops.select_cpu. Returns the CPU for which @p was inserted, < 0: the usual rules place it. */
static __noinline s32 follow(struct task_struct *p, struct artis_task *t,
			     const struct artis_facts *facts)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	struct artis_spot best = { .cpu = -1 };
	u32 i, live = 0, queue, group, way;
	s32 cpu;

	if (!f)
		return -EBUSY;
	for (i = 0; i < ARTIS_FOLLOW_MAX; i++)
		live += find_spot(&best, f, i, t->nrt_cpu);
	if (!live)
		t->follow &= ~ARTIS_FOLLOW_CONSUMER;
	cpu = best.cpu;
	if (cpu < 0)
		return -EBUSY;
	queue = artis_queue_of(facts);
	group = group_of(cpu);
	/* a CPU whose core a real-time task uses is the last choice */
	if (shares_core(cpu) || !artis_may_wait(facts, queue, group) ||
	    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return -EBUSY;
	join(p, t, queue, group, true);
	if (!scx_bpf_test_and_clear_cpu_idle(cpu)) {
		if (cpu_of(cpu)->rt.in_rt)
			return -EBUSY;
		way = artis_follow_way(&best, t->rt1, cpu_of(cpu)->curr_rt1, is_next(t, cpu, group),
				       any_idle(nrt_mask()));
		if (way == ARTIS_FOLLOW_QUEUE)
			t->follow |= ARTIS_FOLLOW_WAITS; /* ops.enqueue has the lock of the CPU */
		if (way != ARTIS_FOLLOW_NEXT)
			return way == ARTIS_FOLLOW_QUEUE ? cpu : -EBUSY;
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_nrt(t, group), 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	return cpu;
}
