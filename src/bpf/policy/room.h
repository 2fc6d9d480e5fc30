/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a task may wait and what a CPU takes next. A group (struct artis_topology) has two queues,
 * calm (tasks that compute on; for all its CPUs) and bound (tasks in the kernel or about to
 * enter it; for its NRT CPUs), and each CPU has its own. Pure: BPF and host (tests/policy). */
#pragma once
#include "fair.h"

/* What decides where a runnable task may wait. */
struct artis_facts {
	u64 nrt_groups; /* groups with an NRT CPU of its affinity; bit n is group n */
	u64 rt_groups; /* groups with an RT CPU of its affinity */
	u32 cpu; /* the CPU of its run queue */
	bool pinned; /* to that CPU, by affinity or migrate_disable() */
	bool calm; /* no attempt is expected (policy/predict.h) */
	bool inside; /* in the kernel, except to wake up from a call of the sleeping class */
	bool kernel; /* a kernel thread, or a user thread that works for the kernel */
	bool unsettled; /* new, in exec, or exiting */
	bool rt_forbidden; /* by the user */
};

/* May the task run on an RT CPU now? Never in the kernel, unless its affinity has RT CPUs only. Calm
 * tasks come last on NRT CPUs when RT CPUs serve them: not one that RT CPUs may not run. */
static inline bool artis_may_use_rt(const struct artis_facts *f)
{
	if (!f->nrt_groups || !f->rt_groups)
		return !f->nrt_groups;
	return f->calm && !f->inside && !f->kernel && !f->unsettled && !f->rt_forbidden;
}

/* Queue in which the task waits, in any group. */
static inline enum artis_queue artis_queue_of(const struct artis_facts *f)
{
	if (f->pinned)
		return ARTIS_QUEUE_OWN;
	return artis_may_use_rt(f) ? ARTIS_QUEUE_CALM : ARTIS_QUEUE_BOUND;
}

/* May the task wait in @queue of the group @where (ARTIS_QUEUE_OWN: of the CPU)? A CPU of its
 * affinity must take from it, an NRT CPU if there is one: real-time tasks may hold all RT CPUs. */
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
	ARTIS_ROUSE_NONE, /* no kick: its run queue's CPU looks before it idles or after real time */
	ARTIS_ROUSE_SELF, /* the CPU of its run queue, which is about to go idle */
	ARTIS_ROUSE_IDLE, /* an idle CPU that takes from the queue */
	ARTIS_ROUSE_PREEMPT, /* a CPU whose task gives way */
	ARTIS_ROUSE_NRT, /* the NRT CPU where the task ran last, before it goes idle */
};

struct artis_rouse_in {
	bool here; /* the CPU of its run queue takes from the queue and is in its affinity */
	bool last; /* that CPU has no other task (SCX_ENQ_LAST) */
	bool idle; /* an idle CPU was found */
	bool behind; /* a CPU was found whose task has a lower priority, or is calm and far ahead */
};

/* Which CPU looks. The tests are in the order of preference: after a hit the rest may be unset. */
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

enum artis_next { /* or an enum artis_queue, of which it takes a task */
		  ARTIS_NEXT_STAY = ARTIS_NR_QUEUES, /* the task that ran continues */
		  ARTIS_NEXT_NONE, /* a task of another group, else the one that ran, else idle */
};

/* What a CPU sees when its task sleeps or its slice is over. All orders are on one clock. */
struct artis_look {
	u64 first[ARTIS_NR_QUEUES]; /* order of the first task of each queue in waits */
	u64 order; /* of the task that ran */
	u64 lead_ns; /* RT CPU: how far its guest may be ahead of the first calm task */
	u32 waits; /* bits of enum artis_queue: queues with a task that have not been tried in vain */
	bool rt; /* an RT CPU */
	bool may_stay; /* the task that ran may continue here */
	bool pinned; /* it may run on this CPU only */
};

/* Which queue of @waits has the earliest first task; ARTIS_NR_QUEUES: none. */
static inline u32 artis_earliest(const struct artis_look *l, u32 waits)
{
	u32 earliest = ARTIS_NR_QUEUES, queue;

	for (queue = 0; queue < ARTIS_NR_QUEUES; queue++)
		if (waits >> queue & 1 && (earliest == ARTIS_NR_QUEUES ||
					   artis_before(l->first[queue], l->first[earliest])))
			earliest = queue;
	return earliest;
}

/* What a CPU does next: it takes the earliest task that waits for it, RT1+ tasks first. A guest of
 * an RT CPU stays for lead_ns longer: a change costs that CPU caches and a lock of another CPU. */
static inline u32 artis_next(const struct artis_look *l)
{
	u32 queue = artis_earliest(l, l->rt ? l->waits & ~(1U << ARTIS_QUEUE_BOUND) : l->waits);
	u64 lead_ns = 0;

	if (queue == ARTIS_NR_QUEUES)
		return l->may_stay ? ARTIS_NEXT_STAY : ARTIS_NEXT_NONE;
	if (l->rt && !l->pinned && queue == ARTIS_QUEUE_CALM && !artis_is_rt1_order(l->order) &&
	    !artis_is_rt1_order(l->first[ARTIS_QUEUE_CALM]))
		lead_ns = l->lead_ns;
	if (l->may_stay && !artis_before(l->first[queue] + lead_ns, l->order))
		return ARTIS_NEXT_STAY;
	return queue;
}
