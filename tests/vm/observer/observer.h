/* SPDX-License-Identifier: GPL-2.0-only */
/* What the observer's BPF program and artis-guest both read. */
#ifndef ARTIS_OBSERVER_H
#define ARTIS_OBSERVER_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum observer_limits {
	/* masks are one word: the guests have four CPUs */
	OBS_MAX_CPUS = 64,
	OBS_NR_CALLS = 512,
	OBS_OFFENDERS = 512,
	/* (name, CPU) pairs whose time is kept */
	OBS_PLACES = 16384,
	/* in the place of a CPU */
	OBS_NO_CPU = 0xffff,
	/* in the place of a system call's number */
	OBS_NR_FAULT = 0xffff,
};

/* How the observer judges a system call; 0 is the strict judgement. */
enum observer_class {
	OBS_ENDANGERING = 0,
	OBS_OTHER = 1, /* harmless or sleeping */
	OBS_FUTEX = 2, /* other for the FUTEX_WAIT operations */
	OBS_POLL = 3, /* other up to poll_fds_max descriptors */
};

enum observer_cause {
	OBS_CAUSE_CALL = 0, /* the body of a call began */
	OBS_CAUSE_RESUMED = 1, /* a task inside an endangering body or a fault was switched in */
	OBS_CAUSE_FAULT = 2, /* a fault of user mode is handled */
	OBS_CAUSE_SECTION = 3, /* preemption went off inside an endangering body */
	OBS_CAUSE_RESUMED_BOOSTED = 4, /* as resumed; a PI boost in that body came before */
	OBS_CAUSE_FAULT_AGAIN = 5, /* the fault is handled for the second time */
};

/* What was seen on one CPU; of movable non-real-time tasks unless said. */
struct obs_cpu {
	u64 endangering;
	u64 other;
	u64 faults;
	u64 resumed;
	u64 sections;
	/* endangering bodies of those that are exempt */
	u64 pinned;
	u64 realtime;
	u64 pad;
};

/* Key and value of the map that names the culprits. */
struct obs_offender {
	u32 cause;
	u32 nr;
	char comm[16];
};

struct obs_offence {
	u64 times;
	/* where and who, the last time */
	u32 cpu;
	u32 pid;
};

/* Key: tasks of this name, on this CPU. */
struct obs_place {
	char comm[16];
	u32 cpu;
};

#endif /* ARTIS_OBSERVER_H */
