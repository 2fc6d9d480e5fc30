/* SPDX-License-Identifier: GPL-2.0-only */
/* Histograms of times, a slot for each power of two from 0.5 us to 2 s. Pure: compiled for BPF and
 * for the host (tests/policy, which compares the bounds with src/userspace/model/hist.rs). */
#pragma once
#include "../abi/abi.h"

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

/* Slot of a time of @ns. */
static inline u32 artis_hist_slot(u64 ns)
{
	if (ns < 1ULL << ARTIS_HIST_FIRST)
		return 0;
	if (ns >= 1ULL << ARTIS_HIST_LAST)
		return ARTIS_HIST_SLOTS - 1;
	return 1 + artis_log2(ns) - ARTIS_HIST_FIRST;
}
