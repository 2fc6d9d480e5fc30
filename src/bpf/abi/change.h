/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon has changed of a task outside the scheduler (docs/adoption.md).
 * The maps are pinned: another version of the daemon may read them.
 */
#pragma once

#include "types.h"
#include "consts.h"

enum artis_change_limits {
	/* Moves by one when a struct of this file changes. */
	ARTIS_CHANGE_VERSION = 2,
	/* Tasks that are remembered at most; 3.5 MiB of memory. */
	ARTIS_MAX_CHANGES = 16384,
	ARTIS_CPU_WORDS = ARTIS_MAX_CPUS / 64,
};

enum artis_change_kind {
	/* its real-time policy was taken away */
	ARTIS_CHANGE_ADOPTED = 1,
	/* it was bound to fewer CPUs */
	ARTIS_CHANGE_CONFINED = 2,
};

struct artis_change {
	/* thread id */
	u32 tid;
	/* enum artis_change_kind */
	u32 kind;
	/* when it began, clock ticks since boot, as /proc/PID/stat tells it */
	u64 start_ticks;
	/* ADOPTED: SCHED_FIFO or SCHED_RR, its priority, and SCHED_RESET_ON_FORK */
	u32 policy;
	u32 priority;
	u32 reset_on_fork;
	/* CONFINED: how many CPUs it was bound to, of those that it was allowed; bit n is CPU n */
	u32 nr_to;
	u64 from[ARTIS_CPU_WORDS];
};

/* The only element of its map. */
struct artis_keeper {
	/* ARTIS_CHANGE_VERSION of the daemon that made the maps */
	u32 version;
	/* process whose own calls change no record; 0: it has ended */
	u32 tgid;
	/* children whose record could not be made: the map was full */
	u32 lost;
	u32 pad;
};

/* The only element of its map: the task that the keeper's next call means, which names a thread id. */
struct artis_aim {
	u32 tid;
	u32 pad;
	/* as in struct artis_change */
	u64 start_ticks;
};
