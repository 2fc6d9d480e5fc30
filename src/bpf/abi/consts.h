/* SPDX-License-Identifier: GPL-2.0-only */
/* Policy constants, which BPF only reads: the daemon decides all of them (src/userspace/config). It
 * writes the `policy` map before it attaches, and single words while it runs (scx_artis ctl). */
#pragma once
#ifndef __VMLINUX_H__ /* bindgen and compilers of the host; BPF has these from vmlinux.h */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
#include <stdbool.h>
#endif

enum artis_limits {
	ARTIS_MAX_CPUS = 1024, /* highest CPU id + 1; a power of two: the verifier needs masks */
	ARTIS_NR_CALLS = 512, /* system calls with a class, others endanger; a power of two */
	ARTIS_CGROUP_LEVELS = 8, /* cgroup levels whose weight counts; deeper levels inherit */
	ARTIS_MAX_GROUPS = 64, /* groups of CPUs, more are folded; a power of two, bits of a u64 */
};

/* Where runnable tasks wait (policy/room.h). */
enum artis_queue {
	ARTIS_QUEUE_OWN, /* of a CPU: tasks that may run on this CPU only */
	ARTIS_QUEUE_BOUND, /* of a group: tasks in the kernel or about to enter it */
	ARTIS_QUEUE_CALM, /* of a group: tasks expected to compute on */
	ARTIS_NR_QUEUES,
};

/* How it is predicted that a task enters the kernel soon (policy/predict.h). */
enum artis_predict_rule {
	ARTIS_PREDICT_LEAST = 0, /* least of the last intervals, in the task's own run time */
	ARTIS_PREDICT_THESIS = 1, /* the two tests of the thesis, in wall time (model section 4) */
};

enum artis_cpu_kind {
	ARTIS_CPU_ABSENT = 0, /* offline when the daemon looked, or since */
	ARTIS_CPU_NRT = 1,
	ARTIS_CPU_RT = 2,
};

/* Class of a system call (model section 3). FUTEX, POLL and CLOCK endanger in all other cases. */
enum artis_call_class {
	ARTIS_CALL_ENDANGERING = 0, /* also of each number that the table does not know */
	ARTIS_CALL_HARMLESS = 1, /* short, bounded, takes no contended lock: no attempt */
	ARTIS_CALL_SLEEPING = 2, /* bounded set-up, then sleep: no attempt; may wake on an RT CPU */
	ARTIS_CALL_SLEEPING_FUTEX = 3, /* futex(2): sleeping for the FUTEX_WAIT operations */
	ARTIS_CALL_SLEEPING_POLL = 4, /* poll(2), ppoll(2): sleeping up to poll_fds_max */
	ARTIS_CALL_HARMLESS_CLOCK = 5, /* clock_gettime(2), clock_getres(2): kernel's clocks */
};

struct artis_policy {
	u64 slice_nrt_ns; /* longest run on an NRT CPU while others wait */
	u64 slice_nrt_min_ns; /* shortest run on an NRT CPU, however many wait */
	u64 slice_rt_ns; /* run of a computing task on an RT CPU before it is placed anew */
	u64 predict_c_ns; /* C: the next attempt is far if it is predicted later than this */
	u64 preempt_margin_ns; /* virtual time (at weight 100) a task must be behind to preempt */
	u64 sleep_credit_ns; /* virtual time (at weight 100) a waking task may be behind */
	u64 lead_max_ns; /* own run time by which a queued task may be ahead of the clock */
	u64 put_back_ns; /* a CPU held by real-time tasks for this offers what waits for it */
	u64 balance_ns; /* least time between two looks of a group at the load of another one */
	u64 record_budget; /* events that one CPU may write into the ring buffer in a second */
	u32 predict_k; /* K: an attempt is overdue after this many mean periods */
	u32 predict_past; /* weight of the past in the mean period at each attempt, in 1/2048 */
	u32 predict_rule; /* enum artis_predict_rule */
	u32 imbalance_pct; /* imbalance below which nothing moves, percent of the lower load */
	u32 seq; /* incremented with each change of this struct after load */
	u32 rt1_budget_pct; /* share of a CPU's second for RT1+ tasks while others wait for it */
	u32 rt1_rr_ms; /* run of a round-robin RT1+ task while equals wait */
	u32 poll_fds_max; /* descriptors up to which poll(2) counts as sleeping */
	u32 nr_cpus; /* highest possible CPU + 1 */
	u32 pad;
	u8 call_class[ARTIS_NR_CALLS]; /* enum artis_call_class by system-call number */
	u8 cpu_kind[ARTIS_MAX_CPUS]; /* enum artis_cpu_kind by CPU */
};

_Static_assert(sizeof(struct artis_policy) == 10 * 8 + 9 * 4 + 512 + 1024 + 4,
	       "struct artis_policy has padding: both languages must see the same bytes");

struct artis_topology { /* written by the daemon before it attaches and with each new partition */
	u16 group[ARTIS_MAX_CPUS]; /* NRT CPUs of one LLC and capacity, and the nearest RT CPUs */
	u16 core[ARTIS_MAX_CPUS]; /* lowest CPU of the same core */
	u16 capacity[ARTIS_MAX_CPUS]; /* compute capacity, 1 to 1024 (the greatest CPU's) */
};
