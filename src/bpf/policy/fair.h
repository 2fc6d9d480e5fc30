/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weighted virtual time, fair under the constraint (design: model section 7).
 *
 * Every task has a virtual time: its run time, scaled so that a task of weight
 * 100 (nice 0 in a cgroup of default weight) ages 1 ns per ns. Queues are ordered
 * by it. The tasks of one queue of one group share a clock, which moves as their
 * virtual time would if they shared by weight what they run together.
 *
 * Bound tasks have the NRT CPUs only, so the calm ones may get more. Their clocks
 * are compared with an offset, which forgives what one is ahead of the other by
 * more than lead_max_ns: who had more since nobody else could use it must not pay
 * for it without end.
 *
 * Pure: compiled for BPF and for the host (tests/policy.rs).
 */
#pragma once

#include "../abi/consts.h"

#define ARTIS_WEIGHT_DEFAULT 100
#define ARTIS_WEIGHT_MIN 1
#define ARTIS_WEIGHT_MAX 1000000
#define ARTIS_INV_WEIGHT_SHIFT 20

/* order on the circle of 64-bit times: true when @a comes before @b */
static inline bool artis_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/*
 * artis_inv_weight - factor from run time to virtual time
 *
 * @weight: 1 to 1,000,000, 100 is the default. Fixed point, 20 fraction bits.
 */
static inline u32 artis_inv_weight(u32 weight)
{
	if (weight < ARTIS_WEIGHT_MIN)
		weight = ARTIS_WEIGHT_MIN;
	return (ARTIS_WEIGHT_DEFAULT << ARTIS_INV_WEIGHT_SHIFT) / weight;
}

/*
 * artis_weight_in - weight of a task in a cgroup: the product of both, relative
 * to the default. Returns ARTIS_WEIGHT_MIN to ARTIS_WEIGHT_MAX.
 */
static inline u32 artis_weight_in(u32 weight, u32 cgroup_weight)
{
	u64 w = (u64)weight * cgroup_weight / ARTIS_WEIGHT_DEFAULT;

	if (w < ARTIS_WEIGHT_MIN)
		return ARTIS_WEIGHT_MIN;
	return w > ARTIS_WEIGHT_MAX ? ARTIS_WEIGHT_MAX : (u32)w;
}

/* artis_vtime_of - virtual time that @run_ns (below 30 s) of a task is worth */
static inline u64 artis_vtime_of(u64 run_ns, u32 inv_weight)
{
	return run_ns * inv_weight >> ARTIS_INV_WEIGHT_SHIFT;
}

/* Virtual time of the lead of a light task, in leads of a task of weight 100. */
#define ARTIS_LEAD_LIGHT_MAX 5

/*
 * artis_vtime_latest - how far ahead of the clock a task may get
 *
 * lead_max_ns of its own run time, so a light task, which ages fast, is not let
 * off: with a bound in virtual time its weight would count for nothing as soon
 * as one slice is worth more than the bound. But not without end: it is the
 * longest that the lightest task waits.
 */
static inline u64 artis_vtime_latest(const struct artis_policy *policy, u64 clock, u32 inv_weight)
{
	u64 lead = artis_vtime_of(policy->lead_max_ns, inv_weight);
	u64 most = policy->lead_max_ns * ARTIS_LEAD_LIGHT_MAX;

	return clock + (lead < most ? lead : most);
}

/*
 * artis_vtime_clamp - virtual time with which a task is queued
 *
 * A sleeper is owed at most sleep_credit_ns, whoever ran alone owes at most
 * lead_max_ns of its run time.
 */
static inline u64 artis_vtime_clamp(const struct artis_policy *policy, u64 vtime, u64 clock,
				    u32 inv_weight)
{
	u64 earliest = clock - policy->sleep_credit_ns;
	u64 latest = artis_vtime_latest(policy, clock, inv_weight);

	if (artis_before(vtime, earliest))
		return earliest;
	return artis_before(latest, vtime) ? latest : vtime;
}

/*
 * artis_reader_advance - by how much earlier than by @vtime a task is queued that was preempted
 * in an RCU read-side section
 *
 * No grace period of the machine ends before it has run. By its virtual time a nice 19 task waits
 * for seconds among many, and the kernel ends a scheduler after 21 s of one grace period. At the
 * clock it waits for a round, and a task that is always in such a section gets the share of one
 * of weight 100 and no more. Before all others it would get all of it: system calls that are one
 * long section can be called over and over.
 */
static inline u64 artis_reader_advance(u64 vtime, u64 clock)
{
	return artis_before(clock, vtime) ? vtime - clock : 0;
}

/*
 * artis_first_advance - the same for a task that may run on one CPU only and serves that CPU, or
 * may hold a lock: it comes before all others, whatever credit they have
 */
static inline u64 artis_first_advance(const struct artis_policy *policy, u64 vtime, u64 clock)
{
	return vtime - (clock - policy->sleep_credit_ns - 1);
}

/* Weight of one CPU's tasks beyond which a clock does not get slower: 50 tasks of weight 100. */
#define ARTIS_CLOCK_WEIGHT_MAX 5000

/* The clock of the tasks of one queue. */
struct artis_clock {
	/* their virtual time, ns at weight 100 */
	u64 vtime;
	/* weight of those that are runnable, running ones included */
	u64 weight;
};

/*
 * artis_clock_step - by how much a clock moves when one of its tasks has run for @run_ns
 *
 * @weight: of its runnable tasks
 * @nr_cpus: CPUs that run them
 *
 * A clock that followed the task that is furthest behind would stand still in a storm of
 * short-lived tasks, each of which begins at the clock, and whoever is ahead of it would wait
 * without end: a light task preempted in an RCU section held up grace periods for 21 s. For the
 * same reason the step has a lower bound.
 */
static inline u64 artis_clock_step(u64 run_ns, u64 weight, u32 nr_cpus)
{
	u64 most = (u64)ARTIS_CLOCK_WEIGHT_MAX * nr_cpus;

	if (weight > most)
		weight = most;
	if (weight < ARTIS_WEIGHT_MIN)
		weight = ARTIS_WEIGHT_MIN;
	return run_ns * ARTIS_WEIGHT_DEFAULT / weight;
}

/*
 * artis_clock_catch_up - a clock when a task with @vtime is the next to run
 *
 * It may lag behind all its tasks when those that were behind have ended. By more than
 * lead_max_ns it must not: who wakes begins near it.
 */
static inline u64 artis_clock_catch_up(const struct artis_policy *policy, u64 clock, u64 vtime)
{
	u64 least = vtime - policy->lead_max_ns;

	return artis_before(clock, least) ? least : clock;
}

/*
 * artis_offset_next - the offset between two clocks from now on
 *
 * @ahead, @behind: two clocks with runnable tasks
 * @offset: a time on @ahead less the same time on @behind
 *
 * Neither clock is ahead of the other by more than lead_max_ns with it.
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
 * The shorter, the more there are, so that an evicted task is not held up by a fresh slice of a
 * computing one.
 */
static inline u64 artis_slice_nrt(const struct artis_policy *policy, u64 weight, u32 nr_cpus)
{
	u64 slice = policy->slice_nrt_ns * ARTIS_WEIGHT_DEFAULT * nr_cpus;

	/* a whole slice where no CPU has more than one task of weight 100 */
	slice /= weight > ARTIS_WEIGHT_MIN ? weight : ARTIS_WEIGHT_MIN;
	if (slice > policy->slice_nrt_ns)
		return policy->slice_nrt_ns;
	return slice < policy->slice_nrt_min_ns ? policy->slice_nrt_min_ns : slice;
}

/* artis_preempts - may a woken or evicted task take the CPU from the running one? */
static inline bool artis_preempts(const struct artis_policy *policy, u64 vtime, u64 curr_vtime)
{
	return artis_before(vtime + policy->preempt_margin_ns, curr_vtime);
}
