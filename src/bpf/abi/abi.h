/* SPDX-License-Identifier: GPL-2.0-only */
/* Everything that both BPF and Rust read; the input of bindgen. src/userspace/model/describe.rs
 * describes each counter; tests/documents/contract.rs fails if one is not incremented. */
#pragma once
#include "task.h"

enum artis_limits {
	ARTIS_MAX_CPUS = 1024, /* highest CPU id + 1; a power of two: the verifier needs masks */
	ARTIS_NR_CALLS = 512, /* system calls with a class, others endanger; a power of two */
	ARTIS_CGROUP_LEVELS = 8, /* cgroup levels whose weight counts; deeper levels inherit */
	ARTIS_MAX_GROUPS = 64, /* groups of CPUs, more are folded; a power of two, bits of a u64 */
};

/* Where runnable tasks wait (policy/room.h). */
enum artis_queue {
	ARTIS_QUEUE_OWN, /* of a CPU: tasks that may run on this CPU only */
	ARTIS_QUEUE_BOUND, /* of a group: tasks in the kernel or about to enter it */
	ARTIS_QUEUE_CALM, /* of a group: tasks expected to compute on */
	ARTIS_NR_QUEUES,
};

/* How it is predicted that a task enters the kernel soon (policy/predict.h). */
enum artis_predict_rule {
	ARTIS_PREDICT_LEAST = 0, /* least of the last intervals, in the task's own run time */
	ARTIS_PREDICT_THESIS = 1, /* the two tests of the thesis, in wall time (model section 4) */
};

enum artis_cpu_kind {
	ARTIS_CPU_ABSENT = 0, /* offline when the daemon looked, or since */
	ARTIS_CPU_NRT = 1,
	ARTIS_CPU_RT = 2,
};

/* Class of a system call (model section 3). FUTEX, POLL, EPOLL and CLOCK endanger in all other cases. */
enum artis_call_class {
	ARTIS_CALL_ENDANGERING = 0, /* also of each number that the table does not know */
	ARTIS_CALL_HARMLESS = 1, /* short, bounded, takes no contended lock: no attempt */
	ARTIS_CALL_SLEEPING = 2, /* bounded set-up, then sleep: no attempt; may wake on an RT CPU */
	ARTIS_CALL_SLEEPING_FUTEX = 3, /* futex(2): sleeping for the FUTEX_WAIT operations */
	ARTIS_CALL_SLEEPING_POLL = 4, /* poll(2), ppoll(2): sleeping up to poll_fds_max */
	ARTIS_CALL_HARMLESS_CLOCK = 5, /* clock_gettime(2), clock_getres(2): kernel's clocks */
	ARTIS_CALL_SLEEPING_EPOLL = 6, /* epoll_wait(2): sleeping up to poll_fds_max events */
};

/* Constants that BPF only reads: the daemon decides all of them (src/userspace/config). It writes the
 * `policy` map before it attaches, and single words while it runs (scx_artis ctl). */
struct artis_policy {
	u64 slice_nrt_ns; /* longest run on an NRT CPU while others wait */
	u64 slice_nrt_min_ns; /* shortest run on an NRT CPU, however many wait */
	u64 slice_rt_ns; /* run of a computing task on an RT CPU before it is placed anew */
	u64 predict_c_ns; /* C: the next attempt is far if it is predicted later than this */
	u64 preempt_margin_ns; /* virtual time (at weight 100) a task must be behind to preempt */
	u64 sleep_credit_ns; /* virtual time (at weight 100) a waking task may be behind */
	u64 lead_max_ns; /* own run time by which a queued task may be ahead of the clock */
	u64 put_back_ns; /* a CPU held by real-time tasks for this offers what waits for it */
	u64 balance_ns; /* least time between two looks of a group at the load of another one */
	u64 record_budget; /* events that one CPU may write into the ring buffer in a second */
	u32 predict_k; /* K: an attempt is overdue after this many mean periods */
	u32 predict_past; /* weight of the past in the mean period at each attempt, in 1/2048 */
	u32 predict_rule; /* enum artis_predict_rule */
	u32 imbalance_pct; /* imbalance below which nothing moves, percent of the lower load */
	u32 seq; /* incremented with each change of this struct after load */
	u32 rt1_budget_pct; /* share of a CPU's second for RT1+ tasks while others wait for it */
	u32 rt1_rr_ms; /* run of a round-robin RT1+ task while equals wait */
	u32 poll_fds_max; /* descriptors up to which poll(2) counts as sleeping */
	u32 nr_cpus; /* highest possible CPU + 1 */
	u32 pad;
	u8 call_class[ARTIS_NR_CALLS]; /* enum artis_call_class by system-call number */
	u8 cpu_kind[ARTIS_MAX_CPUS]; /* enum artis_cpu_kind by CPU */
};

_Static_assert(sizeof(struct artis_policy) == 10 * 8 + 9 * 4 + 512 + 1024 + 4,
	       "struct artis_policy has padding: both languages must see the same bytes");

struct artis_topology { /* written by the daemon before it attaches and with each new partition */
	u16 group[ARTIS_MAX_CPUS]; /* NRT CPUs of one LLC and capacity, and the nearest RT CPUs */
	u16 core[ARTIS_MAX_CPUS]; /* lowest CPU of the same core */
	u16 capacity[ARTIS_MAX_CPUS]; /* compute capacity, 1 to 1024 (the greatest CPU's) */
};

enum artis_stat {
	ARTIS_STAT_ATTEMPT_CALL, /* endangering entries, but of tasks that may not leave their RT CPU */
	ARTIS_STAT_ATTEMPT_FAULT,
	ARTIS_STAT_ATTEMPT_SIGNAL, /* by a signal that ends the task or has a handler */
	ARTIS_STAT_EVICTION, /* migrations asked for because of an attempt on an RT CPU */
	ARTIS_STAT_BODY_ON_RT, /* endangering bodies that ended on an RT CPU: must be 0 */
	ARTIS_STAT_MOVE_RT, /* a task that may leave came from an NRT CPU and runs on an RT CPU */
	ARTIS_STAT_EXEMPT_MIGRATION_DISABLED, /* tasks that could not leave just then */
	ARTIS_STAT_EXEMPT_PINNED, /* endangering entries on RT CPUs of tasks that may not leave */
	ARTIS_STAT_WASTED, /* moves to an RT CPU that an eviction ended within C */
	ARTIS_STAT_REENQUEUE, /* tasks put back because an RT or DL task took their CPU */
	ARTIS_STAT_PREEMPT, /* preemptions for a woken or evicted task */
	ARTIS_STAT_PLACE_IDLE, /* runnable tasks sent straight to an idle NRT CPU */
	ARTIS_STAT_PLACE_BOUND, /* to a queue of enum artis_queue */
	ARTIS_STAT_PLACE_CALM,
	ARTIS_STAT_PLACE_OWN,
	ARTIS_STAT_TAKE_RT, /* an RT CPU took a task from the calm queue */
	ARTIS_STAT_TAKE_GROUP, /* a CPU took a task from a queue of another group */
	ARTIS_STAT_RT1_PREEMPT, /* preemptions for an RT1+ task */
	ARTIS_STAT_RT1_THROTTLE, /* RT1+ tasks used up their share of a second of a CPU */
	ARTIS_NR_STATS,
};

struct artis_clock { /* of the tasks of one queue (policy/fair.h) */
	u64 vtime; /* ns at weight 100 */
	u64 weight; /* sum of the runnable tasks, running ones included */
};

struct artis_rt1_budget { /* run time of RT1+ tasks on one CPU in the present second, 2^30 ns */
	u32 second;
	u32 used_ns;
};

#define ARTIS_SHARE_SHIFT 30 /* fraction bits of a share */
#define ARTIS_SHARE_ONE (1U << ARTIS_SHARE_SHIFT)

struct artis_rt_share { /* of a CPU: exponential average, see policy/load.h */
	u32 avg; /* at updated_ns, in units of 1 / ARTIS_SHARE_ONE */
	u32 in_rt; /* rt/dl tasks run, without a break since since_ns */
	u64 since_ns;
	u64 updated_ns; /* when one ended last */
	u64 total_ns; /* all time in rt/dl tasks up to updated_ns */
};

/* Steps of a CPU that goes offline (docs/decisions/0024-hotplug.md); 0: it does not. */
enum artis_gone {
	ARTIS_GONE_LEAVES = 1, /* it is to be active no more */
	ARTIS_GONE_EMPTY = 2, /* its own queue is empty, and it dispatches no more */
	ARTIS_GONE_DEAD = 3, /* it takes no more interrupts, from soon on */
};

/* What a real-time task has preempted, to 6.18 (queues/beneath.bpf.h); 0: it is in a queue. */
enum artis_held {
	ARTIS_HELD_NEXT = 1, /* the kernel calls ops.enqueue next, which is to leave it out */
	ARTIS_HELD = 2, /* it is in no queue: this CPU inserts it when it dispatches again */
};

struct artis_cpu { /* the daemon reads it by mmap; lines are split by writer, to spare RT0 misses */
	/* written by this CPU: what the kernel-entry hook touches */
	u32 attempts; /* of the task here since it was last charged */
	u8 door; /* enum artis_section that registers do not tell: fault or signal; else 0 */
	u8 kind; /* enum artis_cpu_kind; written with a new partition */
	u8 ext_running; /* an ext task runs here */
	u8 movable; /* that task may leave an RT CPU */
	u64 first_attempt_ns; /* the first of those attempts */
	u64 faults; /* page faults handled for the task here when its last one began */
	u64 section_since_ns; /* on RT CPUs: start of the section that leads to an eviction; or 0 */
	u32 evict_cause; /* enum artis_causes: why the task has to leave this RT CPU; or 0 */
	u8 began_in; /* enum artis_section in which it began to run; below, at the last look */
	u8 section;
	u8 makes_way; /* the task here is in the mask of those that make way (ledger/cpu.bpf.h) */
	u8 again; /* it idles, has found nothing, and is to look once more */
	u32 section_nr; /* system-call number of the section */
	u32 looks_at; /* which other group it looks at next */
	struct artis_rt1_budget rt1;
	/* written by this CPU at context switches, read by others: the ext task that runs here */
	u64 curr_order __attribute__((aligned(64))); /* its place in the order when it began */
	u32 curr_pid; /* thread id, 0: none */
	u32 curr_rt1; /* RT1+ priority, 0: an NRT task */
	u64 power; /* what the group power_of was told at power_ns, 30 fraction bits (policy/load.h) */
	u64 power_ns;
	u32 power_of;
	u64 passed_ns[ARTIS_NR_QUEUES]; /* since when it passes over a queue; 0: it does not */
	/* written by any CPU */
	struct artis_clock own __attribute__((aligned(64))); /* of tasks that may run here only */
	u64 own_offset; /* a time on it less the same time on the bound clock of the group */
	u32 gone; /* enum artis_gone; the kernel may still call it online */
	u32 core_rt; /* SMT, lowest CPU of a core: CPUs of the core that run an rt/dl task now */
	/* written by this CPU: real-time share, and the rt/dl task seen last, at a tick or its end */
	struct artis_rt_share rt __attribute__((aligned(64)));
	u32 rt_pid;
	u32 rt_policy; /* SCHED_FIFO 1, SCHED_RR 2, SCHED_DEADLINE 6 */
	char rt_comm[16];
	u64 loose_ns; /* RT CPU: time in real-time tasks that may run on NRT CPUs, too */
	u64 loose_calls; /* their endangering calls, once such a task has been noted here */
	u64 noted_ns; /* since then: when a real-time task was noted last */
	u32 beneath_pid; /* ext task as ops.stopping left it, in the local queue or held; or 0 */
	u32 held; /* enum artis_held, of that task */
	u64 held_slice_ns; /* what is left of its slice */
	s32 own_queued; /* length of its own queue when last sampled */
	u64 residence_ns; /* RT CPU: time in endangering sections of tasks that could leave */
	u64 residence_max_ns;
	u32 body_cause; /* enum artis_causes of the last body that ended here; or 0 */
	u64 ext_ns; /* time in ext tasks */
	u64 stat[ARTIS_NR_STATS];
	struct artis_hist residence; /* the sections of residence_ns by length */
	struct artis_hist arrival; /* NRT CPU, watched: evictions by time from attempt to run */
	u64 records; /* written; below, lost for lack of room, and over budget */
	u64 records_lost;
	u64 records_over;
	u32 budget_second; /* the second (2^30 ns) of the budget, and what is left of it */
	u32 budget_left;
	u32 took; /* how the next task here came: enum artis_stat + 1; 0: see its own `why` */
} __attribute__((aligned(64)));

/* What a task on a CPU does in the kernel; from CALL on it endangers. */
enum artis_section {
	ARTIS_SECTION_NONE = 0,
	ARTIS_SECTION_SLEEPING = 1, /* a call of the sleeping class */
	ARTIS_SECTION_CALL = 2, /* an endangering call */
	ARTIS_SECTION_FAULT = 3, /* a page fault */
	ARTIS_SECTION_SIGNAL = 4, /* death by a signal, or its frame and handler */
};

/* Records of the ring buffer and of recordings. A record may grow at its end only; its version is
 * incremented when the meaning of earlier fields changes. */
enum artis_record_kind {
	ARTIS_RECORD_TASK = 1, /* totals of one task until now */
	ARTIS_RECORD_EVICTION = 2, /* one eviction, from the attempt to the NRT CPU */
	ARTIS_RECORD_MOVE = 3, /* a task begins to run on another CPU than before */
	ARTIS_RECORD_RUN = 4, /* one run of a task on a CPU */
	/* by the daemon, as JSON (src/userspace/feed) */
	ARTIS_RECORD_BEGIN = 64, /* the machine and the policy; first in any stream */
	ARTIS_RECORD_READING = 65, /* the CPUs; ends an interval */
	ARTIS_RECORD_LOST = 66, /* records that did not reach this stream */
};

#define ARTIS_RECORD_VERSION 4 /* without followers: new numbers of enum artis_stat */

/* Bits of `watching`. */
enum artis_watch {
	ARTIS_WATCH_TASKS = 1, /* totals of each task */
	ARTIS_WATCH_EVENTS = 2, /* evictions and moves, one by one */
	ARTIS_WATCH_RUNS = 4, /* runs, one by one */
};

struct artis_record {
	u16 kind; /* enum artis_record_kind */
	u16 version;
	u32 size; /* of the whole record, bytes */
	u64 time_ns; /* when it was written, the scheduler's clock */
};

struct artis_task_record {
	struct artis_record head;
	u32 pid;
	u32 tgid;
	char comm[16];
	u64 start_ns; /* since boot; tells apart tasks that had the same id */
	u64 exec_ns; /* p->se.sum_exec_runtime */
	u32 policy; /* SCHED_*, see sched(7) */
	s32 prio; /* effective, as in the kernel: below 0 dl, below 100 rt, else 120 + nice */
	s32 normal_prio; /* without boosts, the same unit */
	s32 nice;
	s32 cpu; /* where it runs or ran last */
	u8 kernel; /* a kernel thread, or a thread that a process lends to the kernel */
	u8 exited; /* this is its last record */
	u8 runnable; /* it runs, or waits for a CPU */
	u8 calm; /* it is calm now */
	u8 movable; /* its affinity holds an NRT CPU; below, an RT CPU */
	u8 rt_allowed;
	u8 section; /* enum artis_section while it did not run */
	u8 rt1; /* RT1+ priority, 0: none */
	u32 section_nr; /* system-call number of the section */
	u32 nr_cpus_allowed;
	u32 weight; /* 100: nice 0 */
	struct artis_history history;
	struct artis_task_stats stats;
};

struct artis_event_record { /* an eviction, a move, or a run; it ends at head.time_ns */
	struct artis_record head;
	u32 pid;
	u32 what; /* EVICTION: enum artis_causes; MOVE: enum artis_stat, ARTIS_NR_STATS: kernel */
	u16 from;
	u16 to;
	u32 rt; /* RUN: of a real-time task */
	char comm[16];
	u64 begin_ns; /* EVICTION: attempt; MOVE: when it began to wait; RUN: when it began */
	u64 left_ns; /* EVICTION: when it left the RT CPU */
};

/* Events by which the daemon classifies tasks, in a ring buffer that no statistics can fill. */
enum artis_news_kind {
	/* bits of `news_wanted` */
	ARTIS_NEWS_FORK = 1, /* new; inherits the class of its parent unless told otherwise */
	ARTIS_NEWS_FORK_RT = 2, /* new, and of a real-time class */
	ARTIS_NEWS_EXEC = 4,
	ARTIS_NEWS_NAME = 8, /* it gets another name */
	ARTIS_NEWS_CGROUP = 16, /* it, or its whole process, has moved to another cgroup */
	ARTIS_NEWS_TO_RT = 32, /* it has become SCHED_FIFO, SCHED_RR or SCHED_DEADLINE */
	ARTIS_NEWS_FROM_RT = 64, /* it has come back to the ext class */
	ARTIS_NEWS_AFFINITY = 128, /* the affinity of an RT1+ or real-time task has changed */
	ARTIS_NEWS_POLICY = 256, /* a call has set the policy of such a task */
};

struct artis_news {
	u32 pid;
	u32 tgid;
	u32 kind; /* one of enum artis_news_kind */
	u32 all_threads; /* CGROUP: all threads of the process are meant */
	char comm[16]; /* NAME: the new name */
	s32 policy; /* POLICY: what the call asked for; -1: the policy that it had */
	u32 priority;
	s32 nice;
	u32 reset_on_fork;
};

/* What the daemon changes of tasks outside the scheduler (docs/adoption.md). */
enum artis_change_limits {
	ARTIS_CHANGE_VERSION = 2, /* incremented when a struct here changes: the maps are pinned */
	ARTIS_MAX_CHANGES = 16384, /* records at most; 3.5 MiB of memory */
	ARTIS_CPU_WORDS = ARTIS_MAX_CPUS / 64,
};

enum artis_change_kind {
	ARTIS_CHANGE_ADOPTED = 1, /* the daemon took its real-time policy away */
	ARTIS_CHANGE_CONFINED = 2, /* the daemon bound it to fewer CPUs */
};

struct artis_change {
	u32 tid; /* thread id */
	u32 kind; /* enum artis_change_kind */
	u64 start_ticks; /* start of the task, clock ticks since boot, as in /proc/PID/stat */
	u32 policy; /* ADOPTED: SCHED_FIFO or SCHED_RR, its priority, and SCHED_RESET_ON_FORK */
	u32 priority;
	u32 reset_on_fork;
	u32 nr_to; /* CONFINED: number of CPUs it is bound to; below, those allowed before */
	u64 from[ARTIS_CPU_WORDS]; /* bit n is CPU n */
};

struct artis_keeper { /* the only element of its map */
	u32 version; /* ARTIS_CHANGE_VERSION of the daemon that made the maps */
	u32 tgid; /* process whose calls change no record; 0: it has ended */
	u32 lost; /* children without a record because the map was full */
	u32 pad;
};

struct artis_aim { /* the task that the keeper's next call means; the only element of its map */
	u32 tid;
	u32 pad;
	u64 start_ticks; /* as in struct artis_change */
};
