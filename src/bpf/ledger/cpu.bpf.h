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

#include "../policy/hist.h"
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

static __always_inline void hist_add(struct artis_hist *hist, u64 ns)
{
	u32 slot = artis_hist_slot(ns);

	if (slot < ARTIS_HIST_SLOTS)
		hist->slot[slot]++;
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

static __always_inline bool has_idle(const struct cpumask *of)
{
	const struct cpumask *idle;
	bool any;

	if (!of)
		return false;
	idle = scx_bpf_get_idle_cpumask();
	any = bpf_cpumask_intersects(idle, of);
	scx_bpf_put_idle_cpumask(idle);
	return any;
}

#endif /* ARTIS_LEDGER_CPU_BPF_H */
