/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where does each task run, and how often does it enter the kernel? For judging
 * what lollobrigida says of its tasks; it shares nothing with it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "observer.h"

char _license[] SEC("license") = "GPL";

/* since when a CPU runs the task that it runs, ns; 0: not known */
u64 since_ns[OBS_MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_PLACES);
	__type(key, struct obs_place);
	__type(value, u64);
} run_ns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_PLACES);
	__type(key, u32);
	__type(value, u64);
} calls SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(place_switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now_ns = bpf_ktime_get_ns(), ran_ns, *sum;
	struct obs_place key = { .tid = prev->pid, .cpu = bpf_get_smp_processor_id() };

	if (key.cpu >= OBS_MAX_CPUS)
		return 0;
	ran_ns = now_ns - since_ns[key.cpu];
	if (since_ns[key.cpu] && prev->pid) {
		sum = bpf_map_lookup_elem(&run_ns, &key);
		if (sum)
			*sum += ran_ns;
		else
			bpf_map_update_elem(&run_ns, &key, &ran_ns, BPF_NOEXIST);
	}
	since_ns[key.cpu] = now_ns;
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(place_call, struct pt_regs *regs, long id)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 one = 1, *sum = bpf_map_lookup_elem(&calls, &tid);

	if (sum)
		*sum += 1;
	else
		bpf_map_update_elem(&calls, &tid, &one, BPF_NOEXIST);
	return 0;
}
