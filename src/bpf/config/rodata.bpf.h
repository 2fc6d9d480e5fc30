/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon writes: the policy (abi/abi.h), abilities of this kernel, the partition. */
#pragma once

struct artis_policy policy SEC(".data.policy");

/* How an ext task leaves a CPU that a real-time task takes (docs/decisions/0003-put-back.md). */
const volatile u32 put_back;
#define ARTIS_PUT_BACK_RELEASE 0 /* to 6.18: ops.cpu_release, before the real-time task runs */
#define ARTIS_PUT_BACK_EAGER 1 /* from 6.19: at the switch, by an interrupt of the real-time task */
#define ARTIS_PUT_BACK_LAZY 2 /* from 6.19: at its first tick after put_back_ns on the CPU */
#define ARTIS_PUT_BACK_HOLD 3 /* to 6.18: then, too; until then the ext task is in no queue */

/* To 6.18: there is an ops.cpu_release. */
static __always_inline bool releases(void)
{
	return put_back == ARTIS_PUT_BACK_RELEASE || put_back == ARTIS_PUT_BACK_HOLD;
}

const volatile bool dispatch_before_rt; /* to 6.18: ops.dispatch runs before the rt classes pick */
const volatile bool smt; /* some core has several threads */
const volatile s32 daemon_tgid;
u32 nr_groups; /* groups of CPUs; each has an NRT CPU */
u32 partition_gen; /* incremented with each new partition: tasks look at their affinity again */

UEI_DEFINE(uei);
