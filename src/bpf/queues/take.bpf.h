/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a CPU gets its next task: the body of ops.dispatch.
 *
 * RT CPUs look into their own queue only: they never pull, so they never wait
 * for a lock that an NRT CPU holds for long. NRT CPUs do the work of both: they
 * fill idle RT CPUs from the queue they share, take back what waits beneath a
 * real-time task, and, when dry, take what waits on RT CPUs at all.
 */
#ifndef ARTIS_QUEUES_TAKE_BPF_H
#define ARTIS_QUEUES_TAKE_BPF_H

#include "insert.bpf.h"
#include "balance.bpf.h"

#define ARTIS_RESCUE_EVERY_NS 1000000

/* From ops.enqueue's insertion to the kernel's, with time to spare. */
#define ARTIS_INSERTED_NS 100000000

/* follow.bpf.h: the own queue of some NRT CPU may hold a follower, as many looks ago; and what is
 * done about it */
u32 follow_hint;
int take_followers(s32 by);
int rescue_followers(s32 by);

/* When NRT CPUs last looked for tasks stuck beneath real-time ones. */
u64 rescue_looked_ns;

/*
 * To 6.18 a CPU calls ops.dispatch before it asks the real-time classes, when
 * its last task was an ext or idle one: a task moved to the local queue now
 * would be stuck there beneath the real-time task that the CPU then picks.
 */
static __always_inline bool rt_is_next(s32 cpu)
{
	return dispatch_before_rt && has_rt_task(cpu);
}

static __always_inline bool is_queued(const struct task_struct *p)
{
	return p->scx.flags & SCX_TASK_QUEUED;
}

/* Nothing else to run: let @prev go on. It does not stop, so it is charged here. */
static __always_inline void keep(struct artis_cpu *c, struct artis_task *t,
				 struct task_struct *prev, u64 slice_ns)
{
	c->curr_vtime = order_of(t, t->vtime);
	c->curr_calm = is_calm(t);
	scx_bpf_task_set_slice(prev, slice_ns);
}

/* Move the head of @cpu's own queue to its local one. */
static __always_inline bool take_own(struct artis_cpu *c, s32 cpu)
{
	if (!c->own_hint)
		return false;
	if (scx_bpf_dsq_move_to_local(own_dsq(cpu), 0))
		return true;
	/*
	 * What ops.select_cpu and ops.enqueue insert is in once they have returned: whoever looks
	 * before that must leave the hint on. Nobody takes so long, even in emulation.
	 */
	if ((s64)(scx_bpf_now() - c->own_hint_ns) < ARTIS_INSERTED_NS)
		return false;
	/* whoever moves a task here sets the hint afterwards: look again before it is off */
	c->own_hint = 0;
	if (scx_bpf_dsq_nr_queued(own_dsq(cpu)))
		c->own_hint = 1;
	return false;
}

/*
 * Does @prev, whose slice is over and whose virtual time is @vtime, still come
 * before the head of @dsq? Else two tasks in one queue would take turns whatever
 * their weights. Its virtual time is clamped as if it were queued: the clock may
 * have moved on without it, and who is owed much must not hold off kernel
 * threads until it is paid.
 */
static __always_inline bool comes_first(u64 vtime, u64 dsq)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq);

	return !head || artis_before(vtime, head->scx.dsq_vtime);
}

/*
 * RT CPU @cpu has nothing to run, or nothing as high as what waits. It does not pull, but it may
 * ask: the nearest NRT CPU looks at once if a calm task waits for it, and not when its slice ends.
 */
static __always_inline void ask_for_work(s32 cpu)
{
	u32 nrt = near_of(cpu, 0);

	if (nrt == ARTIS_NO_CPU || cpu_of(nrt)->rt.in_rt)
		return;
	if (!group_of(nrt)->calm_hint && !group_of(nrt)->rt1_hint)
		return;
	/* named: it is not marked as idle before ops.dispatch has returned */
	group_of(nrt)->asking = cpu + 1;
	scx_bpf_kick_cpu(nrt, SCX_KICK_PREEMPT);
}

/*
 * RT1+ tasks have used up their share of this second of @cpu, all or the lower ones: one that has
 * not runs now, if there is one. False: the usual order holds, since the first in it may run, or
 * nobody waits whom the others keep from running.
 */
static __noinline bool take_throttled(struct artis_cpu *c, s32 cpu, struct task_struct *prev,
				      bool nrt)
{
	struct artis_task *t = prev && is_queued(prev) ? task_of(prev) : NULL;

	if (t && t->rt1 && may_go_on(c, t))
		return false;
	if (high_is_first(cpu, own_dsq(cpu)) || (nrt && high_is_first(cpu, nrt_dsq(cpu))))
		return false;
	if (let_lower_run(cpu, own_dsq(cpu)) || (nrt && let_lower_run(cpu, nrt_dsq(cpu))))
		return true;
	/* the only one that may is the one that runs */
	if (!nrt || !t || t->rt1)
		return false;
	settle(c, cpu, t, prev);
	clamp_vtime(t, cpu);
	keep(c, t, prev, slice_nrt(cpu));
	return true;
}

static __always_inline void dispatch_rt(struct artis_cpu *c, s32 cpu, struct task_struct *prev)
{
	struct artis_task *t = NULL;
	bool stays = false;

	if (is_throttled(c, ARTIS_RT1_MIN) && take_throttled(c, cpu, prev, false))
		return;
	if (prev && is_queued(prev)) {
		t = task_of(prev);
		if (!t)
			return;
		settle(c, cpu, t, prev);
		clamp_vtime(t, cpu);
		next_turn(prev, t);
		/* who computes stays until it is too far ahead of those who wait on NRT CPUs */
		stays = c->section < ARTIS_SECTION_CALL &&
			(!t->movable || (is_calm(t) && (t->rt1 || (!c->own_nr && !is_ahead(t)))));
		if (stays && c->own_hint && comes_first(rt_vtime(t, cpu), own_dsq(cpu))) {
			clock_pick(t, cpu);
			keep(c, t, prev, t->movable ? slice_rt(t) : policy.slice_nrt_ns);
			return;
		}
	}
	/* no RT1+ task is left here: one may wait elsewhere */
	if (unlikely(rt1_waits) && c->rt1_nr <= (t && t->rt1 && !stays))
		ask_for_work(cpu);
	if (take_own(c, cpu))
		return;
	/* who may not leave stays, too */
	if (!t || (!stays && (t->movable || c->section >= ARTIS_SECTION_CALL)))
		ask_for_work(cpu);
	else
		keep(c, t, prev, t->movable ? slice_rt(t) : policy.slice_nrt_ns);
}

/* An RT CPU that has nothing to run: the one that asked for work, or an idle one. */
static __always_inline s32 pick_hungry_rt(u32 group)
{
	const struct cpumask *rt = rt_mask();
	struct artis_group *g = group_nr(group);
	s32 cpu = (s32)g->asking - 1;

	g->asking = 0;
	if (cpu >= 0 && is_rt_cpu(cpu) && !cpu_of(cpu)->ext_running &&
	    !scx_bpf_dsq_nr_queued(own_dsq(cpu))) {
		scx_bpf_test_and_clear_cpu_idle(cpu);
		return cpu;
	}
	return rt ? scx_bpf_pick_idle_cpu(rt, 0) : -EBUSY;
}

/*
 * Give a calm task that waits in the queue of @group to an idle RT CPU.
 *
 * This function and those below are global: verified apart from ops.dispatch,
 * of which 6.12's verifier would otherwise follow every combination of loops.
 */
__noinline int push_calm(u32 group)
{
	struct task_struct *p;
	s32 cpu = pick_hungry_rt(group);
	u32 seen = 0;

	if (cpu < 0)
		return 0;
	__sink(seen);
	bpf_for_each(scx_dsq, p, group_dsq(group), 0) {
		struct artis_task *t;

		if (seen++ >= ARTIS_PUSH_SCAN)
			break;
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
		if (!t || !may_go_to_rt(t, facts_of(p, t, bpf_cpumask_test_cpu(cpu, p->cpus_ptr))))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, policy.slice_rt_ns);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, rt_vtime(t, cpu));
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, own_dsq(cpu), 0))
			continue;
		seat_join(t, seat_of_cpu(cpu));
		count_why(t, ARTIS_STAT_PUSH);
		gave_to_rt(cpu);
		return 1;
	}
	group_nr(group)->calm_hint = 0;
	/* the idle bit was taken for nothing: the CPU puts it back when it looks */
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return 0;
}

/*
 * RT1+ task @p, where @it is in the queue where it waits, runs on an RT CPU at once if it may and
 * somebody lower does there.
 */
static __always_inline bool give_rt1(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				     struct artis_task *t)
{
	s32 to = may_go_to_rt(t, facts_of(p, t, true)) ? lower_rt(t) : -EBUSY;

	if (to < 0 || !bpf_cpumask_test_cpu(to, p->cpus_ptr))
		return false;
	scx_bpf_dsq_move_set_slice(it, slice_rt(t));
	scx_bpf_dsq_move_set_vtime(it, rt_vtime(t, to));
	if (!scx_bpf_dsq_move_vtime(it, p, own_dsq(to), 0))
		return false;
	seat_join(t, seat_of_cpu(to));
	count_why(t, ARTIS_STAT_RETURN);
	gave_to_rt(to);
	preempt_for_rt1(to);
	return true;
}

/*
 * The highest RT1+ task that waits in the queue of @by's group runs at once where somebody lower
 * does: on an RT CPU if it may, else on another NRT CPU, which has its next task already.
 */
__noinline int push_rt1(s32 by)
{
	struct artis_group *g = group_of(by);
	struct task_struct *p;
	s32 to;

	/* whoever inserts sets it after the task is in */
	g->rt1_hint = 0;
	bpf_for_each(scx_dsq, p, nrt_dsq(by), 0) {
		struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

		if (!t || !t->rt1)
			break;
		g->rt1_hint = 1;
		if (give_rt1(BPF_FOR_EACH_ITER, p, t))
			break;
		to = lower_nrt(t, by, by);
		if (to >= 0)
			preempt_for_rt1(to);
		break;
	}
	rt1_waits = g->rt1_hint;
	return 0;
}

/* Put what waits in the own queue of RT CPU @cpu, and may leave, where it came from. */
__noinline int rescue_from(s32 cpu)
{
	struct task_struct *p;
	u32 seen = 0;

	__sink(seen);
	bpf_for_each(scx_dsq, p, own_dsq(cpu), 0) {
		struct artis_task *t;

		if (seen++ >= ARTIS_PUSH_SCAN)
			break;
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
		/* what is noted of its affinity may be of another partition than the queue */
		if (!t || !t->movable || is_migration_disabled(p) || p->nr_cpus_allowed == 1)
			continue;
		if (unlikely(t->rt1) && give_rt1(BPF_FOR_EACH_ITER, p, t))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_away(t, policy.slice_nrt_ns));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, order_of(t, t->vtime));
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, group_dsq(t->group), 0))
			continue;
		seat_join(t, ARTIS_SEAT_GROUP + t->group);
		group_nr(t->group)->calm_hint = 1;
		if (unlikely(t->rt1))
			rt1_queued(t->group);
		count_why(t, ARTIS_STAT_RESCUE);
	}
	return 0;
}

/*
 * An RT1+ task stays on RT CPU @c: nobody should wait beneath it; or one waits there beneath somebody
 * higher as at the look before: it should not wait on. (One that nobody holds up is about to run.)
 */
static __always_inline bool is_held_by_rt1(struct artis_cpu *c)
{
	u32 waiting = c->rt.in_rt || c->curr_rt1 ? rt1_waiting(c) : 0;
	bool held = (waiting && c->rt1_looked_waiting) || rt1_stays(c);

	c->rt1_looked_pid = c->curr_rt1 ? c->curr_pid : 0;
	c->rt1_looked_waiting = waiting;
	return held;
}

/*
 * Every millisecond, some NRT CPU looks at all CPUs that a real-time task holds: RT
 * CPUs for longer than rescue_ns, and NRT CPUs to which something was handed over; and at the NRT
 * CPUs from which an RT1+ task could go back to an RT CPU.
 */
__noinline int rescue(s32 by)
{
	u64 now = scx_bpf_now();
	bool any = false;
	s32 cpu;

	if ((s64)(now - rescue_looked_ns) < ARTIS_RESCUE_EVERY_NS)
		return 0;
	rescue_looked_ns = now;
	if (handover_hint)
		drain_held(by);
	rt_queued_hint = 0;
	rt1_away_hint = 0;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		if (c->kind == ARTIS_CPU_NRT && unlikely(c->rt1_away) && could_return(c))
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		if (c->kind != ARTIS_CPU_RT || !c->own_hint)
			continue;
		any = true;
		if (is_held(c, now) || is_held_by_rt1(c))
			rescue_from(cpu);
	}
	if (any)
		rt_queued_hint = 1;
	return 0;
}

/* A dry NRT CPU takes what waits on an RT CPU. */
static __always_inline bool take_from_rt(void)
{
	u32 seen = 0;
	s32 cpu;

	__sink(seen);
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		/* an RT1+ task is about to run there */
		if (c->kind != ARTIS_CPU_RT || !c->own_hint || c->rt1_nr)
			continue;
		if (seen++ >= ARTIS_STEAL_SCAN)
			break;
		if (scx_bpf_dsq_move_to_local(own_dsq(cpu), 0)) {
			count_took(ARTIS_STAT_TAKE);
			return true;
		}
	}
	return false;
}

/*
 * Is the running task calm, and an RT CPU idle or, for an RT1+ task, with somebody lower? Then
 * let ops.enqueue place it: that is the return of an RT1+ task at the end of its section.
 */
static __always_inline bool could_go_to_rt(const struct artis_cpu *c, struct artis_task *t)
{
	if (!t->rt_allowed || c->section != ARTIS_SECTION_NONE || !is_calm(t))
		return false;
	return has_idle(rt_mask()) || (unlikely(t->rt1) && lower_rt(t) >= 0);
}

/* Does the own queue of an NRT CPU come before the one that it shares? */
static __always_inline bool own_is_first(s32 cpu)
{
	struct task_struct *own = __COMPAT_scx_bpf_dsq_peek(own_dsq(cpu));
	struct task_struct *shared = __COMPAT_scx_bpf_dsq_peek(nrt_dsq(cpu));

	if (!own || !shared)
		return own;
	return artis_before(own->scx.dsq_vtime, shared->scx.dsq_vtime);
}

/* A dry NRT CPU takes from another group; those without an NRT CPU left come first. */
__noinline int take_from_groups(s32 cpu)
{
	u32 group, mine = llc_of(cpu), tried = 0;

	__sink(tried);
	bpf_for(group, 0, nr_groups) {
		if (group == mine || !group_nr(group)->weight)
			continue;
		if (tried++ >= ARTIS_STEAL_SCAN)
			break;
		if (scx_bpf_dsq_move_to_local(group_dsq(group), 0)) {
			count_took(ARTIS_STAT_BALANCE_LLC);
			return 1;
		}
	}
	return 0;
}

/* What NRT CPUs do for others once they have a task of their own. */
static __always_inline void serve_others(s32 cpu)
{
	if (unlikely(group_of(cpu)->rt1_hint))
		push_rt1(cpu);
	if (unlikely(group_of(cpu)->calm_hint))
		push_calm(llc_of(cpu));
	if (unlikely(rt_queued_hint || handover_hint || rt1_away_hint))
		rescue(cpu);
	if (unlikely(follow_hint))
		rescue_followers(cpu);
	if (scx_bpf_now() - group_of(cpu)->looked_ns >= policy.balance_ns)
		balance(cpu);
}

/* The next task of NRT CPU @cpu, which is dry if there is none. */
static __always_inline bool take_any(struct artis_cpu *c, s32 cpu)
{
	if (unlikely(c->own_hint) && own_is_first(cpu) && take_own(c, cpu))
		return true;
	if (scx_bpf_dsq_move_to_local(nrt_dsq(cpu), 0))
		return true;
	if (take_own(c, cpu))
		return true;
	if (unlikely(rt_queued_hint) && take_from_rt())
		return true;
	if (unlikely(follow_hint) && take_followers(cpu))
		return true;
	return nr_groups > 1 && take_from_groups(cpu);
}

static __always_inline void dispatch_nrt(struct artis_cpu *c, s32 cpu, struct task_struct *prev)
{
	struct artis_task *t = NULL;
	bool stays = false, goes = false, returns = false;
	u32 came = 0;
	u64 order;

	if (unlikely(c->inbox)) {
		c->came_vtime = group_of(cpu)->clock + ARTIS_VTIME_FAR;
		came = drain(cpu, cpu);
		/* this CPU can take one of them, or none */
		if (came && (came > 1 || (prev && is_queued(prev))))
			wake_some_nrt();
	}
	if (is_throttled(c, ARTIS_RT1_MIN) && take_throttled(c, cpu, prev, true)) {
		serve_others(cpu);
		return;
	}
	if (prev && is_queued(prev)) {
		t = task_of(prev);
		if (!t)
			return;
		settle(c, cpu, t, prev);
		clamp_vtime(t, cpu);
		next_turn(prev, t);
		order = order_of(t, t->vtime);
		/* what came is not in the queue yet, but when this returns or moves a task */
		goes = could_go_to_rt(c, t);
		/* even if it is alone here */
		returns = goes && t->rt1;
		stays = !(came && artis_before(c->came_vtime, order)) && !goes &&
			comes_first(order, nrt_dsq(cpu)) &&
			(!c->own_hint || comes_first(order, own_dsq(cpu)));
	}
	if (stays) {
		clock_pick(t, cpu);
		keep(c, t, prev, slice_away(t, slice_nrt(cpu)));
	} else if (!take_any(c, cpu) && t && !returns) {
		keep(c, t, prev, slice_away(t, policy.slice_nrt_ns));
	}
	/* then, or what it gives away would come straight back */
	serve_others(cpu);
}

#endif /* ARTIS_QUEUES_TAKE_BPF_H */
