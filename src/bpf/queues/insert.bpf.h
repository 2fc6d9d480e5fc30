/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a verdict becomes a queue entry: the only code that inserts tasks and
 * kicks CPUs for them.
 *
 * An RT CPU's local queue never holds waiting work: what an RT CPU is given
 * goes into its own user queue, from which NRT CPUs can take it back, and its
 * dispatch moves one task at a time.
 */
#ifndef ARTIS_QUEUES_INSERT_BPF_H
#define ARTIS_QUEUES_INSERT_BPF_H

#include "dsq_id.h"

/* Not static: clang would shrink a flag to one byte and leave its BTF at four. */
/* Some RT CPU's own queue may hold a task that NRT CPUs could take. A hint: set after inserting. */
u32 rt_queued_hint;

/*
 * Real-time tasks have held RT CPU @c for so long that no guest should wait beneath it; or one
 * that may run nowhere else has: it comes before all guests.
 */
static __always_inline bool is_held(const struct artis_cpu *c, u64 now_ns)
{
	if (c->rt.in_rt && (s64)(now_ns - c->held_since_ns) >= (s64)policy.rescue_ns)
		return true;
	return c->own_nr && (s64)(now_ns - c->bound_since_ns) >= (s64)policy.rescue_ns;
}

/* Run of a task on NRT CPU @cpu. */
static __always_inline u64 slice_nrt(s32 cpu)
{
	return artis_slice_nrt(&policy, scx_bpf_dsq_nr_queued(nrt_dsq(cpu)));
}

#include "rt1.bpf.h"
#include "handover.bpf.h"

/* Nobody is far behind the clock or far ahead of it. */
static __always_inline void clamp_vtime(struct artis_task *t, s32 cpu)
{
	t->vtime = artis_vtime_clamp(&policy, t->vtime, clock_for(t, cpu), t->inv_weight);
}

/* Weight, places and virtual time as they count from now on, for a task on @cpu. */
static __always_inline void refresh(struct task_struct *p, struct artis_task *t, s32 cpu)
{
	task_refresh_weight(p, t);
	clamp_vtime(t, cpu);
}

/* A task that runs alone on an RT CPU has had so much more than those who wait. */
static __always_inline bool is_ahead(const struct artis_task *t)
{
	u64 clock = group_nr(t->group)->clock;

	return artis_before(artis_vtime_latest(&policy, clock, t->inv_weight), t->vtime);
}

/*
 * An idle NRT CPU that @p may use, its idle bit taken, or a negative number.
 * The one where it ran last is preferred for its caches if it shares the last
 * level of @here's, then the nearest to @here; one whose core a real-time task
 * uses comes after all others.
 */
__noinline s32 pick_idle_nrt(struct task_struct *p __arg_trusted,
			     struct artis_task *t __arg_nonnull, s32 here)
{
	const struct cpumask *nrt;
	s32 cpu = t->nrt_cpu, shared_core = -EBUSY;
	u32 i;

	if (likely(!*core_rt_of(cpu)) && (nr_groups == 1 || llc_of(cpu) == llc_of(here)) &&
	    scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	if (nr_nrt_cpus == 1)
		return *core_rt_of(cpu) && scx_bpf_test_and_clear_cpu_idle(cpu) ? cpu : -EBUSY;
	if (!has_idle(nrt_mask()))
		return -EBUSY;
	bpf_for(i, 0, ARTIS_NEAR) {
		cpu = near_of(here, i);
		if (cpu == ARTIS_NO_CPU)
			break;
		if (unlikely(!t->nrt_all) && !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (unlikely(*core_rt_of(cpu))) {
			if (shared_core < 0)
				shared_core = cpu;
			continue;
		}
		if (scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	if (unlikely(shared_core >= 0) && scx_bpf_test_and_clear_cpu_idle(shared_core))
		return shared_core;
	/* beyond the near ones any will do */
	if (nr_nrt_cpus <= ARTIS_NEAR || !t->nrt_all)
		return -EBUSY;
	nrt = nrt_mask();
	return nrt ? scx_bpf_pick_idle_cpu(nrt, 0) : -EBUSY;
}

/* Some idle NRT CPU shall look for work. */
static __always_inline void wake_some_nrt(void)
{
	const struct cpumask *nrt = nrt_mask();
	s32 cpu = nrt ? scx_bpf_pick_idle_cpu(nrt, 0) : -EBUSY;

	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* An idle RT CPU that @p may use, its idle bit taken, or a negative number. */
static __always_inline s32 pick_idle_rt(struct task_struct *p, struct artis_task *t)
{
	const struct cpumask *rt = rt_mask();
	s32 cpu;

	if (!t->rt_allowed || !rt)
		return -EBUSY;
	cpu = scx_bpf_pick_idle_cpu(rt, 0);
	if (cpu < 0 || bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return cpu;
	/* Not for this task: put the idle bit back by letting the CPU look once. */
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (is_rt_cpu(cpu) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -EBUSY;
}

/*
 * Take NRT CPU @cpu from a computing task for one with virtual time @vtime, if
 * that is far behind. Tasks that enter the kernel all the time make way soon
 * enough by themselves: preempting those costs more than it gives.
 */
static __always_inline void preempt_if_behind(s32 cpu, u64 vtime)
{
	struct artis_cpu *c = cpu_of(cpu);

	/* by virtual time among NRT tasks only */
	if (unlikely(c->curr_rt1))
		return;
	if (c->kind != ARTIS_CPU_NRT || !c->ext_running || !c->curr_calm ||
	    !artis_preempts(&policy, vtime, c->curr_vtime))
		return;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	count(ARTIS_STAT_PREEMPT);
}

/* From RT CPU @here to NRT CPU @to without waiting, if that is possible. */
static __always_inline bool insert_handover(struct task_struct *p, struct artis_task *t, s32 here,
					    s32 to, bool idle)
{
	if (policy.handover != ARTIS_HANDOVER_FIFO || !hand_over(p, t, here, to))
		return false;
	/* one that computes looks at once, and goes on if its task comes first; others look soon */
	if (idle || cpu_of(to)->curr_calm || unlikely(t->rt1))
		scx_bpf_kick_cpu(to, idle ? SCX_KICK_IDLE : SCX_KICK_PREEMPT);
	return true;
}

/* The queue of NRT CPU @to and its group; @idle: its idle bit was taken for this task. */
__noinline bool insert_group(struct task_struct *p __arg_trusted,
			     struct artis_task *t __arg_nonnull, s32 to, bool idle, u64 enq_flags)
{
	s32 me = bpf_get_smp_processor_id();

	count_why(t, idle ? ARTIS_STAT_PLACE_NRT_IDLE : ARTIS_STAT_PLACE_NRT_QUEUE);
	if (is_rt_cpu(me) && insert_handover(p, t, me, to, idle))
		return true;
	group_join(t, to);
	seat_join(t, seat_of_cpu(to));
	scx_bpf_dsq_insert_vtime(p, nrt_dsq(to), slice_away(t, slice_nrt(to)),
				 order_of(t, t->vtime), enq_flags);
	if (idle)
		scx_bpf_kick_cpu(to, SCX_KICK_IDLE);
	return false;
}

/*
 * The NRT CPUs: an idle one, or the one that the task may preempt, or whichever
 * of the group is free first. @here is the CPU that holds the task's runqueue.
 */
static __always_inline void insert_nrt(struct task_struct *p, struct artis_task *t, s32 here,
				       bool calm, u64 enq_flags)
{
	s32 idle, to, lower = -EBUSY;

	/* alone on an NRT CPU that goes idle: only this wakes it (kernel.md 3.1) */
	if ((enq_flags & SCX_ENQ_LAST) && !is_rt_cpu(here) &&
	    bpf_cpumask_test_cpu(here, p->cpus_ptr)) {
		insert_group(p, t, here, false, enq_flags);
		scx_bpf_kick_cpu(here, 0);
		return;
	}
	idle = pick_idle_nrt(p, t, here);
	to = idle >= 0 ? idle : t->nrt_cpu;
	if (unlikely(t->rt1) && idle < 0) {
		lower = t->nrt_all ? lower_nrt(t, here, -1) : lower_allowed(p, t, ARTIS_CPU_NRT);
		if (lower >= 0)
			to = lower;
	}
	if (insert_group(p, t, to, idle >= 0, enq_flags) || idle >= 0)
		return;
	if (unlikely(t->rt1)) {
		rt1_queued(llc_of(to));
		if (lower >= 0)
			preempt_for_rt1(lower);
		return;
	}
	if (calm && t->rt_allowed)
		group_of(t->nrt_cpu)->calm_hint = 1;
	if (t->nrt_cpu != here || (enq_flags & SCX_ENQ_WAKEUP))
		preempt_if_behind(t->nrt_cpu, t->vtime);
}

/* The own queue of @cpu. The caller wakes the CPU if it must. */
static __always_inline void insert_own(struct task_struct *p, struct artis_task *t, s32 cpu,
				       u64 slice_ns, u64 order, u64 enq_flags)
{
	seat_join(t, seat_of_cpu(cpu));
	scx_bpf_dsq_insert_vtime(p, own_dsq(cpu), slice_ns, order, enq_flags);
	cpu_of(cpu)->own_hint_ns = scx_bpf_now();
	cpu_of(cpu)->own_hint = 1;
}

/* Order of @t in the own queue of RT CPU @cpu: guests are all on the clock of its nearest group. */
static __always_inline u64 rt_vtime(struct artis_task *t, s32 cpu)
{
	if (!t->movable)
		return order_of(t, t->vtime - ARTIS_BOUND_FIRST);
	group_join(t, near_of(cpu, 0));
	return order_of(t, t->vtime);
}

/* An NRT CPU has put tasks into the own queue of RT CPU @cpu. */
static __always_inline void gave_to_rt(s32 cpu)
{
	cpu_of(cpu)->own_hint = 1;
	rt_queued_hint = 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* The own queue of RT CPU @cpu, for a calm task that NRT CPUs may take back. */
static __always_inline void insert_guest(struct task_struct *p, struct artis_task *t, s32 cpu,
					 u64 enq_flags)
{
	insert_own(p, t, cpu, slice_rt(t), rt_vtime(t, cpu), enq_flags);
	if (!rt_queued_hint)
		rt_queued_hint = 1;
	if (unlikely(t->rt1) && gives_way(cpu, t->rt1))
		preempt_for_rt1(cpu);
}

#endif /* ARTIS_QUEUES_INSERT_BPF_H */
