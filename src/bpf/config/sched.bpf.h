/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scheduling policies as include/uapi/linux/sched.h has them: vmlinux.h has no macros.
 */
#pragma once

#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_DEADLINE 6
#define SCHED_FLAG_RESET_ON_FORK 1

/* Is it a task that the user has made real time? Others are boosted for a moment only. */
static __always_inline bool has_rt_policy(const struct task_struct *p)
{
	return p->policy == SCHED_FIFO || p->policy == SCHED_RR || p->policy == SCHED_DEADLINE;
}
