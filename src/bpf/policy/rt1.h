/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RT1+: firm real-time tasks, by strict priority, before every NRT task on
 * whatever CPU they run (design: model section 7).
 *
 * Their order is a virtual time, too, so that one queue holds both kinds: far
 * before those of NRT tasks, and before those who are bound to an RT CPU. The
 * higher the priority the earlier; among equals, the order in which they came.
 *
 * Pure: compiled for BPF and for the host (tests/policy).
 */
#pragma once

#include "../abi/consts.h"

/* Lowest and highest priority; 0 is no RT1+ task. 99 is left to the kernel's own. */
#define ARTIS_RT1_MIN 1
#define ARTIS_RT1_MAX 98

/* So far before the virtual time 0: half of what the order on the circle can tell apart. */
#define ARTIS_RT1_FIRST (1ULL << 62)
/* Bits of a place among equals: microseconds of nine years. */
#define ARTIS_RT1_PLACE_BITS 48

/*
 * artis_rt1_order - place in a queue of a task of @priority that came at @now_ns
 */
static inline u64 artis_rt1_order(u32 priority, u64 now_ns)
{
	u64 place = (now_ns >> 10) & ((1ULL << ARTIS_RT1_PLACE_BITS) - 1);

	if (priority > ARTIS_RT1_MAX)
		priority = ARTIS_RT1_MAX;
	return ((u64)(ARTIS_RT1_MAX - priority) << ARTIS_RT1_PLACE_BITS) + place - ARTIS_RT1_FIRST;
}

/* artis_is_rt1_order - is this the place of an RT1+ task? */
static inline bool artis_is_rt1_order(u64 order)
{
	return order + ARTIS_RT1_FIRST < (u64)(ARTIS_RT1_MAX + 1) << ARTIS_RT1_PLACE_BITS;
}

/* What RT1+ tasks used of one CPU in the present second. */
struct artis_rt1_budget {
	/* the second of the clock, in 2^30 ns */
	u32 second;
	/* run time in it, ns */
	u32 used_ns;
};

/* Part of a second, ns; 100 is more than any. */
static inline u64 artis_rt1_pct_ns(u32 pct)
{
	return pct < 100 ? (u64)pct * (1ULL << 30) / 100 : ~0ULL;
}

/*
 * artis_rt1_charge - an RT1+ task ran for @run_ns on this CPU up to @now_ns
 *
 * Returns true when this run is the one that uses up the budget of the second.
 */
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
	used_ns = before_ns + run_ns;
	if (used_ns > 1ULL << 30)
		used_ns = 1ULL << 30;
	budget->used_ns = used_ns;
	return before_ns < limit_ns && used_ns >= limit_ns;
}

/* artis_rt1_throttled - have RT1+ tasks used up their share of this second? */
static inline bool artis_rt1_throttled(const struct artis_rt1_budget *budget,
				       const struct artis_policy *policy, u64 now_ns)
{
	return budget->second == (u32)(now_ns >> 30) &&
	       budget->used_ns >= artis_rt1_pct_ns(policy->rt1_budget_pct);
}
