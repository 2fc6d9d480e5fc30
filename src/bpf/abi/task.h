/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is remembered of each task. Written by BPF; the daemon looks it up by
 * pidfd when somebody asks about a task.
 */
#pragma once

#include "hist.h"

enum artis_causes {
	/* Causes of attempts that are kept apart for one task; further ones count as other. */
	ARTIS_NR_CAUSES = 5,
	/* A cause is a system-call number + 1, a page fault, or the death by a signal. 0: none. */
	ARTIS_CAUSE_FAULT = 0x7fffffff,
	ARTIS_CAUSE_DEATH = 0x7ffffffe,
};

/* What one cause did. */
struct artis_cause {
	u32 cause;
	/* attempts, while somebody watched */
	u32 attempts;
	u32 evictions;
};

/* What one task did, in totals: while somebody watched, but for evictions. */
struct artis_task_stats {
	/* run time on NRT CPUs, and on RT CPUs, ns */
	u64 run_ns[2];
	/* endangering entries */
	u64 attempts;
	/* from ready to run (an RT task: from its wake-up) to running: sum and longest, ns */
	u64 wait_ns;
	u64 wait_max_ns;
	/* when the longest wait ended, and which task had the CPU before */
	u64 wait_max_at_ns;
	/* since when it waits, 0: it does not, ns */
	u64 ready_ns;
	/* the attempt of the eviction under way, and when it left the RT CPU; 0: none, ns */
	u64 evict_entry_ns;
	u64 evict_left_ns;
	u32 wait_max_after_pid;
	char wait_max_after[16];
	/* waits that came to an end */
	u32 waits;
	/* times that it was put on an NRT CPU, on an RT CPU */
	u32 runs[2];
	u32 evictions;
	/* moves from an NRT CPU to an RT CPU */
	u32 moves_rt;
	/* such moves after which it ran for C or longer, or was evicted before */
	u32 hits;
	u32 misses;
	/* cause of the eviction under way, and the RT CPU that it leaves */
	u32 evict_cause;
	u16 evict_from;
	/* enum artis_stat: what queued it last; ARTIS_NR_STATS: the kernel */
	u16 why;
	/* CPU where it ran last */
	s32 cpu;
	/* attempts and evictions with causes that have no place in the list */
	u32 attempts_other;
	u32 evictions_other;
	u32 pad;
	/* the first with cause 0 ends the list */
	struct artis_cause causes[ARTIS_NR_CAUSES];
	struct artis_hist wait;
	u32 pad2;
};

_Static_assert(sizeof(struct artis_task_stats) <= 304, "0.3 kB for each task of the machine");

/* When a task entered the kernel, and how often: what the prediction rests on (policy/predict.h). */
struct artis_history {
	/* t_d: time of the last attempt, ns of the scheduler's clock; 0: none is known */
	u64 last_ns;
	/* own run time since then, or since the task is known, ns */
	u64 quiet_run_ns;
	/* P: mean time between attempts, ns with ARTIS_PERIOD_SHIFT fraction bits; 0: none is known */
	u64 period_ns;
	/* the same in own run time */
	u64 period_run_ns;
	/* least of the last intervals in own run time, ns; 0: none is known */
	u64 least_run_ns;
};

struct artis_task {
	/* weighted virtual time, ns at weight 100 */
	u64 vtime;
	/* p->se.sum_exec_runtime when the present run began, ns */
	u64 exec_start_ns;
	struct artis_history history;
	/* p->se.sum_exec_runtime when it last came to an RT CPU, ns */
	u64 moved_exec_ns;
	/* weight with which the task counts while it is runnable; 1 of a kernel thread */
	u32 weight;
	/* artis_inv_weight() of its weight in its cgroup */
	u32 inv_weight;
	/* what of it is counted there while it is runnable; 0: nothing */
	u32 counted;
	/* enum artis_queue whose clock its virtual time is on, of which group, or CPU of it */
	u8 queue;
	u8 pad1;
	u16 where;
	u16 group;
	u16 pad3;
	/* groups that hold an NRT CPU, and an RT CPU, of its affinity; bit n is group n */
	u64 nrt_groups;
	u64 rt_groups;
	/* the partition that these and the flags below are about */
	u32 partition_gen;
	/* product of the weights of its cgroups, 100 is the default; valid for cgroup_gen */
	u32 cgroup_weight;
	u32 cgroup_gen;
	/* enum artis_section while it does not run, and the call's number */
	u32 section;
	u32 section_nr;
	/* the NRT CPU where it ran last */
	s32 nrt_cpu;
	/* its affinity holds every NRT CPU, every RT CPU */
	u8 nrt_all;
	u8 rt_all;
	/* forked and never run */
	u8 fresh;
	/* it ran on an RT CPU last */
	u8 on_rt;
	/* RT1+ priority, 0: it is an NRT task */
	u8 rt1;
	/* of equal priority, it takes turns with others */
	u8 rt1_rr;
	/* no RT CPUs for it, whatever its affinity says */
	u8 rt_forbidden;
	/* all that by the user's own hand, which no rule overrules */
	u8 by_hand;
	/* it takes part in following: ARTIS_FOLLOW_* */
	u8 follow;
	u8 pad2[3];
	/* its place in a queue, while it is an RT1+ task: policy/rt1.h */
	u64 rt1_order;
	/* by so much earlier it is queued than its virtual time says, while it waits: policy/fair.h */
	u64 advance_ns;
	/* p->se.sum_exec_runtime when its turn among equals began, ns */
	u64 rt1_turn_exec_ns;
	/* the watch that its stats are of, see report/tally.bpf.h */
	u32 watch_seq;
	/* p->se.sum_exec_runtime at its last record, ns */
	u64 told_exec_ns;
	struct artis_task_stats stats;
};

/* What the class of a task is to be (BPF_PROG_RUN). */
struct artis_set_class {
	u32 pid;
	/* RT1+ priority, 0: an NRT task */
	u32 rt1;
	/* takes turns with equals */
	u32 rr;
	/* no RT CPUs for it */
	u32 rt_forbidden;
	/* by the user's own hand; else a task that was set so stays as it is */
	u32 by_hand;
	/* what it was: RT1+ priority, round robin, RT CPUs forbidden, by hand */
	u32 old_rt1;
	u32 old_rr;
	u32 old_rt_forbidden;
	u32 old_by_hand;
};
