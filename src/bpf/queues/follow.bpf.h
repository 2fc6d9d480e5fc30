/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A consumer wakes: where did its producers run, and may it go there? Called in
 * ops.select_cpu for tasks that follow others.
 *
 * Followers go into the local queue of an NRT CPU, behind at most the task that
 * runs there: they are next when it sleeps, at the latest when its slice ends,
 * and they are put back like any other when a real-time task takes the CPU. What
 * waits in the queues meanwhile is passed only by what virtual time allows; a
 * follower that may not is placed as any other task.
 */
#ifndef ARTIS_QUEUES_FOLLOW_BPF_H
#define ARTIS_QUEUES_FOLLOW_BPF_H

#include "insert.bpf.h"

/* Where the producers of a task ran: the best NRT CPU and the best RT CPU. */
struct follow_spots {
	struct artis_spot on[2];
};

static __always_inline void consider(struct follow_spots *spots, const struct artis_spot *s)
{
	struct artis_spot *best = &spots->on[is_rt_cpu(s->cpu) & 1];

	if (artis_spot_is_better(s, best))
		*best = *s;
}

/* Where @q ran, which is a producer of a consumer whose last CPU was @home. */
static __always_inline void spot_of(struct follow_spots *spots, struct task_struct *q,
				    const struct artis_follow *g, bool active, s32 home)
{
	struct artis_spot s = {};
	u32 kind;

	s.cpu = scx_bpf_task_cpu(q);
	s.runs = scx_bpf_task_running(q);
	s.home = active && s.cpu == home;
	s.ends_soon = !g || g->tail_ns < ARTIS_FOLLOW_TAIL_NS;
	/* of a task of a real-time class it is not noted when it stops */
	if (s.runs || is_realtime(q)) {
		s.ran_ns = s.runs ? scx_bpf_now() : 0;
		consider(spots, &s);
	}
	s.runs = false;
	for (kind = 0; g && kind < 2; kind++) {
		s.cpu = g->cpu[kind];
		s.ran_ns = g->ran_ns[kind];
		s.home = active && s.cpu == home;
		if (s.ran_ns)
			consider(spots, &s);
	}
}

/*
 * Looks at entry @i of consumer @f, and forgets a producer that has ended. Returns 1 if there is
 * one that lives. Global: verified once.
 */
__noinline int find_spot(struct follow_spots *spots, struct artis_follow *f, u32 i, s32 home)
{
	struct artis_producer *e;
	struct task_struct *q;
	struct artis_follow *g;
	u64 who;

	if (!spots || !f)
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
	g = bpf_task_storage_get(&follow_stor, q, 0, 0);
	if (who == who_is(bpf_get_current_task_btf())) {
		e->turn = ++f->turn;
		if (g && !g->woke_ns)
			g->woke_ns = scx_bpf_now();
	}
	spot_of(spots, q, g, artis_follow_is_active(e->turn, f->turn), home);
	bpf_task_release(q);
	return 1;
}

/* Does @order come before all that waits there? Global: the verifier looks at its loop once. */
__noinline bool follow_passes(u64 order, u32 queue, u32 where)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq_of(queue, where));

	return !head || artis_before(order, common_order(head->scx.dsq_vtime, queue, where));
}

/* To the RT CPU @cpu, where @p may go now: idle, or with an RT1+ consumer's lower. */
static __always_inline s32 follow_to_rt(struct task_struct *p, struct artis_task *t,
					const struct artis_facts *f, s32 cpu)
{
	u32 group = group_of(cpu);
	bool idle;

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || !artis_may_wait(f, ARTIS_QUEUE_CALM, group))
		return -EBUSY;
	idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	if (!idle && (!t->rt1 || !gives_way(cpu, t->rt1)))
		return -EBUSY;
	join(p, t, ARTIS_QUEUE_CALM, group, true);
	insert(p, t, ARTIS_QUEUE_CALM, group, slice_rt(t), 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	scx_bpf_kick_cpu(cpu, idle ? SCX_KICK_IDLE : SCX_KICK_PREEMPT);
	return cpu;
}

/* To the NRT CPU of @s, if the rule says so. */
static __always_inline s32 follow_to_nrt(struct task_struct *p, struct artis_task *t,
					 const struct artis_facts *f, const struct artis_spot *s)
{
	struct artis_follow_in in = { .rank = t->rt1 };
	struct artis_cpu *c = cpu_of(s->cpu);
	u32 queue = artis_queue_of(f), group = group_of(s->cpu);
	enum artis_follow_way way;
	s32 cpu = s->cpu;
	u64 order;

	/* of a core that a real-time task uses the other thread comes last */
	if (shares_core(cpu) || !artis_may_wait(f, queue, group) ||
	    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return -EBUSY;
	join(p, t, queue, group, true);
	in.idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	if (!in.idle) {
		order = common_order(order_of(t), queue, group);
		in.curr_rank = c->curr_rt1;
		in.ext_runs = c->ext_running;
		in.held = c->rt.in_rt;
		in.producer = s->runs;
		in.ends_soon = s->ends_soon;
		in.spare = has_idle(p, group, ARTIS_CPU_NRT, t->nrt_all);
		in.behind = !t->rt1 && c->makes_way &&
			    artis_preempts(&policy, order, c->curr_order);
		/* it may pass those that it could preempt soon */
		if (!t->rt1)
			order -= policy.preempt_margin_ns;
		in.first = !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) &&
			   follow_passes(order, ARTIS_QUEUE_BOUND, group) &&
			   follow_passes(order, ARTIS_QUEUE_CALM, group) &&
			   follow_passes(order, ARTIS_QUEUE_OWN, cpu);
	}
	way = artis_follow_way(&in);
	if (way == ARTIS_FOLLOW_NOT)
		return -EBUSY;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_nrt(t, group), 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	if (way == ARTIS_FOLLOW_PREEMPT) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		count(t->rt1 ? ARTIS_STAT_RT1_PREEMPT : ARTIS_STAT_PREEMPT);
	}
	return cpu;
}

/*
 * Consumer @p wakes. Returns the CPU for which it was inserted, or a negative number: the usual
 * rules decide.
 */
static __noinline s32 follow(struct task_struct *p, struct artis_task *t,
			     const struct artis_facts *facts)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	struct follow_spots spots = {};
	struct artis_spot *nrt = &spots.on[0], *guest = &spots.on[1];
	bool rt = artis_may_use_rt(facts) && t->rt_groups;
	u32 i, live = 0;
	s32 cpu, home;

	if (!f)
		return -EBUSY;
	spots.on[0].cpu = -1;
	spots.on[1].cpu = -1;
	home = t->on_rt ? f->cpu[1] : t->nrt_cpu;
	for (i = 0; i < ARTIS_FOLLOW_MAX; i++)
		live += find_spot(&spots, f, i, home);
	if (!live) {
		t->follow &= ~ARTIS_FOLLOW_CONSUMER;
		return -EBUSY;
	}
	/* an RT1+ task that may prefers RT CPUs; others only if the latest data is there */
	if (rt && guest->cpu >= 0 && (t->rt1 || artis_spot_is_better(guest, nrt))) {
		cpu = follow_to_rt(p, t, facts, guest->cpu);
		if (cpu >= 0)
			return cpu;
	}
	if ((rt && t->rt1) || nrt->cpu < 0)
		return -EBUSY;
	return follow_to_nrt(p, t, facts, nrt);
}

#endif /* ARTIS_QUEUES_FOLLOW_BPF_H */
