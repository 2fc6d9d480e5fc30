/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU that goes offline must not have: a slice with an end for a thread of its own, since the
 * kernel then queues it on a CPU that no longer dispatches and goes idle; a kick that it sent when it
 * took no more interrupts, since that stays pending, and with it all later ones of that CPU; and tasks that
 * other CPUs take from its run queue when it may wait for that to be empty, since nothing tells it.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "spin.h"
#include "tasks.h"

char _license[] SEC("license") = "GPL";

#define PF_IDLE_ 0x00000002
#define TAKE_NS 25000000
/* include/linux/irq_work.h, work that waits for its interrupt: IRQ_WORK_PENDING */
#define IRQ_WORK_PENDING_ 1

/* how often an ordinary thread of a CPU went on there after ops.cpu_offline, and how often of these
 * with an end of its slice */
u64 nr_runs;
u64 nr_sliced;
/* how many tasks of its run queue others took, from before ops.cpu_offline until it was empty; that CPU
 * + 1; how many CPUs have gone */
u64 nr_taken;
u32 deactivated;
u64 nr_gone;
/* the CPU that pending_kick() looks at */
u32 asked_cpu;

extern const struct rq runqueues __ksym;

SEC("tp_btf/sched_switch")
int BPF_PROG(goes_on, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, bpf_get_smp_processor_id());

	if (!rq || rq->scx.flags & SCX_RQ_ONLINE || !(next->flags & PF_KTHREAD_) ||
	    next->flags & PF_IDLE_ || next->prio < MAX_RT_PRIO_ || next->nr_cpus_allowed != 1)
		return 0;
	__sync_fetch_and_add(&nr_runs, 1);
	if (next->scx.slice != SCX_SLICE_INF)
		__sync_fetch_and_add(&nr_sliced, 1);
	return 0;
}

/* Before ops.cpu_offline: others have time to take tasks. */
SEC("fentry/scx_rq_deactivate")
int BPF_PROG(deactivates, struct rq *rq)
{
	deactivated = rq->cpu + 1;
	spin(TAKE_NS);
	return 0;
}

SEC("tp_btf/cpuhp_exit")
int BPF_PROG(has_gone, unsigned int cpu, int state, int idx, int ret)
{
	if (idx == (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_SCHED_WAIT_EMPTY)) {
		nr_gone += deactivated == cpu + 1;
		deactivated = 0;
	}
	return 0;
}

/* What the CPU that goes pushes away it moves itself; a task that wakes up is TASK_WAKING. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(moves, struct task_struct *p, int to)
{
	u32 from = p->thread_info.cpu;

	if (!p->__state && from + 1 == deactivated && bpf_get_smp_processor_id() != from)
		__sync_fetch_and_add(&nr_taken, 1);
	return 0;
}

/* Run while that CPU is offline. Returns 1: a kick waits for its interrupt; 0: none does; -1: this
 * cannot be told. */
SEC("syscall")
int pending_kick(void *ctx)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, asked_cpu);

	if (!rq)
		return -1;
	return BPF_CORE_READ(rq, scx.kick_cpus_irq_work.node.a_flags.counter) & IRQ_WORK_PENDING_;
}
