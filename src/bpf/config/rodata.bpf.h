/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is decided once, at load: the policy constants (written whole by the
 * daemon, abi/consts.h) and what this kernel can do.
 */
#pragma once

struct artis_policy policy SEC(".data.policy");

/*
 * How an ext task gets out of a CPU's local queue when a real-time task has
 * taken the CPU (docs/decisions/0003-put-back.md).
 */
const volatile u32 put_back;
/* to 6.18: ops.cpu_release, before the real-time task runs */
#define ARTIS_PUT_BACK_RELEASE 0
/* from 6.19: at the context switch, by an interrupt of the real-time task */
#define ARTIS_PUT_BACK_EAGER 1
/* from 6.19: at the first tick at which the real-time task holds the CPU for put_back_ns */
#define ARTIS_PUT_BACK_LAZY 2

/* to 6.18 ops.dispatch runs before the real-time classes are asked */
const volatile bool dispatch_before_rt;

/* Some core has several threads. */
const volatile bool smt;

/* Process id of the daemon. */
const volatile s32 daemon_tgid;

/* NRT CPUs of the partition. */
u32 nr_nrt_cpus;
/* Groups of CPUs, each with an NRT CPU. */
u32 nr_groups;
/* Moves by one with each new partition: tasks look at their affinity again. */
u32 partition_gen;

UEI_DEFINE(uei);
