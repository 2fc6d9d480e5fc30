/* SPDX-License-Identifier: GPL-2.0-only */
/* A task becomes runnable: ops.select_cpu if it wakes, ops.enqueue if that did not insert it. */
#pragma once

static __always_inline void count_exempt(const struct task_struct *p, const struct artis_task *t)
{
	if (likely(!t->fresh && !p->in_execve && !(p->flags & (PF_EXITING | PF_KTHREAD))))
		return;
	count(t->fresh		    ? ARTIS_STAT_EXEMPT_NEW :
	      p->in_execve	    ? ARTIS_STAT_EXEMPT_EXEC :
	      p->flags & PF_EXITING ? ARTIS_STAT_EXEMPT_EXITING :
				      ARTIS_STAT_EXEMPT_KTHREAD);
}

/* Calm RT1+ task @p runs here at once if this RT CPU gives way: nothing in between could take it, no
 * other CPU has to be interrupted. Else ops.enqueue looks for an RT CPU. */
static __noinline s32 select_rt1(struct task_struct *p, struct artis_task *t)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct artis_cpu *c = cpu_of(cpu);

	if (c->kind != ARTIS_CPU_RT || c->curr_rt1 || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	    scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) || !gives_way(cpu, t->rt1))
		return t->nrt_cpu;
	join(p, t, ARTIS_QUEUE_CALM, group_of(cpu), true);
	if (c->ext_running)
		count(ARTIS_STAT_RT1_PREEMPT);
	c->curr_rt1 = t->rt1; /* others look elsewhere */
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_rt(t), SCX_ENQ_PREEMPT);
	count_why(t, ARTIS_STAT_PLACE_CALM);
	count(ARTIS_STAT_TAKE_RT);
	return cpu;
}

/* The kernel does not call it for tasks that may run on one CPU only. */
s32 BPF_STRUCT_OPS(artis_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct artis_task *t = task_of(p);
	struct artis_facts f = { .cpu = prev_cpu };
	u32 queue;
	s32 cpu;

	if (!t)
		return prev_cpu;
	note_partition(p, t);
	tally_ready(t);
	take_place(p, t, true);
	if (!t->nrt_groups)
		return prev_cpu;
	f.inside = is_inside(t->section, true);
	queue = note_facts(&f, p, t);
	if (unlikely(t->rt1) && artis_may_use_rt(&f))
		return select_rt1(p, t);
	if (unlikely(t->follow & ARTIS_FOLLOW_CONSUMER) && !f.unsettled) {
		cpu = follow(p, t, &f);
		if (cpu >= 0)
			return cpu;
	}
	cpu = pick_idle_nrt(p, t, group_of(t->nrt_cpu));
	if (cpu < 0) /* the waker takes this CPU's rq lock: no RT CPU (kernel.md section 7) */
		return t->nrt_cpu;
	join(p, t, queue, group_of(cpu), true);
	count_exempt(p, t);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_nrt(t, group_of(cpu)), 0);
	count_why(t, ARTIS_STAT_PLACE_IDLE);
	return cpu;
}

/* To 6.18: guest @p of an RT CPU returns to its queue, its account open: a real-time task waits. */
static __always_inline bool return_guest(struct task_struct *p, struct artis_task *t, s32 cpu,
					 u64 enq_flags)
{
	u64 run_ns = p->se.sum_exec_runtime - t->exec_start_ns;
	struct artis_cpu *c = cpu_of(cpu);

	if (c->kind != ARTIS_CPU_RT || !is_making_way(p, cpu) || t->queue != ARTIS_QUEUE_CALM ||
	    c->attempts || t->rt1 || t->rt_forbidden || t->partition_gen != partition_gen ||
	    cannot_migrate(p, c) || is_rcu_reader(p))
		return false;
	find_section(c, p);
	if (c->section)
		return false;
	t->slice_rt = true;
	scx_bpf_dsq_insert_vtime(p, dsq_of(ARTIS_QUEUE_CALM, t->where), slice_rt(t),
				 t->vtime + artis_vtime_of(run_ns, t->inv_weight), enq_flags);
	count_why(t, ARTIS_STAT_PLACE_CALM);
	return true;
}

/* Every path inserts the task or ends in scx_bpf_error(). */
void BPF_STRUCT_OPS(artis_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & SCX_ENQ_WAKEUP;
	s32 cpu = cpu_of_task(p);
	struct artis_task *t = task_of(p);
	struct artis_facts f = { .cpu = cpu };
	u32 queue;

	if (!t)
		return;
	if (enq_flags & SCX_ENQ_REENQ)
		count(ARTIS_STAT_REENQUEUE);
	if (unlikely(cpu_of(t->cpu)->beneath_pid == p->pid)) {
		if (return_guest(p, t, cpu, enq_flags))
			return;
		settle_beneath(p, t);
	}
	tally_ready(t);
	take_place(p, t, woken);
	note_partition(p, t);
	count_exempt(p, t);
	f.pinned = cannot_migrate(p, cpu_of(cpu));
	if (unlikely(f.pinned))
		count(ARTIS_STAT_EXEMPT_MIGRATION_DISABLED);
	else if (unlikely(t->follow & ARTIS_FOLLOW_WAITS))
		f.pinned = is_nrt_cpu(cpu);
	f.inside = is_inside(t->section, woken);
	queue = note_facts(&f, p, t);
	if (unlikely(queue == ARTIS_QUEUE_OWN))
		enqueue_own(p, t, cpu, enq_flags);
	else
		enqueue_group(p, t, &f, queue, enq_flags);
	t->follow &= ~ARTIS_FOLLOW_WAITS;
}
