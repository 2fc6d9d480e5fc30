/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holds the CPU on which it is run: no preemption, so that nobody else runs there and the
 * scheduler is not asked, though interrupts come. As a long section of the kernel does.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "spin.h"

char _license[] SEC("license") = "GPL";

extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/* how long, ns */
u64 hold_ns;

SEC("syscall")
int hold(void *ctx)
{
	bpf_preempt_disable();
	spin(hold_ns);
	bpf_preempt_enable();
	return 0;
}
