/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The auditor: looks at the run queues while a scenario runs, whatever the scenario is about.
 * Kernel facts only: the run queues' lists of runnable tasks, context switches, tracepoints.
 *
 * look() runs on each CPU, from a timer of its own. A virtual CPU that its host does not run makes
 * no looks, so waits are told in looks of the CPUs, not in time.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "auditor.h"
#include "tasks.h"

char _license[] SEC("license") = "GPL";

#define FAULT_FLAG_USER_ 0x40 /* include/linux/mm_types.h */

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

const volatile char ops_prefix[16];
/* nothing is judged for so long after the begin of an era */
const volatile u64 grace_ns;

/* 0: unknown, nothing is judged; may change at any time */
u64 rt_mask;
u64 online_mask;
/* moves with all that begins a new era: nothing that was seen before counts */
u32 era;
/* when it moved last, ns of CLOCK_MONOTONIC */
u64 era_ns;
/* the scheduler under test is in charge */
u32 enabled;
/* the kernel runs tasks without asking it */
u32 bypass;

extern const struct rq runqueues __ksym;

struct aud_cpu cpus[AUD_CPUS];
struct aud_most most[AUD_RULES];
u32 walking;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AUD_FINDINGS);
	__type(key, struct aud_key);
	__type(value, struct aud_finding);
} findings SEC(".maps");

static u64 nrt_mask(void)
{
	return online_mask & ~rt_mask;
}

static bool on_rt(u32 cpu)
{
	return rt_mask >> (cpu & 63) & 1;
}

static int inside(struct task_struct *p)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

	return (int)BPF_CORE_READ(regs, orig_ax);
}

/* The same of a task that was only read about; 0 if it is gone. */
static int inside_of(u32 pid)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	int call;

	if (!p)
		return 0;
	call = inside(p);
	bpf_task_release(p);
	return call;
}

static __always_inline void found(struct task_struct *p, u32 pid, u32 rule, u32 cpu, u64 mask,
				  int call, u64 ns, u32 times)
{
	struct aud_finding first = { .times = times, .longest_ns = ns }, *f;
	struct aud_key key = { .rule = rule };
	struct rq *rq;

	bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), p->comm);
	f = bpf_map_lookup_elem(&findings, &key);
	if (!f) {
		bpf_map_update_elem(&findings, &key, &first, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&findings, &key);
		if (!f)
			return;
	} else {
		__sync_fetch_and_add(&f->times, times);
	}
	if (ns < f->longest_ns)
		return;
	f->longest_ns = ns;
	f->mask = mask;
	f->pid = pid;
	f->cpu = cpu;
	f->call = call;
	if (!ns)
		return; /* not about a wait */
	f->dsq = BPF_CORE_READ(p, scx.dsq, id);
	f->at = BPF_CORE_READ(p, thread_info.cpu);
	rq = bpf_per_cpu_ptr(&runqueues, f->at);
	if (rq)
		BPF_CORE_READ_STR_INTO(&f->curr, rq, curr, comm);
}

/* --- which scheduler is in charge, and since when --- */

static void new_era(void)
{
	era_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&era, 1);
}

static bool settled(void)
{
	return enabled && !bypass && rt_mask && bpf_ktime_get_ns() - era_ns > grace_ns;
}

static bool is_ours(struct sched_ext_ops *ops)
{
	char name[16] = {};
	u32 i;

	bpf_probe_read_kernel(name, sizeof(name), ops->name);
	for (i = 0; i < sizeof(name) && ops_prefix[i]; i++)
		if (name[i] != ops_prefix[i])
			return false;
	return true;
}

/* It returns when all tasks are the scheduler's. */
SEC("fexit/bpf_scx_reg")
int BPF_PROG(aud_enabled, void *kdata, struct bpf_link *link, int ret)
{
	if (ret || !is_ours(kdata))
		return 0;
	new_era();
	enabled = 1;
	return 0;
}

/* Its own program takes it out, */
SEC("fentry/bpf_scx_unreg")
int BPF_PROG(aud_disabled)
{
	enabled = 0;
	return 0;
}

/* or the kernel does: scx_ops_disable_workfn() in 6.12, scx_disable_workfn() since. */
SEC("kprobe.multi/scx_*disable_workfn")
int aud_ejected(struct pt_regs *ctx)
{
	enabled = 0;
	return 0;
}

/* When the machine goes to sleep and wakes up, and when a scheduler begins and ends. The argument in
 * question is the first, in newer kernels behind the scheduler. */
SEC("kprobe.multi/scx_*bypass")
int aud_bypass(struct pt_regs *ctx)
{
	u64 first = PT_REGS_PARM1(ctx);
	bool on = ((s64)first < 0 ? PT_REGS_PARM2(ctx) : first) & 1;

	if (on)
		__sync_fetch_and_add(&bypass, 1);
	else if (bypass) /* else it began before this program was attached */
		__sync_fetch_and_sub(&bypass, 1);
	new_era();
	return 0;
}

SEC("tp_btf/cpuhp_enter")
int BPF_PROG(aud_hotplug)
{
	new_era();
	return 0;
}

SEC("tp_btf/cpuhp_exit")
int BPF_PROG(aud_hotplug_end)
{
	new_era();
	return 0;
}

#include "auditor_waits.h"

SEC("perf_event")
int look(struct bpf_perf_event_data *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();
	struct aud_cpu *c;
	u64 switches;

	if (cpu >= AUD_CPUS || !settled())
		return 0;
	c = &cpus[cpu];
	switches = switches_of(cpu);
	c->idle = p->pid ? 0 : switches == c->switches ? c->idle + 1 : 1;
	c->switches = switches;
	c->served += !p->pid || p->prio >= MAX_RT_PRIO_;
	c->looks++;
	/* without an idle CPU only long waits are of interest */
	if ((!any_idle() && c->looks % 8) || __sync_lock_test_and_set(&walking, 1))
		return 0;
	walk_all(bpf_ktime_get_ns());
	__sync_lock_test_and_set(&walking, 0);
	return 0;
}

/* --- kernel work on RT CPUs --- */

/* Tasks that cease to be real time or bound to RT CPUs, and their run time afterwards. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} turning SEC(".maps");

#define NOT_YET (~0ULL)

struct change {
	u64 function;
	u64 by;
};

/* Changes of tasks that go on, and the address of the task. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct change);
	__type(value, u64);
} changes SEC(".maps");

/* The functions that change a task of their first argument: auditor.rs names them. */
SEC("kprobe.multi")
int aud_changes(struct pt_regs *ctx)
{
	struct change change = { bpf_get_func_ip(ctx), bpf_get_current_pid_tgid() };
	u64 task = PT_REGS_PARM1(ctx), exec_ns = NOT_YET;
	struct task_struct *p = (void *)task;
	u32 pid = BPF_CORE_READ(p, pid);

	if (may_leave(p, nrt_mask()))
		return 0;
	bpf_map_update_elem(&turning, &pid, &exec_ns, BPF_ANY);
	bpf_map_update_elem(&changes, &change, &task, BPF_ANY);
	return 0;
}

SEC("kretprobe.multi")
int aud_changed(struct pt_regs *ctx)
{
	struct change change = { bpf_get_func_ip(ctx), bpf_get_current_pid_tgid() };
	u64 *task = bpf_map_lookup_elem(&changes, &change), *exec_ns;
	struct task_struct *p;
	u32 pid;

	if (!task)
		return 0;
	p = (void *)*task;
	pid = BPF_CORE_READ(p, pid);
	exec_ns = bpf_map_lookup_elem(&turning, &pid);
	if (exec_ns)
		*exec_ns = BPF_CORE_READ(p, se.sum_exec_runtime);
	bpf_map_delete_elem(&changes, &change);
	return 0;
}

/* Has it not entered the kernel since? What it has begun before, it may end. */
static bool is_turning(struct task_struct *p)
{
	u32 pid = p->pid;
	u64 *exec_ns = bpf_map_lookup_elem(&turning, &pid);

	return exec_ns && (*exec_ns == NOT_YET || !has_entered_since(pid, *exec_ns));
}

/* Rule 3: the current task, if it may be moved and must be kept off this CPU. */
static void works(u32 rule, int call)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();

	/* not by migration_disabled: that is what runs this program, and none of the places has it */
	if (!on_rt(cpu) || !settled() || !may_leave(p, nrt_mask()) || is_turning(p))
		return;
	found(p, p->pid, rule, cpu, BPF_CORE_READ(p, cpus_ptr, bits[0]), call, 0, 1);
}

/* In kernel mode, for an address of user mode. Not at the entry of the fault: the scheduler is asked
 * to take the task away there. */
SEC("fentry/handle_mm_fault")
int BPF_PROG(aud_kernel_fault, struct vm_area_struct *vma, unsigned long address,
	     unsigned int flags)
{
	if (!(flags & FAULT_FLAG_USER_))
		works(AUD_FAULT, inside(bpf_get_current_task_btf()));
	return 0;
}

SEC("fentry/do_exit")
int BPF_PROG(aud_exit)
{
	works(AUD_EXIT, inside(bpf_get_current_task_btf()));
	return 0;
}

SEC("fentry/exit_mmap")
int BPF_PROG(aud_exit_mmap)
{
	works(AUD_EXIT_MMAP, inside(bpf_get_current_task_btf()));
	return 0;
}

/* Not when the signal is delivered: the scheduler is asked to take the task away there. */
SEC("fentry/x64_setup_rt_frame")
int BPF_PROG(aud_signal, struct ksignal *ksig, struct pt_regs *regs)
{
	works(AUD_SIGNAL, ksig->sig);
	return 0;
}
