/* SPDX-License-Identifier: GPL-2.0-only */
/* What the auditor's BPF program and artis-guest both read. */
#ifndef ARTIS_AUDITOR_H
#define ARTIS_AUDITOR_H

#ifndef __VMLINUX_H__
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum aud_limits {
	/* guests have at most so many CPUs */
	AUD_CPUS = 8,
	/* (rule, name) pairs */
	AUD_FINDINGS = 256,
	/* waiting tasks that are remembered */
	AUD_WAITS = 1024,
	/* waiting tasks of one CPU's list that one look walks through */
	AUD_WALK = 512,
	/* last entries into the kernel that are remembered, by id modulo this; a power of two */
	AUD_ENTRIES = 4096,
};

enum aud_rule {
	AUD_IDLE = 0, /* an NRT CPU is idle beside a waiting task */
	AUD_IDLE_RT = 1, /* an RT CPU is idle beside a waiting task that computes */
	AUD_STANDSTILL = 2, /* a runnable task does not run */
	AUD_FAULT = 3, /* a fault of kernel mode at an address of user mode, on an RT CPU */
	AUD_EXIT = 4, /* do_exit() on an RT CPU */
	AUD_EXIT_MMAP = 5, /* exit_mmap() on an RT CPU */
	AUD_SIGNAL = 6, /* a frame for a signal's handler is made on an RT CPU */
	AUD_RULES = 7,
};

struct aud_key {
	/* enum aud_rule */
	u32 rule;
	char comm[16];
};

struct aud_finding {
	u64 times;
	/* rules of waiting: the longest one, ns */
	u64 longest_ns;
	/* CPUs that the task may use, a mask; the last time, as all below */
	u64 mask;
	/* rules of waiting: the dispatch queue; 0: none, BPF has the task in custody */
	u64 dsq;
	u32 pid;
	/* the idle CPU, the RT CPU, or where the task waits */
	u32 cpu;
	/* number of the call that it is inside, -1: none */
	int call;
	/* rules of waiting: the CPU of the run queue */
	u32 at;
	/* rules of waiting: name of the current task of that CPU */
	char curr[16];
};

/* The greatest seen of each rule of waiting, whether or not it is a finding. */
struct aud_most {
	/* the least number of own looks of a CPU meanwhile; STANDSTILL: see served in aud_cpu */
	u32 looks;
	u32 pid;
	u64 ns;
};

struct aud_cpu {
	/* looks of this CPU itself: it makes none while its host does not run it */
	u32 looks;
	/* looks at which it was idle or ran a task that is not real-time */
	u32 served;
	/* looks in a row at which it was idle, without a switch between them */
	u32 idle;
	u32 pad;
	/* context switches so far, at its last look */
	u64 switches;
};

#endif /* ARTIS_AUDITOR_H */
