/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task affinity: a consumer runs where its producers ran last (design: model
 * section 8): which of them, and what if that CPU is busy.
 *
 * Pure: compiled for BPF and for the host (tests/policy).
 */
#pragma once

#include "../abi/consts.h"
#include "../abi/follow.h"

/* Thread ids are below this power of two (PID_MAX_LIMIT of Linux). */
#define ARTIS_PID_BITS 22

/*
 * artis_who - a task, as one word that no later task with its thread id has
 *
 * @pid: its thread id, above 0
 * @start_ns: when it began; microseconds of it count, which come again after 50 days
 */
static inline u64 artis_who(u32 pid, u64 start_ns)
{
	return (u64)pid << (64 - ARTIS_PID_BITS) |
	       (start_ns >> 10 & ((1ULL << (64 - ARTIS_PID_BITS)) - 1));
}

/* artis_who_pid - the thread id in such a word */
static inline u32 artis_who_pid(u64 who)
{
	return who >> (64 - ARTIS_PID_BITS);
}

/* A producer that made none of the last so many wake-ups by producers does not hold its consumer. */
#define ARTIS_FOLLOW_TURNS 8

/* Where a producer ran. */
struct artis_spot {
	/* an NRT CPU; a negative number: nowhere yet */
	s32 cpu;
	/* it runs there now */
	u32 runs;
	/* when it was there last, ns */
	u64 ran_ns;
	/* the consumer ran there last, too, and the producer still takes part */
	u32 home;
	/* it is expected to sleep soon, if it runs */
	u32 ends_soon;
};

/*
 * artis_spot_is_better - is the CPU of @s rather the one to follow to than that of @best?
 *
 * The latest data counts, but a consumer of several producers does not run to and fro between
 * them: where it ran last itself, and one of them did, it stays.
 */
static inline bool artis_spot_is_better(const struct artis_spot *s, const struct artis_spot *best)
{
	if (best->cpu < 0)
		return true;
	if (!s->home != !best->home)
		return s->home;
	return (s64)(s->ran_ns - best->ran_ns) > 0;
}

/* artis_follow_is_active - does a producer whose last turn was @turn take part at @now? */
static inline bool artis_follow_is_active(u32 turn, u32 now)
{
	return turn && now - turn < ARTIS_FOLLOW_TURNS;
}

/* A consumer waits behind a producer that sleeps sooner than this: what caches are worth, as
 * the kernel has it (sched_migration_cost_ns). */
#define ARTIS_FOLLOW_TAIL_NS 500000
/* A longer run after a wake-up counts as this. */
#define ARTIS_FOLLOW_TAIL_MAX_NS 4000000

/* artis_tail_next - mean run of a producer after it woke a consumer, with one more of @ns */
static inline u64 artis_tail_next(u64 tail_ns, u64 ns)
{
	if (ns > ARTIS_FOLLOW_TAIL_MAX_NS)
		ns = ARTIS_FOLLOW_TAIL_MAX_NS;
	return tail_ns - tail_ns / 8 + ns / 8;
}

/*
 * artis_follow_waits - does a consumer of @rank wait for the task that runs at @s, of @curr_rank?
 *
 * For a producer that is about to sleep. RT1+ tasks wait only for one of their own priority.
 */
static inline bool artis_follow_waits(const struct artis_spot *s, u32 rank, u32 curr_rank)
{
	return s->runs && s->ends_soon && (!rank || rank == curr_rank);
}
