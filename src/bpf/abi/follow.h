/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task affinity: who follows whom. Kept apart from struct artis_task, for most
 * tasks follow nobody and nobody follows them.
 */
#ifndef ARTIS_ABI_FOLLOW_H
#define ARTIS_ABI_FOLLOW_H

#include "types.h"

/* Producers of one consumer. */
#define ARTIS_FOLLOW_MAX 4
/* Pairs that one look at all tasks can tell. */
#define ARTIS_FOLLOW_PAIRS 256

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
	/* when it stopped last on an NRT CPU and on an RT CPU, 0: not since it is remembered, ns */
	u64 ran_ns[2];
	/* and on which */
	s32 cpu[2];
	/* when it woke a consumer in its present run, 0: it did not, ns */
	u64 woke_ns;
	/* mean run after it woke a consumer, ns */
	u64 tail_ns;
	/* wake-ups by producers */
	u32 turn;
	u32 pad;
};

/* Whom a task is to follow (BPF_PROG_RUN). */
struct artis_set_follow {
	u32 pid;
	/* number of producers, 0: it follows nobody any more */
	u32 nr;
	u32 producer[ARTIS_FOLLOW_MAX];
	/* out: the thread id that no task has, 0: all are there */
	u32 missing;
	/* out: producers before */
	u32 old_nr;
	/* out: CPUs where the consumer may run */
	u32 nr_cpus;
	/* out: the kernel's real-time classes run the consumer */
	u32 realtime;
};

/* Who follows whom, as one look at all tasks found it. */
struct artis_follow_pair {
	u32 consumer;
	u32 producer;
	char consumer_comm[16];
	char producer_comm[16];
};

struct artis_follow_pairs {
	/* pairs that there are, which may be more than are told */
	u32 nr;
	u32 pad;
	struct artis_follow_pair pair[ARTIS_FOLLOW_PAIRS];
};

#endif /* ARTIS_ABI_FOLLOW_H */
