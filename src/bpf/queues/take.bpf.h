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

/* When NRT CPUs last looked for tasks stuck beneath real-time ones. */
u64 rescue_looked_ns;

/*
 * To 6.18 a CPU calls ops.dispatch before it asks the real-time classes, when
 * its last task was an ext or idle one: a task moved to the local queue now
 * would be stuck there beneath the real-time task that the CPU then picks.
 */
static __always_inline bool rt_is_next(s32 cpu)
{
	const struct rq *rq;

	if (!dispatch_before_rt)
		return false;
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	return rq && (rq->rt.rt_nr_running || rq->dl.dl_nr_running);
}

static __always_inline bool is_queued(const struct task_struct *p)
{
	return p->scx.flags & SCX_TASK_QUEUED;
}

/* Nothing else to run: let @prev go on. It does not stop, so it is charged here. */
static __always_inline void keep(struct artis_cpu *c, struct artis_task *t,
				 struct task_struct *prev, u64 slice_ns)
{
	c->curr_vtime = t->vtime;
	c->curr_calm = artis_is_calm(&policy, t->quiet_run_ns);
	scx_bpf_task_set_slice(prev, slice_ns);
}

/* Move the head of @cpu's own queue to its local one. */
static __always_inline bool take_own(struct artis_cpu *c, s32 cpu)
{
	if (!c->own_hint)
		return false;
	if (scx_bpf_dsq_move_to_local(own_dsq(cpu), 0))
		return true;
	/* whoever inserts sets the hint after the task is in: look again before it is off */
	c->own_hint = 0;
	if (scx_bpf_dsq_nr_queued(own_dsq(cpu)))
		c->own_hint = 1;
	return false;
}

/*
 * Does @prev, whose slice is over, still come before the head of @dsq? Else two
 * tasks in one queue would take turns whatever their weights. Its virtual time
 * is clamped as if it were queued: the clock may have moved on without it, and
 * who is owed much must not hold off kernel threads until it is paid.
 */
static __always_inline bool comes_first(const struct artis_task *t, u64 dsq)
{
	struct task_struct *head = __COMPAT_scx_bpf_dsq_peek(dsq);

	return !head || artis_before(t->vtime, head->scx.dsq_vtime);
}

static __always_inline void dispatch_rt(struct artis_cpu *c, s32 cpu, struct task_struct *prev)
{
	struct artis_task *t = NULL;

	if (prev && is_queued(prev)) {
		t = task_of(prev);
		if (!t)
			return;
		note_return(c, prev);
		task_charge(c, t, prev);
		clamp_vtime(t, cpu);
		if (!t->movable && c->own_hint && comes_first(t, own_dsq(cpu))) {
			advance_clock(t, cpu);
			keep(c, t, prev, policy.slice_nrt_ns);
			return;
		}
	}
	if (take_own(c, cpu) || !t || c->section >= ARTIS_SECTION_CALL)
		return;
	/* who may not leave stays; who computes stays until it is too far ahead of those who wait */
	if (!t->movable || (artis_is_calm(&policy, t->quiet_run_ns) && !is_ahead(t)))
		keep(c, t, prev, policy.slice_rt_ns);
}

/*
 * Give a calm waiting task to an idle RT CPU.
 *
 * This function and rescue() are global: verified apart from ops.dispatch, of
 * which 6.12's verifier would otherwise follow every combination of loops.
 */
__noinline int push_calm(void)
{
	const struct cpumask *rt = rt_mask();
	struct task_struct *p;
	u32 seen = 0;
	s32 cpu;

	if (!rt)
		return 0;
	cpu = scx_bpf_pick_idle_cpu(rt, 0);
	if (cpu < 0)
		return 0;
	__sink(seen);
	bpf_for_each(scx_dsq, p, ARTIS_DSQ_NRT, 0) {
		struct artis_task *t;

		if (seen++ >= ARTIS_PUSH_SCAN)
			break;
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
		if (!t || t->section != ARTIS_SECTION_NONE ||
		    !artis_is_calm(&policy, t->quiet_run_ns) || is_kernel_task(p) ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, policy.slice_rt_ns);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, cpu_of(cpu)->own_clock);
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, own_dsq(cpu), 0))
			continue;
		cpu_of(cpu)->own_hint = 1;
		rt_queued_hint = 1;
		count(ARTIS_STAT_PUSH);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return 1;
	}
	calm_waiting_hint = 0;
	/* the idle bit was taken for nothing: the CPU puts it back when it looks */
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return 0;
}

/* Put what waits in the own queue of RT CPU @cpu, and may leave, into the NRT queue. */
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
		if (!t || !t->movable || is_migration_disabled(p))
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, t->vtime);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, ARTIS_DSQ_NRT, 0))
			count(ARTIS_STAT_RESCUE);
	}
	return 0;
}

/* Every rescue_ns, some NRT CPU looks at all RT CPUs that a real-time task holds for longer. */
__noinline int rescue(void)
{
	u64 now = scx_bpf_now();
	bool any = false;
	s32 cpu;

	if (now - rescue_looked_ns < policy.rescue_ns)
		return 0;
	rescue_looked_ns = now;
	rt_queued_hint = 0;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		if (c->kind != ARTIS_CPU_RT || !c->own_hint)
			continue;
		any = true;
		if (c->rt.in_rt && now - c->rt.updated_ns >= policy.rescue_ns)
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

		if (c->kind != ARTIS_CPU_RT || !c->own_hint)
			continue;
		if (seen++ >= ARTIS_STEAL_SCAN)
			break;
		if (scx_bpf_dsq_move_to_local(own_dsq(cpu), 0)) {
			count(ARTIS_STAT_TAKE);
			return true;
		}
	}
	return false;
}

/* Is the running task calm, and an RT CPU idle? Then let ops.enqueue place it. */
static __always_inline bool could_go_to_rt(const struct artis_cpu *c, const struct artis_task *t)
{
	const struct cpumask *idle, *rt = rt_mask();
	bool any;

	if (!rt || !t->rt_allowed || c->section != ARTIS_SECTION_NONE ||
	    !artis_is_calm(&policy, t->quiet_run_ns))
		return false;
	idle = scx_bpf_get_idle_cpumask();
	any = bpf_cpumask_intersects(idle, rt);
	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* Does the own queue of an NRT CPU come before the shared one? */
static __always_inline bool own_is_first(s32 cpu)
{
	struct task_struct *own = __COMPAT_scx_bpf_dsq_peek(own_dsq(cpu));
	struct task_struct *shared = __COMPAT_scx_bpf_dsq_peek(ARTIS_DSQ_NRT);

	if (!own || !shared)
		return own;
	return artis_before(own->scx.dsq_vtime, shared->scx.dsq_vtime);
}

static __always_inline void dispatch_nrt(struct artis_cpu *c, s32 cpu, struct task_struct *prev)
{
	struct artis_task *t = NULL;

	if (unlikely(calm_waiting_hint))
		push_calm();
	if (unlikely(rt_queued_hint))
		rescue();
	if (prev && is_queued(prev)) {
		t = task_of(prev);
		if (!t)
			return;
		note_return(c, prev);
		task_charge(c, t, prev);
		clamp_vtime(t, cpu);
		if (!could_go_to_rt(c, t) && comes_first(t, ARTIS_DSQ_NRT) &&
		    (!c->own_hint || comes_first(t, own_dsq(cpu)))) {
			advance_clock(t, cpu);
			keep(c, t, prev, slice_nrt());
			return;
		}
	}
	if (unlikely(c->own_hint) && own_is_first(cpu) && take_own(c, cpu))
		return;
	if (scx_bpf_dsq_move_to_local(ARTIS_DSQ_NRT, 0))
		return;
	if (take_own(c, cpu))
		return;
	if (unlikely(rt_queued_hint) && take_from_rt())
		return;
	if (t)
		keep(c, t, prev, policy.slice_nrt_ns);
}

#endif /* ARTIS_QUEUES_TAKE_BPF_H */
