/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holds a CPU that goes idle, until a task has left another CPU: it has looked for a task, and its idle
 * bit is not set yet. Notes whether it then idles while that task waits.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

#define HOLD_NS 1000000000ULL
#define LOOKS (1 << 23) /* the most that an iterator does */
#define BUILTIN (1ULL << 63) /* SCX_DSQ_FLAG_BUILTIN: a local queue */

/* the CPU; it is held the next time that it goes idle, or stays idle; it is now */
u32 held_cpu;
u32 armed;
u32 stays;
u32 held;
/* the task; it waits since it left its CPU, and did when the hold ended */
u32 pid;
u32 waits;
u32 waited;
/* how often the CPU idled since, while the task waited */
u32 idled;

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

SEC("fentry/__scx_update_idle")
int BPF_PROG(goes_idle, struct rq *rq, bool idle, bool do_notify)
{
	u64 until_ns;
	int i;

	if (!idle || !armed || rq->cpu != held_cpu || do_notify == !!stays)
		return 0;
	armed = 0;
	held = 1;
	until_ns = bpf_ktime_get_ns() + HOLD_NS;
	bpf_for(i, 0, LOOKS) {
		waited = *(volatile u32 *)&waits;
		if (waited || bpf_ktime_get_ns() >= until_ns)
			break;
	}
	held = 0;
	return 0;
}

/* In a queue of the scheduler, and not beneath a real-time task or on its way to a CPU? */
static bool is_queued(const struct task_struct *p)
{
	const struct scx_dispatch_q *dsq = p->scx.dsq;

	return dsq && !(dsq->id & BUILTIN);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (next->pid == pid)
		waits = 0;
	else if (prev->pid == pid && held)
		waits = is_queued(prev);
	return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(idles, unsigned int state, unsigned int cpu)
{
	struct task_struct *p;

	if (cpu != held_cpu || state == (u32)-1 /* PWR_EVENT_EXIT */ || !waits)
		return 0;
	p = bpf_task_from_pid(pid);
	if (!p)
		return 0;
	idled += is_queued(p);
	bpf_task_release(p);
	return 0;
}
