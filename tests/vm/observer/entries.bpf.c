/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a few tasks do, counted by hooks of our own: endangering entries into the
 * kernel, and waits from a wake-up to running. For judging what scx_artis tells
 * of each task; it shares nothing with it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "observer.h"
#include "judge.h"

char _license[] SEC("license") = "GPL";

/* thread id -> what it did; only the tasks that are in here are counted */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_TASKS);
	__type(key, u32);
	__type(value, struct obs_entries);
} entries SEC(".maps");

static struct obs_entries *of(const struct task_struct *p)
{
	u32 pid = p->pid;

	return bpf_map_lookup_elem(&entries, &pid);
}

static void called(struct task_struct *p, struct pt_regs *regs, long id)
{
	struct obs_entries *e = of(p);

	if (e && endangers(regs, id))
		e->calls++;
}

/* Where programs on tracepoints are not preempted, to 7.0. */
SEC("?tp_btf/sys_enter")
int BPF_PROG(entry_call_btf, struct pt_regs *regs, long id)
{
	called(bpf_get_current_task_btf(), regs, id);
	return 0;
}

/*
 * From 7.1 on such a one may be preempted, and is left out for whoever enters the kernel on that
 * CPU meanwhile. A classic one is not; it is left out while a bpf(2) call on a map is preempted.
 */
SEC("?tp/raw_syscalls/sys_enter")
int entry_call(struct trace_event_raw_sys_enter *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();

	called(p, (struct pt_regs *)bpf_task_pt_regs(p), ctx->id);
	return 1;
}

SEC("tp/exceptions/page_fault_user")
int entry_fault(void *ctx)
{
	struct obs_entries *e = of(bpf_get_current_task_btf());

	if (e)
		e->faults++;
	return 1;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(entry_waking, struct task_struct *p)
{
	struct obs_entries *e = of(p);

	if (e && !e->woken_ns)
		e->woken_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(entry_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct obs_entries *e = of(next);
	u64 wait_ns;

	if (!e || !e->woken_ns)
		return 0;
	wait_ns = bpf_ktime_get_ns() - e->woken_ns;
	e->woken_ns = 0;
	e->waits++;
	e->wait_ns += wait_ns;
	if (wait_ns > e->wait_max_ns)
		e->wait_max_ns = wait_ns;
	return 0;
}
