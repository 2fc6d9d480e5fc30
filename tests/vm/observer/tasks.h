/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's headers say of a task and vmlinux.h, which has no macros, does not. */
#ifndef ARTIS_OBSERVER_TASKS_H
#define ARTIS_OBSERVER_TASKS_H

#define PF_EXITING_ 0x00000004
#define PF_KTHREAD_ 0x00200000
#define MAX_RT_PRIO_ 100

/* It has to leave RT CPUs to enter the kernel: it is movable, and no real-time task. */
static inline bool may_leave(struct task_struct *p, u64 nrt_cpus)
{
	return !(BPF_CORE_READ(p, flags) & PF_KTHREAD_) && BPF_CORE_READ(p, prio) >= MAX_RT_PRIO_ &&
	       (BPF_CORE_READ(p, cpus_ptr, bits[0]) & nrt_cpus);
}

#endif /* ARTIS_OBSERVER_TASKS_H */
