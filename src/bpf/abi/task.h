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

struct artis_task {
	/* weighted virtual time, ns at weight 100 */
	u64 vtime;
	/* p->se.sum_exec_runtime when the present run began, ns */
	u64 exec_start_ns;
	/* own run time since the last attempt, ns */
	u64 quiet_run_ns;
	/* artis_inv_weight() of the task in its cgroup */
	u32 inv_weight;
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
	/* evictions beyond ARTIS_NR_CAUSES different causes */
	u32 evicted_other;
	/* in the order of their first time; the first with cause 0 ends the list */
	struct artis_evicted evicted[ARTIS_NR_CAUSES];
};

#endif /* ARTIS_ABI_TASK_H */
