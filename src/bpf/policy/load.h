/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load of a group of CPUs, knowing what real-time tasks take (design: model
 * section 5): the weight of its runnable tasks times M, the inverse of what
 * real-time tasks leave of its CPUs. Of one whole CPU M = 1 / (1 - RT).
 *
 * M has 20 fraction bits: as an integer, which it is in the thesis's code, it is 1
 * for any RT below 0.5. Pure: compiled for BPF and for the host (tests/policy).
 */
#pragma once

#include "../abi/stat.h"

#define ARTIS_M_SHIFT 20
/* Of one CPU of full capacity: the thesis caps RT at 0.9846. */
#define ARTIS_M_CAP 65
/* Capacity of the greatest CPU of a machine. Known machines have none below 130. */
#define ARTIS_CAPACITY_ONE 1024
#define ARTIS_CAPACITY_MIN 32
/* What a CPU leaves, in whole CPUs, has 30 fraction bits. */
#define ARTIS_POWER_SHIFT 30
#define ARTIS_M_MAX ((u64)ARTIS_M_CAP * (ARTIS_CAPACITY_ONE / ARTIS_CAPACITY_MIN) << ARTIS_M_SHIFT)

/* Weights above this count as this: a hundred million tasks of nice 0. */
#define ARTIS_LOAD_WEIGHT_MAX 10000000000ULL
/* Fraction bits of a load, in units of weight: 2^33.3 x 2^31.1 / 2^8 fits. */
#define ARTIS_LOAD_SHIFT 12

/* A group of CPUs as balancing sees it. */
struct artis_load {
	/* sum of the weights of its runnable ext tasks; 100 is one of nice 0 */
	u64 weight;
	/* artis_m_of_power() of its CPUs */
	u32 m;
	u32 pad;
};

/*
 * artis_power_of - what a CPU leaves to ext tasks, in whole CPUs; those of a group add up
 *
 * @share_avg: average real-time share, 0 to ARTIS_SHARE_ONE; never all of the CPU is taken
 * @capacity: 1 to 1024
 */
static inline u64 artis_power_of(u32 share_avg, u32 capacity)
{
	u64 free = share_avg < ARTIS_SHARE_ONE ? ARTIS_SHARE_ONE - share_avg : 0;
	u64 least = ARTIS_SHARE_ONE / ARTIS_M_CAP + 1;

	if (capacity < ARTIS_CAPACITY_MIN)
		capacity = ARTIS_CAPACITY_MIN;
	if (capacity > ARTIS_CAPACITY_ONE)
		capacity = ARTIS_CAPACITY_ONE;
	/* 2^30 x 2^10: the capacity's ten bits go */
	return (free < least ? least : free) * capacity >> 10;
}

/* artis_m_of_power - M of CPUs that leave @power in sum; of none, the greatest there is */
static inline u32 artis_m_of_power(u64 power)
{
	u64 m = power ? (1ULL << (ARTIS_POWER_SHIFT + ARTIS_M_SHIFT)) / power : ARTIS_M_MAX;

	return m < ARTIS_M_MAX ? m : ARTIS_M_MAX;
}

/* artis_load_of - weight x M, with ARTIS_LOAD_SHIFT fraction bits; @m is at most ARTIS_M_MAX */
static inline u64 artis_load_of(u64 weight, u32 m)
{
	if (weight > ARTIS_LOAD_WEIGHT_MAX)
		weight = ARTIS_LOAD_WEIGHT_MAX;
	/* in halves: the product has up to 65 bits */
	return ((weight >> 32) * m << (32 - (ARTIS_M_SHIFT - ARTIS_LOAD_SHIFT))) +
	       ((u64)(u32)weight * m >> (ARTIS_M_SHIFT - ARTIS_LOAD_SHIFT));
}

/*
 * artis_relieves - does a task of @weight that moves from @from to @to lower the greater load?
 *
 * Moves that do cannot go in circles.
 */
static inline bool artis_relieves(const struct artis_load *from, const struct artis_load *to,
				  u32 weight)
{
	return artis_load_of(to->weight + weight, to->m) < artis_load_of(from->weight, from->m);
}

/*
 * artis_imbalanced - does the load of @e exceed that of @r by more than @pct percent, at most 1000?
 *
 * Of two idle groups neither exceeds the other.
 */
static inline bool artis_imbalanced(const struct artis_load *e, const struct artis_load *r, u32 pct)
{
	u64 less = artis_load_of(r->weight, r->m);

	/* divided first: 2^57 x 1000 would not fit, and 1/100 of 2^-12 of a weight is nothing */
	return artis_load_of(e->weight, e->m) > less + less / 100 * pct;
}
