/* SPDX-License-Identifier: GPL-2.0-only */
/* State and masks of CPUs. */
#pragma once
#include "../policy/hist.h"
#include "../policy/load.h"

/* No map look-up, and the daemon reads it by mmap: bpf(2) would raise bpf_prog_active on a CPU, for
 * which the kernel skips the entry hook there. */
struct artis_cpu cpus[ARTIS_MAX_CPUS] SEC(".bss.cpus");
struct artis_topology topology SEC(".data.topology");

struct artis_mask {
	struct bpf_cpumask __kptr *cpus;
};

/* The NRT CPUs of each group and of the whole machine, then so the RT CPUs, and those of either that
 * run a calm task, which makes way for others; then of each CPU one for intermediate results. */
#define ARTIS_MASKS_ALL ARTIS_MAX_GROUPS /* the whole machine as a group */
#define ARTIS_MASKS (ARTIS_MAX_GROUPS + 1)
#define ARTIS_MASKS_SCRATCH (4 * ARTIS_MASKS)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARTIS_MASKS_SCRATCH + ARTIS_MAX_CPUS);
	__type(key, u32);
	__type(value, struct artis_mask);
} masks SEC(".maps");

static __always_inline struct artis_cpu *cpu_of(s32 cpu)
{
	return &cpus[(u32)cpu & (ARTIS_MAX_CPUS - 1)];
}

/* task_cpu(), include/linux/sched.h: a load, where scx_bpf_task_cpu() is a call. */
static __always_inline s32 cpu_of_task(const struct task_struct *p)
{
	return p->thread_info.cpu;
}

static __always_inline struct artis_cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

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

static __always_inline u32 *core_rt_of(s32 cpu)
{
	return &cpu_of(topology.core[(u32)cpu & (ARTIS_MAX_CPUS - 1)])->core_rt;
}

static __always_inline bool shares_core(s32 cpu)
{
	return smt && *core_rt_of(cpu); /* with a real-time task on another thread */
}

static __always_inline struct bpf_cpumask *mask_nr(u32 nr)
{
	struct artis_mask *m = bpf_map_lookup_elem(&masks, &nr);

	return m ? m->cpus : NULL;
}

/* CPUs of @kind in @group or ARTIS_MASKS_ALL; NULL only before artis_set_partition(). */
static __always_inline struct bpf_cpumask *mask_of(u32 group, u32 kind)
{
	return mask_nr((kind == ARTIS_CPU_RT) * ARTIS_MASKS + group);
}

/* Those of them that run a calm task. */
static __always_inline struct bpf_cpumask *calm_of(u32 group, u32 kind)
{
	return mask_nr((2 + (kind == ARTIS_CPU_RT)) * ARTIS_MASKS + group);
}

static __always_inline const struct cpumask *nrt_mask(void)
{
	return cast_mask(mask_of(ARTIS_MASKS_ALL, ARTIS_CPU_NRT));
}

static __always_inline const struct cpumask *rt_mask(void)
{
	return cast_mask(mask_of(ARTIS_MASKS_ALL, ARTIS_CPU_RT));
}
