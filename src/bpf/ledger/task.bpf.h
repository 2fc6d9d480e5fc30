/* SPDX-License-Identifier: GPL-2.0-only */
/* State of each task, from ops.init_task on. The daemon finds the map by its name, "task_stor". */
#pragma once

#include "../policy/predict.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_task);
} task_stor SEC(".maps");

/* Bits of enum artis_watch, set by the daemon. In a page of its own: all CPUs read it often. */
u32 watching SEC(".data.watch");
u32 watch_seq SEC(".data.watch"); /* incremented each time that watching begins anew */

static __always_inline bool watches(u32 what)
{
	return unlikely(watching & what);
}

/* A task without state is a bug: scx_bpf_error() ends the scheduler. */
static __always_inline struct artis_task *task_of(struct task_struct *p)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

	if (!t)
		scx_bpf_error("no state for %s[%d]", p->comm, p->pid);
	return t;
}

#define ARTIS_MAX_RT_PRIO 100 /* include/linux/sched/prio.h */

/* rt or dl by effective priority: also a task boosted through a PI mutex, and the stop task. */
static __always_inline bool is_realtime(const struct task_struct *p)
{
	return p->prio < ARTIS_MAX_RT_PRIO;
}

/* A kernel thread, or a thread that a process lends to the kernel (io_uring, vhost). */
static __always_inline bool is_kernel_task(const struct task_struct *p)
{
	return p->flags & (PF_KTHREAD | PF_IO_WORKER | ARTIS_PF_USER_WORKER);
}

/* Is real-time task @p loose: not bound to RT CPUs? A look at the number spares most RT0 tasks the
 * comparison. cpus_mask, since migrate_disable() changes cpus_ptr. */
static __always_inline bool is_loose(const struct task_struct *p)
{
	const struct cpumask *nrt = nrt_mask();

	return p->nr_cpus_allowed > 1 && !is_kernel_task(p) && nrt &&
	       bpf_cpumask_intersects(&p->cpus_mask, nrt);
}

/* Kernel threads and the daemon count as if they did not run: their work is short, even at nice -20. */
static __always_inline bool has_share(const struct task_struct *p)
{
	return !is_kernel_task(p) && p->tgid != daemon_tgid;
}

/* Switched out in an RCU read-side section: rcu_note_context_switch(), kernel/rcu/tree_plugin.h.
 * The depth counts BPF's own sections, too. On PREEMPT_RT a holder of a spinlock is a reader. */
static __always_inline bool is_rcu_reader(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_unlock_special) && /* CONFIG_PREEMPT_RCU */
	       p->rcu_read_unlock_special.b.blocked;
}

/* Global: verified once in each program. Returns 0. */
__noinline int note_affinity(struct task_struct *p __arg_trusted,
			     struct artis_task *t __arg_nonnull)
{
	const struct cpumask *nrt = nrt_mask(), *rt = rt_mask(), *mask = p->cpus_ptr;
	u64 nrt_groups = 0, rt_groups = 0;
	u32 group, cpu;

	if (!nrt || !rt)
		return 0;
	bpf_for(group, 0, nr_groups) {
		struct bpf_cpumask *of = mask_of(group, ARTIS_CPU_NRT);

		if (of && bpf_cpumask_intersects(mask, cast_mask(of)))
			nrt_groups |= 1ULL << (group & 63);
		of = mask_of(group, ARTIS_CPU_RT);
		if (of && bpf_cpumask_intersects(mask, cast_mask(of)))
			rt_groups |= 1ULL << (group & 63);
	}
	t->nrt_groups = nrt_groups;
	t->rt_groups = rt_groups;
	t->partition_gen = partition_gen;
	t->rt_all = bpf_cpumask_subset(rt, mask);
	t->nrt_all = bpf_cpumask_subset(nrt, mask);
	if (bpf_cpumask_test_cpu(t->nrt_cpu, mask) && cpu_of(t->nrt_cpu)->kind == ARTIS_CPU_NRT)
		return 0;
	cpu = bpf_cpumask_any_and_distribute(mask, nrt);
	t->nrt_cpu = cpu < policy.nr_cpus ? cpu : bpf_cpumask_first(nrt);
	return 0;
}

static __always_inline void note_partition(struct task_struct *p, struct artis_task *t)
{
	if (unlikely(t->partition_gen != partition_gen))
		note_affinity(p, t);
}

/* Notes a run (policy/predict.h). Global: verified by itself, not with each caller. Returns 0. */
__noinline int note_run(struct artis_history *history __arg_nonnull,
			const struct artis_run *run __arg_nonnull)
{
	artis_history_note(history, &policy, run);
	return 0;
}

static __always_inline void task_charge(struct artis_cpu *c, struct artis_task *t,
					const struct task_struct *p)
{
	u64 run_ns = p->se.sum_exec_runtime - t->exec_start_ns;

	t->exec_start_ns = p->se.sum_exec_runtime;
	t->vtime += artis_vtime_of(&policy, run_ns, t->inv_weight);
	if (c->attempts) { /* rare in a computing task: no call without */
		struct artis_run run = { scx_bpf_now(), run_ns, c->first_attempt_ns, c->attempts };

		note_run(&t->history, &run);
	} else {
		t->history.quiet_run_ns += run_ns;
	}
	if (has_share(p))
		clock_run(t, run_ns);
	t->vtime = artis_vtime_ran(&policy, t->vtime, clock_of(t->queue, t->where)->vtime);
	if (unlikely(t->rt1) && artis_rt1_charge(&c->rt1, &policy, scx_bpf_now(), run_ns))
		count(ARTIS_STAT_RT1_THROTTLE);
	c->ext_ns += run_ns;
	if (watches(ARTIS_WATCH_TASKS))
		t->stats.run_ns[c->kind == ARTIS_CPU_RT] += run_ns;
	c->attempts = 0;
}

static __always_inline bool is_calm(const struct artis_task *t)
{
	return artis_is_calm(&policy, &t->history, scx_bpf_now());
}

/* Has @t run for less than C since it came to an RT CPU? A move in vain if it leaves now. */
static __always_inline bool is_wasted(const struct artis_task *t)
{
	return t->exec_start_ns - t->moved_exec_ns < policy.predict_c_ns;
}

/* cpu.weight of cgroups scales the weights of their tasks: docs/decisions/0004-cgroup-weight.md. */
struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} cgroup_stor SEC(".maps");
u32 cgroup_gen; /* moves with each change of weight: tasks recompute when queued next */

static void cgroup_note_weight(struct cgroup *cgrp, u32 weight)
{
	u32 *of = bpf_cgrp_storage_get(&cgroup_stor, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (of)
		*of = weight;
	__sync_fetch_and_add(&cgroup_gen, 1);
}

static void task_note_weight(const struct task_struct *p, struct artis_task *t, u32 weight)
{
	weight = artis_weight_in(weight, t->cgroup_weight);
	t->weight = has_share(p) ? weight : ARTIS_WEIGHT_MIN;
	t->inv_weight = artis_inv_weight(weight);
}

/* Takes over changed weights before @p is queued. Only for ops that hold the rq lock of @p. */
static __always_inline void task_refresh_weight(struct task_struct *p, struct artis_task *t)
{
	u32 weight = ARTIS_WEIGHT_DEFAULT, level, *of;
	struct cgroup *cgrp, *pos;

	if (likely(t->cgroup_gen == cgroup_gen))
		return;
	cgrp = scx_bpf_task_cgroup(p);
	if (!cgrp)
		return;
	t->cgroup_gen = cgroup_gen;
	bpf_for(level, 1, ARTIS_CGROUP_LEVELS) { /* the root, level 0, has no weight */
		pos = bpf_cgroup_ancestor(cgrp, level);
		if (!pos) /* @cgrp lies higher */
			break;
		of = bpf_cgrp_storage_get(&cgroup_stor, pos, 0, 0);
		if (of && *of)
			weight = artis_weight_in(weight, *of);
		bpf_cgroup_release(pos);
	}
	t->cgroup_weight = weight;
	task_note_weight(p, t, p->scx.weight);
	bpf_cgroup_release(cgrp);
}

/* The kernel section that a task is in, and the time that RT CPUs spend in one. */

static __always_inline bool is_compat_call(const struct task_struct *p)
{
#ifdef __SCX_TARGET_ARCH_x86
	return p->thread_info.status & 2; /* TS_COMPAT, arch/x86/include/asm/thread_info.h */
#elif defined(__SCX_TARGET_ARCH_arm64)
	return p->thread_info.flags & (1UL << 22); /* TIF_32BIT, arch/arm64, asm/thread_info.h */
#else
#error "which registers tell the call of a task on this architecture?"
#endif
}

/* Is call @nr one that endangers whatever its arguments are? */
static __always_inline bool is_endangering(u64 nr)
{
	return nr >= ARTIS_NR_CALLS ||
	       policy.call_class[nr & (ARTIS_NR_CALLS - 1)] == ARTIS_CALL_ENDANGERING;
}

static __always_inline u32 section_of_call(const struct task_struct *p, u64 nr,
					   const struct pt_regs *regs)
{
	if (is_endangering(nr) || is_compat_call(p))
		return ARTIS_SECTION_CALL;
	return artis_call_section(policy.call_class[nr & (ARTIS_NR_CALLS - 1)],
				  PT_REGS_PARM1_SYSCALL(regs), PT_REGS_PARM2_SYSCALL(regs),
				  PT_REGS_PARM3_SYSCALL(regs), policy.poll_fds_max);
}

/* Page faults that the kernel has handled for @p: mm_account_fault(), at the end of each, mm/memory.c. */
static __always_inline u64 faults_of(const struct task_struct *p)
{
	return p->min_flt + p->maj_flt;
}

/* Sets the section of @p, which runs on @c or has just stopped there, by the registers saved at its
 * kernel entry. A call on its way back to user mode still counts: the safe side. */
static __always_inline void find_section(struct artis_cpu *c, struct task_struct *p)
{
	const struct pt_regs *regs;
	s64 nr;

	if (c->door == ARTIS_SECTION_FAULT && faults_of(p) != c->faults)
		c->door = ARTIS_SECTION_NONE; /* it is handled; no register tells */
	c->section = c->door;
	if (c->door || is_kernel_task(p)) /* a kernel thread keeps registers of its parent's call */
		return;
	regs = (const struct pt_regs *)bpf_task_pt_regs(p);
#ifdef __SCX_TARGET_ARCH_x86
	nr = regs->orig_ax;
#else
	nr = regs->syscallno;
#endif
	c->section_nr = nr;
	if (nr >= 0) /* else entered by an interrupt or a fault */
		c->section = section_of_call(p, nr, regs);
}

static __always_inline void residence_ends(struct artis_cpu *c)
{
	u64 ns = artis_after(scx_bpf_now(), c->section_since_ns);

	c->section_since_ns = 0;
	c->residence_ns += ns;
	hist_add(&c->residence, ns);
	if (ns > c->residence_max_ns)
		c->residence_max_ns = ns;
}

static __always_inline void body_ended(struct artis_cpu *c)
{
	c->stat[ARTIS_STAT_BODY_ON_RT]++;
	c->body_cause = c->evict_cause;
	residence_ends(c);
}

static __always_inline void note_attempt(struct artis_cpu *c)
{
	if (!c->attempts++) /* reading a clock costs: only the first of a run has a time */
		c->first_attempt_ns = scx_bpf_now();
}

/* Updates section and account of @p, which stops on @c or may. Global: verified once. Returns 0. */
__noinline int settle(struct artis_cpu *c __arg_nonnull, struct artis_task *t __arg_nonnull,
		      struct task_struct *p __arg_trusted)
{
	find_section(c, p);
	if (unlikely(c->section_since_ns) && c->section < ARTIS_SECTION_CALL)
		body_ended(c);
	if (unlikely(c->began_in >= ARTIS_SECTION_CALL) && !c->attempts)
		note_attempt(c); /* time in a section does not make a task calm */
	c->began_in = c->section;
	task_charge(c, t, p);
	return 0;
}
