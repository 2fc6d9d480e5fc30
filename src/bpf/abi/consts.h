/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policy constants: decided in Rust (src/userspace/config), pushed whole into
 * the `policy` map before the scheduler is attached, only read here. BPF has no
 * defaults of its own: every field is written by the daemon.
 */
#ifndef ARTIS_ABI_CONSTS_H
#define ARTIS_ABI_CONSTS_H

#include "types.h"

enum artis_limits {
	/* Highest CPU id + 1. A power of two: ids are masked for the verifier. */
	ARTIS_MAX_CPUS = 1024,
	/* System-call numbers with a class of their own; others endanger. Power of two. */
	ARTIS_NR_CALLS = 512,
	/* Waiting tasks that one push looks at before it gives up. */
	ARTIS_PUSH_SCAN = 16,
	/* RT CPUs that one NRT CPU looks at when it runs dry. */
	ARTIS_STEAL_SCAN = 64,
	/* cgroup levels whose weight counts; deeper ones inherit. */
	ARTIS_CGROUP_LEVELS = 8,
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
	/* own run time without an attempt after which a task counts as calm, ns */
	u64 quiet_ns;
	/* virtual time a woken or evicted task must be behind to preempt, ns at weight 100 */
	u64 preempt_margin_ns;
	/* virtual time a sleeper may lag behind the clock when it wakes, ns at weight 100 */
	u64 sleep_credit_ns;
	/* own run time that a task may be ahead of the clock when it is queued, ns */
	u64 lead_max_ns;
	/* how long a task may wait under an RT task on an RT CPU before NRT CPUs take it back, ns */
	u64 rescue_ns;
	/* descriptors up to which poll(2) counts as sleeping */
	u32 poll_fds_max;
	/* CPU ids below this are looked at: highest possible CPU + 1 */
	u32 nr_cpus;
	/* enum artis_call_class by system-call number */
	u8 call_class[ARTIS_NR_CALLS];
	/* enum artis_cpu_kind by CPU */
	u8 cpu_kind[ARTIS_MAX_CPUS];
};

_Static_assert(sizeof(struct artis_policy) == 8 * 8 + 2 * 4 + 512 + 1024,
	       "struct artis_policy has padding: both languages must see the same bytes");

#endif /* ARTIS_ABI_CONSTS_H */
