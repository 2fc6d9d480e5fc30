/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long one task takes to wake up from clock_nanosleep(2): from the interrupt of its CPU's
 * timer to the return to user mode. x86 only, as the guests are.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "observer.h"

char _license[] SEC("license") = "GPL";

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_CLOCK_NANOSLEEP 230

/* the task, as the kernel calls its thread id */
u32 watched_pid;
/* when the interrupt of each CPU's timer began last, and the last one that was a tick, too, ns */
u64 timer_ns[OBS_MAX_CPUS];
u64 tick_ns[OBS_MAX_CPUS];
/* that of the one which woke the task up, ns, and its CPU */
u64 woken_ns;
u32 woken_by;
/* how many wake-ups there were, without those by the interrupt of a tick: how many these are says
 * only how the task's sleep lies to the tick; how long the first OBS_WAKES took, ns, and where */
u32 nr_wakes;
u64 wake_ns[OBS_WAKES];
u32 wake_cpu[OBS_WAKES];

SEC("tp_btf/local_timer_entry")
int BPF_PROG(timer_begins, int vector)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu < OBS_MAX_CPUS)
		timer_ns[cpu] = bpf_ktime_get_ns();
	return 0;
}

SEC("fentry/sched_tick")
int BPF_PROG(timer_ticks)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu < OBS_MAX_CPUS)
		tick_ns[cpu] = timer_ns[cpu];
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(timer_wakes, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (p->pid == watched_pid && cpu < OBS_MAX_CPUS) {
		woken_ns = timer_ns[cpu];
		woken_by = cpu;
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(wakes_up, struct pt_regs *regs, long ret)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 nr = nr_wakes, by = woken_by;

	if (p->pid != watched_pid || regs->orig_ax != NR_CLOCK_NANOSLEEP || !woken_ns)
		return 0;
	if (nr < OBS_WAKES && by < OBS_MAX_CPUS && tick_ns[by] != woken_ns) {
		wake_ns[nr] = bpf_ktime_get_ns() - woken_ns;
		wake_cpu[nr] = bpf_get_smp_processor_id();
		nr_wakes = nr + 1;
	}
	woken_ns = 0;
	return 0;
}
