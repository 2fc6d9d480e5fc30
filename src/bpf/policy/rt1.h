/* SPDX-License-Identifier: GPL-2.0-only */
/* RT1+ (design: model section 7): firm real-time tasks, by strict priority, FIFO among equals,
 * before all NRT tasks on any CPU: their order is a virtual time far before those of NRT tasks, so
 * that one queue holds both. Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "../abi/abi.h"

/* Priorities; 0 is no RT1+ task, 99 is left to the kernel's threads. */
#define ARTIS_RT1_MIN 1
#define ARTIS_RT1_MAX 98
#define ARTIS_RT1_FIRST (1ULL << 62) /* before virtual time 0: half the range of artis_before() */
#define ARTIS_RT1_PLACE_BITS 48 /* place among equals, in 1024 ns: wraps after nine years */

/* Order in a queue of a task of @priority that is queued at @now_ns. */
static inline u64 artis_rt1_order(u32 priority, u64 now_ns)
{
	u64 place = (now_ns >> 10) & ((1ULL << ARTIS_RT1_PLACE_BITS) - 1);

	if (priority > ARTIS_RT1_MAX)
		priority = ARTIS_RT1_MAX;
	return ((u64)(ARTIS_RT1_MAX - priority) << ARTIS_RT1_PLACE_BITS) + place - ARTIS_RT1_FIRST;
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
	used_ns = before_ns + run_ns;
	if (used_ns > 1ULL << 30)
		used_ns = 1ULL << 30;
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
