/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A consumer wakes: it goes to the NRT CPU where its producers ran, if that is
 * idle or runs one of them that is about to sleep. Else it is placed as any
 * other task. Called in ops.select_cpu for tasks that follow others.
 */
#pragma once

#include "insert.bpf.h"

/* Where producer @q of a consumer ran, whose last CPU was @home, becomes @best if it is better. */
static __always_inline void consider(struct artis_spot *best, struct task_struct *q, bool active,
				     s32 home)
{
	struct artis_follow *g = bpf_task_storage_get(&follow_stor, q, 0, 0);
	struct artis_spot s = { .cpu = scx_bpf_task_cpu(q), .runs = scx_bpf_task_running(q) };

	if (s.runs)
		s.ran_ns = scx_bpf_now();
	/* of a task of a real-time class it is not noted when it stops, only where it is */
	else if (g && !is_realtime(q))
		s = (struct artis_spot){ .cpu = g->cpu, .ran_ns = g->ran_ns };
	if (is_rt_cpu(s.cpu) || (!s.ran_ns && !is_realtime(q)))
		return;
	s.home = active && s.cpu == home;
	s.ends_soon = !g || g->tail_ns < ARTIS_FOLLOW_TAIL_NS;
	if (artis_spot_is_better(&s, best))
		*best = s;
}

/*
 * Looks at entry @i of consumer @f, and forgets a producer that has ended. Returns 1 if there is
 * one that lives. Global: verified once.
 */
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
		/* unless the daemon has written another one meanwhile */
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

/* Does @order come before all that waits there? Global: the verifier looks at its loop once. */
__noinline bool follow_passes(u64 order, u32 queue, u32 where)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq_of(queue, where));

	return !head || artis_before(order, common_order(head->scx.dsq_vtime, queue, where));
}

/* Would @t be the next on @cpu of @group, give or take what it could preempt soon? */
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

/*
 * Consumer @p wakes. Returns the CPU for which it was inserted, or a negative number: the usual
 * rules decide.
 */
static __noinline s32 follow(struct task_struct *p, struct artis_task *t,
			     const struct artis_facts *facts)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	struct artis_spot best = { .cpu = -1 };
	u32 i, live = 0, queue, group;
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
	/* of a core that a real-time task uses the other thread comes last */
	if (shares_core(cpu) || !artis_may_wait(facts, queue, group) ||
	    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return -EBUSY;
	join(p, t, queue, group, true);
	if (!scx_bpf_test_and_clear_cpu_idle(cpu) &&
	    (!artis_follow_waits(&best, t->rt1, cpu_of(cpu)->curr_rt1) || !is_next(t, cpu, group)))
		return -EBUSY;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_nrt(t, group), 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	return cpu;
}
