/* SPDX-License-Identifier: GPL-2.0-only */
/* The partition, set before the scheduler attaches and with each change, and hotplug of CPUs. */
#pragma once

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
		if (policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)] == kind &&
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
		c->kind = policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)];
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

/* Moves tasks of @queue of @group that no CPU takes to the local queue of a CPU they may use, and
 * those of the run queue of a CPU that goes offline, which waits until it is empty, and does not
 * look again when another CPU has taken the last: balance_push(), kernel/sched/core.c. */
static __noinline void sweep(u32 queue, u32 group)
{
	const struct cpumask *nrt;
	struct task_struct *p;
	u32 cpu, kind;

	bpf_rcu_read_lock();
	nrt = nrt_mask();
	if (!nrt)
		goto out;
	bpf_for_each(scx_dsq, p, dsq_of(queue, group), 0) {
		struct bpf_cpumask *takers;

		kind = bpf_cpumask_intersects(p->cpus_ptr, nrt) ? ARTIS_CPU_NRT : ARTIS_CPU_RT;
		takers = mask_of(group, kind);
		if (takers && bpf_cpumask_intersects(p->cpus_ptr, cast_mask(takers)) &&
		    (kind == ARTIS_CPU_NRT || queue == ARTIS_QUEUE_CALM) &&
		    likely(!cpu_of(cpu_of_task(p))->gone))
			continue;
		cpu = bpf_cpumask_any_and_distribute(p->cpus_ptr, nrt);
		if (cpu >= policy.nr_cpus)
			cpu = bpf_cpumask_any_distribute(p->cpus_ptr);
		if (cpu >= policy.nr_cpus ||
		    !scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
			continue;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE); /* not by the kernel on its own run queue */
	}
out:
	bpf_rcu_read_unlock();
}

static __noinline void sweep_all(void)
{
	u32 group;

	bpf_for(group, 0, nr_groups) {
		sweep(ARTIS_QUEUE_BOUND, group);
		sweep(ARTIS_QUEUE_CALM, group);
	}
}

/* Run by the daemon after artis_set_partition() if attached: requeues running and stuck tasks. */
SEC("syscall")
int artis_look_again(void *ctx)
{
	s32 cpu;

	sweep_all();
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (cpu_of(cpu)->kind != ARTIS_CPU_ABSENT && !cpu_of(cpu)->rt.in_rt)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

static __noinline void mask_out(u32 group, u32 cpu)
{
	u32 i;

	bpf_for(i, 0, 4) {
		struct bpf_cpumask *mask = mask_nr(i * ARTIS_MASKS + group);

		if (mask)
			bpf_cpumask_clear_cpu(cpu, mask);
	}
}

static __always_inline bool deactivates(int idx)
{
	return idx == (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE);
}

/* sched_cpu_deactivate(), kernel/sched/core.c, begins on @cpu: the kernel dispatches there no more
 * and waits for a grace period, also for readers in the queue of the CPU, before ops.cpu_offline. */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(artis_cpu_leaves, unsigned int cpu, int target, int idx, void *fun)
{
	if (!deactivates(idx) || target >= idx)
		return 0;
	cpu_of(cpu)->gone = 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT); /* ops.dispatch empties the queue */
	return 0;
}

/* If that was refused, there is no ops.cpu_offline. */
SEC("tp_btf/cpuhp_exit")
int BPF_PROG(artis_cpu_left, unsigned int cpu, int state, int idx, int ret)
{
	if (deactivates(idx) && ret)
		cpu_of(cpu)->gone = 0;
	return 0;
}

void BPF_STRUCT_OPS(artis_cpu_offline, s32 cpu)
{
	const struct cpumask *nrt = nrt_mask();
	u32 other;

	/* else no partition is left: the daemon ends */
	if (!nrt || !is_nrt_cpu(cpu) || bpf_cpumask_weight(nrt) != 1) {
		mask_out(ARTIS_MASKS_ALL, cpu);
		mask_out(group_of(cpu), cpu);
		cpu_of(cpu)->kind = ARTIS_CPU_ABSENT;
		partition_gen++;
	}
	empty_own(cpu);
	cpu_of(cpu)->gone = 2;
	sweep_all();
	/* a kick of @cpu since it became inactive was in vain */
	bpf_for(other, 0, policy.nr_cpus) {
		if (cpu_of(other)->kind != ARTIS_CPU_ABSENT && group_of(other) == group_of(cpu))
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
	}
	__sync_fetch_and_add(&hotplug_seq, 1);
}

void BPF_STRUCT_OPS(artis_cpu_online, s32 cpu)
{
	cpu_of(cpu)->gone = 0;
	__sync_fetch_and_add(&hotplug_seq, 1);
}
