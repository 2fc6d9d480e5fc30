/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The partition: taken over from the policy before the scheduler is attached,
 * and each time the daemon changes it.
 */
#ifndef ARTIS_LEDGER_PARTITION_BPF_H
#define ARTIS_LEDGER_PARTITION_BPF_H

static int mask_create(struct bpf_cpumask **slot, u8 kind)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 cpu;

	if (!mask)
		return -ENOMEM;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)] == kind)
			bpf_cpumask_set_cpu(cpu, mask);
	}
	mask = bpf_kptr_xchg(slot, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

/* Which of the two masks belong to the partition in the making. */
u32 masks_made;

/*
 * Run by the daemon after it has written policy.cpu_kind and the topology. The
 * masks are built first, then everything else follows at once: who is queued or
 * runs is told by partition_gen, and every CPU looks again.
 *
 * Not done in ops.init, because on PREEMPT_RT the allocator of masks is refilled
 * by a thread: a second mask in a row gets -ENOMEM there. The daemon calls
 * again until this returns 0.
 */
SEC("syscall")
int artis_set_partition(void *ctx)
{
	u32 zero = 0, cpu, nr_nrt = 0, llc;
	struct artis_masks *m = bpf_map_lookup_elem(&masks, &zero);
	int err = 0;

	if (!m)
		return -ENOENT;
	if (!(masks_made & 1))
		err = mask_create(&m->nrt, ARTIS_CPU_NRT);
	if (err)
		return err;
	masks_made |= 1;
	err = mask_create(&m->rt, ARTIS_CPU_RT);
	if (err)
		return err;
	masks_made = 0;

	bpf_for(llc, 0, ARTIS_MAX_LLCS)
		group_nr(llc)->nr_cpus = 0;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		c->kind = policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)];
		if (llc_of(cpu) >= nr_groups)
			nr_groups = llc_of(cpu) + 1;
		if (c->kind != ARTIS_CPU_NRT)
			continue;
		nr_nrt++;
		group_of(cpu)->nr_cpus++;
	}
	nr_nrt_cpus = nr_nrt;
	partition_gen++;
	return 0;
}

/*
 * Run by the daemon after artis_set_partition while the scheduler is in charge:
 * whoever runs is preempted and placed by the new partition; what waits in a
 * FIFO or an own queue is looked for by the CPUs that now have to.
 */
SEC("syscall")
int artis_look_again(void *ctx)
{
	s32 cpu;

	rt_queued_hint = 1;
	/* again a little later, for who was writing while the lists changed */
	rings_astray = 3;
	handover_hint = 1;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		if (c->kind == ARTIS_CPU_ABSENT)
			continue;
		if (c->kind == ARTIS_CPU_NRT)
			__sync_fetch_and_or(&c->inbox, ~0ULL);
		c->own_hint = 1;
		if (!c->rt.in_rt)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

#endif /* ARTIS_LEDGER_PARTITION_BPF_H */
