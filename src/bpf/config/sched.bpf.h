/* SPDX-License-Identifier: GPL-2.0-only */
/* Macros of include/linux/sched.h and its uapi, which vmlinux.h lacks. */
#pragma once
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_DEADLINE 6
#define SCHED_FLAG_RESET_ON_FORK 1
#define ARTIS_PF_USER_WORKER 0x00004000 /* a thread lent to the kernel */

/* Tells @p apart from earlier tasks with its id: field 22 of /proc/PID/stat, where USER_HZ is 100. */
static __always_inline u64 start_ticks(const struct task_struct *p)
{
	return p->start_boottime / (1000000000 / 100);
}

/* Has the user made it a real-time task? Others may be boosted for a moment. */
static __always_inline bool has_rt_policy(const struct task_struct *p)
{
	return p->policy == SCHED_FIFO || p->policy == SCHED_RR || p->policy == SCHED_DEADLINE;
}
