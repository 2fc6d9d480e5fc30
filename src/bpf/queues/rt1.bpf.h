/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns, preemption and budget of RT1+ tasks, which share the queues of others (policy/rt1.h). */
#pragma once

/* Short, for a soon return to an RT CPU after a section: the return of a call is not hooked. */
#define ARTIS_RT1_SLICE_NRT_NS 1000000
#define ARTIS_RT1_SCAN 64 /* RT1+ tasks at the head of a queue passed over for one that is none */
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

/* Is a real-time task runnable on @cpu? In ops.dispatch, one that goes to sleep no longer is. */
static __always_inline bool has_rt_task(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	u32 servers = 0;

	if (!rq)
		return false;
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

/* A preempted task in the local queue of @cpu goes before ours, and only @cpu can put it back. */
static __always_inline bool keeps_preempted(s32 cpu)
{
	return put_back == ARTIS_PUT_BACK_LAZY && cpu_of(cpu)->rt.in_rt;
}

/* Would an RT1+ task of @rank run at once on @cpu? */
__noinline bool gives_way(s32 cpu, u32 rank)
{
	struct artis_cpu *c = cpu_of(cpu);
	const struct rq *rq;

	if (c->curr_rt1 >= rank)
		return false;
	/* a lower RT1+ task may go on there when throttled, so a higher one may, too */
	if (!c->curr_rt1 && is_throttled(c))
		return false;
	if (!c->rt.in_rt)
		return !has_rt_task(cpu);
	/* real-time kernel threads end soon; on PREEMPT_RT that of a timer wakes the task here */
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	return rq && rq->curr->flags & PF_KTHREAD &&
	       (!keeps_preempted(cpu) || cpu == (s32)bpf_get_smp_processor_id());
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

static __always_inline void preempt_for_rt1(s32 cpu)
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	if (unlikely(keeps_preempted(cpu)) && cpu == (s32)bpf_get_smp_processor_id())
		scx_bpf_reenqueue_local_from_anywhere();
	if (cpu_of(cpu)->ext_running)
		count(ARTIS_STAT_RT1_PREEMPT);
}

/* Runs the first non-RT1+ task of @dsq: endless RT1+ tasks must not starve kthreads, the daemon. */
__noinline bool let_lower_run(s32 cpu, u64 dsq)
{
	struct task_struct *p;
	u32 seen = 0;

	__sink(seen);
	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (seen++ >= ARTIS_RT1_SCAN)
			break;
		if (artis_is_rt1_order(p->scx.dsq_vtime) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}
