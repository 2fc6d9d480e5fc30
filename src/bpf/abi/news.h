/* SPDX-License-Identifier: GPL-2.0-only */
/* Events by which the daemon classifies tasks: in a ring buffer that no statistics can fill. */
#pragma once
#include "types.h"

/* Bits of `news_wanted`. */
enum artis_news_kind {
	ARTIS_NEWS_FORK = 1, /* new; inherits the class of its parent unless told otherwise */
	ARTIS_NEWS_FORK_RT = 2, /* new, and of a real-time class */
	ARTIS_NEWS_EXEC = 4,
	ARTIS_NEWS_NAME = 8, /* it gets another name */
	ARTIS_NEWS_CGROUP = 16, /* it, or its whole process, has moved to another cgroup */
	ARTIS_NEWS_TO_RT = 32, /* it has become SCHED_FIFO, SCHED_RR or SCHED_DEADLINE */
	ARTIS_NEWS_FROM_RT = 64, /* it has come back to the ext class */
	ARTIS_NEWS_AFFINITY = 128, /* the affinity of an RT1+ or real-time task has changed */
	ARTIS_NEWS_POLICY = 256, /* a call has set the policy of such a task */
};

struct artis_news {
	u64 time_ns;
	u32 pid;
	u32 tgid;
	u32 kind; /* one of enum artis_news_kind */
	u32 all_threads; /* CGROUP: all threads of the process are meant */
	char comm[16]; /* NAME: the new name */
	s32 policy; /* POLICY: what the call asked for; -1: the policy that it had */
	u32 priority;
	s32 nice;
	u32 reset_on_fork;
};
