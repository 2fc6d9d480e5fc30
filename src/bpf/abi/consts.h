/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policy constants: decided in Rust (src/userspace/config), pushed whole into
 * the `policy` map before the scheduler is attached, changed there word by word
 * while it runs (scx_artis ctl), only read here. BPF has no
 * defaults of its own: every field is written by the daemon.
 */
#pragma once

#include "types.h"

enum artis_limits {
	/* Highest CPU id + 1. A power of two: ids are masked for the verifier. */
	ARTIS_MAX_CPUS = 1024,
	/* System-call numbers with a class of their own; others endanger. Power of two. */
	ARTIS_NR_CALLS = 512,
	/* cgroup levels whose weight counts; deeper ones inherit. */
	ARTIS_CGROUP_LEVELS = 8,
	/* Groups of CPUs; more are folded. A power of two, and one word has a bit for each. */
	ARTIS_MAX_GROUPS = 64,
};

/* Where runnable tasks wait: the queues of a group, and that of a CPU (policy/room.h). */
enum artis_queue {
	ARTIS_QUEUE_OWN,
	ARTIS_QUEUE_BOUND,
	ARTIS_QUEUE_CALM,
	ARTIS_NR_QUEUES,
};

/* How it is predicted that a task enters the kernel soon (policy/predict.h). */
enum artis_predict_rule {
	/* by the least of the last intervals, in the task's own run time */
	ARTIS_PREDICT_LEAST = 0,
	/* the thesis's two tests, in wall time (model section 4) */
	ARTIS_PREDICT_THESIS = 1,
};

/* Which of the two sets a CPU is in. */
enum artis_cpu_kind {
	ARTIS_CPU_ABSENT = 0, /* not online when the daemon looked */
	ARTIS_CPU_NRT = 1,
	ARTIS_CPU_RT = 2,
};

/*
 * Class of a system call (design: model section 3). Zero is the safe class, so
 * a number that the table does not know endangers.
 */
enum artis_call_class {
	ARTIS_CALL_ENDANGERING = 0,
	/* short, bounded, takes no contended lock: no attempt */
	ARTIS_CALL_HARMLESS = 1,
	/* bounded set-up, then sleep: no attempt; may wake on an RT CPU */
	ARTIS_CALL_SLEEPING = 2,
	/* futex(2): sleeping for the FUTEX_WAIT operations, else endangering */
	ARTIS_CALL_SLEEPING_FUTEX = 3,
	/* poll(2), ppoll(2): sleeping up to poll_fds_max descriptors, else endangering */
	ARTIS_CALL_SLEEPING_POLL = 4,
	/* clock_gettime(2), clock_getres(2): harmless for the kernel's own clocks, else endangering */
	ARTIS_CALL_HARMLESS_CLOCK = 5,
};

struct artis_policy {
	/* longest run on an NRT CPU while others wait, ns */
	u64 slice_nrt_ns;
	/* shortest run on an NRT CPU, however many wait, ns */
	u64 slice_nrt_min_ns;
	/* run of a computing task on an RT CPU before its place is reconsidered, ns */
	u64 slice_rt_ns;
	/* C: the next attempt is far if it is predicted later than this, ns */
	u64 predict_c_ns;
	/* virtual time a woken or evicted task must be behind to preempt, ns at weight 100 */
	u64 preempt_margin_ns;
	/* virtual time a sleeper may lag behind the clock when it wakes, ns at weight 100 */
	u64 sleep_credit_ns;
	/* own run time that a task may be ahead of the clock when it is queued, ns */
	u64 lead_max_ns;
	/* how long real-time tasks may hold a CPU before what waits for it is offered to others, ns */
	u64 put_back_ns;
	/* least time between two looks of a group at the load of another one, ns */
	u64 balance_ns;
	/* events that one CPU may write into the ring buffer in a second */
	u64 record_budget;
	/* K: an attempt is overdue after so many mean periods */
	u32 predict_k;
	/* weight of the past in the mean period at each attempt, in 1/2048 */
	u32 predict_past;
	/* enum artis_predict_rule */
	u32 predict_rule;
	/* imbalance below which nothing moves, percent of the lower load */
	u32 imbalance_pct;
	/* moves by one with each change of this struct after load */
	u32 seq;
	/* share of each second that RT1+ tasks may use of a CPU while others wait for it, percent */
	u32 rt1_budget_pct;
	/* run of a round-robin RT1+ task while equals wait, ms */
	u32 rt1_rr_ms;
	/* descriptors up to which poll(2) counts as sleeping */
	u32 poll_fds_max;
	/* CPU ids below this are looked at: highest possible CPU + 1 */
	u32 nr_cpus;
	u32 pad;
	/* enum artis_call_class by system-call number */
	u8 call_class[ARTIS_NR_CALLS];
	/* enum artis_cpu_kind by CPU */
	u8 cpu_kind[ARTIS_MAX_CPUS];
};

_Static_assert(sizeof(struct artis_policy) == 10 * 8 + 9 * 4 + 512 + 1024 + 4,
	       "struct artis_policy has padding: both languages must see the same bytes");

/* Where CPUs lie; written by the daemon before it attaches and with each new partition. */
struct artis_topology {
	/*
	 * Group of the CPU, below ARTIS_MAX_GROUPS: the NRT CPUs that share a last-level cache and
	 * have one capacity, and the RT CPUs that are nearest to them.
	 */
	u16 group[ARTIS_MAX_CPUS];
	/* lowest CPU of the same core */
	u16 core[ARTIS_MAX_CPUS];
	/* compute capacity, 1 to 1024 (the greatest CPU's) */
	u16 capacity[ARTIS_MAX_CPUS];
};
