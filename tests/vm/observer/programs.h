/* SPDX-License-Identifier: GPL-2.0-only */
/* What the observer of a BPF program's runs counts; one object for each program. */
#ifndef ARTIS_OBSERVER_PROGRAMS_H
#define ARTIS_OBSERVER_PROGRAMS_H

#include "times.h"

enum programs_limits {
	/*
	 * Under --icount virtual CPUs run in turn, 1 ns is one instruction of any of them: a run in
	 * which the turn came to others is longer than this, and counted apart.
	 */
	PROGRAMS_TURN_NS = 20000,
};

/* The runs on one CPU. */
struct programs_cpu {
	u64 since_ns;
	u64 turned;
	struct times runs;
	/* has this run moved a task from another CPU to its own? */
	u32 moved;
	/* those of which it has, for ops.dispatch */
	struct times moving;
};

#endif /* ARTIS_OBSERVER_PROGRAMS_H */
