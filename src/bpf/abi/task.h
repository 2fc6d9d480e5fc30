/* SPDX-License-Identifier: GPL-2.0-only */
/* State of each task. BPF writes it; the daemon looks it up by pidfd for queries about a task. */
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

/* A histogram: times below 2^FIRST ns share the first slot, those from 2^LAST ns on the last. */
#define ARTIS_HIST_FIRST 9
#define ARTIS_HIST_LAST 31
#define ARTIS_HIST_SLOTS 24

struct artis_hist {
	u32 slot[ARTIS_HIST_SLOTS];
};

_Static_assert(ARTIS_HIST_SLOTS == ARTIS_HIST_LAST - ARTIS_HIST_FIRST + 2,
	       "a slot for each power of two, and one for the rest on either side");

/* Cause of an attempt: a system-call number + 1, a page fault, or a deadly signal. 0: none. */
enum artis_causes {
	ARTIS_NR_CAUSES = 5, /* causes kept apart for one task; further ones count as other */
	ARTIS_CAUSE_FAULT = 0x7fffffff,
	ARTIS_CAUSE_SIGNAL = 0x7ffffffe,
};

struct artis_cause {
	u32 cause;
	u32 attempts; /* while tasks were watched */
	u32 evictions;
};

struct artis_task_stats { /* totals while tasks are watched; evictions are always counted */
	u64 run_ns[2]; /* run time on NRT CPUs, and on RT CPUs */
	u64 attempts; /* endangering entries */
	u64 wait_ns; /* from ready to run (an RT task: from its wake-up) to running */
	u64 wait_max_ns;
	u64 wait_max_at_ns; /* end of the longest wait */
	u64 ready_ns; /* since when it waits, 0: it does not */
	u64 evict_entry_ns; /* attempt of the eviction under way; below, when it left; 0: none */
	u64 evict_left_ns;
	u32 wait_max_after_pid; /* the task that had the CPU before the longest wait ended */
	char wait_max_after[16];
	u32 waits; /* waits that ended */
	u32 runs[2]; /* times that it was put on an NRT CPU, on an RT CPU */
	u32 evictions;
	u32 moves_rt; /* moves from an NRT CPU to an RT CPU */
	u32 hits; /* such moves after which it ran for C before its eviction; below, for less */
	u32 misses;
	u32 evict_cause; /* cause of the eviction under way, and the RT CPU that it leaves */
	u16 evict_from;
	u16 why; /* enum artis_stat: what queued it last; ARTIS_NR_STATS: the kernel */
	s32 cpu; /* where it ran last */
	u32 attempts_other; /* with causes that have no place in the list */
	u32 evictions_other;
	u32 pad;
	struct artis_cause causes[ARTIS_NR_CAUSES]; /* the first with cause 0 ends the list */
	struct artis_hist wait;
	u32 pad2;
};

_Static_assert(sizeof(struct artis_task_stats) <= 304, "0.3 kB for each task of the machine");

struct artis_history { /* kernel entries, for policy/predict.h; 0: not known yet */
	u64 last_ns; /* t_d: time of the last attempt, the scheduler's clock */
	u64 quiet_run_ns; /* own run time since then, or since the task is known */
	u64 period_ns; /* P: mean time between attempts, ARTIS_PERIOD_SHIFT fraction bits */
	u64 period_run_ns; /* the same in own run time */
	u64 least_run_ns; /* least of the last intervals in own run time */
};

struct artis_task { /* exec_start_ns and *_exec_ns are values of p->se.sum_exec_runtime */
	u64 vtime; /* weighted virtual time, ns at weight 100 */
	u64 exec_start_ns; /* when the present run began or was last charged */
	struct artis_history history;
	u64 moved_exec_ns; /* when it last came to an RT CPU */
	u32 weight; /* with which it counts while it is runnable; 1 for a kernel thread */
	u32 inv_weight; /* artis_inv_weight() of its weight in its cgroup */
	u32 counted; /* weight that the clock of its queue counts while it is runnable; 0: none */
	u8 queue; /* enum artis_queue whose clock vtime is on, of which group, or CPU of it */
	u8 slice_rt; /* its slice is that of an RT CPU */
	u16 where;
	u16 group;
	u8 by_hand; /* the class is the user's own choice, which no rule overrides */
	u8 pad;
	u32 partition_gen; /* the partition that nrt_groups, rt_groups, nrt_all and rt_all are of */
	u64 nrt_groups; /* bit n: group n has an NRT CPU of its affinity; below, an RT CPU */
	u64 rt_groups;
	u32 cgroup_weight; /* product of the weights of its cgroups, 100: default; of cgroup_gen */
	u32 cgroup_gen;
	u32 section; /* enum artis_section while it does not run, and the call's number */
	u32 section_nr;
	s32 nrt_cpu; /* NRT CPU where it ran last */
	s32 cpu; /* where it ran last */
	u8 nrt_all; /* its affinity holds every NRT CPU; below, every RT CPU */
	u8 rt_all;
	u8 fresh; /* forked and never run */
	u8 on_rt; /* it ran on an RT CPU last */
	u8 rt1; /* RT1+ priority, 0: an NRT task */
	u8 rt1_rr; /* it takes turns with tasks of equal priority */
	u8 rt_forbidden; /* no RT CPUs, whatever its affinity is */
	u8 late; /* in no queue: the next ops.dispatch inserts it (queues/beneath.bpf.h) */
	u64 rt1_order; /* place of an RT1+ task in a queue (policy/fair.h) */
	u64 advance_ns; /* queued earlier than vtime by this, while it waits (policy/fair.h) */
	u64 rt1_turn_exec_ns; /* when its turn among equals began */
	u32 watch_seq; /* the watch that its stats belong to (report/tally.bpf.h) */
	u64 told_exec_ns; /* at its last record */
	u64 run_since_ns; /* start of the run under way, while tasks are watched; 0: not known */
	struct artis_task_stats stats;
};

struct artis_set_class { /* BPF_PROG_RUN: the new class of a task; out: the one before */
	u64 start_ticks; /* as in struct artis_change: another task with this id is left alone */
	u32 pid;
	u32 rt1; /* RT1+ priority, 0: an NRT task */
	u32 rr; /* takes turns with equals */
	u32 rt_forbidden; /* no RT CPUs for it */
	u32 by_hand; /* the user's own choice; if not, one that was set by hand stays */
	u32 pad;
};
