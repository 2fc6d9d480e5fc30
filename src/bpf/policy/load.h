/* SPDX-License-Identifier: GPL-2.0-only */
/* Load of a group of CPUs (design: model section 5): the weight of its runnable tasks times M, the
 * inverse of what real-time tasks leave of its CPUs: 1 / (1 - RT) for one full CPU.
 * Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "../abi/abi.h"

#define ARTIS_M_SHIFT 20 /* an integer M, as in the thesis's code, is 1 for any RT below 0.5 */
#define ARTIS_M_CAP 65 /* largest M of one full CPU: the thesis caps RT at 0.9846 */
#define ARTIS_CAPACITY_ONE 1024 /* the largest CPU of the machine */
#define ARTIS_CAPACITY_MIN 32 /* the smallest CPU of known machines has 130 */
#define ARTIS_POWER_SHIFT 30 /* fraction bits of what CPUs leave, in full CPUs */
#define ARTIS_M_MAX ((u64)ARTIS_M_CAP * (ARTIS_CAPACITY_ONE / ARTIS_CAPACITY_MIN) << ARTIS_M_SHIFT)
#define ARTIS_LOAD_WEIGHT_MAX 10000000000ULL /* larger ones count as this: 10^8 tasks of nice 0 */
/* Fraction bits of a load: 2^33.3 (weight) x 2^31.1 (M) / 2^8 fits 64 bits. */
#define ARTIS_LOAD_SHIFT 12

/* A group of CPUs as balancing sees it. */
struct artis_load {
	u64 weight; /* sum of its runnable ext tasks; 100 is one of nice 0 */
	u32 m; /* artis_m_of_power() of its CPUs */
	u32 pad;
};

/* What a CPU leaves to ext tasks, in full CPUs, never 0; a group has the sum of its CPUs.
 * @share_avg: mean real-time share, 0 to ARTIS_SHARE_ONE; @capacity: 1 to 1024. */
static inline u64 artis_power_of(u32 share_avg, u32 capacity)
{
	u64 free = share_avg < ARTIS_SHARE_ONE ? ARTIS_SHARE_ONE - share_avg : 0;
	u64 least = ARTIS_SHARE_ONE / ARTIS_M_CAP + 1;

	if (capacity < ARTIS_CAPACITY_MIN)
		capacity = ARTIS_CAPACITY_MIN;
	if (capacity > ARTIS_CAPACITY_ONE)
		capacity = ARTIS_CAPACITY_ONE;
	return (free < least ? least : free) * capacity >> 10;
}

/* M of CPUs that leave @power in sum, at most ARTIS_M_MAX. */
static inline u32 artis_m_of_power(u64 power)
{
	u64 m = power ? (1ULL << (ARTIS_POWER_SHIFT + ARTIS_M_SHIFT)) / power : ARTIS_M_MAX;

	return m < ARTIS_M_MAX ? m : ARTIS_M_MAX;
}

/* @weight x @m with ARTIS_LOAD_SHIFT fraction bits; @m is at most ARTIS_M_MAX. */
static inline u64 artis_load_of(u64 weight, u32 m)
{
	if (weight > ARTIS_LOAD_WEIGHT_MAX)
		weight = ARTIS_LOAD_WEIGHT_MAX;
	/* in halves: the product has up to 65 bits */
	return ((weight >> 32) * m << (32 - (ARTIS_M_SHIFT - ARTIS_LOAD_SHIFT))) +
	       ((u64)(u32)weight * m >> (ARTIS_M_SHIFT - ARTIS_LOAD_SHIFT));
}

/* Does moving a task of @weight lower the larger load? Such moves cannot form a cycle. */
static inline bool artis_relieves(const struct artis_load *from, const struct artis_load *to,
				  u32 weight)
{
	return artis_load_of(to->weight + weight, to->m) < artis_load_of(from->weight, from->m);
}

/* Does the load of @e exceed that of @r by more than @pct percent, which is at most 1000? */
static inline bool artis_imbalanced(const struct artis_load *e, const struct artis_load *r, u32 pct)
{
	u64 less = artis_load_of(r->weight, r->m);

	/* divided first: 2^57 x 1000 would overflow */
	return artis_load_of(e->weight, e->m) > less + less / 100 * pct;
}
