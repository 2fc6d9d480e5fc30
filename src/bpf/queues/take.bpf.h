/* SPDX-License-Identifier: GPL-2.0-only */
/* The body of ops.dispatch: each CPU takes for itself, RT CPUs too, as artis_next() says. */
#pragma once
#include "beneath.bpf.h"

static __always_inline bool move_to_local(u32 queue, u32 where)
{
	return scx_bpf_dsq_move_to_local(dsq_of(queue, where), 0);
}

/* Order of the first task of @queue, which @c may have passed over for too long. Verified once. */
__noinline u64 pass_over(struct artis_cpu *c __arg_nonnull, u32 queue, u64 order)
{
	u64 now_ns = scx_bpf_now();

	if (queue >= ARTIS_NR_QUEUES || artis_is_rt1_order(order))
		return order;
	c->passed_ns[queue] = c->passed_ns[queue] ?: now_ns;
	return artis_passed_order(order, now_ns - c->passed_ns[queue]);
}

/* Does a task of @dsq wait for @cpu, of which the first one may not run there? Tells the order of the
 * first that may, or, behind many that may not, of one before it. Verified once. */
__noinline bool waits_behind(u64 dsq, s32 cpu, u64 *order __arg_nonnull)
{
	struct task_struct *p;
	u32 seen = 0;

	__sink(seen);
	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && seen++ < ARTIS_SCAN)
			continue;
		*order = p->scx.dsq_vtime;
		return true;
	}
	return false;
}

/* Notes whether tasks wait in @queue of @where, and, if @compare, the order of the first for @cpu. */
static __always_inline void look_at(struct artis_look *l, s32 cpu, u32 queue, u32 where, bool waits,
				    bool compare)
{
	struct artis_cpu *c = cpu_of(cpu);
	u64 dsq = dsq_of(queue, where), order = 0;
	struct task_struct *head;

	if (waits && compare) {
		head = __COMPAT_scx_bpf_dsq_peek(dsq);
		if (head)
			order = head->scx.dsq_vtime;
		waits = head && (likely(bpf_cpumask_test_cpu(cpu, head->cpus_ptr)) ||
				 waits_behind(dsq, cpu, &order));
		if (waits)
			l->first[queue] = pass_over(c, queue, common_order(order, queue, where));
	}
	if (waits)
		l->waits |= 1U << queue;
	else
		c->passed_ns[queue] = 0;
}

/* What waits for @cpu. A queued task is counted: queues without weight are empty. A CPU of no
 * partition, which has just come online, takes no calm task: none would leave it to enter the kernel. */
static __always_inline void look_around(struct artis_look *l, struct artis_cpu *c, s32 cpu)
{
	u32 group = group_of(cpu);
	struct artis_group *g = group_nr(group);
	bool own = c->own.weight, calm = c->kind && g->clock[ARTIS_QUEUE_CALM].weight;
	bool bound = !l->rt && g->clock[ARTIS_QUEUE_BOUND].weight;
	bool compare = l->may_stay || own + calm + bound > 1;

	look_at(l, cpu, ARTIS_QUEUE_BOUND, group, bound, compare);
	/* a lead is no debt while no bound task waits */
	if (own && !(l->waits & 1U << ARTIS_QUEUE_BOUND))
		own_follow(c, g->clock[ARTIS_QUEUE_BOUND].vtime, true);
	look_at(l, cpu, ARTIS_QUEUE_OWN, cpu, own, compare);
	look_at(l, cpu, ARTIS_QUEUE_CALM, group, calm, compare);
}

/* Of @p on @cpu: tasks are queued with that of an NRT CPU. Where the slice of cpuhp/N ends on a CPU
 * that is not active, put_prev_task_scx() queues it (SCX_OPS_ENQ_LAST), and nothing wakes the CPU. */
static __always_inline void set_slice(struct task_struct *p, struct artis_task *t, s32 cpu)
{
	if (unlikely(cpu_of(cpu)->gone >= ARTIS_GONE_EMPTY) && is_kernel_task(p)) {
		scx_bpf_task_set_slice(p, SCX_SLICE_INF);
		return;
	}
	t->slice_rt = cpu_of(cpu)->kind == ARTIS_CPU_RT && t->queue == ARTIS_QUEUE_CALM;
	scx_bpf_task_set_slice(p, t->slice_rt ? slice_rt(t) : slice_nrt(t, group_of(cpu)));
}

/* @prev goes on: its queue, order and slice follow its present state. */
__noinline int keep(struct artis_cpu *c __arg_nonnull, s32 cpu, struct artis_task *t __arg_nonnull,
		    struct task_struct *prev __arg_trusted, u32 queue)
{
	if (queue >= ARTIS_NR_QUEUES)
		return 0;
	queue_join(t, queue, queue == ARTIS_QUEUE_OWN ? (u32)cpu : group_of(cpu));
	/* no further ahead of the clock than where a run begins: no other task was to run meanwhile */
	t->vtime = artis_vtime_clamp(&policy, t->vtime, clock_of(t->queue, t->where)->vtime,
				     artis_inv_weight(ARTIS_WEIGHT_DEFAULT));
	c->passed_ns[queue] = 0;
	c->curr_order = common_order(order_of(t), t->queue, t->where);
	c->movable = t->nrt_groups && !is_kernel_task(prev);
	set_makes_way(c, cpu, t);
	set_slice(prev, t, cpu);
	return 0;
}

static __noinline bool take_throttled(s32 cpu, bool rt)
{
	u32 group = group_of(cpu);

	return move_first(cpu, dsq_of(ARTIS_QUEUE_OWN, cpu), NULL, NULL) ||
	       (!rt && move_first(cpu, dsq_of(ARTIS_QUEUE_BOUND, group), NULL, NULL)) ||
	       move_first(cpu, dsq_of(ARTIS_QUEUE_CALM, group), NULL, NULL);
}

__noinline u32 next_of(const struct artis_look *l __arg_nonnull)
{
	return artis_next(l);
}

/* @cpu has nothing to run. Global, as balance(): 6.12's verifier would combine all their loops. */
__noinline bool take_from_groups(s32 cpu, bool rt)
{
	u32 i, group, mine = group_of(cpu);

	bpf_for(i, 1, nr_groups) {
		group = (mine + i) % nr_groups;
		if ((!rt && group_nr(group)->clock[ARTIS_QUEUE_BOUND].weight &&
		     move_to_local(ARTIS_QUEUE_BOUND, group)) ||
		    (group_nr(group)->clock[ARTIS_QUEUE_CALM].weight &&
		     move_to_local(ARTIS_QUEUE_CALM, group))) {
			count_took(ARTIS_STAT_TAKE_GROUP);
			return true;
		}
	}
	return false;
}

/* Updates what real-time tasks leave of @cpu in the power of its group. */
static __always_inline void tell_power(struct artis_cpu *c, s32 cpu, u64 now_ns)
{
	u64 power = artis_power_of(artis_share_at(&c->rt, now_ns),
				   topology.capacity[(u32)cpu & (ARTIS_MAX_CPUS - 1)]);

	c->power_ns = now_ns;
	take_power(c);
	c->power_of = group_of(cpu);
	c->power = power;
	__sync_fetch_and_add(&group_nr(c->power_of)->power, power);
}

static __always_inline struct artis_load load_of(const struct artis_group *g)
{
	return (struct artis_load){
		.weight = g->clock[ARTIS_QUEUE_BOUND].weight + g->clock[ARTIS_QUEUE_CALM].weight,
		.m = artis_m_of_power(g->power),
	};
}

/* Every balance_ns, NRT CPU @cpu takes a task of another group if that lowers the greater load. */
__noinline bool balance(s32 cpu)
{
	u32 mine = group_of(cpu), other, queue;
	struct artis_group *g = group_nr(mine);
	u64 now_ns = scx_bpf_now(), looked_ns = g->looked_ns;
	struct artis_load here, there;

	if (now_ns - cpu_of(cpu)->power_ns >= policy.balance_ns)
		tell_power(cpu_of(cpu), cpu, now_ns);
	if (now_ns - looked_ns < policy.balance_ns ||
	    __sync_val_compare_and_swap(&g->looked_ns, looked_ns, now_ns) != looked_ns)
		return false;
	other = ++g->next % nr_groups;
	if (other == mine)
		return false;
	here = load_of(g);
	there = load_of(group_nr(other));
	if (!artis_imbalanced(&there, &here, policy.imbalance_pct))
		return false;
	queue = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_BOUND, other)) > 0 ? ARTIS_QUEUE_BOUND :
									      ARTIS_QUEUE_CALM;
	if (!move_first(cpu, dsq_of(queue, other), &there, &here))
		return false;
	count_took(ARTIS_STAT_TAKE_GROUP);
	return true;
}

/* Could an RT CPU run @p and leave NRT CPU @cpu to others? ops.enqueue then places it. */
static __always_inline bool could_go_to_rt(struct task_struct *p, struct artis_task *t, s32 cpu)
{
	struct bpf_cpumask *rt = t->rt_groups ? mask_of(group_of(cpu), ARTIS_CPU_RT) : NULL;

	return rt && (any_idle(allowed_of(p, rt, t->rt_all)) ||
		      (unlikely(t->rt1) && pick_lower(p, t, group_of(cpu), ARTIS_CPU_RT) >= 0));
}

/* @cpu dispatches no more from soon on: its own queue goes to the local one. */
static __noinline void empty_own(s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(ARTIS_QUEUE_OWN, cpu), 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	cpu_of(cpu)->gone = ARTIS_GONE_EMPTY;
}

/* Group + 1 of a CPU that goes. Until no CPU queues a task for it, which a grace period tells, tasks that
 * no other CPU takes from there have to leave: among them may be the thread that ends grace periods. */
u32 leaving;

/* Moves tasks of @group that no CPU takes to the local queue of a CPU they may use, and those of the run
 * queue of a CPU that goes offline, which waits until it is empty (balance_push()). */
__noinline int sweep(u32 group)
{
	const struct cpumask *nrt;
	struct bpf_cpumask *takers;
	struct task_struct *p;
	u32 queue, cpu;
	bool rt_only;

	bpf_rcu_read_lock();
	nrt = nrt_mask();
	bpf_for(queue, ARTIS_QUEUE_BOUND, ARTIS_NR_QUEUES) {
		bpf_for_each(scx_dsq, p, dsq_of(queue, group), 0) {
			if (!nrt)
				break;
			rt_only = !bpf_cpumask_intersects(p->cpus_ptr, nrt);
			takers = mask_of(group, rt_only ? ARTIS_CPU_RT : ARTIS_CPU_NRT);
			if (takers && bpf_cpumask_intersects(p->cpus_ptr, cast_mask(takers)) &&
			    (!rt_only || queue == ARTIS_QUEUE_CALM) &&
			    likely(!cpu_of(cpu_of_task(p))->gone))
				continue;
			cpu = rt_only ? bpf_cpumask_any_distribute(p->cpus_ptr) :
					bpf_cpumask_any_and_distribute(p->cpus_ptr, nrt);
			if (cpu < policy.nr_cpus && /* the kernel kicks none for its own run queue */
			    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
				scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}

void BPF_STRUCT_OPS(artis_dispatch, s32 cpu, struct task_struct *prev)
{
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_look l = { .rt = c->kind != ARTIS_CPU_NRT, .lead_ns = policy.lead_max_ns };
	struct artis_facts f = { .cpu = cpu };
	struct artis_task *t = NULL;
	bool returns = false, taken;
	u32 queue = 0, next, i;

	if (rt_is_next(cpu))
		return;
	if (unlikely(c->gone == ARTIS_GONE_LEAVES))
		empty_own(cpu);
	if (unlikely(leaving) && c->kind != ARTIS_CPU_RT)
		sweep(leaving - 1);
	if (release) {
		if (c->held && goes_on(c, cpu))
			return;
		if (unlikely(nr_late))
			queue_late();
	}
	if (prev && prev->scx.flags & SCX_TASK_QUEUED) {
		t = task_of(prev);
		if (!t)
			return;
		settle(c, t, prev);
		note_partition(prev, t);
		next_turn(prev, t);
		f.pinned = is_migration_disabled(prev);
		if (unlikely(f.pinned)) { /* as in enqueue_own() */
			keep(c, cpu, t, prev, ARTIS_QUEUE_OWN);
			scx_bpf_task_set_slice(prev, 1);
			return;
		}
		f.inside = is_inside(c->section, false);
		queue = note_facts(&f, prev, t);
		l.pinned = f.pinned;
		l.order = common_order(order_of(t), t->queue, t->where);
		l.may_stay = !l.rt || f.pinned || (c->kind && artis_may_use_rt(&f));
	}
	if (is_throttled(c) && c->kind) {
		if (take_throttled(cpu, l.rt))
			return;
		if (t && !t->rt1 && l.may_stay) {
			keep(c, cpu, t, prev, queue);
			return;
		}
	}
	look_around(&l, c, cpu);
	if (t && !l.rt && queue == ARTIS_QUEUE_CALM && (l.waits || unlikely(t->rt1)) &&
	    could_go_to_rt(prev, t, cpu)) {
		l.may_stay = false;
		/* to an RT CPU after its section, even if it is alone here */
		returns = t->rt1;
	}
	taken = unlikely(nr_groups > 1) && !l.rt && balance(cpu);
	bpf_for(i, 0, ARTIS_NR_QUEUES + 1) {
		next = taken ? ARTIS_NEXT_NONE : next_of(&l);
		if (next >= ARTIS_NR_QUEUES)
			break;
		c->passed_ns[next] = 0;
		taken = move_to_local(next, next == ARTIS_QUEUE_OWN ? (u32)cpu : group_of(cpu));
		if (!taken) /* it is gone or may not run here */
			l.waits &= ~(1U << next);
		else if (l.rt && next == ARTIS_QUEUE_CALM)
			count_took(ARTIS_STAT_TAKE_RT);
	}
	if (!taken && !l.may_stay && unlikely(nr_groups > 1) && c->kind)
		taken = take_from_groups(cpu, l.rt);
	if (taken)
		offer(c, cpu);
	else if (t && (l.may_stay || (!l.rt && !returns)))
		keep(c, cpu, t, prev, queue);
	/* idle, and still so: no op tells when its idle bit is set, so it looks once more */
	c->again = !taken && !c->again && !bpf_get_current_task_btf()->pid && likely(!c->gone);
	if (unlikely(c->again))
		scx_bpf_kick_cpu(cpu, 0);
}
