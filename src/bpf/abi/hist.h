/* SPDX-License-Identifier: GPL-2.0-only */
/* A histogram of times; policy/hist.h maps a time to its slot. */
#pragma once
#include "types.h"

/* Times below 2^FIRST ns share the first slot, those from 2^LAST ns on the last. */
#define ARTIS_HIST_FIRST 9
#define ARTIS_HIST_LAST 31
#define ARTIS_HIST_SLOTS 24

struct artis_hist {
	u32 slot[ARTIS_HIST_SLOTS];
};

_Static_assert(ARTIS_HIST_SLOTS == ARTIS_HIST_LAST - ARTIS_HIST_FIRST + 2,
	       "a slot for each power of two, and one for the rest on either side");
