/* SPDX-License-Identifier: GPL-2.0-only */
/* Records of the ring buffer and of recordings. A record may grow at its end only; its version is
 * incremented when the meaning of earlier fields changes. */
#pragma once
#include "task.h"

enum artis_record_kind {
	ARTIS_RECORD_TASK = 1, /* totals of one task until now */
	ARTIS_RECORD_EVICTION = 2, /* one eviction, from the attempt to the NRT CPU */
	ARTIS_RECORD_MOVE = 3, /* a task begins to run on another CPU than before */
	ARTIS_RECORD_RUN = 4, /* one run of a task on a CPU */
	/* by the daemon, as JSON (src/userspace/feed) */
	ARTIS_RECORD_BEGIN = 64, /* the machine and the policy; first in any stream */
	ARTIS_RECORD_READING = 65, /* the CPUs; ends an interval */
	ARTIS_RECORD_LOST = 66, /* records that did not reach this stream */
};

#define ARTIS_RECORD_VERSION 3 /* new numbers of enum artis_stat; shorter totals of tasks */

/* Bits of `watching`. */
enum artis_watch {
	ARTIS_WATCH_TASKS = 1, /* totals of each task */
	ARTIS_WATCH_EVENTS = 2, /* evictions and moves, one by one */
	ARTIS_WATCH_RUNS = 4, /* runs, one by one */
};

struct artis_record {
	u16 kind; /* enum artis_record_kind */
	u16 version;
	u32 size; /* of the whole record, bytes */
	u64 time_ns; /* when it was written, the scheduler's clock */
};

struct artis_task_record {
	struct artis_record head;
	u32 pid;
	u32 tgid;
	char comm[16];
	u64 start_ns; /* since boot; tells apart tasks that had the same id */
	u64 exec_ns; /* p->se.sum_exec_runtime */
	u32 policy; /* SCHED_*, see sched(7) */
	s32 prio; /* effective, as in the kernel: below 0 dl, below 100 rt, else 120 + nice */
	s32 normal_prio; /* without boosts, the same unit */
	s32 nice;
	s32 cpu; /* where it runs or ran last */
	u8 kernel; /* a kernel thread, or a thread that a process lends to the kernel */
	u8 exited; /* this is its last record */
	u8 runnable; /* it runs, or waits for a CPU */
	u8 calm; /* it is calm now */
	u8 movable; /* its affinity holds an NRT CPU; below, an RT CPU */
	u8 rt_allowed;
	u8 section; /* enum artis_section while it did not run */
	u8 rt1; /* RT1+ priority, 0: none */
	u32 section_nr; /* system-call number of the section */
	u32 nr_cpus_allowed;
	u32 weight; /* 100: nice 0 */
	struct artis_history history;
	struct artis_task_stats stats;
};

struct artis_event_record { /* an eviction, a move, or a run; it ends at head.time_ns */
	struct artis_record head;
	u32 pid;
	u32 what; /* EVICTION: enum artis_causes; MOVE: enum artis_stat, ARTIS_NR_STATS: kernel */
	u16 from;
	u16 to;
	u32 rt; /* RUN: of a real-time task */
	char comm[16];
	u64 begin_ns; /* EVICTION: attempt; MOVE: when it began to wait; RUN: when it began */
	u64 left_ns; /* EVICTION: when it left the RT CPU */
};

struct artis_walk { /* BPF_PROG_RUN: input `all`, the rest is output */
	u32 all; /* write a record of each task, not only of those that ran */
	u32 tasks; /* tasks seen */
	u32 written; /* records written */
	u32 pad;
};
