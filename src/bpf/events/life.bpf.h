/* SPDX-License-Identifier: GPL-2.0-only */
/* Life of tasks, cgroups, CPUs and the scheduler. */
#pragma once

static __always_inline void task_begins(struct task_struct *p, struct artis_task *t, u32 weight)
{
	task_note_weight(p, t, weight);
	note_affinity(p, t);
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
	/* not if the scheduler ends */
	if (p->flags & PF_EXITING && watches(ARTIS_WATCH_TASKS) &&
	    in_budget(this_cpu(), scx_bpf_now()))
		tell_task(p, bpf_task_storage_get(&task_stor, p, 0, 0), true);
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
		rt_switch(cpu_of(cpu), cpu, true, scx_bpf_now()); /* no context switch comes */
}

void BPF_STRUCT_OPS(artis_set_weight, struct task_struct *p, u32 weight)
{
	struct artis_task *t = task_of(p);

	if (t)
		task_note_weight(p, t, weight);
}

/* Also called at a switch with migration disabled (a mask of one CPU, not the affinity) and when it
 * is enabled again. If @p runs, ops.stopping and ops.running enclose the call. */
void BPF_STRUCT_OPS(artis_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	struct artis_task *t = task_of(p);

	if (!t || bpf_cpumask_weight(cpumask) != p->nr_cpus_allowed)
		return;
	settle_beneath(p, t);
	note_affinity(p, t);
	if (unlikely(t->rt1))
		tell_news(p, ARTIS_NEWS_AFFINITY);
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
		if (policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)] == ARTIS_CPU_ABSENT)
			cpu_of(cpu)->gone = ARTIS_GONE_EMPTY; /* until it is active */
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

/* The partition, set before the scheduler attaches and with each change, and hotplug of CPUs. */

u32 hotplug_seq SEC(".data.watch"); /* moves with each hotplug: the daemon makes a new partition */

/* Makes @nr of the masks of the next partition. */
static __noinline int mask_create(u32 nr)
{
	struct artis_mask *m = bpf_map_lookup_elem(&masks, &nr);
	u32 group = nr % ARTIS_MASKS, cpu;
	u32 kind = ARTIS_CPU_NRT + nr / ARTIS_MASKS; /* no CPU is of one beyond RT */
	struct bpf_cpumask *mask;

	if (!m || (nr >= ARTIS_MASKS_SCRATCH && m->cpus)) /* a scratch mask stays */
		return 0;
	mask = bpf_cpumask_create();
	if (!mask)
		return -ENOMEM;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)] == kind && !cpu_of(cpu)->gone &&
		    (group == ARTIS_MASKS_ALL || group_of(cpu) == group))
			bpf_cpumask_set_cpu(cpu, mask);
	}
	mask = bpf_kptr_xchg(&m->cpus, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

u32 masks_made; /* of the next partition */

/* Run by the daemon after it has written policy.cpu_kind and the topology, until it returns 0: on
 * PREEMPT_RT a thread refills the allocator, and a second mask in a row gets -ENOMEM (ops.init). */
SEC("syscall")
int artis_set_partition(void *ctx)
{
	u32 nr, cpu, group;
	int err;

	bpf_for(nr, masks_made, ARTIS_MASKS_SCRATCH + policy.nr_cpus) {
		err = mask_create(nr);
		if (err)
			return err;
		masks_made++;
	}
	masks_made = 0;
	bpf_for(group, 0, ARTIS_MAX_GROUPS) {
		group_nr(group)->nr_cpus = 0;
		group_nr(group)->nr_nrt = 0;
	}
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		group = group_of(cpu);
		bpf_rcu_read_lock(); /* before ops.cpu_offline the kernel waits for readers */
		c->kind = c->gone ? ARTIS_CPU_ABSENT : policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)];
		bpf_rcu_read_unlock();
		c->makes_way = 0; /* the masks of those that do are new */
		take_power(c);
		if (c->kind == ARTIS_CPU_ABSENT)
			continue;
		if (group >= nr_groups)
			nr_groups = group + 1;
		group_nr(group)->nr_cpus++;
		group_nr(group)->nr_nrt += c->kind == ARTIS_CPU_NRT;
	}
	partition_gen++;
	return 0;
}

static __noinline void sweep_all(void)
{
	u32 group;

	bpf_for(group, 0, nr_groups)
		sweep(group);
}

/* Run by the daemon after artis_set_partition() if attached, and while a CPU waits to be empty. */
SEC("syscall")
int artis_look_again(void *ctx)
{
	s32 cpu;

	sweep_all();
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (cpu_of(cpu)->gone >= ARTIS_GONE_EMPTY)
			scx_bpf_kick_cpu(cpu, 0); /* the kernel skips one that is offline */
		else if (cpu_of(cpu)->kind != ARTIS_CPU_ABSENT && !cpu_of(cpu)->rt.in_rt)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* @cpu is of no partition any more. */
static __noinline void leave_partition(s32 cpu)
{
	struct bpf_cpumask *mask;
	u32 i;

	bpf_for(i, 0, 8) {
		mask = mask_nr(i / 2 * ARTIS_MASKS + (i & 1 ? group_of(cpu) : ARTIS_MASKS_ALL));
		if (mask)
			bpf_cpumask_clear_cpu(cpu, mask);
	}
	cpu_of(cpu)->kind = ARTIS_CPU_ABSENT;
	partition_gen++;
}

#define is_step(idx, state) ((idx) == (int)bpf_core_enum_value(enum cpuhp_state, state))

/* Before sched_cpu_deactivate(), kernel/sched/core.c: the kernel then dispatches on @cpu no more, and
 * waits for readers in its queue. And before takedown_cpu(), kernel/cpu.c, which has it stop. */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(artis_cpu_leaves, unsigned int cpu, int target, int idx, void *fun)
{
	const struct cpumask *nrt = nrt_mask();

	if (target >= idx)
		return 0;
	if (is_step(idx, CPUHP_TEARDOWN_CPU))
		cpu_of(cpu)->gone = ARTIS_GONE_DEAD;
	if (!is_step(idx, CPUHP_AP_ACTIVE))
		return 0;
	if (nrt && bpf_cpumask_test_cpu(cpu, nrt) && bpf_cpumask_weight(nrt) == 1) {
		scx_bpf_exit(0, "the last NRT CPU goes offline");
		return 0;
	}
	cpu_of(cpu)->gone = ARTIS_GONE_LEAVES;
	leave_partition(cpu);
	leaving = group_of(cpu) + 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT); /* for ops.dispatch, which empties queues */
	return 0;
}

/* If that was refused, there is no ops.cpu_offline. */
SEC("tp_btf/cpuhp_exit")
int BPF_PROG(artis_cpu_left, unsigned int cpu, int state, int idx, int ret)
{
	if (ret && is_step(idx, CPUHP_AP_ACTIVE)) {
		cpu_of(cpu)->gone = 0;
		leaving = 0;
		__sync_fetch_and_add(&hotplug_seq, 1);
	}
	return 0;
}

void BPF_STRUCT_OPS(artis_cpu_offline, s32 cpu)
{
	u32 other;

	leave_partition(cpu); /* the daemon may have made one meanwhile */
	empty_own(cpu);
	sweep_all();
	leaving = 0;
	/* a kick of @cpu since it became inactive was in vain */
	bpf_for(other, 0, policy.nr_cpus)
		scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
	__sync_fetch_and_add(&hotplug_seq, 1);
}

void BPF_STRUCT_OPS(artis_cpu_online, s32 cpu)
{
	cpu_of(cpu)->gone = 0;
	__sync_fetch_and_add(&hotplug_seq, 1);
}
