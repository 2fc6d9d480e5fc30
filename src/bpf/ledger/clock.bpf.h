/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups of CPUs, and the clocks of virtual time: one for each queue (policy/fair.h). */
#pragma once
#include "../policy/room.h"

struct artis_group {
	struct artis_clock clock[ARTIS_NR_QUEUES]; /* not ARTIS_QUEUE_OWN: see struct artis_cpu */
	u64 calm_offset; /* a time on the calm clock less the same time on the bound one */
	u32 nr_cpus __attribute__((aligned(64))); /* cache line of the partition */
	u32 nr_nrt; /* NRT CPUs among them */
	u64 power __attribute__((aligned(64))); /* left by real-time tasks, 2^-30 CPUs (load.h) */
	u64 looked_ns; /* when it last looked at another group for balance */
	u32 next; /* the group to look at next, modulo nr_groups */
	s32 queued[2]; /* lengths of the bound and the calm queue when last sampled */
} __attribute__((aligned(64)));
struct artis_group groups[ARTIS_MAX_GROUPS];

_Static_assert(ARTIS_MAX_CPUS <= 1 << 16, "a CPU id must fit below the queue");

/* Id of a queue, without SCX_DSQ_FLAG_BUILTIN: enum artis_queue + 1, then 16 bits of group or CPU. */
static __always_inline u64 dsq_of(u32 queue, u32 where)
{
	return (u64)(queue + 1) << 16 | where;
}

static __always_inline struct artis_group *group_nr(u32 group)
{
	return &groups[group & (ARTIS_MAX_GROUPS - 1)];
}

/* What its group was told of @c counts no more. */
static __always_inline void take_power(struct artis_cpu *c)
{
	u64 power = __sync_lock_test_and_set(&c->power, 0);

	__sync_fetch_and_sub(&group_nr(c->power_of)->power, power);
}

/* A time on the clock of @queue of @where less the same time on the bound clock of its group. */
static __always_inline u64 offset_of(u32 queue, u32 where)
{
	if (queue == ARTIS_QUEUE_OWN)
		return cpu_of(where)->own_offset;
	return queue == ARTIS_QUEUE_CALM ? group_nr(where)->calm_offset : 0;
}

static __always_inline struct artis_clock *clock_of(u32 queue, u32 where)
{
	if (queue == ARTIS_QUEUE_OWN)
		return &cpu_of(where)->own;
	if (queue == ARTIS_QUEUE_CALM)
		return &group_nr(where)->clock[ARTIS_QUEUE_CALM];
	return &group_nr(where)->clock[ARTIS_QUEUE_BOUND];
}

static __always_inline u64 order_of(const struct artis_task *t)
{
	if (unlikely(t->rt1))
		return t->rt1_order;
	return t->vtime - t->advance_ns;
}

/* @order on the bound clock of the group, by which all its queues compare. Calm tasks that have had
 * more than bound ones, from RT CPUs, come last: what they run on is not held against them. */
static __always_inline u64 common_order(u64 order, u32 queue, u32 where)
{
	const struct artis_group *g = group_nr(where);

	if (artis_is_rt1_order(order))
		return order;
	order -= offset_of(queue, where);
	if (queue == ARTIS_QUEUE_CALM &&
	    artis_is_well_ahead(&policy, g->clock[ARTIS_QUEUE_CALM].vtime,
				g->clock[ARTIS_QUEUE_BOUND].vtime, g->calm_offset))
		order += ARTIS_LAST_NS;
	return order;
}

/* @t sleeps, ends, or leaves the ext class. Its rq lock is held. */
static __always_inline void queue_leave(struct artis_task *t)
{
	u64 counted = t->counted;

	if (!counted)
		return;
	t->counted = 0;
	__sync_fetch_and_sub(&clock_of(t->queue, t->where)->weight, counted);
}

static __always_inline void clock_begins(struct artis_clock *clock, u64 vtime)
{
	if (artis_before(clock->vtime, vtime)) /* of its first task */
		clock->vtime = vtime;
}

/* Counts runnable @t on the clock of @queue of @where, rq lock held. Global: verified once. */
__noinline int queue_join(struct artis_task *t, u32 queue, u32 where)
{
	u32 group = queue == ARTIS_QUEUE_OWN ? group_of(where) : where;
	struct artis_group *g = group_nr(group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM];
	struct artis_cpu *c;

	if (!t)
		return 0;
	if (likely(t->queue == queue && t->where == where)) {
		if (likely(t->counted == t->weight))
			return 0;
	} else {
		t->vtime += offset_of(queue, where) - offset_of(t->queue, t->where);
		if (t->group != group)
			t->vtime += bound->vtime - clock_of(ARTIS_QUEUE_BOUND, t->group)->vtime;
	}
	queue_leave(t);
	if (queue == ARTIS_QUEUE_CALM) {
		if (!__sync_fetch_and_add(&calm->weight, t->weight))
			clock_begins(calm, bound->vtime + g->calm_offset);
	} else if (queue == ARTIS_QUEUE_BOUND) {
		if (!__sync_fetch_and_add(&bound->weight, t->weight))
			clock_begins(bound, calm->vtime - g->calm_offset);
	} else {
		c = cpu_of(where);
		if (!__sync_fetch_and_add(&c->own.weight, t->weight))
			clock_begins(&c->own, bound->vtime + c->own_offset);
	}
	t->queue = queue;
	t->where = where;
	t->group = group;
	t->counted = t->weight;
	return 0;
}

static __always_inline void offset_follow(u64 *offset, u64 ahead, u64 behind)
{
	u64 now = *offset, next = artis_offset_next(&policy, ahead, behind, now);

	if (unlikely(next != now))
		__sync_val_compare_and_swap(offset, now, next);
}

static __always_inline void clock_run(const struct artis_task *t, u64 run_ns)
{
	struct artis_group *g = group_nr(t->group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM];
	struct artis_cpu *c;

	if (t->queue == ARTIS_QUEUE_BOUND) {
		__sync_fetch_and_add(&bound->vtime,
				     artis_clock_step(run_ns, bound->weight, g->nr_nrt));
		if (calm->weight)
			offset_follow(&g->calm_offset, calm->vtime, bound->vtime);
	} else if (t->queue == ARTIS_QUEUE_CALM) {
		__sync_fetch_and_add(&calm->vtime,
				     artis_clock_step(run_ns, calm->weight, g->nr_cpus));
		if (bound->weight)
			offset_follow(&g->calm_offset, calm->vtime, bound->vtime);
		else
			clock_begins(bound, calm->vtime - g->calm_offset);
	} else {
		c = cpu_of(t->where);
		__sync_fetch_and_add(&c->own.vtime, artis_clock_step(run_ns, c->own.weight, 1));
		offset_follow(&c->own_offset, c->own.vtime, bound->vtime);
	}
}
