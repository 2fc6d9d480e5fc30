/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon changes of tasks outside the scheduler (docs/adoption.md). */
#pragma once
#include "types.h"
#include "consts.h"

enum artis_change_limits {
	ARTIS_CHANGE_VERSION = 2, /* incremented when a struct here changes: the maps are pinned */
	ARTIS_MAX_CHANGES = 16384, /* records at most; 3.5 MiB of memory */
	ARTIS_CPU_WORDS = ARTIS_MAX_CPUS / 64,
};

enum artis_change_kind {
	ARTIS_CHANGE_ADOPTED = 1, /* the daemon took its real-time policy away */
	ARTIS_CHANGE_CONFINED = 2, /* the daemon bound it to fewer CPUs */
};

struct artis_change {
	u32 tid; /* thread id */
	u32 kind; /* enum artis_change_kind */
	u64 start_ticks; /* start of the task, clock ticks since boot, as in /proc/PID/stat */
	u32 policy; /* ADOPTED: SCHED_FIFO or SCHED_RR, its priority, and SCHED_RESET_ON_FORK */
	u32 priority;
	u32 reset_on_fork;
	u32 nr_to; /* CONFINED: number of CPUs it is bound to; below, those allowed before */
	u64 from[ARTIS_CPU_WORDS]; /* bit n is CPU n */
};

struct artis_keeper { /* the only element of its map */
	u32 version; /* ARTIS_CHANGE_VERSION of the daemon that made the maps */
	u32 tgid; /* process whose calls change no record; 0: it has ended */
	u32 lost; /* children without a record because the map was full */
	u32 pad;
};

struct artis_aim { /* the task that the keeper's next call means; the only element of its map */
	u32 tid;
	u32 pad;
	u64 start_ticks; /* as in struct artis_change */
};
