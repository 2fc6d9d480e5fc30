/* SPDX-License-Identifier: GPL-2.0-only */
/* The auditor's rules of waiting: a CPU is idle beside a task that waits, a task stands still. */
#ifndef ARTIS_AUDITOR_WAITS_H
#define ARTIS_AUDITOR_WAITS_H

#define ON_RQ_QUEUED_ 1
#define DEFAULT_WEIGHT_ 100

/* what makes a finding, see src/auditor.rs */
const volatile u32 idle_looks = 1;
const volatile u32 standstill_looks = 1;
const volatile u64 computes_ns;

/* A task that waits. */
struct wait {
	/* its context switches so far: equal as long as it does not run */
	u64 switches;
	/* when it began to exist: ids are used again */
	u64 start_ns;
	u64 mask;
	u64 since_ns;
	/* of the wait beside an idle CPU */
	u64 beside_ns;
	u64 beside_switches;
	u32 beside_cpu;
	u32 era;
	/* bits of enum aud_rule */
	u32 told;
	u32 pad;
	u32 served[AUD_CPUS];
	u32 beside_looks[AUD_CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AUD_WAITS);
	__type(key, u32);
	__type(value, struct wait);
} waits SEC(".maps");

/* The last time that a task had to leave RT CPUs, in its own run time. */
struct entry {
	u32 pid;
	u32 pad;
	u64 exec_ns;
};

struct entry entries[AUD_ENTRIES];

static void entered(void)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct entry *e = &entries[p->pid & (AUD_ENTRIES - 1)];

	e->exec_ns = p->se.sum_exec_runtime;
	e->pid = p->pid;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(aud_entered)
{
	entered();
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(aud_faulted)
{
	entered();
	return 0;
}

/* A death, or a frame: it has to leave RT CPUs for that, too. */
SEC("tp_btf/signal_deliver")
int BPF_PROG(aud_signalled)
{
	entered();
	return 0;
}

static bool has_entered_since(u32 pid, u64 exec_ns)
{
	struct entry *e = &entries[pid & (AUD_ENTRIES - 1)];

	return e->pid == pid && (s64)(e->exec_ns - exec_ns) > 0;
}

/* Has it computed for so long that every rule of prediction has it compute on? */
static bool computes(struct task_struct *p, u32 pid)
{
	struct entry *e = &entries[pid & (AUD_ENTRIES - 1)];

	return e->pid == pid &&
	       (s64)(BPF_CORE_READ(p, se.sum_exec_runtime) - e->exec_ns) > (s64)computes_ns &&
	       inside_of(pid) < 0;
}

static u64 switches_of(u32 cpu)
{
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq ? rq->nr_switches : 0;
}

/*
 * Global functions, from here on where one is not static: the verifier looks at each once, and not
 * at each way through all of them (308,000 instructions on 7.0, which took 9 s of every scenario).
 * They take a task's address as a number, since it is only read about.
 */

/* An idle CPU that must take the task; AUD_CPUS: none. */
__noinline u32 idle_cpu(u64 task, u32 pid, u64 mask)
{
	struct task_struct *p = (void *)task;
	bool rt_too = !(mask & nrt_mask());
	u32 cpu;

	if (!rt_too && !(BPF_CORE_READ(p, flags) & (PF_KTHREAD_ | PF_EXITING_)))
		rt_too = computes(p, pid);
	for (cpu = 0; cpu < AUD_CPUS; cpu++) {
		if (!(mask >> cpu & 1) || (on_rt(cpu) && !rt_too) || cpus[cpu].idle < 2)
			continue;
		if (switches_of(cpu) == cpus[cpu].switches)
			return cpu;
	}
	return AUD_CPUS;
}

__noinline u32 least_looks(struct wait *w)
{
	u32 cpu, least = ~0U;

	if (!w)
		return 0;
	for (cpu = 0; cpu < AUD_CPUS; cpu++)
		if (online_mask >> cpu & 1 && cpus[cpu].looks - w->beside_looks[cpu] < least)
			least = cpus[cpu].looks - w->beside_looks[cpu];
	return least;
}

/* One wait is one finding, however often it is looked at. */
static __always_inline void judge(struct task_struct *p, u32 pid, u32 cpu, struct wait *w, u32 rule,
				  u32 looks, u32 bound, u64 ns)
{
	struct aud_most *m = &most[rule];

	if (looks > m->looks) {
		m->looks = looks;
		m->pid = pid;
		m->ns = ns;
	}
	if (looks < bound)
		return;
	found(p, pid, rule, cpu, w->mask, inside_of(pid), ns, !(w->told >> rule & 1));
	w->told |= 1 << rule;
}

/* Rule 1: it waits, and an idle CPU lets it wait, for so many looks of every CPU. */
__noinline int beside_idle(u64 task, u32 pid, struct wait *w, u64 now_ns)
{
	u32 cpu, rule, i;

	if (!w)
		return 0;
	cpu = w->beside_cpu;
	if (cpu >= AUD_CPUS || cpus[cpu].idle < 2 || switches_of(cpu) != w->beside_switches ||
	    idle_cpu(task, pid, w->mask & 1ULL << cpu) != cpu) {
		w->beside_cpu = cpu = idle_cpu(task, pid, w->mask);
		if (cpu >= AUD_CPUS)
			return 0;
		w->beside_switches = switches_of(cpu);
		w->beside_ns = now_ns;
		for (i = 0; i < AUD_CPUS; i++)
			w->beside_looks[i] = cpus[i].looks;
		return 0;
	}
	rule = on_rt(cpu) ? AUD_IDLE_RT : AUD_IDLE;
	judge((void *)task, pid, cpu, w, rule, least_looks(w), idle_looks, now_ns - w->beside_ns);
	return 0;
}

/* Rule 2: a CPU that it may use has served others than real-time tasks, or none, for so long. */
__noinline int stands_still(u64 task, u32 pid, u32 at, struct wait *w, u64 now_ns)
{
	struct task_struct *p = (void *)task;
	u32 weight = BPF_CORE_READ(p, scx.weight), looks = 0, cpu;
	u64 mask;

	if (!w)
		return 0;
	mask = w->mask & nrt_mask() ? w->mask & nrt_mask() : w->mask;
	for (cpu = 0; cpu < AUD_CPUS; cpu++)
		if (mask >> cpu & 1 && cpus[cpu].served - w->served[cpu] > looks)
			looks = cpus[cpu].served - w->served[cpu];
	/* what weighs less waits longer */
	if (weight < DEFAULT_WEIGHT_)
		looks = looks * weight / DEFAULT_WEIGHT_;
	judge(p, pid, at, w, AUD_STANDSTILL, looks, standstill_looks, now_ns - w->since_ns);
	return 0;
}

__noinline int waits_on(u64 task, u32 at, u64 now_ns)
{
	struct task_struct *p = (void *)task;
	u64 switches = BPF_CORE_READ(p, nvcsw) + BPF_CORE_READ(p, nivcsw);
	u64 mask = BPF_CORE_READ(p, cpus_ptr, bits[0]) & online_mask;
	u64 start_ns = BPF_CORE_READ(p, start_time);
	u32 pid = BPF_CORE_READ(p, pid), i;
	struct wait first = {}, *w;

	/* read without a lock: it may be about to run, or be gone */
	if (BPF_CORE_READ(p, on_cpu) || BPF_CORE_READ(p, on_rq) != ON_RQ_QUEUED_ ||
	    BPF_CORE_READ(p, thread_info.cpu) != at)
		return 0;
	if (BPF_CORE_READ(p, migration_disabled))
		mask = 1ULL << (at & 63);
	w = bpf_map_lookup_elem(&waits, &pid);
	if (w && w->switches == switches && w->start_ns == start_ns && w->mask == mask &&
	    w->era == era) {
		beside_idle(task, pid, w, now_ns);
		stands_still(task, pid, at, w, now_ns);
		return 0;
	}
	first.switches = switches;
	first.start_ns = start_ns;
	first.mask = mask;
	first.since_ns = now_ns;
	first.beside_cpu = AUD_CPUS;
	first.era = era;
	for (i = 0; i < AUD_CPUS; i++)
		first.served[i] = cpus[i].served;
	bpf_map_update_elem(&waits, &pid, &first, BPF_ANY);
	return 0;
}

struct walk {
	struct list_head *head;
	u64 at; /* an address that is read about, too */
	u64 now_ns;
	u32 cpu;
};

static long step(u64 i, struct walk *walk)
{
	struct list_head *node = (void *)walk->at;

	if (!node || node == walk->head)
		return 1;
	waits_on(walk->at - bpf_core_field_offset(struct task_struct, scx.runnable_node), walk->cpu,
		 walk->now_ns);
	walk->at = (u64)BPF_CORE_READ(node, next);
	return 0;
}

/* All tasks that wait: the kernel's list has those that sched_ext has and that do not run. */
static void walk_all(u64 now_ns)
{
	u32 cpu;

	for (cpu = 0; cpu < AUD_CPUS; cpu++) {
		struct walk walk = { .cpu = cpu, .now_ns = now_ns };
		struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

		if (!rq)
			return;
		walk.head = &rq->scx.runnable_list;
		walk.at = (u64)BPF_CORE_READ(rq, scx.runnable_list.next);
		if (walk.at != (u64)walk.head)
			bpf_loop(AUD_WALK, step, &walk, 0);
	}
}

static bool any_idle(void)
{
	u32 cpu;

	for (cpu = 0; cpu < AUD_CPUS; cpu++)
		if (cpus[cpu].idle > 1)
			return true;
	return false;
}

#endif /* ARTIS_AUDITOR_WAITS_H */
