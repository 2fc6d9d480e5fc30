/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task affinity: who follows whom. Kept apart from struct artis_task, for most
 * tasks follow nobody and nobody follows them.
 */
#pragma once

#include "types.h"

/* Producers of one consumer. */
#define ARTIS_FOLLOW_MAX 4

/* Bits of struct artis_task.follow. */
#define ARTIS_FOLLOW_CONSUMER 1
#define ARTIS_FOLLOW_PRODUCER 2

/* One entry in the list of a consumer. */
struct artis_producer {
	/* artis_who() of the producer, 0: the entry is free */
	u64 who;
	/* wake-up of the consumer, by number, that this one made last */
	u32 turn;
	u32 pad;
};

/* What is remembered of a task that follows or is followed. */
struct artis_follow {
	struct artis_producer producer[ARTIS_FOLLOW_MAX];
	/* when it stopped last on an NRT CPU, 0: not since it is remembered, ns */
	u64 ran_ns;
	/* when it woke a consumer in its present run, 0: it did not, ns */
	u64 woke_ns;
	/* mean run after it woke a consumer, ns */
	u64 tail_ns;
	/* wake-ups by producers */
	u32 turn;
	/* the NRT CPU where it stopped last */
	s32 cpu;
};

/* What a task follows (BPF_PROG_RUN). */
struct artis_set_follow {
	u32 pid;
	/* it follows these from now on, and no others */
	u32 set;
	/* thread ids; 0: none. Out: those before, of producers that live */
	u32 producer[ARTIS_FOLLOW_MAX];
};
