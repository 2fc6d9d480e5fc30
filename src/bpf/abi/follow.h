/* SPDX-License-Identifier: GPL-2.0-only */
/* Task affinity: which tasks a consumer follows. Few tasks take part: not in struct artis_task. */
#pragma once
#include "types.h"

#define ARTIS_FOLLOW_MAX 4 /* producers of one consumer */
#define ARTIS_FOLLOW_CONSUMER 1 /* bits of struct artis_task.follow */
#define ARTIS_FOLLOW_PRODUCER 2
#define ARTIS_FOLLOW_WAITS 4 /* it is to wait in the own queue of the CPU that it follows to */

struct artis_producer {
	u64 who; /* artis_who() of the producer; 0: the entry is free */
	u32 turn; /* number of the last wake-up of the consumer that it made */
	u32 pad;
};

struct artis_follow { /* of a consumer or a producer */
	struct artis_producer producer[ARTIS_FOLLOW_MAX];
	u64 ran_ns; /* when it stopped last on an NRT CPU; 0: not yet */
	u64 woke_ns; /* when it woke a consumer in its present run; 0: it did not */
	u64 tail_ns; /* mean run after it woke a consumer */
	u32 turn; /* number of wake-ups by producers */
	s32 cpu; /* NRT CPU where it stopped last */
};

struct artis_set_follow { /* BPF_PROG_RUN */
	u32 pid;
	u32 set; /* it follows these producers from now on, and no others */
	u32 producer[ARTIS_FOLLOW_MAX]; /* thread ids; 0: none. Out: the live ones before */
};
