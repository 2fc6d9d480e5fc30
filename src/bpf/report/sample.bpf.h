/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What userspace cannot read from memory alone: queue lengths now, and the
 * clock that the time stamps are in. And the scheduler's own part of the dump.
 */
#pragma once

/* Run by the daemon (BPF_PROG_RUN) before it reads the array of CPUs. */
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

void BPF_STRUCT_OPS(artis_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct artis_cpu *c = cpu_of(cpu);

	scx_bpf_dump("artis: %s own_queue=%d rt_share_permille=%d", is_rt_cpu(cpu) ? "RT" : "NRT",
		     scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_OWN, cpu)),
		     (u32)((u64)artis_share_at(&c->rt, dctx->at_ns) * 1000 >> ARTIS_SHARE_SHIFT));
	if (c->rt.in_rt)
		scx_bpf_dump(" held by real-time task pid=%d policy=%d for %llu ms", c->rt_pid,
			     c->rt_policy,
			     dctx->at_ns > c->held_since_ns ?
				     (dctx->at_ns - c->held_since_ns) / 1000000 :
				     0);
	scx_bpf_dump("\n");
}

void BPF_STRUCT_OPS(artis_dump, struct scx_dump_ctx *dctx)
{
	u32 group;

	bpf_for(group, 0, nr_groups) {
		struct artis_group *g = group_nr(group);

		scx_bpf_dump("artis: group %d: CPUs=%d NRT=%d bound: queue=%d weight=%llu "
			     "vtime=%llu calm: queue=%d weight=%llu vtime=%llu\n",
			     group, g->nr_cpus, g->nr_nrt,
			     scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_BOUND, group)),
			     g->clock[ARTIS_QUEUE_BOUND].weight, g->clock[ARTIS_QUEUE_BOUND].vtime,
			     scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_CALM, group)),
			     g->clock[ARTIS_QUEUE_CALM].weight, g->clock[ARTIS_QUEUE_CALM].vtime);
	}
}
