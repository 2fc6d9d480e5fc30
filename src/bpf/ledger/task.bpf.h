/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task storage: created in ops.init_task, gone with the task. The daemon finds
 * it by name, as "task_stor".
 */
#ifndef ARTIS_LEDGER_TASK_BPF_H
#define ARTIS_LEDGER_TASK_BPF_H

#include "../policy/fair.h"
#include "../policy/predict.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_task);
} task_stor SEC(".maps");

/* The clock of virtual time: see policy/fair.h. Written by NRT CPUs. */
u64 vtime_clock;
/* When that was last looked at, ns. */
u64 vtime_clock_moved_ns;

/* Strict: a task without storage is a bug, and the scheduler says so and leaves. */
static __always_inline struct artis_task *task_of(struct task_struct *p)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

	if (!t)
		scx_bpf_error("no state for %s[%d]", p->comm, p->pid);
	return t;
}

/* Kernel thread, or a thread that a process lends to the kernel (io_uring, vhost). */
static __always_inline bool is_kernel_task(const struct task_struct *p)
{
	return p->flags & (PF_KTHREAD | PF_IO_WORKER | ARTIS_PF_USER_WORKER);
}

/* What the affinity @mask of a task means for the two sets. */
static void task_note_affinity(struct artis_task *t, const struct cpumask *mask)
{
	const struct cpumask *nrt = nrt_mask(), *rt = rt_mask();

	if (!nrt || !rt)
		return;
	t->movable = bpf_cpumask_intersects(mask, nrt);
	t->rt_allowed = bpf_cpumask_intersects(mask, rt);
	t->nrt_all = bpf_cpumask_subset(nrt, mask);
	if (!bpf_cpumask_test_cpu(t->nrt_cpu, mask) || is_rt_cpu(t->nrt_cpu))
		t->nrt_cpu = t->movable ? bpf_cpumask_any_and_distribute(mask, nrt) : 0;
}

/* Run time of the task on @c since it was last charged becomes virtual and quiet time. */
static __always_inline void task_charge(struct artis_cpu *c, struct artis_task *t,
					const struct task_struct *p)
{
	u64 run_ns = p->se.sum_exec_runtime - t->exec_start_ns;

	t->exec_start_ns = p->se.sum_exec_runtime;
	t->vtime += artis_vtime_of(run_ns, t->inv_weight);
	t->quiet_run_ns = artis_quiet_after(t->quiet_run_ns, run_ns, c->attempted);
	c->ext_ns += run_ns;
	c->attempted = 0;
}

/* Remembers that the task had to leave an RT CPU, and why. */
static __always_inline void task_note_eviction(struct artis_task *t, u32 cause)
{
	u32 i;

	for (i = 0; i < ARTIS_NR_CAUSES; i++) {
		struct artis_evicted *e = &t->evicted[i];

		if (e->cause && e->cause != cause)
			continue;
		e->cause = cause;
		e->times++;
		return;
	}
	t->evicted_other++;
}

#endif /* ARTIS_LEDGER_TASK_BPF_H */
