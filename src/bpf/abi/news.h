/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon is told at once, so that it can say which class a task is of:
 * its own ring buffer, which no statistics can fill.
 */
#pragma once

#include "types.h"

/* What happened to a task; bits of `news_wanted`. */
enum artis_news_kind {
	ARTIS_NEWS_FORK = 1, /* it is new; inherits the class of its parent unless told otherwise */
	ARTIS_NEWS_FORK_RT = 2, /* it is new, and of a real-time class */
	ARTIS_NEWS_EXEC = 4, /* it runs another program */
	ARTIS_NEWS_NAME = 8, /* it has another name */
	ARTIS_NEWS_CGROUP = 16, /* it, or all of its process, has moved to another cgroup */
	ARTIS_NEWS_TO_RT = 32, /* it has become SCHED_FIFO, SCHED_RR or SCHED_DEADLINE */
	ARTIS_NEWS_FROM_RT = 64, /* it has come back to the ext class */
	ARTIS_NEWS_AFFINITY =
		128, /* an RT1+ task, or one of a real-time class, may run elsewhere */
	ARTIS_NEWS_POLICY = 256, /* a call set the policy of such a task: see `policy` */
};

struct artis_news {
	u64 time_ns;
	u32 pid;
	u32 tgid;
	/* one of enum artis_news_kind */
	u32 kind;
	/* all threads of the process are meant */
	u32 all_threads;
	/* its name from now on */
	char comm[16];
	/* of ARTIS_NEWS_POLICY: what the call asked for; -1: the policy that it had */
	s32 policy;
	u32 priority;
	s32 nice;
	u32 reset_on_fork;
};
