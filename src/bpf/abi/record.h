/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is written to the ring buffer, and what a recording consists of: records
 * that begin alike. A record may grow at its end only; its version moves when
 * what was there before changes its meaning.
 */
#pragma once

#include "task.h"

enum artis_record_kind {
	/* by BPF */
	ARTIS_RECORD_TASK = 1, /* what one task did until now, in totals */
	ARTIS_RECORD_EVICTION = 2, /* one eviction, from the attempt to the NRT CPU */
	ARTIS_RECORD_MOVE = 3, /* one task begins to run on another CPU than before */
	ARTIS_RECORD_RUN = 4, /* one run of a task on a CPU */
	/* by the daemon, as JSON (src/userspace/feed) */
	ARTIS_RECORD_BEGIN = 64, /* the machine and the policy; first in any stream */
	ARTIS_RECORD_READING = 65, /* the CPUs; ends an interval */
	ARTIS_RECORD_LOST = 66, /* records that did not reach this stream */
};

/* 3: the queues of groups, by which the numbers of enum artis_stat moved; shorter totals of tasks */
#define ARTIS_RECORD_VERSION 3

/* What is written while somebody watches; bits of `watching`. */
enum artis_watch {
	ARTIS_WATCH_TASKS = 1, /* totals of each task */
	ARTIS_WATCH_EVENTS = 2, /* evictions and moves, one by one */
	ARTIS_WATCH_RUNS = 4, /* runs, one by one */
};

struct artis_record {
	/* enum artis_record_kind */
	u16 kind;
	u16 version;
	/* of the whole record, bytes */
	u32 size;
	/* when it was written, ns of the scheduler's clock */
	u64 time_ns;
};

struct artis_task_record {
	struct artis_record head;
	u32 pid;
	u32 tgid;
	char comm[16];
	/* tells apart tasks that had the same id: ns since boot */
	u64 start_ns;
	/* its run time, p->se.sum_exec_runtime, ns */
	u64 exec_ns;
	/* SCHED_*, see sched(7) */
	u32 policy;
	/* effective priority of the kernel: below 0 dl, below 100 rt, from 100 on 120 + nice */
	s32 prio;
	/* the priority without boosts, in the same unit */
	s32 normal_prio;
	s32 nice;
	/* CPU where it ran last or runs */
	s32 cpu;
	/* a kernel thread, or a thread that a process lends to the kernel */
	u8 kernel;
	/* this is its last record */
	u8 exited;
	/* it runs, or waits for a CPU */
	u8 runnable;
	/* it is calm now */
	u8 calm;
	/* its affinity holds an NRT CPU, an RT CPU */
	u8 movable;
	u8 rt_allowed;
	/* enum artis_section while it did not run */
	u8 section;
	/* RT1+ priority, 0: none */
	u8 rt1;
	/* the call of that section */
	u32 section_nr;
	/* CPUs that it may run on */
	u32 nr_cpus_allowed;
	/* weight with which it counts, 100: nice 0 */
	u32 weight;
	struct artis_history history;
	struct artis_task_stats stats;
};

/* An eviction, a move, or a run, which ends at head.time_ns. */
struct artis_event_record {
	struct artis_record head;
	u32 pid;
	/* EVICTION: see enum artis_causes; MOVE: enum artis_stat, ARTIS_NR_STATS is the kernel */
	u32 what;
	u16 from;
	u16 to;
	/* RUN: of a real-time task */
	u32 rt;
	char comm[16];
	/* the attempt; when it began to wait for a CPU; when it began to run */
	u64 begin_ns;
	/* EVICTION: when it left the RT CPU */
	u64 left_ns;
};

/* What a walk over all tasks is told, and what it says (BPF_PROG_RUN). */
struct artis_walk {
	/* write a record of each task, not only of those that ran */
	u32 all;
	/* tasks seen, and records written */
	u32 tasks;
	u32 written;
	u32 pad;
};
