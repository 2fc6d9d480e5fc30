/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon cannot read by mmap: queue lengths, and the clock of the time stamps. */
#pragma once

/* The daemon runs it (BPF_PROG_RUN) before it reads the array of CPUs. */
SEC("syscall")
int artis_sample(struct artis_sample *sample)
{
	u32 cpu, group;

	bpf_for(cpu, 0, policy.nr_cpus) {
		s32 own = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_OWN, cpu));

		cpu_of(cpu)->own_queued = own > 0 ? own : 0;
	}
	bpf_for(group, 0, nr_groups) {
		struct artis_group *g = group_nr(group);

		g->queued[0] = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_BOUND, group));
		g->queued[1] = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_CALM, group));
	}
	in_charge = 1;
	sample->now_ns = scx_bpf_now();
	return 0;
}
