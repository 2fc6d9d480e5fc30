/* SPDX-License-Identifier: GPL-2.0-only */
/* Virtual time, which orders the queues (design: model section 7): run time, scaled to 1 ns per ns
 * at weight 100 (nice 0, default cgroup weight). The clock of a queue advances as the virtual time
 * of its tasks if they share by weight. Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "../abi/abi.h"

#define ARTIS_WEIGHT_DEFAULT 100
#define ARTIS_WEIGHT_MIN 1
#define ARTIS_WEIGHT_MAX 1000000
#define ARTIS_INV_WEIGHT_SHIFT 20
/* Most virtual time of one run, in leads, and the weight per CPU beyond which a clock gets no slower:
 * no task waits for more than 9 x 20 ms x 5000 / 100 = 9 s. After 10 s the kernel ends a scheduler. */
#define ARTIS_RUN_LEADS_MAX 8
#define ARTIS_CLOCK_WEIGHT_MAX 5000

/* Is time @a before @b, modulo 2^64? */
static inline bool artis_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* How far is time @a after @b? 0: it is not. */
static inline u64 artis_after(u64 a, u64 b)
{
	return artis_before(b, a) ? a - b : 0;
}

static inline u64 artis_clamp(u64 value, u64 least, u64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* Factor from run time to virtual time, ARTIS_INV_WEIGHT_SHIFT fraction bits. */
static inline u32 artis_inv_weight(u32 weight)
{
	return (ARTIS_WEIGHT_DEFAULT << ARTIS_INV_WEIGHT_SHIFT) / (weight ?: ARTIS_WEIGHT_MIN);
}

/* Weight of a task in a cgroup: @weight x @cgroup_weight / 100, ARTIS_WEIGHT_MIN to _MAX. */
static inline u32 artis_weight_in(u32 weight, u32 cgroup_weight)
{
	return artis_clamp((u64)weight * cgroup_weight / ARTIS_WEIGHT_DEFAULT, ARTIS_WEIGHT_MIN,
			   ARTIS_WEIGHT_MAX);
}

/* Virtual time of @run_ns, which is below 30 s. */
static inline u64 artis_vtime_of(const struct artis_policy *policy, u64 run_ns, u32 inv_weight)
{
	return artis_clamp(run_ns * inv_weight >> ARTIS_INV_WEIGHT_SHIFT, 0,
			   policy->lead_max_ns * ARTIS_RUN_LEADS_MAX);
}

/* Virtual time after a run: not behind @clock without end if the weight asks for more than a CPU. */
static inline u64 artis_vtime_ran(const struct artis_policy *policy, u64 vtime, u64 clock)
{
	u64 earliest = clock - policy->sleep_credit_ns;

	return artis_before(vtime, earliest) ? earliest : vtime;
}

/* Virtual time with which a task is queued: at most sleep_credit_ns behind @clock, and ahead by at
 * most lead_max_ns of run time (virtual time would favour light tasks, which age fast). */
static inline u64 artis_vtime_clamp(const struct artis_policy *policy, u64 vtime, u64 clock,
				    u32 inv_weight)
{
	u64 latest = clock + artis_vtime_of(policy, policy->lead_max_ns, inv_weight);

	return artis_before(latest, vtime) ? latest : artis_vtime_ran(policy, vtime, clock);
}

/* How much earlier than @vtime a task that may run on one CPU only is queued, if it serves this CPU or may
 * hold a lock: before all others. */
static inline u64 artis_first_advance(const struct artis_policy *policy, u64 vtime, u64 clock)
{
	return vtime - (clock - policy->sleep_credit_ns - 1);
}

/* Advance of a clock for a run of @run_ns; @weight is the sum of its tasks, which @nr_cpus run. Not
 * to the minimum of the tasks, and bounded below: many short-lived tasks, which start at the clock,
 * would stop it and starve the tasks ahead of it. */
static inline u64 artis_clock_step(u64 run_ns, u64 weight, u32 nr_cpus)
{
	u64 most = (u64)ARTIS_CLOCK_WEIGHT_MAX * nr_cpus;

	return run_ns * ARTIS_WEIGHT_DEFAULT /
	       artis_clamp(weight, ARTIS_WEIGHT_MIN, most ? most : ARTIS_WEIGHT_MIN);
}

/* The clock when a task with @vtime is the next to run: at most lead_max_ns behind it. The clock
 * lags when the tasks furthest behind have ended, and a task that wakes starts near the clock. */
static inline u64 artis_clock_catch_up(const struct artis_policy *policy, u64 clock, u64 vtime)
{
	u64 least = vtime - policy->lead_max_ns;

	return artis_before(clock, least) ? least : clock;
}

/* Next offset (time on @ahead less the same on @behind) of two clocks with runnable tasks: neither
 * leads by more than lead_max_ns. Only calm tasks can use RT CPUs, so a longer lead is no debt. */
static inline u64 artis_offset_next(const struct artis_policy *policy, u64 ahead, u64 behind,
				    u64 offset)
{
	s64 by = ahead - offset - behind, lead = policy->lead_max_ns;

	if (by > lead)
		return offset + (by - lead);
	return by < -lead ? offset + (by + lead) : offset;
}

#define ARTIS_LAST_NS (1ULL << 40) /* added to an order: after all others */
#define ARTIS_FIRST_NS (2 * ARTIS_LAST_NS) /* subtracted: before them, also if it was to be last */
/* For so long a CPU passes over a queue. Clocks of queues differ: by their order alone, a task could
 * wait without end for tasks of another queue whose clock does not move. */
#define ARTIS_PASS_MAX_NS 100000000

/* Order of the first task of a queue that a CPU has passed over for @passed_ns. */
static inline u64 artis_passed_order(u64 order, u64 passed_ns)
{
	return passed_ns > ARTIS_PASS_MAX_NS ? order - ARTIS_FIRST_NS : order;
}

/* Have the tasks of @ahead had more than those of @behind, whatever they have to be forgiven? */
static inline bool artis_is_well_ahead(const struct artis_policy *policy, u64 ahead, u64 behind,
				       u64 offset)
{
	return (s64)(ahead - offset - behind) >= (s64)policy->lead_max_ns / 2;
}

/* Slice on an NRT CPU, ns; @weight is the sum of the tasks that wait for the @nr_cpus NRT CPUs of
 * the group or run there. It shrinks with the load: an evicted task may wait for a whole slice. */
static inline u64 artis_slice_nrt(const struct artis_policy *policy, u64 weight, u32 nr_cpus)
{
	u64 slice = policy->slice_nrt_ns * ARTIS_WEIGHT_DEFAULT * nr_cpus;

	/* a full slice up to one task of weight 100 per CPU */
	return artis_clamp(slice / artis_clamp(weight, ARTIS_WEIGHT_MIN, ~0ULL),
			   policy->slice_nrt_min_ns, policy->slice_nrt_ns);
}

/* May a woken or evicted task with @vtime preempt the running one? */
static inline bool artis_preempts(const struct artis_policy *policy, u64 vtime, u64 curr_vtime)
{
	return artis_before(vtime + policy->preempt_margin_ns, curr_vtime);
}

/* RT1+ (design: model section 7): firm real-time tasks, by strict priority, FIFO among equals, before
 * all NRT tasks on any CPU: their order is a virtual time far before, so one queue holds both. */
/* Priorities; 0 is no RT1+ task, 99 is left to the kernel's threads. */
#define ARTIS_RT1_MIN 1
#define ARTIS_RT1_MAX 98
#define ARTIS_RT1_FIRST (1ULL << 62) /* before virtual time 0: half the range of artis_before() */
#define ARTIS_RT1_PLACE_BITS 48 /* place among equals, in 1024 ns: wraps after nine years */

/* Order in a queue of a task of @priority that is queued at @now_ns. */
static inline u64 artis_rt1_order(u32 priority, u64 now_ns)
{
	u64 place = (now_ns >> 10) & ((1ULL << ARTIS_RT1_PLACE_BITS) - 1);
	u64 below = ARTIS_RT1_MAX - artis_clamp(priority, 0, ARTIS_RT1_MAX);

	return (below << ARTIS_RT1_PLACE_BITS) + place - ARTIS_RT1_FIRST;
}

/* Is @order that of an RT1+ task? */
static inline bool artis_is_rt1_order(u64 order)
{
	return order + ARTIS_RT1_FIRST < (u64)(ARTIS_RT1_MAX + 1) << ARTIS_RT1_PLACE_BITS;
}

/* @pct percent of a second, ns; no limit from 100 on. */
static inline u64 artis_rt1_pct_ns(u32 pct)
{
	return pct < 100 ? (u64)pct * (1ULL << 30) / 100 : ~0ULL;
}

/* Charges a run of @run_ns that ends at @now_ns. Returns true if this run exhausts the budget. */
static inline bool artis_rt1_charge(struct artis_rt1_budget *budget,
				    const struct artis_policy *policy, u64 now_ns, u64 run_ns)
{
	u64 limit_ns = artis_rt1_pct_ns(policy->rt1_budget_pct), before_ns, used_ns;
	u32 second = now_ns >> 30;

	if (budget->second != second) {
		budget->second = second;
		budget->used_ns = 0;
	}
	before_ns = budget->used_ns;
	used_ns = artis_clamp(before_ns + run_ns, 0, 1ULL << 30);
	budget->used_ns = used_ns;
	return before_ns < limit_ns && used_ns >= limit_ns;
}

/* Is the budget of the second of @now_ns exhausted? */
static inline bool artis_rt1_throttled(const struct artis_rt1_budget *budget,
				       const struct artis_policy *policy, u64 now_ns)
{
	return budget->second == (u32)(now_ns >> 30) &&
	       budget->used_ns >= artis_rt1_pct_ns(policy->rt1_budget_pct);
}
