/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues tasks where artis_may_wait() allows. A CPU that takes from there then looks: a kicked one,
 * or that of the run queue before it idles. If a real-time task holds it, see events/rt.bpf.h. */
#pragma once
#include "pick.bpf.h"

/* To 6.18 a real-time pick may follow ops.dispatch: a task moved there would be stuck beneath. */
static __always_inline bool rt_is_next(s32 cpu)
{
	return dispatch_before_rt && has_rt_task(cpu);
}

/* A real-time task takes @cpu from @p, and waits for this program to end. */
static __always_inline bool is_making_way(const struct task_struct *p, s32 cpu)
{
	return put_back_lazy && bpf_get_current_task_btf() == p && has_rt_task(cpu);
}

/* Is a task in @section in the kernel? @woken: it wakes from sleep, in a call if @section is one. */
static __always_inline bool is_inside(u32 section, bool woken)
{
	return section != (woken ? ARTIS_SECTION_SLEEPING : ARTIS_SECTION_NONE);
}

/* Completes what decides where @p may wait; cpu, pinned and inside are set. Returns the queue. Global
 * as what follows: verified once, else with each combination of the facts. */
__noinline u32 note_facts(struct artis_facts *f __arg_nonnull, struct task_struct *p __arg_trusted,
			  struct artis_task *t __arg_nonnull)
{
	f->nrt_groups = t->nrt_groups;
	f->rt_groups = t->rt_groups;
	/* also if its CPUs have just come online and are of no group yet */
	if (p->nr_cpus_allowed == 1 || !(t->nrt_groups | t->rt_groups))
		f->pinned = true;
	f->calm = is_calm(t);
	f->kernel = is_kernel_task(p);
	f->unsettled = t->fresh || (p->flags & PF_EXITING) || p->in_execve;
	f->rt_forbidden = t->rt_forbidden;
	return artis_queue_of(f);
}

/* The group for @queue: @prefer if artis_may_wait() allows, else the first that it does. */
__noinline u32 group_for(const struct artis_facts *f __arg_nonnull, u32 queue, u32 prefer)
{
	u64 groups = f->nrt_groups ? f->nrt_groups : f->rt_groups;

	if (likely(artis_may_wait(f, queue, prefer)))
		return prefer;
	return artis_log2(groups & -groups) & (ARTIS_MAX_GROUPS - 1);
}

static __always_inline void insert_as_is(struct task_struct *p, struct artis_task *t, u32 queue,
					 u32 where, u64 slice_ns, u64 enq_flags)
{
	t->slice_rt = false;
	scx_bpf_dsq_insert_vtime(p, dsq_of(queue, where), slice_ns, order_of(t), enq_flags);
}

static __always_inline void insert(struct task_struct *p, struct artis_task *t, u32 queue,
				   u32 where, u64 slice_ns, u64 enq_flags)
{
	insert_as_is(p, t, queue, where, slice_ns, enq_flags);
	count_why(t, queue == ARTIS_QUEUE_OWN	? ARTIS_STAT_PLACE_OWN :
		     queue == ARTIS_QUEUE_BOUND ? ARTIS_STAT_PLACE_BOUND :
						  ARTIS_STAT_PLACE_CALM);
}

/* Puts @t on the clock of @queue of @where; after sleep or in another group vtime is clamped. */
__noinline int join_as_is(struct artis_task *t __arg_nonnull, u32 queue, u32 where, bool woken)
{
	u32 group = t->group;

	queue_join(t, queue, where);
	if (woken || t->group != group)
		t->vtime = artis_vtime_clamp(&policy, t->vtime, clock_of(queue, where)->vtime,
					     t->inv_weight);
	return 0;
}

static __always_inline void join(struct task_struct *p, struct artis_task *t, u32 queue, u32 where,
				 bool woken)
{
	task_refresh_weight(p, t);
	join_as_is(t, queue, where, woken);
}

/* Does an ext task run on @cpu, or wait there until a kernel thread ends? */
static __always_inline bool runs_ext(s32 cpu)
{
	return cpu_of(cpu)->ext_running || can_put_back(cpu);
}

static __always_inline bool is_far_ahead(s32 cpu, u64 order)
{
	struct artis_cpu *c = cpu_of(cpu);

	return c->makes_way && runs_ext(cpu) && artis_preempts(&policy, order, c->curr_order);
}

/* For tasks that may run on @cpu only, for now or for good, or that a dead CPU wakes. */
static __always_inline void enqueue_own(struct task_struct *p, struct artis_task *t, s32 cpu,
					u64 enq_flags)
{
	struct artis_cpu *c = cpu_of(cpu);

	join(p, t, ARTIS_QUEUE_OWN, cpu, enq_flags & SCX_ENQ_WAKEUP);
	/* not before EMPTY: tasks of the local queue keep from a dispatch. A kick by a dead CPU would
	 * stay pending, and with it all later ones of that CPU, also when it has come back */
	if (unlikely(c->gone >= ARTIS_GONE_EMPTY || this_cpu()->gone == ARTIS_GONE_DEAD)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, policy.slice_nrt_ns, enq_flags);
		return;
	}
	/* perhaps inside the attempt hook, which the kernel skips meanwhile for others: it goes on first */
	if (unlikely(is_migration_disabled(p)) && !(enq_flags & SCX_ENQ_WAKEUP)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 1, enq_flags | SCX_ENQ_HEAD);
		return;
	}
	/* a per-CPU kernel thread serves the CPU, a migration-disabled task may hold a lock */
	if (is_kernel_task(p) || p->nr_cpus_allowed > 1)
		t->advance_ns = artis_first_advance(&policy, t->vtime, c->own.vtime);
	insert(p, t, ARTIS_QUEUE_OWN, cpu, policy.slice_nrt_ns, enq_flags);
	if (unlikely(t->rt1) && gives_way(cpu, t->rt1))
		preempt(cpu, ARTIS_STAT_RT1_PREEMPT);
	else if ((enq_flags & SCX_ENQ_WAKEUP && c->kind == ARTIS_CPU_RT &&
		  runs_ext(cpu)) || /* a guest */
		 is_far_ahead(cpu, common_order(order_of(t), ARTIS_QUEUE_OWN, cpu)))
		preempt(cpu, ARTIS_STAT_PREEMPT);
	else
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Claims an idle CPU that takes from @queue for @p, @group first; < 0: none. */
__noinline s32 idle_for(struct task_struct *p __arg_trusted, struct artis_task *t __arg_nonnull,
			u32 queue, u32 group)
{
	s32 cpu = -EBUSY;

	if (likely(t->nrt_groups))
		cpu = pick_idle_nrt(p, t, group);
	if (cpu < 0 && queue == ARTIS_QUEUE_CALM)
		cpu = pick_idle(p, group, ARTIS_CPU_RT, t->rt_all);
	return cpu;
}

/* For RT1+ task @p: a CPU that is idle or gives way, < 0: none. Any RT CPU before an NRT CPU. */
__noinline s32 rt1_for(struct task_struct *p __arg_trusted, struct artis_task *t __arg_nonnull,
		       u32 queue, u32 group)
{
	s32 cpu = -EBUSY;

	if (queue == ARTIS_QUEUE_CALM) {
		cpu = pick_idle(p, group, ARTIS_CPU_RT, t->rt_all);
		if (cpu < 0)
			cpu = pick_lower(p, t, group, ARTIS_CPU_RT);
	}
	if (cpu < 0 && t->nrt_groups) {
		cpu = pick_idle_nrt(p, t, group);
		if (cpu < 0)
			cpu = pick_lower(p, t, group, ARTIS_CPU_NRT);
	}
	return cpu;
}

/* A CPU of @group with a task that makes way and is far ahead of @p, < 0: none. */
__noinline s32 behind_for(struct task_struct *p __arg_trusted, struct artis_task *t __arg_nonnull,
			  u32 group)
{
	u64 order = common_order(order_of(t), t->queue, t->where);
	s32 cpu = t->nrt_cpu;

	if (likely(t->nrt_groups) && group_of(cpu) == group && is_far_ahead(cpu, order))
		return cpu;
	if (!group_nr(group)->clock[ARTIS_QUEUE_CALM].weight)
		return -EBUSY;
	cpu = pick_calm(p, group, t->nrt_groups ? ARTIS_CPU_NRT : ARTIS_CPU_RT);
	return cpu >= 0 && is_far_ahead(cpu, order) ? cpu : -EBUSY;
}

/* Makes a CPU look: @cpu is that of the run queue, @to the idle or preemptible one. */
__noinline int rouse(const struct artis_rouse_in *in __arg_nonnull,
		     const struct artis_task *t __arg_nonnull, s32 cpu, s32 to)
{
	u32 way = artis_rouse(in);

	if (way == ARTIS_ROUSE_PREEMPT)
		preempt(to, t->rt1 ? ARTIS_STAT_RT1_PREEMPT : ARTIS_STAT_PREEMPT);
	else if (way == ARTIS_ROUSE_SELF) /* about to go idle: only a plain kick wakes it */
		scx_bpf_kick_cpu(cpu, 0);
	else if (way != ARTIS_ROUSE_NONE)
		scx_bpf_kick_cpu(way == ARTIS_ROUSE_IDLE ? to : t->nrt_cpu, SCX_KICK_IDLE);
	return 0;
}

/* For tasks that may run on several CPUs. @f->cpu is that of the run queue. */
__noinline int enqueue_group(struct task_struct *p __arg_trusted,
			     struct artis_task *t __arg_nonnull,
			     const struct artis_facts *f __arg_nonnull, u32 queue, u64 enq_flags)
{
	bool woken = enq_flags & SCX_ENQ_WAKEUP;
	u32 kind = cpu_of(f->cpu)->kind;
	u32 group = group_of(f->cpu); /* also of an RT CPU that it leaves: its data is there */
	struct artis_rouse_in in = {
		.here = (kind == ARTIS_CPU_NRT ||
			 (kind == ARTIS_CPU_RT && queue == ARTIS_QUEUE_CALM)) &&
			bpf_cpumask_test_cpu(f->cpu, p->cpus_ptr),
		.last = enq_flags & SCX_ENQ_LAST,
	};
	/* that CPU looks, at the latest when a real-time task leaves it: too late for RT1+ tasks */
	bool looks = in.here && (in.last || is_making_way(p, f->cpu)) && likely(!t->rt1);
	s32 to = -EBUSY;

	if (!looks) {
		to = unlikely(t->rt1) ? rt1_for(p, t, queue, group) : idle_for(p, t, queue, group);
		in.idle = to >= 0 && likely(!t->rt1);
		if (to >= 0)
			group = group_of(to);
	}
	group = group_for(f, queue, group);
	join(p, t, queue, group, woken);
	/* it delays all grace periods, and the kernel ends a scheduler after 21 s of one. To the clock, not
	 * before all others: a call can be one long section */
	if (unlikely(is_rcu_reader(p)))
		t->advance_ns = artis_after(t->vtime, clock_of(queue, group)->vtime);
	insert(p, t, queue, group, slice_nrt(t, group), enq_flags);
	if (!looks && to < 0 && likely(!t->rt1) && (woken || queue == ARTIS_QUEUE_BOUND))
		to = behind_for(p, t, group);
	in.behind = to >= 0;
	rouse(&in, t, f->cpu, to);
	return 0;
}

/* Kicks an idle CPU for the first task of @queue of @group that has one. Global: verified once. */
__noinline bool offer_queue(u32 queue, u32 group)
{
	struct task_struct *p;
	struct artis_task *t;
	u32 seen = 0;
	s32 cpu;

	__sink(seen);
	bpf_for_each(scx_dsq, p, dsq_of(queue, group), 0) {
		if (seen++ >= ARTIS_SCAN)
			break;
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
		cpu = t ? idle_for(p, t, queue, group) : -EBUSY;
		if (cpu < 0)
			continue;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return true;
	}
	return false;
}

static __always_inline void offer_group(u32 group, bool nrt)
{
	struct artis_group *g = group_nr(group);

	if (nrt && g->clock[ARTIS_QUEUE_BOUND].weight && offer_queue(ARTIS_QUEUE_BOUND, group))
		return;
	if (g->clock[ARTIS_QUEUE_CALM].weight)
		offer_queue(ARTIS_QUEUE_CALM, group);
}

/* Kicks an idle CPU for what @cpu leaves queued, which then does so, too; other groups in turn. */
static __always_inline void offer(struct artis_cpu *c, s32 cpu)
{
	bool nrt = any_idle(nrt_mask());
	u32 group = group_of(cpu);

	if (!nrt && !any_idle(rt_mask()))
		return;
	offer_group(group, nrt);
	if (unlikely(nr_groups > 1)) {
		c->looks_at++;
		offer_group((group + 1 + c->looks_at % (nr_groups - 1)) % nr_groups, nrt);
	}
}
