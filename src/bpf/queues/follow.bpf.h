/* SPDX-License-Identifier: GPL-2.0-only */
/* A consumer wakes on the NRT CPU of its producers, or waits there (policy/follow.h). */
#pragma once
#include "insert.bpf.h"

/* Where producer @q ran becomes @best if it is better. @home: last NRT CPU of the consumer. */
static __always_inline void consider(struct artis_spot *best, struct task_struct *q, bool active,
				     s32 home)
{
	struct artis_follow *g = bpf_task_storage_get(&follow_stor, q, 0, 0);
	struct artis_spot s = { .cpu = cpu_of_task(q), .runs = scx_bpf_task_running(q) };

	if (s.runs)
		s.ran_ns = scx_bpf_now();
	/* follow_stopped() does not see a task of a real-time class: only its CPU is known */
	else if (g && !is_realtime(q))
		s = (struct artis_spot){ .cpu = g->cpu, .ran_ns = g->ran_ns };
	if (!is_nrt_cpu(s.cpu) || (!s.ran_ns && !is_realtime(q)))
		return;
	s.home = active && s.cpu == home;
	s.ends_soon = !g || g->tail_ns < ARTIS_FOLLOW_TAIL_NS;
	if (artis_spot_is_better(&s, best))
		*best = s;
}

/* Considers producer @i of @f, clears it if ended. Returns 1: alive. Global: verified once. */
__noinline int find_spot(struct artis_spot *best, struct artis_follow *f, u32 i, s32 home)
{
	struct artis_producer *e;
	struct task_struct *q;
	struct artis_follow *g;
	u64 who;

	if (!best || !f)
		return 0;
	e = &f->producer[i & (ARTIS_FOLLOW_MAX - 1)];
	who = e->who;
	if (!who)
		return 0;
	q = task_of_who(who);
	if (!q) {
		/* the daemon may have written another one meanwhile */
		__sync_val_compare_and_swap(&e->who, who, 0);
		return 0;
	}
	if (who == who_is(bpf_get_current_task_btf())) {
		e->turn = ++f->turn;
		g = bpf_task_storage_get(&follow_stor, q, 0, 0);
		if (g && !g->woke_ns)
			g->woke_ns = scx_bpf_now();
	}
	consider(best, q, artis_follow_is_active(e->turn, f->turn), home);
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
