/* SPDX-License-Identifier: GPL-2.0-only */
/* Histograms of times, a slot for each power of two from 0.5 us to 2 s. Pure: compiled for BPF and
 * for the host (tests/policy, which compares the bounds with src/userspace/model/hist.rs). */
#pragma once
#include "../abi/abi.h"

/* Position of the highest set bit of @v, which is not 0. Without a loop, for the verifier. */
static inline u32 artis_log2(u64 v)
{
	u32 r, shift;

	r = (v > 0xffffffffULL) << 5;
	v >>= r;
	shift = (v > 0xffff) << 4;
	v >>= shift;
	r |= shift;
	shift = (v > 0xff) << 3;
	v >>= shift;
	r |= shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	r |= shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	r |= shift;
	return r | (u32)(v >> 1);
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

/* Lower bound of @slot, ns. */
static inline u64 artis_hist_from(u32 slot)
{
	return slot ? 1ULL << (ARTIS_HIST_FIRST + slot - 1) : 0;
}
