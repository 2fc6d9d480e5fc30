/* SPDX-License-Identifier: GPL-2.0-only */
/* Selects an idle CPU or one whose task makes way; masks keep the cost independent of the CPUs. */
#pragma once

/* CPUs of @of that @p may use; not @all: in the scratch mask of this CPU, until the next call. */
static __always_inline const struct cpumask *allowed_of(struct task_struct *p,
							struct bpf_cpumask *of, bool all)
{
	struct bpf_cpumask *mask;

	if (likely(all))
		return cast_mask(of);
	mask = mask_nr(ARTIS_MASKS_SCRATCH + bpf_get_smp_processor_id());
	if (mask)
		bpf_cpumask_and(mask, cast_mask(of), p->cpus_ptr);
	return cast_mask(mask);
}

#define ARTIS_SMT_LOOKS 8 /* idle CPUs that are looked at for one on a core of its own */

/* Claims an idle CPU of @in on a core without a real-time task, < 0: none was found. */
static __always_inline s32 pick_unshared(const struct cpumask *in)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	s32 picked = -EBUSY;
	u32 cpu, i;

	bpf_for(i, 0, ARTIS_SMT_LOOKS) {
		cpu = bpf_cpumask_any_and_distribute(idle, in);
		if (cpu >= policy.nr_cpus)
			break;
		if (!shares_core(cpu) && scx_bpf_test_and_clear_cpu_idle(cpu)) {
			picked = cpu;
			break;
		}
	}
	scx_bpf_put_idle_cpumask(idle);
	return picked;
}

/* Claims an idle CPU of @kind, @group before others, < 0: none. SMT: idle cores first, then unshared. */
__noinline s32 pick_idle(struct task_struct *p __arg_trusted, u32 group, u32 kind, bool all)
{
	struct bpf_cpumask *of;
	const struct cpumask *in;
	s32 cpu = -EBUSY;
	u32 i;

	for (i = 0; i < 2 && cpu < 0; i++) {
		of = mask_of(group, kind);
		in = of ? allowed_of(p, of, all) : NULL;
		if (in && smt)
			cpu = scx_bpf_pick_idle_cpu(in, SCX_PICK_IDLE_CORE);
		if (in && smt && cpu < 0)
			cpu = pick_unshared(in);
		if (in && cpu < 0)
			cpu = scx_bpf_pick_idle_cpu(in, 0);
		if (likely(nr_groups < 2))
			break;
		group = ARTIS_MASKS_ALL;
	}
	return cpu;
}

/* Claims an idle NRT CPU, < 0: none. That of the last run (caches) if it is in @group, else another. */
static __always_inline s32 pick_idle_nrt(struct task_struct *p, struct artis_task *t, u32 group)
{
	s32 cpu = t->nrt_cpu;

	if (likely(!shares_core(cpu)) && likely(group_of(cpu) == group) &&
	    scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	return pick_idle(p, group, ARTIS_CPU_NRT, t->nrt_all);
}

static __always_inline bool any_idle(const struct cpumask *of)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = of && bpf_cpumask_intersects(idle, of);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* A CPU of @kind in @group with a task that makes way, and that @p may use, < 0: none. */
__noinline s32 pick_calm(struct task_struct *p __arg_trusted, u32 group, u32 kind)
{
	struct bpf_cpumask *of = calm_of(group, kind);
	u32 cpu = of ? bpf_cpumask_any_and_distribute(cast_mask(of), p->cpus_ptr) : ~0U;

	return cpu < policy.nr_cpus ? (s32)cpu : -EBUSY;
}

/* Notes whether @t (NULL: none) makes way if far ahead. Bound ones that may use RT CPUs soon do anyway. */
static __always_inline void set_makes_way(struct artis_cpu *c, s32 cpu, const struct artis_task *t)
{
	bool on = t && likely(!t->rt1) && t->queue != ARTIS_QUEUE_OWN &&
		  (t->queue == ARTIS_QUEUE_CALM || unlikely(!t->rt_groups));
	struct bpf_cpumask *of;

	if (c->makes_way == on)
		return;
	c->makes_way = on;
	of = calm_of(group_of(cpu), c->kind);
	if (of && on)
		bpf_cpumask_set_cpu(cpu, of);
	else if (of)
		bpf_cpumask_clear_cpu(cpu, of);
}

/* Turns, preemption and budget of RT1+ tasks, which share the queues of others (policy/fair.h). */

/* Short, for a soon return to an RT CPU after a section: the return of a call is not hooked. */
#define ARTIS_RT1_SLICE_NRT_NS 1000000
#define ARTIS_SCAN 64 /* tasks of a queue passed over for one that may run, or is no RT1+ task */
#define ARTIS_RT1_LOOK 32 /* CPUs searched for one with a lower RT1+ task */

static __always_inline u64 turn_ns(void)
{
	return (u64)policy.rt1_rr_ms * 1000000;
}

static __always_inline u64 slice_rt(const struct artis_task *t)
{
	return unlikely(t->rt1_rr) && turn_ns() < policy.slice_rt_ns ? turn_ns() :
								       policy.slice_rt_ns;
}

__noinline u64 slice_nrt(const struct artis_task *t __arg_nonnull, u32 group)
{
	struct artis_group *g = group_nr(group);

	if (unlikely(t->rt1) && t->rt_groups && !t->rt_forbidden)
		return ARTIS_RT1_SLICE_NRT_NS;
	return artis_slice_nrt(
		&policy, g->clock[ARTIS_QUEUE_BOUND].weight + g->clock[ARTIS_QUEUE_CALM].weight,
		g->nr_nrt);
}

static __always_inline void place_last(const struct task_struct *p, struct artis_task *t)
{
	t->rt1_order = artis_rt1_order(t->rt1, scx_bpf_now());
	t->rt1_turn_exec_ns = p->se.sum_exec_runtime;
}

static __always_inline void next_turn(const struct task_struct *p, struct artis_task *t)
{
	if (unlikely(t->rt1_rr) && p->se.sum_exec_runtime - t->rt1_turn_exec_ns >= turn_ns())
		place_last(p, t);
}

/* Behind its equals if it woke or its turn is over; a preempted task keeps its place (sched(7)). */
static __always_inline void take_place(const struct task_struct *p, struct artis_task *t,
				       bool woken)
{
	if (likely(!t->rt1))
		return;
	if (woken || !t->rt1_order)
		place_last(p, t);
	else
		next_turn(p, t);
}

/* RT1+ tasks have used up their share of this second on @c. */
static __always_inline bool is_throttled(struct artis_cpu *c)
{
	return unlikely(c->rt1.used_ns) && artis_rt1_throttled(&c->rt1, &policy, scx_bpf_now());
}

/* RB_EMPTY_NODE(), include/linux/rbtree.h: a node in no tree is its own parent. */
static __always_inline bool is_queued_server(const struct sched_dl_entity *server)
{
	return server->rb_node.__rb_parent_color != (unsigned long)&server->rb_node;
}

/* Is a real-time task runnable there? In ops.dispatch, one that goes to sleep no longer is. */
static __always_inline bool has_rt(const struct rq *rq)
{
	u32 servers = 0;

	if (rq->rt.rt_queued)
		return true;
	if (likely(!rq->dl.dl_nr_running))
		return false;
	/* servers count as tasks until asked for one in vain: __pick_task_dl(), deadline.c */
	if (bpf_core_field_exists(rq->fair_server))
		servers += is_queued_server(&rq->fair_server);
	if (bpf_core_field_exists(rq->ext_server))
		servers += is_queued_server(&rq->ext_server);
	return rq->dl.dl_nr_running > servers;
}

static __always_inline bool has_rt_task(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && has_rt(rq);
}

static __always_inline bool runs_kthread(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && rq->curr->flags & PF_KTHREAD;
}

/* Has a real-time kernel thread, which ends soon, preempted a task on @cpu that goes on before ours,
 * and that only @cpu can put back? On PREEMPT_RT that of a timer wakes others. */
static __always_inline bool can_put_back(s32 cpu)
{
	return stays_local() && cpu_of(cpu)->rt.in_rt && cpu == (s32)bpf_get_smp_processor_id() &&
	       runs_kthread(cpu);
}

/* Would an RT1+ task of @rank run at once on @cpu? */
__noinline bool gives_way(s32 cpu, u32 rank)
{
	struct artis_cpu *c = cpu_of(cpu);

	if (c->curr_rt1 >= rank)
		return false;
	/* a lower RT1+ task may go on there when throttled, so a higher one may, too */
	if (!c->curr_rt1 && is_throttled(c))
		return false;
	if (!c->rt.in_rt)
		return !has_rt_task(cpu);
	return can_put_back(cpu) || (!stays_local() && runs_kthread(cpu));
}

/* A CPU of @kind that gives way to RT1+ task @p, < 0: none. Calm tasks first, then by rank. */
__noinline s32 pick_lower(struct task_struct *p __arg_trusted, struct artis_task *t __arg_nonnull,
			  u32 group, u32 kind)
{
	s32 cpu = pick_calm(p, group, kind), best = -EBUSY;
	u32 rank = t->rt1, i;

	if (cpu >= 0 && gives_way(cpu, rank))
		return cpu;
	bpf_for(i, 0, ARTIS_RT1_LOOK) {
		if (i >= policy.nr_cpus)
			break;
		cpu = ((u32)t->nrt_cpu + i) % policy.nr_cpus;
		if (cpu_of(cpu)->kind != kind || !gives_way(cpu, rank) ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		rank = cpu_of(cpu)->curr_rt1;
		best = cpu;
		if (!rank)
			break;
	}
	return best;
}

static __always_inline void preempt(s32 cpu, u32 why)
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	if (unlikely(can_put_back(cpu)))
		scx_bpf_reenqueue_local_from_anywhere();
	if (cpu_of(cpu)->ext_running || cpu_of(cpu)->beneath_pid)
		count(why);
}

/* Runs the first task of @dsq that may run on @cpu. With loads, if that lowers the greater load; without,
 * no RT1+ task: endless ones must not starve kthreads, the daemon. Global: verified once. */
__noinline bool move_first(s32 cpu, u64 dsq, const struct artis_load *from,
			   const struct artis_load *to)
{
	struct task_struct *p;
	struct artis_task *t;
	u32 seen = 0;

	__sink(seen);
	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (seen++ >= ARTIS_SCAN)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		    (!from && artis_is_rt1_order(p->scx.dsq_vtime)))
			continue;
		t = from ? bpf_task_storage_get(&task_stor, p, 0, 0) : NULL;
		if (from && (!to || !t || !artis_relieves(from, to, t->weight)))
			break;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}
