/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A sched_ext scheduler that does what the auditor has to find: it runs workers on CPU 0 only,
 * while other CPUs are idle, and forgets one of them. Its name is like that of the one under test.
 */
#include <scx/common.bpf.h>
#include <scx/compat.bpf.h>

char _license[] SEC("license") = "GPL";

/* long enough that the others wait for longer than is allowed */
#define SLICE_NS 300000000ULL
/* SCX_KICK_IDLE, SCX_KICK_PREEMPT; libbpf does not fill in what the header makes of them */
#define KICK_IDLE_ 1
#define KICK_PREEMPT_ 2

/* the queue of CPU 0, of no CPU, of all CPUs */
enum queue { WORKERS = 1, NEVER = 2, OTHERS = 3 };

/* the id of the forgotten worker; set while it runs */
u32 forgotten;

static bool is_worker(struct task_struct *p)
{
	return p->comm[0] == 'a' && p->comm[1] == 'r' && p->comm[2] == 't' && p->comm[3] == '-';
}

s32 BPF_STRUCT_OPS(lazy_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	/* the others leave CPU 1 idle, too: a thread of RCU there ends all its idle times early */
	return bpf_cpumask_test_cpu(0, p->cpus_ptr) ? 0 : prev_cpu;
}

void BPF_STRUCT_OPS(lazy_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool worker = is_worker(p);
	u64 queue = p->pid == forgotten ? NEVER : worker ? WORKERS : OTHERS;

	scx_bpf_dsq_insert(p, queue, SLICE_NS, enq_flags);
	if (queue != NEVER)
		scx_bpf_kick_cpu(worker ? 0 : scx_bpf_task_cpu(p),
				 worker ? KICK_IDLE_ : KICK_PREEMPT_);
}

void BPF_STRUCT_OPS(lazy_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(OTHERS, 0) && !cpu)
		scx_bpf_dsq_move_to_local(WORKERS, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lazy_init)
{
	return scx_bpf_create_dsq(WORKERS, -1)	     ?:
		       scx_bpf_create_dsq(NEVER, -1) ?:
						       scx_bpf_create_dsq(OTHERS, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops lazy = {
	.select_cpu = (void *)lazy_select_cpu,
	.enqueue = (void *)lazy_enqueue,
	.dispatch = (void *)lazy_dispatch,
	.init = (void *)lazy_init,
	.flags = SCX_OPS_ENQ_LAST,
	.name = "artis_lazy",
};
