/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holds the CPU on which it is run: no preemption, so that nobody else runs there and the
 * scheduler is not asked, though interrupts come. As a long section of the kernel does.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/* how long, ns */
u64 hold_ns;

/* the most that an iterator does */
#define LOOKS (1 << 23)

SEC("syscall")
int hold(void *ctx)
{
	u64 until_ns = bpf_ktime_get_ns() + hold_ns;
	int i;

	bpf_preempt_disable();
	bpf_for(i, 0, LOOKS) {
		if (bpf_ktime_get_ns() >= until_ns)
			break;
	}
	bpf_preempt_enable();
	return 0;
}
