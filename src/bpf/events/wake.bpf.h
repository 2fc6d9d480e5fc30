/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task becomes runnable: ops.select_cpu for those that wake, ops.enqueue for
 * all that were not placed there, among them the evicted ones.
 */
#ifndef ARTIS_EVENTS_WAKE_BPF_H
#define ARTIS_EVENTS_WAKE_BPF_H

#include "../policy/place.h"

static __always_inline enum artis_place place(struct task_struct *p, struct artis_task *t, s32 cpu,
					      bool woken, bool reenq)
{
	struct artis_place_in in = {
		.section = t->section,
		.woken = woken,
		.calm = is_calm(t),
		.kernel = is_kernel_task(p),
		.unsettled = is_unsettled(p, t),
		.on_rt = is_rt_cpu(cpu),
		.put_back = reenq,
		.rt1 = !!t->rt1,
		.displaced = reenq && is_held(cpu_of(cpu), scx_bpf_now()),
		.ahead = is_ahead(t),
	};

	return artis_place(&in);
}

/* Who is exempt from eviction or starts on NRT CPUs, each kind counted apart. */
static __always_inline void count_exempt(const struct task_struct *p, const struct artis_task *t)
{
	if (likely(!t->fresh && !p->in_execve && !(p->flags & (PF_EXITING | PF_KTHREAD))))
		return;
	if (t->fresh)
		count(ARTIS_STAT_EXEMPT_NEW);
	else if (p->in_execve)
		count(ARTIS_STAT_EXEMPT_EXEC);
	else if (p->flags & PF_EXITING)
		count(ARTIS_STAT_EXEMPT_EXITING);
	else
		count(ARTIS_STAT_EXEMPT_KTHREAD);
}

/* An RT CPU for RT1+ task @p, which is calm and out of any section: an idle one, or whose task is lower. */
static __always_inline s32 pick_rt1_rt(struct task_struct *p, struct artis_task *t)
{
	s32 cpu = pick_idle_rt(p, t);

	if (cpu >= 0)
		return cpu;
	return t->rt_all || !t->rt_allowed ? lower_rt(t) : lower_allowed(p, t, ARTIS_CPU_RT);
}

/* A woken RT1+ task prefers an RT CPU, also one that computes for somebody lower. */
static __noinline s32 select_rt1(struct task_struct *p, struct artis_task *t, s32 prev_cpu)
{
	s32 cpu;

	if (place(p, t, prev_cpu, true, false) != ARTIS_PLACE_RT_IDLE)
		return -EBUSY;
	cpu = pick_rt1_rt(p, t);
	if (cpu < 0)
		return cpu;
	refresh(p, t, cpu);
	insert_guest(p, t, cpu, 0);
	count_why(t, ARTIS_STAT_RETURN);
	return cpu;
}

/* Not called by the kernel for tasks that may run on one CPU only. */
s32 BPF_STRUCT_OPS(artis_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct artis_task *t = task_of(p);
	s32 cpu;

	if (!t)
		return prev_cpu;
	note_partition(p, t);
	tally_ready(t);
	take_place(p, t, true);
	if (!t->movable)
		return prev_cpu;
	if (auto_follow && (wake_flags & SCX_WAKE_TTWU))
		follow_learn(p);
	if (unlikely(t->follow & ARTIS_FOLLOW_CONSUMER) && !is_unsettled(p, t)) {
		cpu = follow(p, t, place(p, t, prev_cpu, true, false) == ARTIS_PLACE_RT_IDLE);
		if (cpu >= 0)
			return cpu;
	}
	if (unlikely(t->rt1)) {
		cpu = select_rt1(p, t, prev_cpu);
		if (cpu >= 0)
			return cpu;
	}
	cpu = pick_idle_nrt(p, t, t->nrt_cpu);
	if (cpu >= 0) {
		group_join(t, cpu);
		refresh(p, t, cpu);
		seat_join(t, seat_of_cpu(cpu));
		count_exempt(p, t);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, policy.slice_nrt_ns, 0);
		count_why(t, ARTIS_STAT_PLACE_NRT_IDLE);
		return cpu;
	}
	if (place(p, t, prev_cpu, true, false) == ARTIS_PLACE_RT_IDLE) {
		cpu = pick_idle_rt(p, t);
		if (cpu >= 0) {
			refresh(p, t, cpu);
			insert_guest(p, t, cpu, 0);
			count_why(t, ARTIS_STAT_PLACE_RT_IDLE);
			return cpu;
		}
	}
	/* the waker takes the lock of this CPU: never that of an RT CPU (kernel.md section 7) */
	return t->nrt_cpu;
}

/* To 6.18: a real-time task takes @c from @p now, and waits for this program to end. */
static __always_inline bool makes_way(const struct task_struct *p, const struct artis_cpu *c)
{
	return unlikely(c->releasing) && bpf_get_current_task_btf() == p;
}

/*
 * Task @p, which is queued on @c, cannot migrate. Each program of ours that runs is one of the
 * current task's reasons (__bpf_prog_enter(), kernel/bpf/trampoline.c); is_migration_disabled()
 * knows of one. A task that makes way is still the current one: ops.cpu_release and ops.enqueue.
 */
static __always_inline bool cannot_migrate(const struct task_struct *p, const struct artis_cpu *c)
{
	if (makes_way(p, c))
		return p->migration_disabled > (__scx_prolog_disables_migration ? 2 : 0);
	return is_migration_disabled(p);
}

/* Tasks that may run on @cpu only, for now or for good. */
static __always_inline void enqueue_own(struct task_struct *p, struct artis_task *t, s32 cpu,
					u64 enq_flags)
{
	u64 order;

	/* per-CPU kernel threads serve the CPU itself, a migration-disabled task may hold a lock */
	if (is_kernel_task(p) || cannot_migrate(p, cpu_of(cpu)))
		t->advance_ns = artis_first_advance(&policy, t->vtime, clock_for(t, cpu));
	order = order_of(t, is_rt_cpu(cpu) ? t->vtime - ARTIS_BOUND_FIRST : t->vtime);
	insert_own(p, t, cpu, policy.slice_nrt_ns, order, enq_flags);
	count_why(t, ARTIS_STAT_PLACE_OWN);
	if ((enq_flags & SCX_ENQ_LAST) || scx_bpf_test_and_clear_cpu_idle(cpu))
		scx_bpf_kick_cpu(cpu, 0);
	else if (unlikely(t->rt1) && gives_way(cpu, t->rt1))
		preempt_for_rt1(cpu);
	else if (is_rt_cpu(cpu) && cpu_of(cpu)->ext_running && (enq_flags & SCX_ENQ_WAKEUP))
		/* computing tasks are guests there */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	else
		preempt_if_behind(cpu, t->vtime - t->advance_ns);
}

/* Tasks that may run on RT CPUs only, but on several: they cannot leave, and are shown. */
static __always_inline void enqueue_rt_only(struct task_struct *p, struct artis_task *t, s32 cpu,
					    u64 enq_flags)
{
	s32 idle = pick_idle_rt(p, t);

	if (idle >= 0)
		cpu = idle;
	else if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = bpf_cpumask_any_distribute(p->cpus_ptr);
	insert_own(p, t, cpu, policy.slice_nrt_ns, rt_vtime(t, cpu), enq_flags);
	count_why(t, ARTIS_STAT_PLACE_OWN);
	if (idle >= 0 || (enq_flags & SCX_ENQ_LAST))
		scx_bpf_kick_cpu(cpu, 0);
}

/* A calm task goes on where it computes; NRT CPUs may take it from there. */
static __always_inline bool enqueue_rt_stay(struct task_struct *p, struct artis_task *t, s32 cpu,
					    bool reenq, u64 enq_flags)
{
	s32 idle;

	/* a real-time task came: rather go on elsewhere at once, if there is room */
	if (reenq) {
		idle = pick_idle_nrt(p, t, cpu);
		if (idle >= 0) {
			insert_group(p, t, idle, true, enq_flags);
			return true;
		}
	}
	insert_guest(p, t, cpu, enq_flags);
	count_why(t, ARTIS_STAT_PLACE_RT_STAY);
	if (enq_flags & SCX_ENQ_LAST)
		scx_bpf_kick_cpu(cpu, 0);
	return true;
}

/*
 * A calm guest makes way for a real-time task, which is gone soon as a rule: it goes on here then,
 * or where an NRT CPU takes it. No other place is looked for while the real-time task waits.
 */
static __always_inline bool waits_beneath(const struct task_struct *p, const struct artis_task *t,
					  const struct artis_cpu *c)
{
	return makes_way(p, c) && c->kind == ARTIS_CPU_RT && !c->own_nr && !t->rt1 && !t->follow &&
	       t->section == ARTIS_SECTION_NONE && is_calm(t) && !is_kernel_task(p) &&
	       !is_unsettled(p, t);
}

/* Every path out of here inserts the task or ends in scx_bpf_error(). */
void BPF_STRUCT_OPS(artis_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool reenq = enq_flags & SCX_ENQ_REENQ;
	bool woken = enq_flags & SCX_ENQ_WAKEUP;
	s32 cpu = scx_bpf_task_cpu(p);
	struct artis_task *t = task_of(p);
	enum artis_place where;
	s32 rt;

	if (!t)
		return;
	t->queued_seq++;
	tally_ready(t);
	take_place(p, t, woken);
	if (reenq)
		count(ARTIS_STAT_REENQUEUE);
	note_partition(p, t);
	count_exempt(p, t);
	refresh(p, t, cpu);
	t->advance_ns =
		unlikely(is_rcu_reader(p)) ? artis_reader_advance(t->vtime, clock_for(t, cpu)) : 0;
	if (cannot_migrate(p, cpu_of(cpu))) {
		count(ARTIS_STAT_EXEMPT_MIGRATION_DISABLED);
		enqueue_own(p, t, cpu, enq_flags);
		return;
	}
	if (p->nr_cpus_allowed == 1) {
		enqueue_own(p, t, cpu, enq_flags);
		return;
	}
	if (!t->movable) {
		enqueue_rt_only(p, t, cpu, enq_flags);
		return;
	}
	if (waits_beneath(p, t, cpu_of(cpu))) {
		insert_guest(p, t, cpu, enq_flags);
		count_why(t, ARTIS_STAT_PLACE_RT_STAY);
		return;
	}
	if (unlikely(t->follow) && !reenq && follow_stays(p, t, cpu, woken, enq_flags))
		return;
	where = place(p, t, cpu, woken, reenq);
	if (unlikely(t->rt1) && where == ARTIS_PLACE_RT_IDLE) {
		rt = pick_rt1_rt(p, t);
		if (rt >= 0) {
			insert_guest(p, t, rt, enq_flags);
			scx_bpf_kick_cpu(rt, SCX_KICK_IDLE);
			count_why(t, ARTIS_STAT_RETURN);
			return;
		}
		insert_nrt(p, t, cpu, true, enq_flags);
		return;
	}
	/* a guest makes way for those who have no other CPU */
	if (where == ARTIS_PLACE_RT_STAY && !cpu_of(cpu)->own_nr &&
	    bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
		enqueue_rt_stay(p, t, cpu, reenq, enq_flags);
		return;
	}
	/* only where NRT CPUs are contended: a task alone on its CPU has no reason to move */
	if (where == ARTIS_PLACE_RT_IDLE && !(enq_flags & SCX_ENQ_LAST)) {
		rt = pick_idle_rt(p, t);
		if (rt >= 0) {
			insert_guest(p, t, rt, enq_flags);
			scx_bpf_kick_cpu(rt, SCX_KICK_IDLE);
			count_why(t, ARTIS_STAT_PLACE_RT_IDLE);
			return;
		}
	}
	insert_nrt(p, t, cpu, where != ARTIS_PLACE_NRT, enq_flags);
}

#endif /* ARTIS_EVENTS_WAKE_BPF_H */
