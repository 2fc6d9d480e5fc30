/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who comes to RT CPUs, for how long, and how do they leave? Judges prediction
 * and hand-over by what the kernel does; shares nothing with src/bpf.
 *
 * The entry is hooked by the classic tracepoint as the scheduler does it: its
 * programs run one after another before any of them is preempted, and none of
 * them makes the task look as if its migration was disabled.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "moves.h"
#include "tasks.h"

char _license[] SEC("license") = "GPL";

/* what a program on a classic tracepoint returns: 0 would take the event away from perf */
#define OTHERS_TOO 1

const volatile u64 rt_mask;
const volatile u64 nrt_mask;
/* lollobrigida's tasks are traced: GROUP.NUMBER is their name */
const volatile u32 tracing;

/* off at first: the probes stay attached */
u32 counting;
/* tasks that were moved to an RT CPU */
u64 moves;
/* events that found no room in the ring */
u64 lost;
struct times seen[MOVES_NR];
/* since when a CPU idles, puts an evicted task, handles a kick; 0: it does not */
u64 idle_since_ns[TIMES_MAX_CPUS];
u64 put_since_ns[TIMES_MAX_CPUS];
u64 kick_since_ns[TIMES_MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} events SEC(".maps");

enum trip_where { TRIP_NOT_SEEN, TRIP_ON_NRT, TRIP_ON_RT };
enum trip_state { TRIP_OUTSIDE, TRIP_CALL, TRIP_FAULT, TRIP_EVICTED };

struct trip {
	/* enum trip_where, enum trip_state */
	u32 where;
	u32 state;
	/* when it entered the kernel on an RT CPU */
	u64 entered_ns;
	/* own run time when it came to an RT CPU; moved: since then it has been on RT CPUs */
	u64 came_run_ns;
	u32 moved;
	/* its own run time when it was put on the CPU, and when that was */
	u64 begun_run_ns;
	u64 begun_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct trip);
} trips SEC(".maps");

static bool on_rt(u32 cpu)
{
	return cpu < TIMES_MAX_CPUS && (rt_mask >> cpu & 1);
}

static void note(u32 what, u64 ns)
{
	if (what < MOVES_NR)
		times_add(&seen[what], ns);
}

static struct trip *trip_of(struct task_struct *p, u64 flags)
{
	return bpf_task_storage_get(&trips, p, NULL, flags);
}

static bool is_traced(struct task_struct *p)
{
	u32 i;

	if (!tracing || (p->flags & PF_KTHREAD_))
		return false;
	for (i = 0; i < sizeof(p->comm); i++) {
		if (p->comm[i] == '.')
			return true;
	}
	return false;
}

static void trace(struct task_struct *p, u64 now_ns, u64 run_ns, u32 what, u64 nr)
{
	struct moves_event e = { .now_ns = now_ns, .run_ns = run_ns, .tid = p->pid };

	e.what = what;
	e.nr = nr;
	if (bpf_ringbuf_output(&events, &e, sizeof(e), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&lost, 1);
}

static void entered(u32 state, u64 nr)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u64 now_ns = bpf_ktime_get_ns();
	struct trip *t;

	if (!counting)
		return;
	if (is_traced(p)) {
		t = trip_of(p, 0);
		/* the kernel's own sum is as of the last tick */
		if (t && t->begun_ns)
			trace(p, now_ns, t->begun_run_ns + (now_ns - t->begun_ns), MOVES_ENTERS,
			      nr);
	}
	if (!on_rt(bpf_get_smp_processor_id()) || !may_leave(p, nrt_mask))
		return;
	t = trip_of(p, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return;
	t->state = state;
	t->entered_ns = now_ns;
}

SEC("tp/raw_syscalls/sys_enter")
int moves_call(struct trace_event_raw_sys_enter *ctx)
{
	entered(TRIP_CALL, ctx->id);
	return OTHERS_TOO;
}

SEC("tp/exceptions/page_fault_user")
int moves_fault(void *ctx)
{
	entered(TRIP_FAULT, MOVES_NR_FAULT);
	return OTHERS_TOO;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(moves_returned, struct pt_regs *regs, long ret)
{
	struct trip *t;

	if (!counting || !on_rt(bpf_get_smp_processor_id()))
		return 0;
	t = trip_of(bpf_get_current_task_btf(), 0);
	if (!t || t->state != TRIP_CALL)
		return 0;
	note(MOVES_BODY, bpf_ktime_get_ns() - t->entered_ns);
	t->state = TRIP_OUTSIDE;
	return 0;
}

static void leaves_rt(struct task_struct *p, struct trip *t, u64 now_ns, bool runnable)
{
	bool inside = t->state == TRIP_CALL || t->state == TRIP_FAULT;

	t->state = TRIP_OUTSIDE;
	if (!inside || !runnable)
		return;
	note(MOVES_RT_SIDE, now_ns - t->entered_ns);
	t->state = TRIP_EVICTED;
	if (t->moved)
		note(MOVES_STAY, p->se.sum_exec_runtime - t->came_run_ns);
	t->moved = 0;
}

static void comes(struct task_struct *p, struct trip *t, u64 now_ns, bool rt, bool was_idle)
{
	if (!rt) {
		if (t->state == TRIP_EVICTED)
			note(was_idle ? MOVES_TO_IDLE : MOVES_TO_BUSY, now_ns - t->entered_ns);
		else if (t->moved)
			note(MOVES_LEFT, p->se.sum_exec_runtime - t->came_run_ns);
		t->moved = 0;
	} else if (t->where == TRIP_ON_NRT) {
		__sync_fetch_and_add(&moves, 1);
		t->moved = 1;
		t->came_run_ns = p->se.sum_exec_runtime;
	}
	t->state = TRIP_OUTSIDE;
	t->where = rt ? TRIP_ON_RT : TRIP_ON_NRT;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(moves_switched, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 cpu = bpf_get_smp_processor_id();
	bool rt = on_rt(cpu);
	struct trip *t;
	u64 now_ns;

	if (!counting || cpu >= TIMES_MAX_CPUS)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (rt && idle_since_ns[cpu])
		note(MOVES_RT_IDLE, now_ns - idle_since_ns[cpu]);
	idle_since_ns[cpu] = rt && !next->pid ? now_ns : 0;
	if (is_traced(prev))
		trace(prev, now_ns, prev->se.sum_exec_runtime,
		      preempt || !prev_state ? MOVES_WAITS : MOVES_SLEEPS, 0);
	if (rt && prev->pid) {
		t = trip_of(prev, 0);
		if (t && t->state != TRIP_OUTSIDE)
			leaves_rt(prev, t, now_ns, preempt || !prev_state);
	}
	if (next->pid && may_leave(next, nrt_mask)) {
		t = trip_of(next, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!t)
			return 0;
		t->begun_run_ns = next->se.sum_exec_runtime;
		t->begun_ns = now_ns;
		if (is_traced(next))
			trace(next, now_ns, t->begun_run_ns, MOVES_BEGINS, 0);
		comes(next, t, now_ns, rt, !prev->pid);
	}
	return 0;
}

/* Both with interrupts off: one at a time on each CPU. */
SEC("fentry/put_prev_task_scx")
int BPF_PROG(moves_put, struct rq *rq, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct trip *t;

	if (!counting || !on_rt(cpu))
		return 0;
	t = trip_of(p, 0);
	put_since_ns[cpu] = t && t->state != TRIP_OUTSIDE && !p->__state ? bpf_ktime_get_ns() : 0;
	return 0;
}

SEC("fexit/put_prev_task_scx")
int BPF_PROG(moves_put_end)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 now_ns = bpf_ktime_get_ns();

	if (!counting || !on_rt(cpu) || !put_since_ns[cpu])
		return 0;
	note(MOVES_PUT, now_ns - put_since_ns[cpu]);
	put_since_ns[cpu] = 0;
	return 0;
}

SEC("fentry/kick_cpus_irq_workfn")
int BPF_PROG(moves_kick)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (counting && on_rt(cpu))
		kick_since_ns[cpu] = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit/kick_cpus_irq_workfn")
int BPF_PROG(moves_kick_end)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 now_ns = bpf_ktime_get_ns();

	if (!counting || !on_rt(cpu) || !kick_since_ns[cpu])
		return 0;
	note(MOVES_KICK, now_ns - kick_since_ns[cpu]);
	kick_since_ns[cpu] = 0;
	return 0;
}
