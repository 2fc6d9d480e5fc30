/* SPDX-License-Identifier: GPL-2.0-only */
/* A sched_ext scheduler with nothing of its own: another one than ours, to stand in its way. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC(".struct_ops.link")
struct sched_ext_ops plain = {
	.name = "plain",
};
