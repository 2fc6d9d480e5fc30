/* SPDX-License-Identifier: GPL-2.0-only */
/* How long the runs of one BPF program are: attached to its entry and its return. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "programs.h"

char _license[] SEC("license") = "GPL";

/* off at first: the probes stay attached */
u32 counting;

struct programs_cpu cpus[TIMES_MAX_CPUS];

static __always_inline struct programs_cpu *this_cpu(void)
{
	return &cpus[bpf_get_smp_processor_id() & (TIMES_MAX_CPUS - 1)];
}

SEC("fentry")
int run_begins(void *ctx)
{
	struct programs_cpu *c = this_cpu();

	c->moved = 0;
	c->since_ns = bpf_ktime_get_ns();
	return 0;
}

/* set_task_cpu() of the kernel: the locks of the run queues of both CPUs have been taken */
SEC("tp_btf/sched_migrate_task")
int task_moves(void *ctx)
{
	this_cpu()->moved = 1;
	return 0;
}

SEC("fexit")
int run_ends(void *ctx)
{
	struct programs_cpu *c = this_cpu();
	u64 ns = bpf_ktime_get_ns() - c->since_ns;

	if (!counting || !c->since_ns)
		return 0;
	if (ns > PROGRAMS_TURN_NS) {
		c->turned++;
	} else {
		times_add(&c->runs, ns);
		if (c->moved)
			times_add(&c->moving, ns);
	}
	return 0;
}
