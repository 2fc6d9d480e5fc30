/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How are some tasks spread over the CPUs, how often do they go to RT CPUs, and
 * how soon do they have to leave? For the acceptance of the balancer: all is
 * taken from the kernel's context switches, nothing from the scheduler.
 *
 * A move is a switch-in on an RT CPU of a task that ran on an NRT CPU before.
 * An eviction is a switch-out on an RT CPU of a task that is runnable and inside
 * a system call or a fault, if it goes on on an NRT CPU. It is wasted if the
 * task ran for less than wasted_ns on RT CPUs since it moved there.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "observer.h"
#include "tasks.h"

char _license[] SEC("license") = "GPL";

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

const volatile u64 rt_mask;
const volatile u64 wasted_ns;

struct obs_cpu_time cpu_times[OBS_FEW_CPUS];
struct obs_watched watched[OBS_TASKS];
/* what occ_sample saw */
struct obs_stand stands[OBS_TASKS];

/* pid to slot of watched[] */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_TASKS);
	__type(key, u32);
	__type(value, u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_EVICTIONS);
	__type(key, struct obs_eviction);
	__type(value, u64);
} evictions SEC(".maps");

static struct obs_watched *find(u32 pid)
{
	u32 *slot = bpf_map_lookup_elem(&slots, &pid);

	return slot && *slot < OBS_TASKS ? &watched[*slot] : NULL;
}

static bool on_rt(u32 cpu)
{
	return rt_mask >> (cpu & 63) & 1;
}

static u32 runs(struct task_struct *p)
{
	u32 pid = p->pid, *slot;

	if (!pid)
		return OBS_RUNS_IDLE;
	slot = bpf_map_lookup_elem(&slots, &pid);
	if (slot)
		return OBS_RUNS_WATCHED + *slot;
	return p->prio < MAX_RT_PRIO_ ? OBS_RUNS_RT : OBS_RUNS_OTHER;
}

/* Charges the time since the last switch to what ran on this CPU. */
static void charge(struct obs_cpu_time *c, u32 cpu, u64 now_ns)
{
	u64 ns = now_ns - c->since_ns;
	u32 slot = c->runs - OBS_RUNS_WATCHED;

	switch (c->runs) {
	case OBS_RUNS_UNKNOWN:
		return;
	case OBS_RUNS_IDLE:
		c->idle_ns += ns;
		return;
	case OBS_RUNS_RT:
		c->rt_ns += ns;
		return;
	case OBS_RUNS_OTHER:
		c->other_ns += ns;
		return;
	}
	if (slot < OBS_TASKS) {
		watched[slot].run_ns[cpu] += ns;
		watched[slot].stay_ns += ns;
	}
}

static u64 idle_nrt(void)
{
	u64 mask = 0;
	u32 cpu;

	for (cpu = 0; cpu < OBS_FEW_CPUS; cpu++)
		if (cpu_times[cpu].runs == OBS_RUNS_IDLE && !on_rt(cpu))
			mask |= 1ULL << cpu;
	return mask;
}

static bool in_call(struct task_struct *p)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

	return (s64)BPF_CORE_READ(regs, orig_ax) >= 0;
}

static void switched_out(struct obs_watched *w, struct task_struct *p, u32 cpu)
{
	if (!on_rt(cpu) || BPF_CORE_READ(p, __state) || !(w->fault || in_call(p)))
		return;
	w->leaving = 1;
	w->idle_then = idle_nrt();
}

static void count_eviction(struct obs_watched *w, u32 from, u32 to)
{
	struct obs_eviction key = { .from = from, .to = to, .idle = w->idle_then };
	u64 *times = bpf_map_lookup_elem(&evictions, &key), one = 1;

	w->evictions++;
	if (w->stay_ns < wasted_ns)
		w->wasted++;
	if (times)
		__sync_fetch_and_add(times, 1);
	else
		bpf_map_update_elem(&evictions, &key, &one, BPF_NOEXIST);
}

static void switched_in(struct obs_watched *w, u32 cpu)
{
	u32 last = w->last_cpu;

	w->last_cpu = cpu + 1;
	if (last && on_rt(cpu) && !on_rt(last - 1)) {
		w->moves++;
		w->stay_ns = 0;
	} else if (w->leaving && last && !on_rt(cpu)) {
		count_eviction(w, last - 1, cpu);
	}
	w->leaving = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(occ_switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct obs_watched *w;
	struct obs_cpu_time *c;
	u64 now_ns;

	if (cpu >= OBS_FEW_CPUS)
		return 0;
	c = &cpu_times[cpu];
	/*
	 * Odd before the clock is read (a full barrier): a reader that takes the column as it was
	 * reads its own clock before that, so what it adds for the open time is charged here, too.
	 */
	__sync_fetch_and_add(&c->seq, 1);
	now_ns = bpf_ktime_get_ns();
	charge(c, cpu, now_ns);
	c->runs = runs(next);
	c->since_ns = now_ns;
	barrier();
	c->seq++;
	w = find(prev->pid);
	if (w)
		switched_out(w, prev, cpu);
	w = find(next->pid);
	if (w)
		switched_in(w, cpu);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(occ_fault)
{
	struct obs_watched *w = find(bpf_get_current_task_btf()->pid);

	if (w)
		w->fault = 1;
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(occ_fault_end)
{
	struct obs_watched *w = find(bpf_get_current_task_btf()->pid);

	if (w)
		w->fault = 0;
	return 0;
}

static void look(struct obs_watched *w, struct obs_stand *s)
{
	struct task_struct *p;

	s->what = OBS_ABSENT;
	s->queue = 0;
	p = w->pid ? bpf_task_from_pid(w->pid) : NULL;
	if (!p)
		return;
	s->cpu = BPF_CORE_READ(p, thread_info.cpu);
	if (BPF_CORE_READ(p, on_cpu)) {
		s->what = OBS_ON_CPU;
	} else if (BPF_CORE_READ(p, on_rq)) {
		s->what = OBS_WAITS;
		s->queue = BPF_CORE_READ(p, scx.dsq, id);
	} else {
		s->what = OBS_SLEEPS;
	}
	bpf_task_release(p);
}

/* Run by artis-guest: where does each watched task stand now? */
SEC("syscall")
int occ_sample(void *ctx)
{
	u32 slot;

	for (slot = 0; slot < OBS_TASKS; slot++)
		look(&watched[slot], &stands[slot]);
	return 0;
}
