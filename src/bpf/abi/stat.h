/* SPDX-License-Identifier: GPL-2.0-only */
/* Event counters and CPU state. src/userspace/model/describe.rs describes each counter;
 * tests/documents/contract.rs fails if a counter is not incremented or not described. */
#pragma once
#include "hist.h"
#include "../policy/fair.h"
#include "../policy/rt1.h"

enum artis_stat {
	ARTIS_STAT_ATTEMPT_CALL, /* endangering entries by tasks that could migrate, on any CPU */
	ARTIS_STAT_ATTEMPT_FAULT,
	ARTIS_STAT_ATTEMPT_DEATH, /* by a signal that ends the task */
	ARTIS_STAT_EVICTION, /* migrations asked for because of an attempt on an RT CPU */
	ARTIS_STAT_BODY_ON_RT, /* endangering bodies that ended on an RT CPU: must be 0 */
	ARTIS_STAT_EXEMPT_KTHREAD, /* tasks exempt from eviction */
	ARTIS_STAT_EXEMPT_MIGRATION_DISABLED,
	ARTIS_STAT_EXEMPT_PINNED,
	ARTIS_STAT_EXEMPT_EXITING,
	ARTIS_STAT_EXEMPT_NEW,
	ARTIS_STAT_EXEMPT_EXEC,
	ARTIS_STAT_PLACE_IDLE, /* runnable tasks sent straight to an idle NRT CPU */
	ARTIS_STAT_PLACE_BOUND, /* to a queue of enum artis_queue */
	ARTIS_STAT_PLACE_CALM,
	ARTIS_STAT_PLACE_FOLLOW, /* a consumer, to where its producers ran */
	ARTIS_STAT_PLACE_OWN,
	ARTIS_STAT_TAKE_RT, /* an RT CPU took a task from the calm queue */
	ARTIS_STAT_TAKE_GROUP, /* a CPU took a task from a queue of another group */
	ARTIS_STAT_RT1_PREEMPT, /* preemptions for an RT1+ task */
	ARTIS_STAT_RT1_THROTTLE, /* RT1+ tasks used up their share of a second of a CPU */
	ARTIS_STAT_MOVE_RT, /* a task that may leave came from an NRT CPU and runs on an RT CPU */
	ARTIS_STAT_WASTED, /* such moves that an eviction ended before the task had run for C */
	ARTIS_STAT_REENQUEUE, /* tasks put back because an RT or DL task took their CPU */
	ARTIS_STAT_PREEMPT, /* preemptions of an NRT CPU for a woken or evicted task */
	ARTIS_NR_STATS,
};

#define ARTIS_SHARE_SHIFT 30 /* fraction bits of a share */
#define ARTIS_SHARE_ONE (1U << ARTIS_SHARE_SHIFT)

struct artis_rt_share { /* of a CPU: exponential average, see policy/rt_share.h */
	u32 avg; /* at updated_ns, in units of 1 / ARTIS_SHARE_ONE */
	u32 in_rt; /* rt/dl tasks run, without a break since since_ns */
	u64 since_ns;
	u64 updated_ns; /* when one ended last */
	u64 total_ns; /* all time in rt/dl tasks up to updated_ns */
};

/* Steps of a CPU that goes offline (docs/decisions/0024-hotplug.md); 0: it does not. */
enum artis_gone {
	ARTIS_GONE_LEAVES = 1, /* it is to be active no more */
	ARTIS_GONE_EMPTY = 2, /* its own queue is empty, and it dispatches no more */
	ARTIS_GONE_DEAD = 3, /* it takes no more interrupts, from soon on */
};

struct artis_cpu { /* the daemon reads it by mmap; lines are split by writer, to spare RT0 misses */
	/* written by this CPU: what the kernel-entry hook touches */
	u32 attempts; /* of the task here since it was last charged */
	u8 door; /* enum artis_section that registers do not tell: fault or death; else 0 */
	u8 kind; /* enum artis_cpu_kind; written with a new partition */
	u8 ext_running; /* an ext task runs here */
	u8 movable; /* that task may leave an RT CPU */
	u64 first_attempt_ns; /* the first of those attempts */
	u64 section_since_ns; /* on RT CPUs: start of the section that leads to an eviction; or 0 */
	u32 evict_cause; /* enum artis_causes: why the task has to leave this RT CPU; or 0 */
	u8 began_in; /* enum artis_section in which it began to run; below, at the last look */
	u8 section;
	u8 releasing; /* in ops.cpu_release, which puts tasks back through ops.enqueue */
	u8 makes_way; /* the task here is in the mask of those that make way (ledger/cpu.bpf.h) */
	u32 section_nr; /* system-call number of the section */
	u32 looks_at; /* which other group it looks at next */
	struct artis_rt1_budget rt1;
	/* written by this CPU at context switches, read by others: the ext task that runs here */
	u64 curr_order __attribute__((aligned(64))); /* its place in the order when it began */
	u32 curr_pid; /* thread id, 0: none */
	u32 curr_rt1; /* RT1+ priority, 0: an NRT task */
	u64 power; /* what the group power_of was told at power_ns, 30 fraction bits (policy/load.h) */
	u64 power_ns;
	u32 power_of;
	u64 passed_ns[ARTIS_NR_QUEUES]; /* since when it passes over a queue; 0: it does not */
	/* written by any CPU */
	struct artis_clock own __attribute__((aligned(64))); /* of tasks that may run here only */
	u64 own_offset; /* a time on it less the same time on the bound clock of the group */
	u32 own_nr; /* runnable tasks that may run here only */
	u32 gone; /* enum artis_gone; the kernel may still call it online */
	u32 core_rt; /* SMT, lowest CPU of a core: CPUs of the core that run an rt/dl task now */
	/* written by this CPU: real-time share, and the rt/dl task seen last, at a tick or its end */
	struct artis_rt_share rt __attribute__((aligned(64)));
	u32 rt_pid;
	u32 rt_policy; /* SCHED_FIFO 1, SCHED_RR 2, SCHED_DEADLINE 6 */
	char rt_comm[16];
	u64 run_since_ns; /* while tasks are watched: when the run of an rt/dl task began, and its id */
	u32 run_pid;
	/* the ext task that waits in the local queue for the end of real-time tasks, as ops.stopping
	 * left it; 0: none */
	u32 beneath_pid;
	u64 residence_ns; /* RT CPU: time in endangering sections of tasks that could leave */
	u64 residence_max_ns;
	u64 ext_ns; /* time in ext tasks */
	u32 own_queued; /* length of its own queue when last sampled */
	u32 pad3;
	u64 stat[ARTIS_NR_STATS];
	struct artis_hist residence; /* the sections of residence_ns by length */
	struct artis_hist arrival; /* NRT CPU, watched: evictions by time from attempt to run */
	u64 records; /* written; below, lost for lack of room, and over budget */
	u64 records_lost;
	u64 records_over;
	u32 budget_second; /* the second (2^30 ns) of the budget, and what is left of it */
	u32 budget_left;
	u32 took; /* how the next task here came: enum artis_stat + 1; 0: see its own `why` */
	u32 pad2;
} __attribute__((aligned(64)));

/* What a task on a CPU does in the kernel; from CALL on it endangers. */
enum artis_section {
	ARTIS_SECTION_NONE = 0,
	ARTIS_SECTION_SLEEPING = 1, /* a call of the sleeping class */
	ARTIS_SECTION_CALL = 2, /* an endangering call */
	ARTIS_SECTION_FAULT = 3, /* a page fault */
	ARTIS_SECTION_DEATH = 4, /* the death by a signal, which does not return */
};

struct artis_sample { /* result of artis_sample() (BPF_PROG_RUN) */
	u64 now_ns; /* by the clock of all *_ns fields of struct artis_cpu */
};
