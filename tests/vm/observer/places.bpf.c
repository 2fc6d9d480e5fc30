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

/* entries by system calls; the key's CPU is OBS_NO_CPU */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_PLACES);
	__type(key, struct obs_place);
	__type(value, u64);
} calls SEC(".maps");

static void add(void *map, struct task_struct *p, u32 cpu, u64 n)
{
	struct obs_place key = { .cpu = cpu };
	u64 *sum;

	bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), p->comm);
	sum = bpf_map_lookup_elem(map, &key);
	if (sum)
		__sync_fetch_and_add(sum, n);
	else
		bpf_map_update_elem(map, &key, &n, BPF_NOEXIST);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(place_switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= OBS_MAX_CPUS)
		return 0;
	if (since_ns[cpu] && prev->pid)
		add(&run_ns, prev, cpu, now_ns - since_ns[cpu]);
	since_ns[cpu] = now_ns;
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(place_call, struct pt_regs *regs, long id)
{
	add(&calls, bpf_get_current_task_btf(), OBS_NO_CPU, 1);
	return 0;
}
