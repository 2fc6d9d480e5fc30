/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups, and the clocks of virtual time: one for each queue (policy/fair.h). A
 * runnable task is counted in one of them, running or queued, and its virtual
 * time is on that clock. It is counted, and moved to another clock, by whoever
 * holds the lock of its run queue: ops.enqueue, ops.running, ops.stopping.
 */
#pragma once

#include "../policy/room.h"

struct artis_group {
	/* by enum artis_queue; that of the tasks which may run on one CPU only is just their weight */
	struct artis_clock clock[ARTIS_NR_QUEUES];
	/* a time on the calm clock less the same time on the bound one */
	u64 calm_offset;
	/* written with a new partition: its CPUs, and the NRT CPUs among them */
	u32 nr_cpus __attribute__((aligned(64)));
	u32 nr_nrt;
	/* what real-time tasks leave of its CPUs, 30 fraction bits (policy/load.h) */
	u64 power __attribute__((aligned(64)));
	/* when it last looked at another group, ns, and which is the next */
	u64 looked_ns;
	u32 next;
	/* lengths of its bound and its calm queue when last sampled */
	s32 queued[2];
} __attribute__((aligned(64)));

struct artis_group groups[ARTIS_MAX_GROUPS];

static __always_inline struct artis_group *group_nr(u32 group)
{
	return &groups[group & (ARTIS_MAX_GROUPS - 1)];
}

/* A time on the clock of @queue of @where less the same time on the bound clock of its group. */
static __always_inline u64 offset_of(u32 queue, u32 where)
{
	if (queue == ARTIS_QUEUE_OWN)
		return cpu_of(where)->own_offset;
	return queue == ARTIS_QUEUE_CALM ? group_nr(where)->calm_offset : 0;
}

static __always_inline u64 clock_at(u32 queue, u32 where)
{
	if (queue == ARTIS_QUEUE_OWN)
		return cpu_of(where)->own.vtime;
	if (queue == ARTIS_QUEUE_CALM)
		return group_nr(where)->clock[ARTIS_QUEUE_CALM].vtime;
	return group_nr(where)->clock[ARTIS_QUEUE_BOUND].vtime;
}

static __always_inline u32 group_at(u32 queue, u32 where)
{
	return queue == ARTIS_QUEUE_OWN ? group_of(where) : where;
}

/* Place of a task with virtual time @vtime in the queue where it is to wait. */
static __always_inline u64 order_of(const struct artis_task *t)
{
	if (unlikely(t->rt1))
		return t->rt1_order;
	return t->vtime - t->advance_ns;
}

/* The same on the bound clock of the group, where the orders of all its queues are compared. */
static __always_inline u64 common_order(u64 order, u32 queue, u32 where)
{
	return artis_is_rt1_order(order) ? order : order - offset_of(queue, where);
}

/* It sleeps, ends, or leaves the ext class. */
static __always_inline void queue_leave(struct artis_task *t)
{
	struct artis_group *g = group_nr(t->group);
	u64 counted = t->counted;

	if (!counted)
		return;
	t->counted = 0;
	if (t->queue == ARTIS_QUEUE_OWN) {
		__sync_fetch_and_sub(&g->clock[ARTIS_QUEUE_OWN].weight, counted);
		__sync_fetch_and_sub(&cpu_of(t->where)->own.weight, counted);
		__sync_fetch_and_sub(&cpu_of(t->where)->own_nr, 1);
	} else if (t->queue == ARTIS_QUEUE_CALM) {
		__sync_fetch_and_sub(&g->clock[ARTIS_QUEUE_CALM].weight, counted);
	} else {
		__sync_fetch_and_sub(&g->clock[ARTIS_QUEUE_BOUND].weight, counted);
	}
}

/* @clock has had no task: its time is not behind @vtime now. */
static __always_inline void clock_begins(struct artis_clock *clock, u64 vtime)
{
	if (artis_before(clock->vtime, vtime))
		clock->vtime = vtime;
}

static __always_inline void queue_count(const struct artis_task *t, u32 queue, u32 where, u32 group)
{
	struct artis_group *g = group_nr(group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM];
	struct artis_cpu *c;

	if (queue == ARTIS_QUEUE_CALM) {
		if (!__sync_fetch_and_add(&calm->weight, t->weight))
			clock_begins(calm, bound->vtime + g->calm_offset);
	} else if (queue == ARTIS_QUEUE_BOUND) {
		if (!__sync_fetch_and_add(&bound->weight, t->weight))
			clock_begins(bound, calm->vtime - g->calm_offset);
	} else {
		c = cpu_of(where);
		__sync_fetch_and_add(&c->own_nr, 1);
		__sync_fetch_and_add(&g->clock[ARTIS_QUEUE_OWN].weight, t->weight);
		if (!__sync_fetch_and_add(&c->own.weight, t->weight))
			clock_begins(&c->own, bound->vtime + c->own_offset);
	}
}

/* The clock of @queue of @where is @t's from now on, which is runnable. Global: verified once. */
__noinline int queue_join(struct artis_task *t, u32 queue, u32 where)
{
	u32 to = group_at(queue, where);
	u64 vtime;

	if (!t)
		return 0;
	if (likely(t->queue == queue && t->where == where)) {
		if (likely(t->counted == t->weight))
			return 0;
	} else {
		vtime = t->vtime - offset_of(t->queue, t->where);
		if (t->group != to)
			vtime += clock_at(ARTIS_QUEUE_BOUND, to) -
				 clock_at(ARTIS_QUEUE_BOUND, t->group);
		t->vtime = vtime + offset_of(queue, where);
	}
	queue_leave(t);
	queue_count(t, queue, where, to);
	t->queue = queue;
	t->where = where;
	t->group = to;
	t->counted = t->weight;
	return 0;
}

/* Of two CPUs that find the same offset one changes it. */
static __always_inline void offset_follow(u64 *offset, u64 ahead, u64 behind)
{
	u64 now = *offset, next = artis_offset_next(&policy, ahead, behind, now);

	if (unlikely(next != now))
		__sync_val_compare_and_swap(offset, now, next);
}

/* A run of @t for @run_ns moves its clock. */
static __always_inline void clock_run(const struct artis_task *t, u64 run_ns)
{
	struct artis_group *g = group_nr(t->group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM];
	struct artis_cpu *c;

	/* a kernel thread: its run is no share of theirs */
	if (t->weight <= ARTIS_WEIGHT_MIN)
		return;
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

/* @t begins to run: its clock is not further behind it than a task may be ahead. */
static __always_inline void clock_pick(const struct artis_task *t)
{
	struct artis_clock *clock;

	if (t->queue == ARTIS_QUEUE_OWN) {
		clock = &cpu_of(t->where)->own;
		clock->vtime = artis_clock_catch_up(&policy, clock->vtime, t->vtime);
	} else if (t->queue == ARTIS_QUEUE_CALM) {
		clock = &group_nr(t->where)->clock[ARTIS_QUEUE_CALM];
		clock->vtime = artis_clock_catch_up(&policy, clock->vtime, t->vtime);
	} else {
		clock = &group_nr(t->where)->clock[ARTIS_QUEUE_BOUND];
		clock->vtime = artis_clock_catch_up(&policy, clock->vtime, t->vtime);
	}
}

/* The virtual time of @t, which has slept or come from another group, is near its clock. */
static __always_inline void clamp_vtime(struct artis_task *t)
{
	t->vtime =
		artis_vtime_clamp(&policy, t->vtime, clock_at(t->queue, t->where), t->inv_weight);
}
