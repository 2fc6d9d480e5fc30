/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is remembered of each CPU, and the two sets as masks.
 *
 * The array is plain memory (no map look-up on the way) that the daemon reads
 * by mmap: no bpf(2) call of ours ever raises bpf_prog_active on a CPU, which
 * would make the kernel skip the entry hook there.
 */
#ifndef ARTIS_LEDGER_CPU_BPF_H
#define ARTIS_LEDGER_CPU_BPF_H

#include "../policy/rt_share.h"

struct artis_cpu cpus[ARTIS_MAX_CPUS] SEC(".bss.cpus");

struct artis_masks {
	struct bpf_cpumask __kptr *nrt;
	struct bpf_cpumask __kptr *rt;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct artis_masks);
} masks SEC(".maps");

static __always_inline struct artis_cpu *cpu_of(s32 cpu)
{
	return &cpus[(u32)cpu & (ARTIS_MAX_CPUS - 1)];
}

static __always_inline struct artis_cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

/* Count an event on the CPU that sees it. */
static __always_inline void count(enum artis_stat id)
{
	this_cpu()->stat[id]++;
}

static __always_inline bool is_rt_cpu(s32 cpu)
{
	return cpu_of(cpu)->kind == ARTIS_CPU_RT;
}

/* The mask of a set; NULL only before init. */
static __always_inline const struct cpumask *nrt_mask(void)
{
	u32 zero = 0;
	struct artis_masks *m = bpf_map_lookup_elem(&masks, &zero);

	return m ? cast_mask(m->nrt) : NULL;
}

static __always_inline const struct cpumask *rt_mask(void)
{
	u32 zero = 0;
	struct artis_masks *m = bpf_map_lookup_elem(&masks, &zero);

	return m ? cast_mask(m->rt) : NULL;
}

static int mask_create(struct bpf_cpumask **slot, u8 kind)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 cpu;

	if (!mask)
		return -ENOMEM;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (cpu_of(cpu)->kind == kind)
			bpf_cpumask_set_cpu(cpu, mask);
	}
	mask = bpf_kptr_xchg(slot, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

/*
 * Run by the daemon before it attaches the scheduler: copies the partition out
 * of the policy and builds the masks. Not done in ops.init, because on
 * PREEMPT_RT the allocator of masks is refilled by a thread: a second mask in a
 * row gets -ENOMEM there. The daemon calls again until this returns 0.
 */
SEC("syscall")
int artis_set_partition(void *ctx)
{
	u32 zero = 0, cpu;
	struct artis_masks *m = bpf_map_lookup_elem(&masks, &zero);
	int err;

	if (!m)
		return -ENOENT;
	bpf_for(cpu, 0, policy.nr_cpus)
		cpu_of(cpu)->kind = policy.cpu_kind[cpu & (ARTIS_MAX_CPUS - 1)];
	err = m->nrt ? 0 : mask_create(&m->nrt, ARTIS_CPU_NRT);
	if (!err && !m->rt)
		err = mask_create(&m->rt, ARTIS_CPU_RT);
	return err;
}

#endif /* ARTIS_LEDGER_CPU_BPF_H */
