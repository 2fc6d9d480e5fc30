/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task may wait, and what a CPU takes next: the two rules of the queues.
 *
 * A group is the NRT CPUs that share a last-level cache and the RT CPUs near to
 * them. It has two queues: *calm* for tasks that are expected to compute on,
 * which all its CPUs take from, and *bound* for tasks in the kernel or about to
 * enter it, which its NRT CPUs take from. Each CPU has a queue of its own for
 * tasks that may run there only.
 *
 * Pure: compiled for BPF and for the host (tests/policy), where all states of
 * small machines are explored with these very functions.
 */
#pragma once

#include "fair.h"
#include "rt1.h"

/* A runnable task, as far as it matters for where it may wait. */
struct artis_facts {
	/* groups that hold an NRT CPU, and an RT CPU, of its affinity; bit n is group n */
	u64 nrt_groups;
	u64 rt_groups;
	/* the CPU of its run queue */
	u32 cpu;
	/* it may run on that CPU only, for good or while its migration is disabled */
	bool pinned;
	/* no attempt is expected (policy/predict.h) */
	bool calm;
	/* in the kernel, other than to wake up from a call of the sleeping class */
	bool inside;
	/* a kernel thread, or a thread that a process lends to the kernel */
	bool kernel;
	/* new, in exec, or on its way out */
	bool unsettled;
	/* the user forbids it RT CPUs */
	bool rt_forbidden;
};

/*
 * artis_may_use_rt - may the task run on an RT CPU of its affinity now?
 *
 * Never in the kernel: that is the promise. A task that may run on RT CPUs only has no choice.
 */
static inline bool artis_may_use_rt(const struct artis_facts *f)
{
	if (!f->nrt_groups)
		return true;
	return f->calm && !f->inside && !f->kernel && !f->unsettled && !f->rt_forbidden;
}

/* artis_queue_of - the queue in which the task waits, of whatever group */
static inline enum artis_queue artis_queue_of(const struct artis_facts *f)
{
	if (f->pinned)
		return ARTIS_QUEUE_OWN;
	return artis_may_use_rt(f) ? ARTIS_QUEUE_CALM : ARTIS_QUEUE_BOUND;
}

/*
 * artis_may_wait - may the task wait in @queue of @where, a group, or a CPU for ARTIS_QUEUE_OWN?
 *
 * Only where a CPU of its affinity takes from, and not where none but RT CPUs do while it has
 * NRT CPUs elsewhere: a real-time task could hold all of those.
 */
static inline bool artis_may_wait(const struct artis_facts *f, enum artis_queue queue, u32 where)
{
	if (f->pinned)
		return queue == ARTIS_QUEUE_OWN && where == f->cpu;
	if (queue == ARTIS_QUEUE_OWN || where >= ARTIS_MAX_GROUPS)
		return false;
	if (queue == ARTIS_QUEUE_BOUND)
		return f->nrt_groups >> where & 1;
	return artis_may_use_rt(f) && (f->nrt_groups ? f->nrt_groups : f->rt_groups) >> where & 1;
}

/* Which CPU looks after a task has been queued. */
enum artis_rouse {
	/* that of its run queue, by itself: before it goes idle, or when a real-time task leaves it */
	ARTIS_ROUSE_NONE,
	/* that CPU, which is about to go idle */
	ARTIS_ROUSE_SELF,
	/* an idle CPU that takes from the queue */
	ARTIS_ROUSE_IDLE,
	/* a CPU whose task makes way */
	ARTIS_ROUSE_PREEMPT,
	/* the NRT CPU where the task ran last, before it goes idle */
	ARTIS_ROUSE_NRT,
};

struct artis_rouse_in {
	/* the CPU of its run queue takes from the queue, and is in the task's affinity */
	bool here;
	/* that CPU has no other task (SCX_ENQ_LAST) */
	bool last;
	/* an idle CPU has been found */
	bool idle;
	/* a CPU has been found whose task is lower, or calm and far ahead */
	bool behind;
};

/*
 * artis_rouse - which CPU looks after a task has been queued
 *
 * The first of a list that there is; what comes later in it need not be looked for.
 */
static inline enum artis_rouse artis_rouse(const struct artis_rouse_in *in)
{
	if (in->idle)
		return ARTIS_ROUSE_IDLE;
	if (in->behind)
		return ARTIS_ROUSE_PREEMPT;
	if (in->here)
		return in->last ? ARTIS_ROUSE_SELF : ARTIS_ROUSE_NONE;
	return ARTIS_ROUSE_NRT;
}

/* What a CPU may do next. */
enum artis_next {
	/* the task that ran goes on */
	ARTIS_NEXT_STAY,
	ARTIS_NEXT_OWN,
	ARTIS_NEXT_BOUND,
	ARTIS_NEXT_CALM,
	/* what waits in other groups, then the task that ran, then nothing */
	ARTIS_NEXT_NONE,
};

/* Bits of struct artis_look.waits. */
#define ARTIS_WAITS_OWN (1U << ARTIS_QUEUE_OWN)
#define ARTIS_WAITS_BOUND (1U << ARTIS_QUEUE_BOUND)
#define ARTIS_WAITS_CALM (1U << ARTIS_QUEUE_CALM)

/* What a CPU sees when its task sleeps or its slice is over. All orders are on one clock. */
struct artis_look {
	/* place of the first task of each queue in the order; known where waits says so */
	u64 first[ARTIS_NR_QUEUES];
	/* place of the task that ran */
	u64 order;
	/* an RT CPU: its guest stays until it is so far behind the first of the calm queue */
	u64 lead_ns;
	/* queues in which a task waits, and which have not been tried in vain */
	u32 waits;
	/* an RT CPU */
	bool rt;
	/* the task that ran may go on here */
	bool may_stay;
	/* it may run on this CPU only */
	bool pinned;
};

/* The queue of @a and @b, which both may be taken from, whose first task comes first. */
static inline u32 artis_earlier(const struct artis_look *l, u32 a, u32 b)
{
	if (!(l->waits & 1U << b))
		return a;
	if (!(l->waits & 1U << a))
		return b;
	return artis_before(l->first[b], l->first[a]) ? b : a;
}

/*
 * artis_next - what a CPU does next
 *
 * It takes the first of all that wait for it; an RT CPU takes none that is bound to the kernel. A
 * guest of an RT CPU stays for a while after its turn: each change costs that CPU caches and a
 * foreign lock. RT1+ tasks come before all others, by their order.
 */
static inline enum artis_next artis_next(const struct artis_look *l)
{
	struct artis_look of = *l;
	u64 lead_ns = 0;
	u32 queue;

	if (l->rt)
		of.waits &= ~ARTIS_WAITS_BOUND;
	if (!of.waits)
		return l->may_stay ? ARTIS_NEXT_STAY : ARTIS_NEXT_NONE;
	queue = artis_earlier(&of, artis_earlier(&of, ARTIS_QUEUE_OWN, ARTIS_QUEUE_BOUND),
			      ARTIS_QUEUE_CALM);
	if (l->rt && !l->pinned && queue == ARTIS_QUEUE_CALM && !artis_is_rt1_order(l->order) &&
	    !artis_is_rt1_order(l->first[ARTIS_QUEUE_CALM]))
		lead_ns = l->lead_ns;
	if (l->may_stay && !artis_before(l->first[queue] + lead_ns, l->order))
		return ARTIS_NEXT_STAY;
	return queue == ARTIS_QUEUE_OWN	  ? ARTIS_NEXT_OWN :
	       queue == ARTIS_QUEUE_BOUND ? ARTIS_NEXT_BOUND :
					    ARTIS_NEXT_CALM;
}
