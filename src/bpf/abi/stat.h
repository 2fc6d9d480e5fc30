/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counter ids. One enum names an event from BPF to the screen: Rust has the
 * title and the description of each in src/userspace/model/describe.rs, and
 * tests/documents/contract.rs fails when a counter is not incremented or not described.
 */
#ifndef ARTIS_ABI_STAT_H
#define ARTIS_ABI_STAT_H

#include "hist.h"
#include "../policy/rt1.h"

enum artis_stat {
	/* attempts: endangering entries by tasks that could migrate, on any CPU */
	ARTIS_STAT_ATTEMPT_CALL,
	ARTIS_STAT_ATTEMPT_FAULT,
	/* migrations asked for because of an attempt on an RT CPU */
	ARTIS_STAT_EVICTION,
	/* endangering bodies that ran to their end on an RT CPU: must be 0 */
	ARTIS_STAT_BODY_ON_RT,

	/* exempt from eviction, each apart */
	ARTIS_STAT_EXEMPT_KTHREAD,
	ARTIS_STAT_EXEMPT_MIGRATION_DISABLED,
	ARTIS_STAT_EXEMPT_PINNED,
	ARTIS_STAT_EXEMPT_EXITING,
	ARTIS_STAT_EXEMPT_NEW,
	ARTIS_STAT_EXEMPT_EXEC,

	/* where runnable tasks were sent, and why */
	ARTIS_STAT_PLACE_NRT_IDLE, /* straight to an idle NRT CPU */
	ARTIS_STAT_PLACE_NRT_QUEUE, /* to the queue that NRT CPUs share */
	ARTIS_STAT_PLACE_RT_IDLE, /* calm and preempted, or woken from sleep: to an idle RT CPU */
	ARTIS_STAT_PLACE_RT_STAY, /* calm, stays on the RT CPU where it computes */
	ARTIS_STAT_PLACE_FOLLOW, /* consumer sent where its producers ran */
	ARTIS_STAT_PLACE_OWN, /* may run on one CPU only: to the queue of that CPU */

	/* what NRT CPUs do for RT CPUs */
	ARTIS_STAT_PUSH, /* waiting calm task given to an idle RT CPU */
	ARTIS_STAT_TAKE, /* task taken from an RT CPU's queue by a dry NRT CPU */
	ARTIS_STAT_RESCUE, /* task taken from under an RT task that stayed too long */
	ARTIS_STAT_BALANCE_NRT, /* task taken off an RT CPU because that had more load */
	ARTIS_STAT_BALANCE_RT, /* task moved from one RT CPU to another */
	ARTIS_STAT_BALANCE_LLC, /* task moved between groups of NRT CPUs */
	ARTIS_STAT_RETURN, /* RT1+ task sent to an RT CPU: woken, displaced, or its section is over */
	ARTIS_STAT_RT1_PREEMPT, /* preemption for an RT1+ task */
	ARTIS_STAT_RT1_THROTTLE, /* RT1+ tasks used up their share of a second of a CPU */

	/* how evicted tasks leave an RT CPU: see policy/handover.h */
	ARTIS_STAT_HANDOVER, /* through the FIFO of the pair */
	ARTIS_STAT_HANDOVER_FULL, /* that was full: through the queue that NRT CPUs share */
	ARTIS_STAT_HANDOVER_STALE, /* entry of a task that changed state meanwhile: dropped */

	/* is the prediction right? */
	ARTIS_STAT_MOVE_RT, /* a task that may leave came from an NRT CPU and runs on an RT CPU */
	ARTIS_STAT_WASTED, /* and was evicted before it had run for C */

	/* tasks put back because an RT or DL task took their CPU */
	ARTIS_STAT_REENQUEUE,
	/* preemptions of an NRT CPU for a woken or evicted task */
	ARTIS_STAT_PREEMPT,

	ARTIS_NR_STATS,
};

/* The unit of a share: 30 fraction bits. */
#define ARTIS_SHARE_SHIFT 30
#define ARTIS_SHARE_ONE (1U << ARTIS_SHARE_SHIFT)

/*
 * The exponential average of a CPU's real-time share, kept exactly at each
 * context switch (policy/rt_share.h).
 */
struct artis_rt_share {
	/* average at updated_ns, in units of 1 / ARTIS_SHARE_ONE */
	u32 avg;
	/* an rt/dl task runs since updated_ns */
	u32 in_rt;
	u64 updated_ns;
	/* all time in rt/dl tasks up to updated_ns */
	u64 total_ns;
};

/* Causes of the attempts of one run that are kept apart; further ones count as other. */
#define ARTIS_RUN_CAUSES 8

/* The attempts of the present run by cause, while somebody watches; the task's own totals get them. */
struct artis_run_causes {
	u32 n;
	u32 other;
	u32 cause[ARTIS_RUN_CAUSES];
	u32 times[ARTIS_RUN_CAUSES];
};

/*
 * One CPU. The first line is what the kernel-entry hook touches; the rest is
 * for context switches and for the daemon, which reads this array by mmap.
 * Written by its own CPU, unless a field says otherwise.
 */
struct artis_cpu {
	/* 0: the ext task running here is in user mode; else enum artis_section */
	u32 section;
	/* system-call number of that section */
	u32 section_nr;
	/* enum artis_cpu_kind */
	u8 kind;
	/* an ext task runs here */
	u8 ext_running;
	/* that task may run on some NRT CPU */
	u8 movable;
	/* its own queue may hold something; set by whoever inserts */
	u8 own_hint;
	/* the ext task running here was calm when it began */
	u8 curr_calm;
	/* its table of system calls, 0: the policy's */
	u8 call_table;
	/* in ops.cpu_release: what it puts back passes ops.enqueue meanwhile */
	u8 releasing;
	u8 pad1;
	/* attempts of that task since it was last charged */
	u32 attempts;
	/* runnable tasks here that may run here only, or on RT CPUs only; changed by any CPU */
	u32 own_nr;
	/* when the first of those attempts was, ns */
	u64 first_attempt_ns;
	/* when the section began, kept on RT CPUs only; 0: not known */
	u64 section_since_ns;
	/* virtual time of the ext task running here when it began; read by others */
	u64 curr_vtime;
	/* when something was last inserted into its own queue, ns */
	u64 own_hint_ns;
	/* thread id of the ext task running here, 0: none */
	u32 curr_pid;
	/* its RT1+ priority, 0: an NRT task */
	u32 curr_rt1;
	/* rank of the ext task that ran last, if that was preempted, else 0 */
	u32 left_rt1;
	/* the rt/dl task that runs here, or the last one, is a kernel thread */
	u32 rt_kthread;
	/* rank of the ext task that ran last on this NRT CPU, if it may use RT CPUs, else 0 */
	u32 rt1_away;
	/* runnable RT1+ tasks of this RT CPU; changed by any CPU */
	u32 rt1_nr;
	/* when an NRT CPU last looked: the RT1+ task that ran here, 0: none; how many waited */
	u32 rt1_looked_pid;
	u32 rt1_looked_waiting;
	/* what RT1+ tasks used of this second */
	struct artis_rt1_budget rt1;
	/* why that task has to leave this RT CPU: see enum artis_causes; 0: it need not */
	u32 evict_cause;
	/* clock of virtual time among the tasks that may run on this CPU only, or on RT CPUs only */
	u64 own_clock;
	/* since when there is always one that may run here only, ns */
	u64 bound_since_ns;
	/* weight of the runnable ext tasks of this RT CPU, kernel threads apart; changed by any CPU */
	u64 weight;

	/* real-time share and its culprit */
	struct artis_rt_share rt;
	/* the rt/dl task that runs here, or the last one */
	u32 rt_pid;
	/* its policy (SCHED_FIFO 1, SCHED_RR 2, SCHED_DEADLINE 6) */
	u32 rt_policy;
	/* since when it runs, ns of CLOCK_MONOTONIC or of the rq clock */
	u64 rt_since_ns;
	/* since when rt/dl tasks hold this CPU, one after another; the same clock */
	u64 held_since_ns;
	char rt_comm[16];

	/* time of tasks that could leave in endangering sections on this CPU, if it is an RT CPU */
	u64 residence_ns;
	u64 residence_max_ns;
	/* time in ext tasks */
	u64 ext_ns;
	/* length of its own queue, of the queue it takes from, when last sampled */
	u32 own_queued;
	u32 shared_queued;
	/* entries in the FIFOs that this CPU writes, when last sampled */
	u32 fifo_queued;
	/* tasks that began to run here because another CPU pushed or balanced them here */
	u32 pushed_in;
	u64 stat[ARTIS_NR_STATS];
	/* such sections by their length, those of an RT CPU */
	struct artis_hist residence;
	/* evictions by the time from the attempt to running here, an NRT CPU; while somebody watches */
	struct artis_hist arrival;

	/* events that were written, that found no room in the ring buffer, and that were over budget */
	u64 records;
	u64 records_lost;
	u64 records_over;
	/* the second of the clock that the budget is of, and what is left of it */
	u32 budget_second;
	u32 budget_left;
	struct artis_run_causes causes;
	/* how the next task that runs here came: enum artis_stat + 1; 0: as its own why says */
	u32 took;
	u32 pad2;
	/* when the run under way began, kept while runs are recorded, ns */
	u64 run_since_ns;

	/* RT CPUs, by id modulo 64, that handed tasks over to this NRT CPU; set by them */
	u64 inbox __attribute__((aligned(64)));
	/* lowest virtual time of what this CPU took from there in its present dispatch */
	u64 came_vtime;
} __attribute__((aligned(64)));

/* What a task on a CPU is doing in the kernel. */
enum artis_section {
	ARTIS_SECTION_NONE = 0,
	ARTIS_SECTION_SLEEPING = 1, /* a call of the sleeping class */
	ARTIS_SECTION_CALL = 2, /* an endangering call */
	ARTIS_SECTION_FAULT = 3, /* a page fault of user mode */
};

/* What the sampling program (BPF_PROG_RUN) returns about now. */
struct artis_sample {
	/* the clock that all *_ns fields of struct artis_cpu are in */
	u64 now_ns;
};

#endif /* ARTIS_ABI_STAT_H */
