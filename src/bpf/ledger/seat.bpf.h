/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Seats: where a runnable task is counted. An RT CPU is one, and so is each
 * group of NRT CPUs with one last-level cache, which share a queue and a clock
 * of virtual time (docs/decisions/0008-seats.md). The weight of a seat is that
 * of its runnable tasks, running or queued: L of model section 5, times 100.
 */
#ifndef ARTIS_LEDGER_SEAT_BPF_H
#define ARTIS_LEDGER_SEAT_BPF_H

#include "../policy/fair.h"
#include "../policy/rt1.h"

/* Passes over which the weight of a group is looked at. */
#define ARTIS_RECENT 4

/* A group of NRT CPUs with one last-level cache. */
struct artis_group {
	/* virtual time: see policy/fair.h */
	u64 clock;
	/* weight of its runnable tasks; changed by any CPU */
	u64 weight;
	/* when it was last evened out with RT CPUs, and with other groups, ns */
	u64 looked_ns;
	u64 looked_far_ns;
	/* NRT CPUs in it */
	u32 nr_cpus;
	/* its queue may hold a calm task that an RT CPU could run; a hint, set after inserting */
	u32 calm_hint;
	/* an RT1+ task may wait in its queue; a hint, set after inserting */
	u32 rt1_hint;
	/* RT CPU + 1 that asks for work, the last one to do so; 0: none */
	u32 asking;
	/* M of its CPUs together when it was last evened out (policy/load.h) */
	u32 m;
	/* its weight at the last passes, and the least of these */
	u32 next_recent;
	u64 recent[ARTIS_RECENT];
	u64 weight_low;
} __attribute__((aligned(64)));

struct artis_group groups[ARTIS_MAX_LLCS];

/* A seat's number: RT CPU + 1, or group + ARTIS_SEAT_GROUP. */
#define ARTIS_SEAT_GROUP (ARTIS_MAX_CPUS + 1)

/*
 * struct artis_task's counted: the weight, the seat where it is counted, and from these bits on the
 * CPU + 1 where the task counts as bound, and whether it counts as an RT1+ task of the RT CPU. One
 * word, which is only exchanged as a whole: of two CPUs that count a task at once, each takes back
 * what it found.
 */
#define ARTIS_COUNTED_SEAT 32
#define ARTIS_COUNTED_BOUND 48
#define ARTIS_COUNTED_RT1 (1ULL << 63)

static __always_inline struct artis_group *group_nr(u32 group)
{
	return &groups[group & (ARTIS_MAX_LLCS - 1)];
}

/* The group of NRT CPU @cpu. */
static __always_inline struct artis_group *group_of(s32 cpu)
{
	return group_nr(llc_of(cpu));
}

static __always_inline u32 seat_of_cpu(s32 cpu)
{
	return is_rt_cpu(cpu) ? (u32)cpu + 1 : ARTIS_SEAT_GROUP + llc_of(cpu);
}

/* Counts @weight at @seat; a negative one takes it away. */
static __always_inline void seat_add(u32 seat, s64 weight)
{
	/* two atomic operations: a choice of pointers would be too much for the verifier */
	if (seat >= ARTIS_SEAT_GROUP)
		__sync_fetch_and_add(&group_nr(seat - ARTIS_SEAT_GROUP)->weight, weight);
	else
		__sync_fetch_and_add(&cpu_of(seat - 1)->weight, weight);
}

/* It has no other CPU of this kind, so it is no guest that makes way for others. */
static __always_inline bool is_bound(const struct artis_task *t)
{
	return t->bound_nrt || !t->movable;
}

/* The place of @t in a queue where NRT tasks are ordered by virtual time, and its own is @vtime. */
static __always_inline u64 order_of(const struct artis_task *t, u64 vtime)
{
	if (unlikely(t->rt1))
		return t->rt1_order;
	return vtime - t->advance_ns;
}

/* The seat in such a word; 0: none. */
static __always_inline u32 counted_seat(u64 counted)
{
	return counted >> ARTIS_COUNTED_SEAT & 0xffff;
}

/* CPU + 1 where the task with such a word counts as bound; 0: nowhere. */
static __always_inline u32 counted_bound(u64 counted)
{
	return counted >> ARTIS_COUNTED_BOUND & 0x7fff;
}

/* Takes back what @counted says. */
static __always_inline void uncount(u64 counted)
{
	u32 seat = counted_seat(counted), bound = counted_bound(counted);

	seat_add(seat, -(s64)(u32)counted);
	if (counted & ARTIS_COUNTED_RT1)
		__sync_fetch_and_sub(&cpu_of(seat - 1)->rt1_nr, 1);
	if (bound)
		__sync_fetch_and_sub(&cpu_of(bound - 1)->own_nr, 1);
}

/* It sleeps, ends, or leaves the ext class. */
static __always_inline void seat_leave(struct artis_task *t)
{
	u64 counted = t->counted ? __sync_lock_test_and_set(&t->counted, 0) : 0;

	if (counted)
		uncount(counted);
}

/* @t is one more task that is bound to @cpu. */
static __always_inline void count_bound(const struct artis_task *t, s32 cpu)
{
	if (__sync_fetch_and_add(&cpu_of(cpu)->own_nr, 1))
		return;
	cpu_of(cpu)->bound_since_ns = scx_bpf_now();
	/* nobody competed here: its own clock is the group's again */
	if (t->bound_nrt)
		cpu_of(cpu)->own_clock = group_of(cpu)->clock;
}

/* It is runnable at @seat from now on. Global: verified once in each program. Returns 0. */
__noinline int seat_join(struct artis_task *t, u32 seat)
{
	u64 counted;
	s32 cpu;

	if (!t)
		return 0;
	counted = (u64)seat << ARTIS_COUNTED_SEAT | t->weight;
	cpu = seat < ARTIS_SEAT_GROUP ? (s32)seat - 1 : t->nrt_cpu;
	if (unlikely(t->rt1) && seat < ARTIS_SEAT_GROUP)
		counted |= ARTIS_COUNTED_RT1;
	if (unlikely(is_bound(t)))
		counted |= (u64)(cpu + 1) << ARTIS_COUNTED_BOUND;
	if (t->counted == counted)
		return 0;
	/* counted before the word is there: another CPU may take back what the word says at once */
	seat_add(seat, t->weight);
	if (counted & ARTIS_COUNTED_RT1)
		__sync_fetch_and_add(&cpu_of(cpu)->rt1_nr, 1);
	if (counted_bound(counted))
		count_bound(t, cpu);
	counted = __sync_lock_test_and_set(&t->counted, counted);
	if (counted)
		uncount(counted);
	return 0;
}

/* The virtual time of @t on the clock of @group. */
static __always_inline u64 vtime_in(const struct artis_task *t, u32 group)
{
	if (likely(t->group == group))
		return t->vtime;
	return t->vtime + group_nr(group)->clock - group_nr(t->group)->clock;
}

/* Its virtual time counts in the group of NRT CPU @cpu from now on. */
static __always_inline void group_join(struct artis_task *t, s32 cpu)
{
	u32 group = llc_of(cpu);

	t->vtime = vtime_in(t, group);
	t->group = group;
}

/*
 * The clock that a task on @cpu is held near to. Who is bound to one NRT CPU
 * that has more to do than the others falls behind the group's clock without
 * end; among such tasks weights only count if they are held near one of their own.
 */
static __always_inline u64 clock_for(const struct artis_task *t, s32 cpu)
{
	u64 clock, own;

	if (!t->movable)
		return cpu_of(cpu)->own_clock;
	clock = group_nr(t->group)->clock;
	if (likely(!t->bound_nrt))
		return clock;
	own = cpu_of(t->nrt_cpu)->own_clock;
	return artis_before(own, clock) ? own : clock;
}

/* A run of @run_ns on NRT CPU @cpu moves the clock of its group. */
static __always_inline void clock_run(s32 cpu, u64 run_ns)
{
	struct artis_group *g = group_of(cpu);

	g->clock = artis_clock_pace(g->clock, run_ns, g->weight, g->nr_cpus);
}

/* @t is the next to run on @cpu: nobody who competes with it there is further behind. */
static __always_inline void clock_pick(const struct artis_task *t, s32 cpu)
{
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_group *g;

	if (!t->movable || unlikely(t->bound_nrt)) {
		if (artis_before(c->own_clock, t->vtime))
			c->own_clock = t->vtime;
		return;
	}
	/* a guest on an RT CPU moves no clock */
	if (c->kind != ARTIS_CPU_NRT)
		return;
	g = group_of(cpu);
	g->clock = artis_clock_catch_up(&policy, g->clock, t->vtime);
}

#endif /* ARTIS_LEDGER_SEAT_BPF_H */
