/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task affinity: a consumer runs where its producers ran last (design: model
 * section 8). Which of them, what if that CPU is busy, and who are producers at
 * all when nobody says so.
 *
 * Pure: compiled for BPF and for the host (tests/policy).
 */
#ifndef ARTIS_POLICY_FOLLOW_H
#define ARTIS_POLICY_FOLLOW_H

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
	/* a negative number: nowhere yet */
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

/* What a consumer does about the NRT CPU where its producers ran. */
enum artis_follow_way {
	ARTIS_FOLLOW_NOT, /* the usual rules */
	ARTIS_FOLLOW_GO, /* it is idle */
	ARTIS_FOLLOW_WAIT, /* next there, when who runs there sleeps or its slice ends */
	ARTIS_FOLLOW_PREEMPT, /* at once, and who runs there makes way */
};

struct artis_follow_in {
	/* RT1+ priority of the consumer, and of who runs there; 0: an NRT task */
	u32 rank;
	u32 curr_rank;
	/* nothing runs there, and the CPU was kept for the consumer */
	bool idle;
	/* a task of the ext class runs there; else it is between two tasks */
	bool ext_runs;
	/* a task of the kernel's real-time classes runs there */
	bool held;
	/* nobody waits there who comes before the consumer */
	bool first;
	/* who runs there is a producer of the consumer */
	bool producer;
	/* and which is expected to sleep soon */
	bool ends_soon;
	/* another NRT CPU is idle */
	bool spare;
	/* the consumer may preempt by virtual time */
	bool behind;
};

/*
 * artis_follow_way - the one rule of following to a CPU that the consumer may use
 *
 * Priorities come first: no RT1+ task waits behind a lower one, or behind a higher one while there
 * are others to preempt. NRT tasks wait for a producer that is about to sleep; for strangers
 * only if they would have to wait elsewhere, too.
 */
static inline enum artis_follow_way artis_follow_way(const struct artis_follow_in *in)
{
	if (in->idle)
		return ARTIS_FOLLOW_GO;
	if (in->held)
		return ARTIS_FOLLOW_NOT;
	if (!in->ext_runs || !in->first)
		return ARTIS_FOLLOW_NOT;
	if (in->rank > in->curr_rank)
		return in->producer || !in->spare ? ARTIS_FOLLOW_PREEMPT : ARTIS_FOLLOW_NOT;
	if (in->producer && in->ends_soon &&
	    (!in->rank || in->rank == in->curr_rank))
		return ARTIS_FOLLOW_WAIT;
	if (in->rank || in->curr_rank || in->spare)
		return ARTIS_FOLLOW_NOT;
	return in->behind ? ARTIS_FOLLOW_PREEMPT : ARTIS_FOLLOW_WAIT;
}

#endif /* ARTIS_POLICY_FOLLOW_H */
