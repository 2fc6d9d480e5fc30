/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weighted virtual time (design: model section 7): the run time of a task, scaled
 * so that one of weight 100 (nice 0 in a cgroup of default weight) ages 1 ns per ns.
 * Queues are ordered by it. The tasks of one queue of one group share a clock, which
 * moves as their virtual time would if they shared what they run together by weight.
 *
 * Bound tasks have the NRT CPUs only, so calm ones may get more. The clocks are
 * compared with an offset, which forgives a lead of more than lead_max_ns: what only
 * one of them could use is no debt.
 *
 * Pure: compiled for BPF and for the host (tests/policy).
 */
#pragma once

#include "../abi/consts.h"

#define ARTIS_WEIGHT_DEFAULT 100
#define ARTIS_WEIGHT_MIN 1
#define ARTIS_WEIGHT_MAX 1000000
#define ARTIS_INV_WEIGHT_SHIFT 20
/* A light task is ahead by at most so many leads of a task of weight 100. */
#define ARTIS_LEAD_LIGHT_MAX 5
/* Weight of one CPU's tasks beyond which a clock does not get slower: 50 tasks of weight 100. */
#define ARTIS_CLOCK_WEIGHT_MAX 5000

/* The clock of the tasks of one queue. */
struct artis_clock {
	/* their virtual time, ns at weight 100 */
	u64 vtime;
	/* weight of those that are runnable, running ones included */
	u64 weight;
};

/* artis_before - does time @a come before @b? On the circle of 64-bit times. */
static inline bool artis_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u64 artis_clamp(u64 value, u64 least, u64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* artis_inv_weight - factor from run time to virtual time, 20 fraction bits; @weight is 100 for nice 0 */
static inline u32 artis_inv_weight(u32 weight)
{
	return (ARTIS_WEIGHT_DEFAULT << ARTIS_INV_WEIGHT_SHIFT) /
	       (u32)artis_clamp(weight, ARTIS_WEIGHT_MIN, ~0U);
}

/* artis_weight_in - weight of a task in a cgroup: the product of both, ARTIS_WEIGHT_MIN to _MAX */
static inline u32 artis_weight_in(u32 weight, u32 cgroup_weight)
{
	return artis_clamp((u64)weight * cgroup_weight / ARTIS_WEIGHT_DEFAULT, ARTIS_WEIGHT_MIN,
			   ARTIS_WEIGHT_MAX);
}

/* artis_vtime_of - virtual time that @run_ns (below 30 s) of a task is worth */
static inline u64 artis_vtime_of(u64 run_ns, u32 inv_weight)
{
	return run_ns * inv_weight >> ARTIS_INV_WEIGHT_SHIFT;
}

/*
 * artis_vtime_clamp - virtual time with which a task is queued
 *
 * A sleeper is owed at most sleep_credit_ns. A task that ran alone owes at most lead_max_ns of its
 * own run time: a bound in virtual time would let a light one off, which ages fast. But it owes no
 * more than ARTIS_LEAD_LIGHT_MAX times that, which is the longest that the lightest task waits.
 */
static inline u64 artis_vtime_clamp(const struct artis_policy *policy, u64 vtime, u64 clock,
				    u32 inv_weight)
{
	u64 lead = artis_clamp(artis_vtime_of(policy->lead_max_ns, inv_weight), 0,
			       policy->lead_max_ns * ARTIS_LEAD_LIGHT_MAX);
	u64 earliest = clock - policy->sleep_credit_ns, latest = clock + lead;

	if (artis_before(vtime, earliest))
		return earliest;
	return artis_before(latest, vtime) ? latest : vtime;
}

/*
 * artis_reader_advance - by how much earlier than by @vtime a task is queued that was preempted in
 * an RCU read-side section
 *
 * No grace period of the machine ends before it has run, and the kernel ends a scheduler after 21 s
 * of one. By its virtual time a nice 19 task waits for seconds among many; at the clock it waits for
 * a round. Before all others it would get every CPU: a call can be one long section.
 */
static inline u64 artis_reader_advance(u64 vtime, u64 clock)
{
	return artis_before(clock, vtime) ? vtime - clock : 0;
}

/*
 * artis_first_advance - the same for a task that may run on one CPU only and serves that CPU, or may
 * hold a lock: it comes before all others, whatever credit they have
 */
static inline u64 artis_first_advance(const struct artis_policy *policy, u64 vtime, u64 clock)
{
	return vtime - (clock - policy->sleep_credit_ns - 1);
}

/*
 * artis_clock_step - by how much a clock moves when one of its tasks has run for @run_ns
 *
 * @weight: of its runnable tasks
 * @nr_cpus: CPUs that run them
 *
 * A clock that followed the task that is furthest behind would stand still in a storm of short-lived
 * tasks, each of which begins at the clock, and a task ahead of it would wait without end. For the
 * same reason the step has a lower bound.
 */
static inline u64 artis_clock_step(u64 run_ns, u64 weight, u32 nr_cpus)
{
	u64 most = (u64)ARTIS_CLOCK_WEIGHT_MAX * nr_cpus;

	return run_ns * ARTIS_WEIGHT_DEFAULT /
	       artis_clamp(weight, ARTIS_WEIGHT_MIN, most ? most : ARTIS_WEIGHT_MIN);
}

/*
 * artis_clock_catch_up - a clock when a task with @vtime is the next to run
 *
 * It lags behind all its tasks when those that were behind have ended, but by lead_max_ns at most:
 * a task that wakes begins near it.
 */
static inline u64 artis_clock_catch_up(const struct artis_policy *policy, u64 clock, u64 vtime)
{
	u64 least = vtime - policy->lead_max_ns;

	return artis_before(clock, least) ? least : clock;
}

/*
 * artis_offset_next - the offset from now on between two clocks with runnable tasks
 *
 * @offset: a time on @ahead less the same time on @behind. With the one that is returned neither
 * clock is ahead of the other by more than lead_max_ns.
 */
static inline u64 artis_offset_next(const struct artis_policy *policy, u64 ahead, u64 behind,
				    u64 offset)
{
	s64 by = ahead - offset - behind, lead = policy->lead_max_ns;

	if (by > lead)
		return offset + (by - lead);
	return by < -lead ? offset + (by + lead) : offset;
}

/*
 * artis_slice_nrt - run that a task gets on an NRT CPU, ns
 *
 * @weight: of the tasks that wait for the NRT CPUs of the group, or run there
 * @nr_cpus: these CPUs
 *
 * The shorter, the more there are, so that an evicted task is not held up by a fresh slice.
 */
static inline u64 artis_slice_nrt(const struct artis_policy *policy, u64 weight, u32 nr_cpus)
{
	u64 slice = policy->slice_nrt_ns * ARTIS_WEIGHT_DEFAULT * nr_cpus;

	/* a whole slice where no CPU has more than one task of weight 100 */
	return artis_clamp(slice / artis_clamp(weight, ARTIS_WEIGHT_MIN, ~0ULL),
			   policy->slice_nrt_min_ns, policy->slice_nrt_ns);
}

/* artis_preempts - may a woken or evicted task take the CPU from the running one? */
static inline bool artis_preempts(const struct artis_policy *policy, u64 vtime, u64 curr_vtime)
{
	return artis_before(vtime + policy->preempt_margin_ns, curr_vtime);
}
