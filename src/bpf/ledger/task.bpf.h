/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task storage: created in ops.init_task, gone with the task. The daemon finds
 * it by name, as "task_stor".
 */
#pragma once

#include "../policy/predict.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_task);
} task_stor SEC(".maps");

/* Strict: a task without storage is a bug, and the scheduler says so and leaves. */
static __always_inline struct artis_task *task_of(struct task_struct *p)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

	if (!t)
		scx_bpf_error("no state for %s[%d]", p->comm, p->pid);
	return t;
}

#define ARTIS_MAX_RT_PRIO 100 /* include/linux/sched/prio.h */

/*
 * rt or dl class by effective priority: includes tasks boosted through a PI
 * mutex, which the rt class runs, and the stop task, which is over in no time.
 */
static __always_inline bool is_realtime(const struct task_struct *p)
{
	return p->prio < ARTIS_MAX_RT_PRIO;
}

/* Kernel thread, or a thread that a process lends to the kernel (io_uring, vhost). */
static __always_inline bool is_kernel_task(const struct task_struct *p)
{
	return p->flags & (PF_KTHREAD | PF_IO_WORKER | ARTIS_PF_USER_WORKER);
}

/*
 * It was switched out inside an RCU read-side section and is still in it: rcu_note_context_switch(),
 * kernel/rcu/tree_plugin.h. (The depth of such sections tells nothing of the task that is being
 * switched out: BPF's own is counted there.) Only kernels whose RCU lets readers be preempted have
 * the field. On PREEMPT_RT who holds a spinlock is a reader, too.
 */
static __always_inline bool is_rcu_reader(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_unlock_special) &&
	       p->rcu_read_unlock_special.b.blocked;
}

/* New, in the middle of exec, or on its way out. */
static __always_inline bool is_unsettled(const struct task_struct *p, const struct artis_task *t)
{
	return t->fresh || (p->flags & PF_EXITING) || p->in_execve;
}

/* What the affinity @mask of a task means for the two sets and the groups. */
static void task_note_affinity(struct artis_task *t, const struct cpumask *mask)
{
	const struct cpumask *nrt = nrt_mask(), *rt = rt_mask();
	u64 nrt_groups = 0, rt_groups = 0;
	u32 group;

	if (!nrt || !rt)
		return;
	bpf_for(group, 0, nr_groups) {
		struct artis_masks *m = masks_of(group);
		struct bpf_cpumask *of = m ? m->nrt : NULL;

		if (of && bpf_cpumask_intersects(mask, cast_mask(of)))
			nrt_groups |= 1ULL << (group & 63);
		of = m ? m->rt : NULL;
		if (of && bpf_cpumask_intersects(mask, cast_mask(of)))
			rt_groups |= 1ULL << (group & 63);
	}
	t->nrt_groups = nrt_groups;
	t->rt_groups = rt_groups;
	t->partition_gen = partition_gen;
	t->rt_all = bpf_cpumask_subset(rt, mask);
	t->nrt_all = bpf_cpumask_subset(nrt, mask);
	if (!bpf_cpumask_test_cpu(t->nrt_cpu, mask) || !is_nrt_cpu(t->nrt_cpu))
		t->nrt_cpu = nrt_groups ? bpf_cpumask_any_and_distribute(mask, nrt) :
					  bpf_cpumask_first(nrt);
}

/* The partition has changed since @p was queued last. Returns 0. */
__noinline int renote_affinity(struct task_struct *p __arg_trusted,
			       struct artis_task *t __arg_nonnull)
{
	task_note_affinity(t, p->cpus_ptr);
	return 0;
}

/* The partition may have changed since @p was queued last. */
static __always_inline void note_partition(struct task_struct *p, struct artis_task *t)
{
	if (unlikely(t->partition_gen != partition_gen))
		renote_affinity(p, t);
}

/*
 * What a task did in a run: see policy/predict.h. Global: verified by itself, not with every
 * path that leads here.
 */
__noinline int note_run(struct artis_history *history, u64 end_ns, u64 run_ns, u64 first_attempt_ns,
			u32 attempts)
{
	struct artis_run run = {
		.end_ns = end_ns,
		.run_ns = run_ns,
		.attempts = attempts,
		.first_attempt_ns = first_attempt_ns,
	};

	if (history)
		artis_history_note(history, &policy, &run);
	return 0;
}

/* Run time of the task on @c since it was last charged becomes virtual time. */
static __always_inline void task_charge(struct artis_cpu *c, struct artis_task *t,
					const struct task_struct *p)
{
	u64 run_ns = p->se.sum_exec_runtime - t->exec_start_ns;

	t->exec_start_ns = p->se.sum_exec_runtime;
	t->vtime += artis_vtime_of(run_ns, t->inv_weight);
	/* most runs of a computing task have none: spare them the call */
	if (c->attempts)
		note_run(&t->history, scx_bpf_now(), run_ns, c->first_attempt_ns, c->attempts);
	else
		t->history.quiet_run_ns += run_ns;
	clock_run(t, run_ns);
	if (unlikely(t->rt1) && artis_rt1_charge(&c->rt1, &policy, scx_bpf_now(), run_ns))
		count(ARTIS_STAT_RT1_THROTTLE);
	c->ext_ns += run_ns;
	if (watches(ARTIS_WATCH_TASKS))
		t->stats.run_ns[c->kind == ARTIS_CPU_RT] += run_ns;
	c->attempts = 0;
}

/* May it be expected to compute on without an attempt? */
static __always_inline bool is_calm(const struct artis_task *t)
{
	return artis_is_calm(&policy, &t->history, scx_bpf_now());
}

/* Its last move to an RT CPU was in vain, if it has to leave now: it has not run for C there. */
static __always_inline bool is_wasted(const struct artis_task *t)
{
	return t->exec_start_ns - t->moved_exec_ns < policy.predict_c_ns;
}
