/* SPDX-License-Identifier: GPL-2.0-only */
/* State and masks of CPUs; their groups, and the clocks of queues. */
#pragma once
#include "../policy/load.h"
#include "../policy/room.h"

/* No map look-up, and the daemon reads it by mmap: bpf(2) would raise bpf_prog_active on a CPU, for
 * which the kernel skips the entry hook there. */
struct artis_cpu cpus[ARTIS_MAX_CPUS] SEC(".bss.cpus");
struct artis_topology topology SEC(".data.topology");

struct artis_mask {
	struct bpf_cpumask __kptr *cpus;
};

/* The NRT CPUs of each group and of the whole machine, then so the RT CPUs, and those of either that
 * run a calm task, which makes way for others; then of each CPU one for intermediate results. */
#define ARTIS_MASKS_ALL ARTIS_MAX_GROUPS /* the whole machine as a group */
#define ARTIS_MASKS (ARTIS_MAX_GROUPS + 1)
#define ARTIS_MASKS_SCRATCH (4 * ARTIS_MASKS)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARTIS_MASKS_SCRATCH + ARTIS_MAX_CPUS);
	__type(key, u32);
	__type(value, struct artis_mask);
} masks SEC(".maps");

static __always_inline struct artis_cpu *cpu_of(s32 cpu)
{
	return &cpus[(u32)cpu & (ARTIS_MAX_CPUS - 1)];
}

/* task_cpu(), include/linux/sched.h: a load, where scx_bpf_task_cpu() is a call. */
static __always_inline s32 cpu_of_task(const struct task_struct *p)
{
	return p->thread_info.cpu;
}

static __always_inline struct artis_cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

static __always_inline void count(enum artis_stat id)
{
	this_cpu()->stat[id]++;
}

static __always_inline void hist_add(struct artis_hist *hist, u64 ns)
{
	u32 slot = artis_hist_slot(ns);

	if (slot < ARTIS_HIST_SLOTS)
		hist->slot[slot]++;
}

static __always_inline u32 group_of(s32 cpu)
{
	return topology.group[(u32)cpu & (ARTIS_MAX_CPUS - 1)] & (ARTIS_MAX_GROUPS - 1);
}

static __always_inline u32 *core_rt_of(s32 cpu)
{
	return &cpu_of(topology.core[(u32)cpu & (ARTIS_MAX_CPUS - 1)])->core_rt;
}

static __always_inline bool shares_core(s32 cpu)
{
	return smt && *core_rt_of(cpu); /* with a real-time task on another thread */
}

static __always_inline struct bpf_cpumask *mask_nr(u32 nr)
{
	struct artis_mask *m = bpf_map_lookup_elem(&masks, &nr);

	return m ? m->cpus : NULL;
}

/* CPUs of @kind in @group or ARTIS_MASKS_ALL; NULL only before artis_set_partition(). */
static __always_inline struct bpf_cpumask *mask_of(u32 group, u32 kind)
{
	return mask_nr((kind == ARTIS_CPU_RT) * ARTIS_MASKS + group);
}

/* Those of them with a task that makes way. */
static __always_inline struct bpf_cpumask *calm_of(u32 group, u32 kind)
{
	return mask_nr((2 + (kind == ARTIS_CPU_RT)) * ARTIS_MASKS + group);
}

static __always_inline const struct cpumask *nrt_mask(void)
{
	return cast_mask(mask_of(ARTIS_MASKS_ALL, ARTIS_CPU_NRT));
}

static __always_inline const struct cpumask *rt_mask(void)
{
	return cast_mask(mask_of(ARTIS_MASKS_ALL, ARTIS_CPU_RT));
}

/* Groups of CPUs, and the clocks of virtual time: one for each queue (policy/fair.h). */

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
	return &group_nr(where)->clock[queue == ARTIS_QUEUE_CALM ? queue : ARTIS_QUEUE_BOUND];
}

static __always_inline u64 order_of(const struct artis_task *t)
{
	return unlikely(t->rt1) ? t->rt1_order : t->vtime - t->advance_ns;
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

static __always_inline void offset_follow(u64 *offset, u64 ahead, u64 behind)
{
	u64 now = *offset, next = artis_offset_next(&policy, ahead, behind, now);

	if (unlikely(next != now))
		__sync_val_compare_and_swap(offset, now, next);
}

/* Forgives the own queue of @c its lead over the bound clock (@leads) or its lag, beyond lead_max. */
static __always_inline void own_follow(struct artis_cpu *c, u64 bound_vtime, bool leads)
{
	if (artis_before(bound_vtime + c->own_offset, c->own.vtime) == leads)
		offset_follow(&c->own_offset, c->own.vtime, bound_vtime);
}

/* Counts runnable @t on the clock of @queue of @where, rq lock held. Global: verified once. */
__noinline int queue_join(struct artis_task *t, u32 queue, u32 where)
{
	u32 group = queue == ARTIS_QUEUE_OWN ? group_of(where) : where;
	struct artis_group *g = group_nr(group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM], *clock;

	if (!t)
		return 0;
	if (likely(t->queue == queue && t->where == where)) {
		if (likely(t->counted == t->weight))
			return 0;
	} else {
		if (t->queue == ARTIS_QUEUE_OWN) /* its lead is no debt of @t */
			own_follow(cpu_of(t->where), clock_of(ARTIS_QUEUE_BOUND, t->group)->vtime,
				   true);
		t->vtime += offset_of(queue, where) - offset_of(t->queue, t->where);
		if (t->group != group)
			t->vtime += bound->vtime - clock_of(ARTIS_QUEUE_BOUND, t->group)->vtime;
	}
	queue_leave(t);
	clock = clock_of(queue, where);
	if (!__sync_fetch_and_add(&clock->weight, t->weight))
		clock_begins(clock, queue == ARTIS_QUEUE_BOUND ?
					    calm->vtime - g->calm_offset :
					    bound->vtime + offset_of(queue, where));
	t->queue = queue;
	t->where = where;
	t->group = group;
	t->counted = t->weight;
	return 0;
}

static __always_inline void clock_run(const struct artis_task *t, u64 run_ns)
{
	struct artis_group *g = group_nr(t->group);
	struct artis_clock *bound = &g->clock[ARTIS_QUEUE_BOUND];
	struct artis_clock *calm = &g->clock[ARTIS_QUEUE_CALM];
	struct artis_clock *clock = clock_of(t->queue, t->where);
	u32 nr_cpus = t->queue == ARTIS_QUEUE_OWN  ? 1 :
		      t->queue == ARTIS_QUEUE_CALM ? g->nr_cpus :
						     g->nr_nrt;

	__sync_fetch_and_add(&clock->vtime, artis_clock_step(run_ns, clock->weight, nr_cpus));
	if (t->queue == ARTIS_QUEUE_OWN)
		own_follow(cpu_of(t->where), bound->vtime, false); /* see look_around() */
	else if (bound->weight && calm->weight)
		offset_follow(&g->calm_offset, calm->vtime, bound->vtime);
	else if (t->queue == ARTIS_QUEUE_CALM)
		clock_begins(bound, calm->vtime - g->calm_offset);
}
