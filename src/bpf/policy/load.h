/* SPDX-License-Identifier: GPL-2.0-only */
/* Load of a group of CPUs (design: model section 5): the weight of its runnable tasks times M, the
 * inverse of what real-time tasks leave of its CPUs: 1 / (1 - RT) for one full CPU. RT, the share of
 * real-time tasks, is an exponential average, tau 500 ms, of "an rt/dl task runs", exact at each
 * switch (the thesis samples each ms): it or its complement decays by e^(-dt/tau). 10^4 roundings a
 * second stay below 10^-5. Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "fair.h"

#define ARTIS_SHARE_RATE_Q20 12994642ULL /* 2^32 / (500 ms * ln 2), with 20 more fraction bits */
#define ARTIS_LN2_Q32 2977044472ULL
#define ARTIS_SHARE_FORGET_NS 11000000000ULL /* 32 halvings leave nothing */

/* 2^32 * 2^(-i/16) */
static const u32 artis_exp2_q32[16] = {
	0xffffffff, 0xf5257d15, 0xeac0c6e8, 0xe0ccdeec, 0xd744fccb, 0xce248c15,
	0xc5672a11, 0xbd08a39f, 0xb504f334, 0xad583eea, 0xa5fed6aa, 0x9ef53261,
	0x9837f052, 0x91c3d374, 0x8b95c1e4, 0x85aac368,
};

/* @avg * e^(-@dt_ns / 500 ms), rounded down; @avg is 0 to ARTIS_SHARE_ONE. */
static inline u32 artis_share_decay(u32 avg, u64 dt_ns)
{
	u64 halvings_q32, f, u;

	if (dt_ns >= ARTIS_SHARE_FORGET_NS)
		return 0;
	halvings_q32 = dt_ns * ARTIS_SHARE_RATE_Q20 >> 20;
	/* f = 2^-(i/16) * e^-u in 1/2^32, u < ln2/16: e^-u by its series up to u^3 */
	u = (halvings_q32 & 0x0fffffff) * ARTIS_LN2_Q32 >> 32;
	f = 0x100000000ULL - u + (u * u >> 33) - ((u * u >> 32) * u >> 32) / 6;
	f = artis_exp2_q32[(halvings_q32 >> 28) & 15] * (f >> 1) >> 31;
	return (u32)((u64)avg * f >> 32 >> (halvings_q32 >> 32));
}

/* The average at @now_ns, 0 to ARTIS_SHARE_ONE, also while a real-time task runs on. */
static inline u32 artis_share_at(const struct artis_rt_share *s, u64 now_ns)
{
	u64 idle_ns = artis_after(s->in_rt ? s->since_ns : now_ns, s->updated_ns);
	u32 avg = artis_share_decay(s->avg, idle_ns);

	if (!s->in_rt)
		return avg;
	return ARTIS_SHARE_ONE -
	       artis_share_decay(ARTIS_SHARE_ONE - avg, artis_after(now_ns, s->since_ns));
}

/* From @now_ns on an rt/dl task runs (@in_rt), which waits: the rest is done when none does. */
static inline void artis_share_switch(struct artis_rt_share *s, u64 now_ns, bool in_rt)
{
	if (s->in_rt == in_rt)
		return;
	if (in_rt) {
		s->since_ns = now_ns;
	} else {
		s->avg = artis_share_at(s, now_ns);
		s->total_ns += artis_after(now_ns, s->since_ns);
		s->updated_ns = now_ns;
	}
	s->in_rt = in_rt;
}

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
};

/* What a CPU leaves to ext tasks, in full CPUs, never 0; a group has the sum of its CPUs.
 * @share_avg: mean real-time share, 0 to ARTIS_SHARE_ONE; @capacity: 1 to 1024. */
static inline u64 artis_power_of(u32 share_avg, u32 capacity)
{
	u64 free = share_avg < ARTIS_SHARE_ONE ? ARTIS_SHARE_ONE - share_avg : 0;
	u64 least = ARTIS_SHARE_ONE / ARTIS_M_CAP + 1;

	capacity = artis_clamp(capacity, ARTIS_CAPACITY_MIN, ARTIS_CAPACITY_ONE);
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
	weight = artis_clamp(weight, 0, ARTIS_LOAD_WEIGHT_MAX);
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

/* Position of the highest set bit of @v, which is not 0. */
static inline __attribute__((always_inline)) u32 artis_log2(u64 v)
{
	u32 log2 = 0, bits, step;

	for (step = 6; step; step--) { /* unrolled, for the verifier */
		bits = (v >> (1 << (step - 1)) != 0) << (step - 1);
		v >>= bits;
		log2 |= bits;
	}
	return log2;
}

/* Slot of a time of @ns in a histogram; src/userspace/model/hist.rs has the same bounds. */
static inline u32 artis_hist_slot(u64 ns)
{
	if (ns < 1ULL << ARTIS_HIST_FIRST)
		return 0;
	if (ns >= 1ULL << ARTIS_HIST_LAST)
		return ARTIS_HIST_SLOTS - 1;
	return 1 + artis_log2(ns) - ARTIS_HIST_FIRST;
}
