/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon writes: the policy (abi/abi.h), abilities of this kernel, the partition. */
#pragma once

struct artis_policy policy SEC(".data.policy");

/* How an ext task leaves a CPU that a real-time task takes (docs/decisions/0003-put-back.md). */
const volatile bool put_back_lazy; /* a tick after put_back_ns on the CPU, not when it comes */
const volatile bool release; /* to 6.18: only ops.cpu_release empties a local queue */

/* What a real-time task has preempted stays in the local queue until then. */
static __always_inline bool stays_local(void)
{
	return put_back_lazy && !release;
}

const volatile bool dispatch_before_rt; /* to 6.18: ops.dispatch runs before the rt classes pick */
const volatile bool smt; /* some core has several threads */
const volatile s32 daemon_tgid;
u32 nr_groups; /* groups of CPUs, of all partitions so far: tasks may wait in one that is empty */
u32 partition_gen; /* incremented with each new partition: tasks look at their affinity again */

UEI_DEFINE(uei);
