/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A consumer wakes: where did its producers run, and may it go there? Called in
 * ops.select_cpu for tasks that follow others.
 *
 * Followers go into the local queue of an NRT CPU, behind at most the task that
 * runs there: they are next when it sleeps, at the latest when its slice ends,
 * and they are put back like any other when a real-time task takes the CPU. Who
 * waits in the queues meanwhile is passed only by what virtual time allows; a
 * follower that may not waits in the own queue of the CPU, until another one
 * runs dry.
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
static __always_inline void look_at(struct follow_spots *spots, struct task_struct *q,
				    const struct artis_follow *g, bool declared, bool active,
				    s32 home)
{
	struct artis_spot s = { .declared = declared };
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
	look_at(spots, q, g, !e->learned, artis_follow_is_active(e->turn, f->turn), home);
	bpf_task_release(q);
	return 1;
}

/* Does @order come before all that waits in @dsq? Global: the verifier looks at its loop once. */
__noinline bool follow_passes(u64 order, u64 dsq)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq);

	return !head || artis_before(order, head->scx.dsq_vtime);
}

/* To the RT CPU @cpu, where @p may go now: idle, or with an RT1+ consumer's lower. */
static __always_inline s32 follow_to_rt(struct task_struct *p, struct artis_task *t, s32 cpu)
{
	struct artis_cpu *c = cpu_of(cpu);

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return -EBUSY;
	if (!scx_bpf_test_and_clear_cpu_idle(cpu) &&
	    (!t->rt1 || !c->ext_running || c->rt.in_rt || c->rt1_nr > 1 || c->curr_rt1 >= t->rt1))
		return -EBUSY;
	refresh(p, t, cpu);
	insert_guest(p, t, cpu, 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	return cpu;
}

/* To the NRT CPU of @s, if the rule says so. */
static __always_inline s32 follow_to_nrt(struct task_struct *p, struct artis_task *t,
					 const struct artis_spot *s)
{
	struct artis_follow_in in = { .rank = t->rt1 };
	struct artis_cpu *c = cpu_of(s->cpu);
	enum artis_follow_way way;
	s32 cpu = s->cpu;
	u64 order;

	/* of a core that a real-time task uses the other thread comes last */
	if (*core_rt_of(cpu) || (!t->nrt_all && !bpf_cpumask_test_cpu(cpu, p->cpus_ptr)))
		return -EBUSY;
	group_join(t, cpu);
	refresh(p, t, cpu);
	in.idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	if (!in.idle) {
		order = order_of(t, t->vtime);
		in.curr_rank = c->curr_rt1;
		in.ext_runs = c->ext_running;
		in.held = c->rt.in_rt;
		in.producer = s->runs;
		in.declared = s->declared;
		in.ends_soon = s->ends_soon;
		in.spare = has_idle(nrt_mask());
		in.behind = !t->rt1 && c->curr_calm &&
			    artis_preempts(&policy, order, c->curr_vtime);
		/* it may pass whom it could preempt soon */
		if (!t->rt1)
			order -= policy.preempt_margin_ns;
		in.first = !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) &&
			   follow_passes(order, nrt_dsq(cpu)) && follow_passes(order, own_dsq(cpu));
	}
	way = artis_follow_way(&in);
	if (way == ARTIS_FOLLOW_NOT)
		return -EBUSY;
	if (way == ARTIS_FOLLOW_QUEUE) {
		/* by ops.enqueue, which holds the lock of that CPU: it cannot miss the hint */
		t->follow_waits = true;
		return cpu;
	}
	seat_join(t, seat_of_cpu(cpu));
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_nrt(cpu), 0);
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	if (way == ARTIS_FOLLOW_PREEMPT) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		count(t->rt1 ? ARTIS_STAT_RT1_PREEMPT : ARTIS_STAT_PREEMPT);
	}
	return cpu;
}

/*
 * Consumer @p wakes. @rt: it may go to an RT CPU now. Returns the CPU for which it was inserted,
 * or a negative number: the usual rules decide.
 */
static __noinline s32 follow(struct task_struct *p, struct artis_task *t, bool rt)
{
	struct artis_follow *f = bpf_task_storage_get(&follow_stor, p, 0, 0);
	struct follow_spots spots = {};
	struct artis_spot *nrt = &spots.on[0], *guest = &spots.on[1];
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
	if (rt && t->rt_allowed && guest->cpu >= 0 &&
	    (t->rt1 || artis_spot_is_better(guest, nrt))) {
		cpu = follow_to_rt(p, t, guest->cpu);
		if (cpu >= 0)
			return cpu;
	}
	if ((rt && t->rt1) || nrt->cpu < 0)
		return -EBUSY;
	return follow_to_nrt(p, t, nrt);
}

/*
 * ops.enqueue: a follower that ops.select_cpu lets wait for @cpu, or that was preempted there,
 * stays while no NRT CPU is idle. Returns false if it does not.
 */
static __always_inline bool follow_stays(struct task_struct *p, struct artis_task *t, s32 cpu,
					 bool woken, u64 enq_flags)
{
	bool waits = t->follow_waits;

	t->follow_waits = false;
	if (t->rt1 || !(t->follow & ARTIS_FOLLOW_CONSUMER) || is_rt_cpu(cpu) ||
	    cpu_of(cpu)->rt.in_rt || (enq_flags & SCX_ENQ_LAST) ||
	    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return false;
	if (woken ? !waits : has_idle(nrt_mask()))
		return false;
	insert_own(p, t, cpu, slice_nrt(cpu), order_of(t, t->vtime), enq_flags);
	/* it is in the queue when this function has returned: one look in vain does not clear it */
	follow_hint = 2;
	count_why(t, ARTIS_STAT_PLACE_FOLLOW);
	if (woken)
		preempt_if_behind(cpu, t->vtime);
	return true;
}

/* NRT CPU @by is dry: a follower that waits for another one is better off here. */
__noinline int take_followers(s32 by)
{
	s32 cpu;

	bpf_for(cpu, 0, policy.nr_cpus) {
		if (cpu != by && cpu_of(cpu)->kind == ARTIS_CPU_NRT &&
		    scx_bpf_dsq_nr_queued(own_dsq(cpu)) &&
		    scx_bpf_dsq_move_to_local(own_dsq(cpu), 0)) {
			count_took(ARTIS_STAT_TAKE);
			return 1;
		}
	}
	return 0;
}

/* When followers were last looked for that wait beneath a real-time task. */
u64 follow_looked_ns;

/* Every millisecond: followers whose NRT CPU a real-time task holds wait with all others. */
__noinline int rescue_followers(s32 by)
{
	u64 now = scx_bpf_now();
	bool any = false;
	s32 cpu;

	if ((s64)(now - follow_looked_ns) < ARTIS_RESCUE_EVERY_NS)
		return 0;
	follow_looked_ns = now;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		if (c->kind != ARTIS_CPU_NRT || !scx_bpf_dsq_nr_queued(own_dsq(cpu)))
			continue;
		any = true;
		if (cpu != by && c->rt.in_rt)
			rescue_from(cpu);
	}
	if (!any && follow_hint)
		follow_hint--;
	return 0;
}

#endif /* ARTIS_QUEUES_FOLLOW_BPF_H */
