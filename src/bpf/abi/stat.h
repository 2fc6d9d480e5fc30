/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counter ids. One enum names an event from BPF to the screen: Rust has the
 * title and the description of each in src/userspace/model/describe.rs, and
 * tests/documents/contract.rs fails when a counter is not incremented or not described.
 */
#pragma once

#include "hist.h"
#include "../policy/fair.h"
#include "../policy/rt1.h"

enum artis_stat {
	/* attempts: endangering entries by tasks that could migrate, on any CPU */
	ARTIS_STAT_ATTEMPT_CALL,
	ARTIS_STAT_ATTEMPT_FAULT,
	ARTIS_STAT_ATTEMPT_DEATH, /* by a signal that ends the task */
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

	/* where runnable tasks were sent */
	ARTIS_STAT_PLACE_IDLE, /* straight to an idle NRT CPU */
	ARTIS_STAT_PLACE_BOUND, /* to a group's queue for tasks in the kernel or about to enter it */
	ARTIS_STAT_PLACE_CALM, /* to a group's queue for tasks expected to compute on */
	ARTIS_STAT_PLACE_FOLLOW, /* consumer sent where its producers ran */
	ARTIS_STAT_PLACE_OWN, /* may run on one CPU only: to the queue of that CPU */

	/* tasks that a CPU took */
	ARTIS_STAT_TAKE_RT, /* an RT CPU, from the calm queue */
	ARTIS_STAT_TAKE_GROUP, /* a CPU, from a queue of another group */

	/* RT1+ */
	ARTIS_STAT_RT1_PREEMPT, /* preemption for an RT1+ task */
	ARTIS_STAT_RT1_THROTTLE, /* RT1+ tasks used up their share of a second of a CPU */

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

/*
 * One CPU, for the daemon, which reads this array by mmap, too. The lines differ by who writes
 * them: what other CPUs write is not on the way of a real-time task.
 */
struct artis_cpu {
	/* written by this CPU: what the kernel-entry hook touches */
	/* attempts of the task here since it was last charged */
	u32 attempts;
	/* enum artis_section of a section that the registers do not tell: a fault, a death; else 0 */
	u8 door;
	/* enum artis_cpu_kind; written with a new partition */
	u8 kind;
	/* an ext task runs here */
	u8 ext_running;
	/* that task may leave an RT CPU */
	u8 movable;
	/* when the first of those attempts was, ns */
	u64 first_attempt_ns;
	/* when the section that leads to an eviction began, on RT CPUs; 0: none did */
	u64 section_since_ns;
	/* why the task here has to leave this RT CPU: see enum artis_causes; 0: it need not */
	u32 evict_cause;
	/* enum artis_section in which that task began to run, and in which it was at the last look */
	u8 began_in;
	u8 section;
	/* in ops.cpu_release: what it puts back passes ops.enqueue meanwhile */
	u8 releasing;
	/* the task here is in the mask of those that make way (ledger/cpu.bpf.h) */
	u8 makes_way;
	/* number of the call of that section */
	u32 section_nr;
	/* which other group it looks at next */
	u32 looks_at;
	/* what RT1+ tasks used of this second */
	struct artis_rt1_budget rt1;

	/* written by this CPU at context switches, read by others */
	/* place in the order of the ext task running here when it began */
	u64 curr_order __attribute__((aligned(64)));
	/* thread id of the ext task running here, 0: none */
	u32 curr_pid;
	/* its RT1+ priority, 0: an NRT task */
	u32 curr_rt1;
	/* what its group had when it was last told, 30 fraction bits (policy/load.h), and when */
	u64 power;
	u64 power_ns;

	/* changed by any CPU */
	/* the clock of those that may run on this CPU only */
	struct artis_clock own __attribute__((aligned(64)));
	/* a time on it less the same time on the clock of the bound tasks of the group */
	u64 own_offset;
	/* runnable tasks that may run here only */
	u32 own_nr;
	/* CPUs of this core, if this is its lowest, that run an rt/dl task now; of SMT machines */
	u32 core_rt;

	/* written by this CPU: real-time share and its culprit */
	struct artis_rt_share rt __attribute__((aligned(64)));
	/* the rt/dl task that runs here, or the last one */
	u32 rt_pid;
	/* its policy (SCHED_FIFO 1, SCHED_RR 2, SCHED_DEADLINE 6) */
	u32 rt_policy;
	/* since when it runs, ns of CLOCK_MONOTONIC or of the rq clock */
	u64 rt_since_ns;
	/* since when rt/dl tasks hold this CPU, one after another; the same clock */
	u64 held_since_ns;
	char rt_comm[16];
	/* it is a kernel thread */
	u32 rt_kthread;
	/* rank of the ext task that ran last, if that was preempted, else 0 */
	u32 left_rt1;

	/* time of tasks that could leave in endangering sections on this CPU, if it is an RT CPU */
	u64 residence_ns;
	u64 residence_max_ns;
	/* time in ext tasks */
	u64 ext_ns;
	/* length of its own queue when last sampled */
	u32 own_queued;
	u32 pad3;
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
	/* how the next task that runs here came: enum artis_stat + 1; 0: as its own why says */
	u32 took;
	u32 pad2;
	/* when the run under way began, kept while runs are recorded, ns */
	u64 run_since_ns;
} __attribute__((aligned(64)));

/* What a task on a CPU is doing in the kernel. */
enum artis_section {
	ARTIS_SECTION_NONE = 0,
	ARTIS_SECTION_SLEEPING = 1, /* a call of the sleeping class */
	ARTIS_SECTION_CALL = 2, /* an endangering call */
	ARTIS_SECTION_FAULT = 3, /* a page fault */
	ARTIS_SECTION_DEATH = 4, /* the death by a signal, which does not return */
};

/* What the sampling program (BPF_PROG_RUN) returns about now. */
struct artis_sample {
	/* the clock that all *_ns fields of struct artis_cpu are in */
	u64 now_ns;
};
