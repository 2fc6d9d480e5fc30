/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is remembered of each task of the ext class. Written by BPF; the daemon
 * looks it up by pidfd when somebody asks about a task.
 */
#ifndef ARTIS_ABI_TASK_H
#define ARTIS_ABI_TASK_H

#include "types.h"

enum artis_causes {
	/* Causes of evictions that are kept apart for one task; further ones count as other. */
	ARTIS_NR_CAUSES = 8,
	/* A cause is a system-call number + 1, or a page fault. 0: none. */
	ARTIS_CAUSE_FAULT = 0x7fffffff,
};

/* Evictions with one cause. */
struct artis_evicted {
	u32 cause;
	u32 times;
};

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
	/* weight with which the task counts in a load; 0 of a kernel thread */
	u32 weight;
	/* artis_inv_weight() of its weight in its cgroup */
	u32 inv_weight;
	/* where its weight is counted while it is runnable, 0: nowhere (ledger/seat.bpf.h) */
	u32 seat;
	/* and the weight that is counted there */
	u32 seat_weight;
	/* CPU + 1 where it counts as one that is bound there, 0: nowhere */
	u32 bound_on;
	/* group of NRT CPUs whose clock its virtual time is relative to */
	u32 group;
	/* the partition that the flags below are about */
	u32 partition_gen;
	/* moves by one each time it is queued: tells stale entries of a FIFO */
	u32 queued_seq;
	/* product of the weights of its cgroups, 100 is the default; valid for cgroup_gen */
	u32 cgroup_weight;
	u32 cgroup_gen;
	/* enum artis_section while it does not run, and the call's number */
	u32 section;
	u32 section_nr;
	/* the NRT CPU where it ran last */
	s32 nrt_cpu;
	/* its affinity holds an NRT CPU */
	u8 movable;
	/* its affinity holds an RT CPU */
	u8 rt_allowed;
	/* its affinity holds every NRT CPU */
	u8 nrt_all;
	/* forked and never run */
	u8 fresh;
	/* its affinity holds one CPU, which is an NRT CPU */
	u8 bound_nrt;
	/* it ran on an RT CPU last */
	u8 on_rt;
	u8 pad[6];
	/* evictions beyond ARTIS_NR_CAUSES different causes */
	u32 evicted_other;
	/* in the order of their first time; the first with cause 0 ends the list */
	struct artis_evicted evicted[ARTIS_NR_CAUSES];
};

#endif /* ARTIS_ABI_TASK_H */
