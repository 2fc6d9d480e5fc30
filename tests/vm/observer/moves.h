/* SPDX-License-Identifier: GPL-2.0-only */
/* What the observer of moves and artis-guest both read. */
#ifndef ARTIS_OBSERVER_MOVES_H
#define ARTIS_OBSERVER_MOVES_H

#include "times.h"

/* Of tasks that are not real-time and may leave RT CPUs. */
enum moves_what {
	/* own run time on RT CPUs from coming there to an eviction, ns */
	MOVES_STAY,
	/* the same of those who left otherwise: preempted, asleep, gone */
	MOVES_LEFT,
	/* on the RT CPU, from the entry into the kernel to the switch to another task */
	MOVES_RT_SIDE,
	/* of that, in put_prev_task_scx(): ops.stopping, ops.enqueue and what they do */
	MOVES_PUT,
	/* on the RT CPU, in the interrupt of a kick: of its own or of another CPU's */
	MOVES_KICK,
	/* from that entry to running on an NRT CPU that idled */
	MOVES_TO_IDLE,
	/* or that did not */
	MOVES_TO_BUSY,
	/* length of times in which RT CPUs idled */
	MOVES_RT_IDLE,
	/* on the RT CPU, from the entry into a call to its return: the task was not evicted */
	MOVES_BODY,
	MOVES_NR,
};

enum moves_event_what {
	MOVES_ENTERS, /* the kernel: a system call, or a page fault (nr is MOVES_NR_FAULT) */
	MOVES_BEGINS, /* is put on a CPU */
	MOVES_WAITS, /* is taken off it and would run on */
	MOVES_SLEEPS,
};

#define MOVES_NR_FAULT 0xffff

/* What a traced task did. */
struct moves_event {
	u64 now_ns;
	/* its own run time so far */
	u64 run_ns;
	u32 tid;
	u16 what;
	u16 nr;
};

#endif /* ARTIS_OBSERVER_MOVES_H */
