/* SPDX-License-Identifier: GPL-2.0-only */
/* What the observer of locks and artis-guest both read. */
#ifndef ARTIS_OBSERVER_LOCKS_H
#define ARTIS_OBSERVER_LOCKS_H

#include "times.h"

enum locks_limits {
	/* locks known by address */
	LOCKS_KNOWN = 1024,
	/* different (lock, who, from where) */
	LOCKS_PLACES = 4096,
	/* waits inside waits: task, softirq, interrupt, NMI */
	LOCKS_NESTED = 4,
	LOCKS_FRAMES = 12,
};

enum lock_what {
	LOCK_WAIT = 0, /* an RT CPU spun */
	LOCK_SLEEP = 1, /* a task on an RT CPU waited asleep, or spun and slept */
	LOCK_HOLD = 2, /* some CPU held a lock that RT CPUs take */
};

enum lock_kind {
	LOCK_OTHER = 0, /* which: its address */
	LOCK_RQ = 1, /* runqueue; which: its CPU */
	LOCK_DSQ_LOCAL = 2, /* the kernel's queue of a CPU; which: the CPU */
	LOCK_DSQ = 3, /* queue of the scheduler; which: its id */
};

enum lock_who {
	LOCK_BY_USER = 0, /* a task of user space, not real-time */
	LOCK_BY_KTHREAD = 1,
	LOCK_BY_REALTIME = 2,
	LOCK_BY_IDLE = 3, /* the idle task, or an interrupt of it */
};

struct lock_place {
	u32 what;
	u32 kind;
	u64 which;
	u32 who;
	/* the CPU that waits or holds */
	u32 cpu;
	/* innermost first, with the observer's own frames; 0 ends */
	u64 ip[LOCKS_FRAMES];
};

#endif /* ARTIS_OBSERVER_LOCKS_H */
