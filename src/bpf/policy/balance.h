/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balancing as filter, select, steal (design: model sections 6 and 9). One move
 * is a pair of seats and a haul of tasks:
 *
 *   filter  artis_filter(): may this pair do this migration now?
 *   select  artis_prefers_from(), artis_prefers_to(): the better of two seats
 *   steal   artis_haul_of(): how much; artis_steals(): this task, too?
 *
 * Whoever acts is always an NRT CPU. Evictions are no balancing: the RT CPU
 * hands those over at once (policy/handover.h).
 *
 * A move lowers the greater of both loads, so moves cannot go in circles, with
 * three exceptions that are not there to even out: an idle RT CPU and a dry NRT
 * CPU get one task whatever it weighs, and so does the return of an RT1+ task.
 *
 * Pure: compiled for BPF and for the host (tests/policy).
 */
#ifndef ARTIS_POLICY_BALANCE_H
#define ARTIS_POLICY_BALANCE_H

#include "../abi/consts.h"
#include "load.h"

enum artis_migration {
	ARTIS_MIGRATION_NRT_NRT,
	/* from an RT CPU that has more than its share */
	ARTIS_MIGRATION_RT_NRT,
	/* an RT1+ task goes back */
	ARTIS_MIGRATION_RETURN,
	/* a calm NRT task for an RT CPU that has less than its share */
	ARTIS_MIGRATION_FILL,
	ARTIS_MIGRATION_RT_RT,
};

/* A task that waits, as far as it matters for whether it moves. */
struct artis_candidate {
	/* 100: nice 0 */
	u32 weight;
	/* firm real time */
	u8 rt1;
	/* no attempt expected (policy/predict.h) */
	u8 calm;
	/* in an endangering section */
	u8 in_section;
	/* kernel thread, or user-space helper that never leaves the kernel */
	u8 kernel;
	/* not new, not in the middle of exec, not exiting */
	u8 settled;
	/* its affinity holds a CPU of the receiver, and its migration is not disabled now */
	u8 allowed;
	/* its affinity holds no NRT CPU */
	u8 rt_only;
};

/* What is still to move from one seat to another. */
struct artis_haul {
	/* artis_surplus() of both */
	u64 left_weight;
	/* what a single task may weigh, in left_weight / 2^ARTIS_FIT_SHIFT */
	u64 fit;
	/* so many tasks move whatever they weigh */
	u32 free;
	/* RT1+ tasks may leave the RT CPU: they would not return there at once */
	u8 rt1_may_leave;
	/* set by the caller for a second scan of the queue, when NRT tasks did not do: those move, too */
	u8 rt1_too;
};

#define ARTIS_FIT_SHIFT 16
/* Weight of all that is left to move, as far as it matters for one task: 2^31 x 2 x 2^16 fits. */
#define ARTIS_FIT_LEFT_MAX (1ULL << 31)

/* An RT CPU that does nothing. */
static inline bool artis_is_idle_rt(const struct artis_seat *s)
{
	return s->rt && !s->weight && !s->rt_busy && !s->rt_held;
}

/* May tasks that could run elsewhere be sent there at all? */
static inline bool artis_takes_guests(const struct artis_seat *s)
{
	return !s->rt_held && !s->rt_bound;
}

/*
 * artis_filter - may @from give tasks to @to by this migration, now?
 *
 * An idle RT CPU and a dry NRT CPU take work from whoever has some, whatever the
 * 25 %. An RT CPU that a real-time task uses just now still receives: its M has
 * priced that in. One that is held for long does not, and is relieved; nor does one
 * that has to run a task which may run nowhere else.
 */
static inline bool artis_filter(enum artis_migration migration, const struct artis_seat *from,
				const struct artis_seat *to, const struct artis_policy *policy)
{
	if (!from->queued || to->rt_held)
		return false;
	/* an RT1+ task comes before those as well */
	if (migration != ARTIS_MIGRATION_RETURN && !artis_takes_guests(to))
		return false;
	switch (migration) {
	case ARTIS_MIGRATION_NRT_NRT:
		return !from->rt && !to->rt &&
		       (to->dry || artis_imbalanced(from, to, policy->imbalance_pct));
	case ARTIS_MIGRATION_RT_NRT:
		return from->rt && !to->rt &&
		       (to->dry || from->rt_held ||
			artis_imbalanced(from, to, policy->imbalance_pct));
	case ARTIS_MIGRATION_RETURN:
		/* behind another RT1+ task it would wait while an NRT CPU could run it */
		return !from->rt && to->rt && from->rt1_waiting && !to->rt_busy && !to->rt1;
	case ARTIS_MIGRATION_FILL:
		return !from->rt && to->rt && from->calm_waiting &&
		       (artis_is_idle_rt(to) || artis_imbalanced(from, to, policy->imbalance_pct));
	case ARTIS_MIGRATION_RT_RT:
		return from->rt && to->rt &&
		       (artis_is_idle_rt(to) || artis_imbalanced(from, to, policy->imbalance_pct));
	}
	return false;
}

/*
 * artis_prefers_from - is @candidate to be relieved before @best?
 *
 * Both have passed the filter. @best may be NULL: none yet. The one with the
 * greater load; before all, an RT CPU that is held.
 */
static inline bool artis_prefers_from(const struct artis_seat *candidate,
				      const struct artis_seat *best)
{
	u64 one, other;

	if (!best)
		return true;
	if (candidate->rt_held != best->rt_held)
		return candidate->rt_held;
	one = artis_seat_load(candidate);
	other = artis_seat_load(best);
	return one != other ? one > other : candidate->near && !best->near;
}

/*
 * artis_prefers_to - is @candidate to receive before @best?
 *
 * Both have passed the filter. @best may be NULL: none yet. Idle RT CPUs come
 * first. Then, for an RT1+ task, the one with the least real-time share and the
 * greatest capacity: it runs before all NRT tasks there. For others the one with
 * the least load, which tells nothing of idle ones. Near ones break the tie.
 */
static inline bool artis_prefers_to(enum artis_migration migration,
				    const struct artis_seat *candidate,
				    const struct artis_seat *best)
{
	u64 one, other;

	if (!best)
		return true;
	if (artis_is_idle_rt(candidate) != artis_is_idle_rt(best))
		return artis_is_idle_rt(candidate);
	one = artis_seat_load(candidate);
	other = artis_seat_load(best);
	if (migration != ARTIS_MIGRATION_RETURN && one != other)
		return one < other;
	if (candidate->m != best->m)
		return candidate->m < best->m;
	return candidate->near && !best->near;
}

/*
 * artis_haul_of - how much to move from @from to @to, which have passed the filter
 *
 * The surplus n. A single task may weigh less than 2 n, else it would leave the
 * loads further apart than they were, and less than n (M_from + M_to) / M_to,
 * else @to would have more than @from had.
 */
static inline struct artis_haul artis_haul_of(enum artis_migration migration,
					      const struct artis_seat *from,
					      const struct artis_seat *to)
{
	struct artis_haul haul = { .free = 0 };

	if (migration == ARTIS_MIGRATION_RETURN) {
		haul.free = 1;
		return haul;
	}
	/* an RT1+ task runs before NRT tasks: what waits there is no load to it */
	haul.rt1_may_leave = to->dry || from->rt_busy || from->rt1 > 1;
	haul.left_weight = artis_surplus(from, to);
	haul.fit = 2ULL << ARTIS_FIT_SHIFT;
	if (from->m < to->m)
		haul.fit = (((u64)from->m + to->m) << ARTIS_FIT_SHIFT) / to->m;
	if (from->rt_held && !to->rt)
		/* all of it */
		haul.free = from->queued;
	else if (artis_is_idle_rt(to) || (!to->rt && to->dry))
		haul.free = 1;
	return haul;
}

/* artis_haul_is_done - is there nothing more to move? */
static inline bool artis_haul_is_done(const struct artis_haul *haul)
{
	return !haul->free && !haul->left_weight;
}

/* May this task go to an RT CPU? Who has nothing but RT CPUs may, whatever it does there. */
static inline bool artis_may_go_to_rt(const struct artis_candidate *task)
{
	return task->rt_only || (task->calm && !task->in_section && !task->kernel && task->settled);
}

/*
 * artis_steals - does @task, met in the queue's order, move with @haul?
 *
 * The order is the queue's: those that wait longest first.
 */
static inline bool artis_steals(enum artis_migration migration, const struct artis_candidate *task,
				const struct artis_haul *haul)
{
	u64 left;

	if (!task->allowed)
		return false;
	switch (migration) {
	case ARTIS_MIGRATION_NRT_NRT:
		break;
	case ARTIS_MIGRATION_RT_NRT:
		/* RT1+ last */
		if (task->rt1 && !(haul->rt1_may_leave && haul->rt1_too))
			return false;
		break;
	case ARTIS_MIGRATION_RETURN:
		if (!task->rt1 || !artis_may_go_to_rt(task))
			return false;
		break;
	case ARTIS_MIGRATION_FILL:
		if (task->rt1 || !artis_may_go_to_rt(task))
			return false;
		break;
	case ARTIS_MIGRATION_RT_RT:
		/* an RT1+ task waits for who is higher, whatever the loads (queues/rt1.bpf.h) */
		if (task->rt1 || !artis_may_go_to_rt(task))
			return false;
		break;
	}
	if (haul->free)
		return true;
	left = haul->left_weight;
	if (left > ARTIS_FIT_LEFT_MAX)
		left = ARTIS_FIT_LEFT_MAX;
	return (u64)task->weight << ARTIS_FIT_SHIFT < left * haul->fit;
}

/* artis_haul_took - a task of @weight has moved */
static inline void artis_haul_took(struct artis_haul *haul, u32 weight)
{
	if (haul->free)
		haul->free--;
	haul->left_weight -= haul->left_weight < weight ? haul->left_weight : weight;
}

#endif /* ARTIS_POLICY_BALANCE_H */
