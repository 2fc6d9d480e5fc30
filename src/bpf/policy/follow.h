/* SPDX-License-Identifier: GPL-2.0-only */
/* Task affinity: a consumer runs where its producers ran last (design: model section 8).
 * Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "fair.h"

#define ARTIS_PID_BITS 22 /* PID_MAX_LIMIT */

/* Unique id of a task: thread id @pid, above 0, and start time in 1024 ns (wraps after 52 days). */
static inline u64 artis_who(u32 pid, u64 start_ns)
{
	return (u64)pid << (64 - ARTIS_PID_BITS) |
	       (start_ns >> 10 & ((1ULL << (64 - ARTIS_PID_BITS)) - 1));
}

/* Thread id in artis_who(). */
static inline u32 artis_who_pid(u64 who)
{
	return who >> (64 - ARTIS_PID_BITS);
}

#define ARTIS_FOLLOW_TURNS 8 /* an active producer made one of the last 8 wake-ups by producers */

/* Where a producer ran. */
struct artis_spot {
	s32 cpu; /* an NRT CPU; negative: none yet */
	u32 runs; /* it runs there now */
	u64 ran_ns; /* when it ran there last */
	u32 home; /* the consumer ran there last, too, and the producer is active */
	u32 ends_soon; /* it is expected to sleep soon, if it runs */
};

/* Is @s the better place to follow to than @best? The latest data counts, but a consumer of several
 * producers does not alternate between them: it stays where it and one of them ran last. */
static inline bool artis_spot_is_better(const struct artis_spot *s, const struct artis_spot *best)
{
	if (best->cpu < 0)
		return true;
	if (!s->home != !best->home)
		return s->home;
	return (s64)(s->ran_ns - best->ran_ns) > 0;
}

/* Is a producer active at wake-up @now whose last wake-up was @turn (0: none)? */
static inline bool artis_follow_is_active(u32 turn, u32 now)
{
	return turn && now - turn < ARTIS_FOLLOW_TURNS;
}

/* A consumer waits for a producer that sleeps sooner than this (sched_migration_cost_ns). */
#define ARTIS_FOLLOW_TAIL_NS 500000
#define ARTIS_FOLLOW_TAIL_MAX_NS 4000000 /* longest run after a wake-up that counts */

/* Mean run of a producer after it woke a consumer, ns, updated with a run of @ns. */
static inline u64 artis_tail_next(u64 tail_ns, u64 ns)
{
	return tail_ns - tail_ns / 8 + artis_clamp(ns, 0, ARTIS_FOLLOW_TAIL_MAX_NS) / 8;
}

enum artis_follow_way {
	ARTIS_FOLLOW_NOT, /* the usual rules place it */
	ARTIS_FOLLOW_NEXT, /* in the local queue: it runs when the task that runs there stops */
	ARTIS_FOLLOW_QUEUE, /* in the CPU's own queue, by virtual time with all that waits */
};

/* How a consumer follows to @s, a CPU that runs a task. @rank and @curr_rank are their RT1+
 * priorities, 0 for NRT; @first: nothing there comes before it; @spare: an NRT CPU is idle. An RT1+
 * consumer waits only for a producer of its own priority that sleeps soon. */
static inline enum artis_follow_way artis_follow_way(const struct artis_spot *s, u32 rank,
						     u32 curr_rank, bool first, bool spare)
{
	if (first && s->runs && s->ends_soon && (!rank || rank == curr_rank))
		return ARTIS_FOLLOW_NEXT;
	if (rank || curr_rank || spare)
		return ARTIS_FOLLOW_NOT;
	return first ? ARTIS_FOLLOW_NEXT : ARTIS_FOLLOW_QUEUE;
}
