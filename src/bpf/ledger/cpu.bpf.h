/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is remembered of each CPU, and masks of CPUs.
 *
 * The array is plain memory (no map look-up on the way) that the daemon reads
 * by mmap: no bpf(2) call of ours ever raises bpf_prog_active on a CPU, which
 * would make the kernel skip the entry hook there.
 */
#pragma once

#include "../policy/hist.h"
#include "../policy/rt_share.h"

struct artis_cpu cpus[ARTIS_MAX_CPUS] SEC(".bss.cpus");
struct artis_topology topology SEC(".data.topology");

/* CPUs of one group, or of the whole machine. */
struct artis_masks {
	struct bpf_cpumask __kptr *nrt;
	struct bpf_cpumask __kptr *rt;
	/* those of them that run a task which makes way for a bound one, or for any RT1+ task */
	struct bpf_cpumask __kptr *calm_nrt;
	struct bpf_cpumask __kptr *calm_rt;
};

#define ARTIS_MASKS_ALL ARTIS_MAX_GROUPS

/* By group; the last ones are of the whole machine. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARTIS_MAX_GROUPS + 1);
	__type(key, u32);
	__type(value, struct artis_masks);
} masks SEC(".maps");

/* A mask of each CPU to work on. */
struct artis_scratch {
	struct bpf_cpumask __kptr *mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct artis_scratch);
} scratch SEC(".maps");

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

static __always_inline bool is_nrt_cpu(s32 cpu)
{
	return cpu_of(cpu)->kind == ARTIS_CPU_NRT;
}

static __always_inline u32 group_of(s32 cpu)
{
	return topology.group[(u32)cpu & (ARTIS_MAX_CPUS - 1)] & (ARTIS_MAX_GROUPS - 1);
}

/* CPUs of the core of @cpu that run an rt/dl task now, on the entry of its lowest CPU. */
static __always_inline u32 *core_rt_of(s32 cpu)
{
	return &cpu_of(topology.core[(u32)cpu & (ARTIS_MAX_CPUS - 1)])->core_rt;
}

/* Does a real-time task use the core of @cpu, on another thread of it? */
static __always_inline bool shares_core(s32 cpu)
{
	return smt && *core_rt_of(cpu);
}

static __always_inline struct artis_masks *masks_of(u32 group)
{
	return bpf_map_lookup_elem(&masks, &group);
}

/* The mask of a set of the whole machine; NULL only before init. */
static __always_inline const struct cpumask *nrt_mask(void)
{
	struct artis_masks *m = masks_of(ARTIS_MASKS_ALL);

	return m ? cast_mask(m->nrt) : NULL;
}

static __always_inline const struct cpumask *rt_mask(void)
{
	struct artis_masks *m = masks_of(ARTIS_MASKS_ALL);

	return m ? cast_mask(m->rt) : NULL;
}
