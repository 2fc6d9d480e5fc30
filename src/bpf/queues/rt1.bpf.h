/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RT1+ tasks in the queues: they lie in the same ones as all others, before
 * them (policy/rt1.h). Here is what they have besides: turns, a CPU to take from
 * a lower task, and the end of what they may use of a second.
 */
#pragma once

/*
 * Run of an RT1+ task that could be on an RT CPU and is not, so that it goes back soon after
 * the end of its section: the return of a call is not hooked.
 */
#define ARTIS_RT1_SLICE_NRT_NS 1000000

/* So many RT1+ tasks at the head of a queue are passed over for the first that is none. */
#define ARTIS_RT1_SCAN 64
/* So many CPUs are looked at for one that runs a lower RT1+ task. */
#define ARTIS_RT1_LOOK 32

static __always_inline u64 turn_ns(void)
{
	return (u64)policy.rt1_rr_ms * 1000000;
}

/* Slice of @t on an RT CPU. */
static __always_inline u64 slice_rt(const struct artis_task *t)
{
	return unlikely(t->rt1_rr) && turn_ns() < policy.slice_rt_ns ? turn_ns() :
								       policy.slice_rt_ns;
}

/* Slice of @t on an NRT CPU of @group. */
static __always_inline u64 slice_nrt(const struct artis_task *t, u32 group)
{
	struct artis_group *g = group_nr(group);

	if (unlikely(t->rt1) && t->rt_groups && !t->rt_forbidden)
		return ARTIS_RT1_SLICE_NRT_NS;
	return artis_slice_nrt(
		&policy, g->clock[ARTIS_QUEUE_BOUND].weight + g->clock[ARTIS_QUEUE_CALM].weight,
		g->nr_nrt);
}

/* Its place among its equals is the last one from now on. */
static __always_inline void place_last(const struct task_struct *p, struct artis_task *t)
{
	t->rt1_order = artis_rt1_order(t->rt1, scx_bpf_now());
	t->rt1_turn_exec_ns = p->se.sum_exec_runtime;
}

/* A round-robin RT1+ task whose turn is over goes behind its equals. */
static __always_inline void next_turn(const struct task_struct *p, struct artis_task *t)
{
	if (unlikely(t->rt1_rr) && p->se.sum_exec_runtime - t->rt1_turn_exec_ns >= turn_ns())
		place_last(p, t);
}

/*
 * RT1+ task @p is queued: behind its equals if it has woken or its turn is over. Who was preempted
 * keeps its place, before those of its rank that came later (sched(7)).
 */
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

/* The rest of is_throttled(). Global: verified once in each program. */
__noinline bool rt1_throttled(struct artis_cpu *c __arg_nonnull)
{
	return artis_rt1_throttled(&c->rt1, &policy, scx_bpf_now());
}

/* RT1+ tasks have used up their share of this second of @c. */
static __always_inline bool is_throttled(struct artis_cpu *c)
{
	return unlikely(c->rt1.used_ns) && rt1_throttled(c);
}

/* RB_EMPTY_NODE(), include/linux/rbtree.h: a node in no tree is its own parent. */
static __always_inline bool is_queued_server(const struct sched_dl_entity *server)
{
	return server->rb_node.__rb_parent_color != (unsigned long)&server->rb_node;
}

/*
 * A real-time task is runnable on @cpu. In ops.dispatch, one that goes to sleep no longer is.
 * The kernel counts its servers of the lower classes as deadline tasks while their time runs, and
 * takes such a server out when it has asked it for a task in vain (__pick_task_dl(),
 * kernel/sched/deadline.c).
 */
static __always_inline bool has_rt_task(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	u32 servers = 0;

	if (!rq)
		return false;
	if (rq->rt.rt_nr_running)
		return true;
	if (likely(!rq->dl.dl_nr_running))
		return false;
	if (bpf_core_field_exists(rq->fair_server))
		servers += is_queued_server(&rq->fair_server);
	if (bpf_core_field_exists(rq->ext_server))
		servers += is_queued_server(&rq->ext_server);
	return rq->dl.dl_nr_running > servers;
}

/*
 * A task beneath a real-time one waits in the local queue of @cpu, where the kernel has put it, and
 * would go on before all that wait in queues of ours; only @cpu itself can put it back here.
 */
static __always_inline bool keeps_preempted(s32 cpu)
{
	return put_back == ARTIS_PUT_BACK_LAZY && cpu_of(cpu)->rt.in_rt;
}

/*
 * Would an RT1+ task of @rank run at once on @cpu? Not beneath a real-time task, nor behind its
 * like. But a kernel thread of that class is soon gone as a rule: on PREEMPT_RT one runs on this
 * very CPU for each timer, and wakes the task that asks.
 */
__noinline bool gives_way(s32 cpu, u32 rank)
{
	struct artis_cpu *c = cpu_of(cpu);

	if (c->curr_rt1 >= rank)
		return false;
	/* a lower RT1+ task may go on there after the second is used up, so a higher one may, too */
	if (!c->curr_rt1 && is_throttled(c))
		return false;
	if (!c->rt.in_rt)
		return !has_rt_task(cpu);
	return c->rt_kthread && (!keeps_preempted(cpu) || cpu == (s32)bpf_get_smp_processor_id());
}

/*
 * A CPU of @kind for RT1+ task @p, whose task is lower, or a negative number: one that runs a calm
 * NRT task, else that with the lowest rank.
 */
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

/* @cpu looks for its next task at once: an RT1+ task has come that is higher than what runs there. */
static __always_inline void preempt_for_rt1(s32 cpu)
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	if (unlikely(keeps_preempted(cpu)) && cpu == (s32)bpf_get_smp_processor_id())
		scx_bpf_reenqueue_local_from_anywhere();
	if (cpu_of(cpu)->ext_running)
		count(ARTIS_STAT_RT1_PREEMPT);
}

/*
 * RT1+ tasks have used up their share of this second of @cpu: the first of @dsq that is none runs
 * now, if there is one. Without that, an endless RT1+ task would be the end of all others, kernel
 * threads and the daemon among them, as with the kernel's own class before it had a throttle.
 */
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
