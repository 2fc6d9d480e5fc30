/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What userspace cannot read from memory alone: queue lengths now, and the
 * clock that the time stamps are in. And the scheduler's own part of the dump.
 */
#ifndef ARTIS_REPORT_SAMPLE_BPF_H
#define ARTIS_REPORT_SAMPLE_BPF_H

/* Entries in the FIFOs that @cpu writes. */
__noinline u32 rings_queued(s32 cpu)
{
	u32 n = 0, pos;

	bpf_for(pos, 0, ARTIS_NEAR) {
		struct artis_ring *ring = ring_of(cpu, pos);

		if (ring)
			n += artis_ring_queued(ring);
	}
	return n;
}

/* Run by the daemon (BPF_PROG_RUN) before it reads the array of CPUs. */
SEC("syscall")
int artis_sample(struct artis_sample *sample)
{
	u32 cpu;

	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);
		s32 own = scx_bpf_dsq_nr_queued(own_dsq(cpu));
		s32 shared = scx_bpf_dsq_nr_queued(nrt_dsq(cpu));

		c->own_queued = own > 0 ? own : 0;
		c->fifo_queued = is_rt_cpu(cpu) ? rings_queued(cpu) : 0;
		c->shared_queued = c->kind == ARTIS_CPU_NRT && shared > 0 ? shared : 0;
	}
	in_charge = 1;
	sample->now_ns = scx_bpf_now();
	return 0;
}

void BPF_STRUCT_OPS(artis_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct artis_cpu *c = cpu_of(cpu);

	scx_bpf_dump("artis: %s own_queue=%d rt_share_permille=%d", is_rt_cpu(cpu) ? "RT" : "NRT",
		     scx_bpf_dsq_nr_queued(own_dsq(cpu)),
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

		scx_bpf_dump("artis: group %d: NRT CPUs=%d queue=%d weight=%llu clock=%llu\n",
			     group, g->nr_cpus, scx_bpf_dsq_nr_queued(group_dsq(group)), g->weight,
			     g->clock);
	}
}

#endif /* ARTIS_REPORT_SAMPLE_BPF_H */
