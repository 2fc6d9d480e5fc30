/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts page faults, by one of several hooks: what each costs is of interest (src/faults.rs). */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

u64 seen;

SEC("perf_event")
int by_perf(struct bpf_perf_event_data *ctx)
{
	seen++;
	return 0;
}

SEC("tp/exceptions/page_fault_user")
int user(void *ctx)
{
	seen++;
	return 1;
}

SEC("tp/exceptions/page_fault_kernel")
int kernel(void *ctx)
{
	seen++;
	return 1;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(user_btf)
{
	seen++;
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(kernel_btf)
{
	seen++;
	return 0;
}
