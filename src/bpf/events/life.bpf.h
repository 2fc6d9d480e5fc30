/* SPDX-License-Identifier: GPL-2.0-only */
/* Life of tasks, cgroups and the scheduler. */
#pragma once

static __always_inline void task_begins(struct task_struct *p, struct artis_task *t, u32 weight)
{
	task_note_weight(p, t, weight);
	task_note_affinity(t, p->cpus_ptr);
	t->queue = ARTIS_QUEUE_BOUND;
	t->where = t->group = group_of(t->nrt_cpu);
	t->vtime = clock_of(ARTIS_QUEUE_BOUND, t->group)->vtime;
}

s32 BPF_STRUCT_OPS(artis_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct artis_task *of, *t;

	t = bpf_task_storage_get(&task_stor, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return -ENOMEM;
	t->fresh = args->fork;
	t->section = args->fork ? ARTIS_SECTION_CALL : ARTIS_SECTION_NONE; /* a child is in fork */
	of = args->fork ? bpf_task_storage_get(&task_stor, parent, 0, 0) : NULL;
	if (of) { /* the child has the class of its parent */
		t->rt_forbidden = of->rt_forbidden;
		t->by_hand = of->by_hand;
		if (!parent->sched_reset_on_fork) { /* cleared in the child by now */
			t->rt1 = of->rt1;
			t->rt1_rr = of->rt1_rr;
		}
	}
	t->cgroup_weight = ARTIS_WEIGHT_DEFAULT;
	t->cgroup_gen = cgroup_gen - 1; /* task_refresh_weight() looks again */
	task_begins(p, t, ARTIS_WEIGHT_DEFAULT);
	return 0;
}

void BPF_STRUCT_OPS(artis_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct artis_task *t;

	/* not if the scheduler ends */
	if (!(p->flags & PF_EXITING) || !watches(ARTIS_WATCH_TASKS) ||
	    !in_budget(this_cpu(), scx_bpf_now()))
		return;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (t)
		tell_task(p, t, true);
}

void BPF_STRUCT_OPS(artis_enable, struct task_struct *p)
{
	struct artis_task *t = task_of(p);

	if (!t)
		return;
	task_begins(p, t, p->scx.weight);
	tell_news(p, ARTIS_NEWS_FROM_RT);
}

void BPF_STRUCT_OPS(artis_disable, struct task_struct *p)
{
	s32 cpu = cpu_of_task(p);
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

	if (t) {
		settle_beneath(p, t);
		queue_leave(t);
		t->stats.ready_ns = 0;
	}
	if (is_realtime(p) && has_rt_policy(p))
		tell_news(p, ARTIS_NEWS_TO_RT);
	if (scx_bpf_task_running(p) && is_realtime(p) && !cpu_of(cpu)->rt.in_rt)
		rt_switch(cpu_of(cpu), cpu, true); /* no context switch comes */
}

void BPF_STRUCT_OPS(artis_set_weight, struct task_struct *p, u32 weight)
{
	struct artis_task *t = task_of(p);

	if (t)
		task_note_weight(p, t, weight);
}

/* Also called at a switch with migration disabled (a mask of one CPU, not the affinity) and when
 * it is enabled again: a task in an endangering section then leaves an RT CPU. */
void BPF_STRUCT_OPS(artis_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	struct artis_cpu *c = cpu_of(cpu_of_task(p));
	struct artis_task *t = task_of(p);

	if (!t || bpf_cpumask_weight(cpumask) != p->nr_cpus_allowed)
		return;
	settle_beneath(p, t);
	task_note_affinity(t, cpumask);
	if (unlikely(t->rt1))
		tell_news(p, ARTIS_NEWS_AFFINITY);
	if (!scx_bpf_task_running(p) || c->curr_pid != p->pid)
		return;
	c->movable = t->nrt_groups && !is_kernel_task(p);
	if (c->kind != ARTIS_CPU_RT || !c->movable)
		return;
	find_section(c, p);
	if (c->section >= ARTIS_SECTION_CALL)
		scx_bpf_kick_cpu(cpu_of_task(p), SCX_KICK_PREEMPT);
}

s32 BPF_STRUCT_OPS(artis_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	cgroup_note_weight(cgrp, args->weight);
	return 0;
}

void BPF_STRUCT_OPS(artis_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	cgroup_note_weight(cgrp, weight);
}

void BPF_STRUCT_OPS(artis_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct artis_task *t = task_of(p);

	if (t)
		t->cgroup_gen = cgroup_gen - 1;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(artis_init)
{
	s32 cpu, group, err;

	if (!nrt_mask() || !rt_mask())
		return -EINVAL; /* the daemon did not run artis_set_partition */
	bpf_for(group, 0, ARTIS_MAX_GROUPS) {
		err = scx_bpf_create_dsq(dsq_of(ARTIS_QUEUE_BOUND, group), -1) ?:
			      scx_bpf_create_dsq(dsq_of(ARTIS_QUEUE_CALM, group), -1);
		if (err)
			return err;
	}
	bpf_for(cpu, 0, policy.nr_cpus) {
		err = scx_bpf_create_dsq(dsq_of(ARTIS_QUEUE_OWN, cpu), -1);
		if (err)
			return err;
	}
	return 0;
}

void BPF_STRUCT_OPS(artis_exit, struct scx_exit_info *ei)
{
	s32 cpu;

	in_charge = 0; /* tracepoints outlive the ops: no counts of other schedulers' tasks */
	bpf_for(cpu, 0, policy.nr_cpus)
		cpu_of(cpu)->ext_running = 0;
	UEI_RECORD(uei, ei);
}
