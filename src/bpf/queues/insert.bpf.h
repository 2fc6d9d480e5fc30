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
/* The NRT queue may hold a calm task that an idle RT CPU could run. A hint likewise. */
u32 calm_waiting_hint;

static __always_inline u64 slice_nrt(void)
{
	return artis_slice_nrt(&policy, scx_bpf_dsq_nr_queued(ARTIS_DSQ_NRT));
}

/*
 * Nobody is far behind the clock or far ahead of it. Tasks that may run on RT
 * CPUs only compete with each other there: the clock of the NRT CPUs says
 * nothing about them.
 */
static __always_inline void clamp_vtime(struct artis_task *t, s32 cpu)
{
	u64 clock = t->movable ? vtime_clock : cpu_of(cpu)->own_clock;

	t->vtime = artis_vtime_clamp(&policy, t->vtime, clock, t->inv_weight);
}

/* @t is the next to run on @cpu: nobody who competes with it there is further behind. */
static __always_inline void advance_clock(const struct artis_task *t, s32 cpu)
{
	u64 *own = &cpu_of(cpu)->own_clock, now, elapsed;

	if (!t->movable) {
		if (artis_before(*own, t->vtime))
			*own = t->vtime;
		return;
	}
	now = scx_bpf_now();
	elapsed = vtime_clock_moved_ns ? now - vtime_clock_moved_ns : 0;
	/* the clocks of two CPUs may differ a little */
	if ((s64)elapsed < 0)
		elapsed = 0;
	else
		vtime_clock_moved_ns = now;
	vtime_clock = artis_clock_next(vtime_clock, t->vtime, elapsed);
}

/* Weight and virtual time as they count from now on, for a task on @cpu. */
static __always_inline void refresh(struct task_struct *p, struct artis_task *t, s32 cpu)
{
	task_refresh_weight(p, t);
	clamp_vtime(t, cpu);
}

/* A task that runs alone on an RT CPU has had so much more than those who wait. */
static __always_inline bool is_ahead(const struct artis_task *t)
{
	return artis_before(artis_vtime_latest(&policy, vtime_clock, t->inv_weight), t->vtime);
}

/*
 * An idle NRT CPU that @p may use, its idle bit taken, or a negative number.
 * The one where it ran last is preferred for its caches.
 */
static __always_inline s32 pick_idle_nrt(struct task_struct *p, struct artis_task *t)
{
	const struct cpumask *nrt;
	s32 cpu;

	if (scx_bpf_test_and_clear_cpu_idle(t->nrt_cpu))
		return t->nrt_cpu;
	if (nr_nrt_cpus == 1)
		return -EBUSY;
	if (likely(t->nrt_all)) {
		nrt = nrt_mask();
		return nrt ? scx_bpf_pick_idle_cpu(nrt, 0) : -EBUSY;
	}
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (!is_rt_cpu(cpu) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -EBUSY;
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

	if (c->kind != ARTIS_CPU_NRT || !c->ext_running || !c->curr_calm ||
	    !artis_preempts(&policy, vtime, c->curr_vtime))
		return;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	count(ARTIS_STAT_PREEMPT);
}

/*
 * The queue that NRT CPUs share. Wakes an idle NRT CPU, or the one that the
 * task may preempt; @here is the CPU that holds the task's runqueue.
 */
static __always_inline void insert_nrt(struct task_struct *p, struct artis_task *t, s32 here,
				       bool calm, u64 enq_flags)
{
	s32 idle;

	scx_bpf_dsq_insert_vtime(p, ARTIS_DSQ_NRT, slice_nrt(), t->vtime, enq_flags);
	if (calm && t->rt_allowed)
		calm_waiting_hint = 1;
	/* alone on an NRT CPU that goes idle: only this wakes it (kernel.md 3.1) */
	if ((enq_flags & SCX_ENQ_LAST) && !is_rt_cpu(here) &&
	    bpf_cpumask_test_cpu(here, p->cpus_ptr)) {
		scx_bpf_kick_cpu(here, 0);
		return;
	}
	idle = pick_idle_nrt(p, t);
	if (idle >= 0) {
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
		count(ARTIS_STAT_PLACE_NRT_IDLE);
		return;
	}
	count(ARTIS_STAT_PLACE_NRT_QUEUE);
	if (t->nrt_cpu != here || (enq_flags & SCX_ENQ_WAKEUP))
		preempt_if_behind(t->nrt_cpu, t->vtime);
}

/* The own queue of @cpu. The caller wakes the CPU if it must. */
static __always_inline void insert_own(struct task_struct *p, s32 cpu, u64 slice_ns, u64 vtime,
				       u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, own_dsq(cpu), slice_ns, vtime, enq_flags);
	cpu_of(cpu)->own_hint = 1;
}

/* The own queue of RT CPU @cpu, for a calm task that NRT CPUs may take back. */
static __always_inline void insert_guest(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	insert_own(p, cpu, policy.slice_rt_ns, cpu_of(cpu)->own_clock, enq_flags);
	rt_queued_hint = 1;
}

#endif /* ARTIS_QUEUES_INSERT_BPF_H */
