/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where CPUs lie, as the daemon found it, and which cores a real-time task uses.
 */
#ifndef ARTIS_LEDGER_TOPOLOGY_BPF_H
#define ARTIS_LEDGER_TOPOLOGY_BPF_H

struct artis_topology topology SEC(".data.topology");

/* CPUs of a core, named by its lowest, that run an rt/dl task now. */
u32 core_rt[ARTIS_MAX_CPUS];

static __always_inline u32 llc_of(s32 cpu)
{
	return topology.llc[(u32)cpu & (ARTIS_MAX_CPUS - 1)] & (ARTIS_MAX_LLCS - 1);
}

static __always_inline u32 *core_rt_of(s32 cpu)
{
	u32 core = topology.core[(u32)cpu & (ARTIS_MAX_CPUS - 1)];

	return &core_rt[core & (ARTIS_MAX_CPUS - 1)];
}

/* The @i-th nearest NRT CPU of @cpu, or ARTIS_NO_CPU. */
static __always_inline u32 near_of(s32 cpu, u32 i)
{
	return topology.near[(u32)cpu & (ARTIS_MAX_CPUS - 1)][i & (ARTIS_NEAR - 1)];
}

#endif /* ARTIS_LEDGER_TOPOLOGY_BPF_H */
