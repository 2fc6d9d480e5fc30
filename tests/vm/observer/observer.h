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
	/* tasks that are watched one by one */
	OBS_TASKS = 32,
	/* guests have at most so many CPUs when tasks are watched one by one */
	OBS_FEW_CPUS = 8,
	/* kinds of evictions that are kept apart */
	OBS_EVICTIONS = 4096,
	/* of a task's kernel stack, the inner ones */
	OBS_FRAMES = 64,
	/* wake-ups of one task that are kept */
	OBS_WAKES = 256,
};

/* How the observer judges a system call; 0 is the strict judgement. */
enum observer_class {
	OBS_ENDANGERING = 0,
	OBS_OTHER = 1, /* harmless or sleeping */
	OBS_FUTEX = 2, /* other for the FUTEX_WAIT operations */
	OBS_POLL = 3, /* other up to poll_fds_max descriptors */
	OBS_EPOLL = 4, /* other up to so many events */
};

enum observer_cause {
	OBS_CAUSE_CALL = 0, /* the body of a call began */
	OBS_CAUSE_RESUMED = 1, /* a task inside an endangering body or a fault was switched in */
	OBS_CAUSE_FAULT = 2, /* a fault of user mode is handled */
	OBS_CAUSE_SECTION = 3, /* preemption went off inside an endangering body */
	OBS_CAUSE_RESUMED_BOOSTED = 4, /* as resumed; a PI boost in that body came before */
	OBS_CAUSE_FAULT_AGAIN = 5, /* the fault is handled for the second time */
};

/* What one task did; times in ns. */
struct obs_entries {
	u64 calls;
	u64 faults;
	u64 waits;
	u64 wait_ns;
	u64 wait_max_ns;
	u64 woken_ns;
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
	/* of those resumed: inside a fault */
	u64 resumed_faults;
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

/* What runs on a CPU. */
enum obs_running {
	OBS_RUNS_UNKNOWN = 0, /* no switch was seen yet */
	OBS_RUNS_IDLE = 1,
	OBS_RUNS_RT = 2, /* a task of a real-time class, or boosted to one */
	OBS_RUNS_OTHER = 3, /* a task that is not watched */
	OBS_RUNS_WATCHED = 4, /* + slot */
};

/* Time of one CPU up to since_ns, by what ran. */
struct obs_cpu_time {
	/* when the present task was switched in, ns of CLOCK_MONOTONIC */
	u64 since_ns;
	u64 idle_ns;
	u64 rt_ns;
	u64 other_ns;
	/* enum obs_running */
	u32 runs;
	/* odd while the program that writes it is at work */
	u32 seq;
};

/* One watched task. */
struct obs_watched {
	/* up to the last time that it was switched out, by CPU */
	u64 run_ns[OBS_FEW_CPUS];
	/* switched in on an RT CPU after an NRT CPU */
	u64 moves;
	/* left an RT CPU inside a call or fault, runnable, and went on on an NRT CPU */
	u64 evictions;
	/* those within wasted_ns of its run time since the move */
	u64 wasted;
	/* run time since it came to the RT CPU where it is, ns */
	u64 stay_ns;
	/* NRT CPUs that were idle when it left, a mask */
	u64 idle_then;
	u32 pid;
	/* the CPU where it ran last + 1; 0: not seen yet */
	u32 last_cpu;
	/* it left an RT CPU inside a call or fault, and has not run since */
	u32 leaving;
	/* it handles a fault of user mode */
	u32 fault;
};

/* Key of the evictions: from where, to where, which NRT CPUs were idle (a mask). */
struct obs_eviction {
	u32 from;
	u32 to;
	u64 idle;
};

/* Where a watched task stands. */
enum obs_standing {
	OBS_ABSENT = 0,
	OBS_ON_CPU = 1,
	OBS_WAITS = 2,
	OBS_SLEEPS = 3,
};

struct obs_stand {
	/* the dispatch queue in which it waits; 0: none */
	u64 queue;
	/* enum obs_standing */
	u32 what;
	u32 cpu;
};

#endif /* ARTIS_OBSERVER_H */
