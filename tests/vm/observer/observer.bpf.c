/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An observer that is not the scheduler: where do the bodies of system calls
 * and the page faults of user mode really run? It shares nothing with
 * src/bpf: other hooks (function entry instead of the tracepoints), its own
 * judgement of who may migrate.
 *
 * A body "began" when __x64_sys_NAME is entered. From then until the return
 * to user mode the task is inside; a fault lasts as long as handle_mm_fault().
 * A task inside an endangering body or a fault that is switched in on an RT
 * CPU counts as resumed there.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "observer.h"
#include "tasks.h"
#include "judge.h"

char _license[] SEC("license") = "GPL";

#define FAULT_FLAG_TRIED_ (1 << 5)
#define FAULT_FLAG_USER_ (1 << 6)

/* may change while it is attached */
u64 rt_mask;
u64 nrt_mask;

struct obs_cpu seen[OBS_MAX_CPUS];
/* off at first: the probes stay attached */
u32 counting;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBS_OFFENDERS);
	__type(key, struct obs_offender);
	__type(value, struct obs_offence);
} offenders SEC(".maps");

/* handle_mm_fault(), known from the first fault on */
u64 fault_handler;

/* the bytes at its begin from which trampolines are called, ENDBR and CALL; and more than it has */
#define PATCHED_BYTES 9
#define FUNCTION_BYTES_MAX 16384

/* the kernel stack of the task that is switched in, by CPU: sched_switch is not preempted */
u64 stacks[OBS_MAX_CPUS][OBS_FRAMES];

struct inside {
	/* the endangering call that the task is inside: number + 1, 0 outside */
	u32 call;
	/* its priority was changed on behalf of another task meanwhile */
	u32 boosted;
	/* the last fault that it handled was one of user mode; faults that the kernel had counted before */
	u32 fault;
	u64 faults;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct inside);
} insides SEC(".maps");

enum who { WHO_SUBJECT, WHO_PINNED, WHO_REALTIME, WHO_KERNEL };

/* Only subjects may be moved and must be kept off the RT CPUs. */
static enum who who_is(struct task_struct *p)
{
	if (p->flags & PF_KTHREAD_)
		return WHO_KERNEL;
	if (p->prio < MAX_RT_PRIO_)
		return WHO_REALTIME;
	if (!(BPF_CORE_READ(p, cpus_ptr, bits[0]) & nrt_mask))
		return WHO_PINNED;
	return WHO_SUBJECT;
}

static bool on_rt(u32 cpu)
{
	return cpu < OBS_MAX_CPUS && (rt_mask >> cpu & 1);
}

static void offence(struct task_struct *p, u32 cpu, u32 cause, u32 nr)
{
	struct obs_offender key = { .cause = cause, .nr = nr };
	struct obs_offence first = { .times = 1, .cpu = cpu, .pid = p->pid };
	struct obs_offence *o;

	bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), p->comm);
	o = bpf_map_lookup_elem(&offenders, &key);
	if (!o) {
		bpf_map_update_elem(&offenders, &key, &first, BPF_NOEXIST);
		return;
	}
	__sync_fetch_and_add(&o->times, 1);
	o->cpu = cpu;
	o->pid = p->pid;
}

static void enter_body(struct task_struct *p, u32 nr)
{
	struct inside *in = bpf_task_storage_get(&insides, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (in) {
		in->call = nr + 1;
		in->boosted = 0;
	}
}

SEC("kprobe.multi/__x64_sys_*")
int body(struct pt_regs *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)PT_REGS_PARM1(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();
	struct obs_cpu *c;
	bool bad;
	u32 nr;

	if (!counting || cpu >= OBS_MAX_CPUS)
		return 0;
	c = &seen[cpu];
	nr = BPF_CORE_READ(regs, orig_ax);
	bad = endangers(regs, nr);
	switch (who_is(p)) {
	case WHO_SUBJECT:
		if (!bad) {
			__sync_fetch_and_add(&c->other, 1);
			return 0;
		}
		__sync_fetch_and_add(&c->endangering, 1);
		if (on_rt(cpu))
			offence(p, cpu, OBS_CAUSE_CALL, nr);
		enter_body(p, nr);
		return 0;
	case WHO_PINNED:
		if (bad)
			__sync_fetch_and_add(&c->pinned, 1);
		return 0;
	case WHO_REALTIME:
		if (bad)
			__sync_fetch_and_add(&c->realtime, 1);
		return 0;
	default:
		return 0;
	}
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long ret)
{
	struct inside *in = bpf_task_storage_get(&insides, bpf_get_current_task_btf(), NULL, 0);

	if (in)
		in->call = 0;
	return 0;
}

SEC("tp_btf/sched_pi_setprio")
int BPF_PROG(boost, struct task_struct *p, struct task_struct *pi_task)
{
	struct inside *in = bpf_task_storage_get(&insides, p, NULL, 0);

	if (in)
		in->boosted = 1;
	return 0;
}

/*
 * Is @p inside the call still? leave() is left out where it runs already on that CPU, as it may be
 * preempted from 7.1 on. But the frame of the last entry from user mode tells: an interrupt and a
 * fault have no number of a call there.
 */
static bool inside_call(struct task_struct *p, struct inside *in)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

	if (in->call && (u32)BPF_CORE_READ(regs, orig_ax) != in->call - 1)
		in->call = 0;
	return in->call;
}

/* Counted at the end of each fault: mm_account_fault(), mm/memory.c. */
static u64 faults_of(const struct task_struct *p)
{
	return p->min_flt + p->maj_flt;
}

/* Is this address in handle_mm_fault(), behind what calls a trampoline? */
static bool in_fault_handler(u64 address)
{
	static const char handler[] = "handle_mm_fault";
	char name[sizeof(handler)];

	/* names are looked up for few addresses only */
	if (address - fault_handler <= PATCHED_BYTES ||
	    address - fault_handler > FUNCTION_BYTES_MAX)
		return false;
	BPF_SNPRINTF(name, sizeof(name), "%ps", (void *)address);
	return !bpf_strncmp(name, sizeof(name), handler);
}

/*
 * Is @p, which is switched in on @cpu, inside the fault still? Its kernel stack tells, until the kernel
 * has counted the fault: what is left then is the way back (docs/doors.md). A program at the end of
 * handle_mm_fault() would not tell: the kernel leaves it out where another task was preempted in it on
 * that CPU.
 */
static bool inside_fault(struct task_struct *p, struct inside *in, u32 cpu)
{
	u64 *stack = stacks[cpu];
	long got;
	int i;

	if (!in->fault)
		return false;
	if (faults_of(p) != in->faults)
		goto over;
	got = bpf_get_task_stack(p, stack, sizeof(stacks[0]), 0);
	for (i = 0; i < OBS_FRAMES && i * (long)sizeof(u64) < got; i++)
		if (in_fault_handler(stack[i]))
			return true;
over:
	in->fault = 0;
	return false;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct inside *in;
	bool fault;

	if (!counting || !on_rt(cpu) || cpu >= OBS_MAX_CPUS)
		return 0;
	/* the exempt: they stay where they are, whatever they are inside */
	if ((next->flags & (PF_KTHREAD_ | PF_EXITING_)) || next->migration_disabled)
		return 0;
	in = bpf_task_storage_get(&insides, next, NULL, 0);
	if (!in || who_is(next) != WHO_SUBJECT)
		return 0;
	fault = inside_fault(next, in, cpu);
	if (!inside_call(next, in) && !fault)
		return 0;
	if (fault)
		__sync_fetch_and_add(&seen[cpu].resumed_faults, 1);
	__sync_fetch_and_add(&seen[cpu].resumed, 1);
	offence(next, cpu, in->boosted ? OBS_CAUSE_RESUMED_BOOSTED : OBS_CAUSE_RESUMED,
		in->call ? in->call - 1 : OBS_NR_FAULT);
	return 0;
}

SEC("kprobe.multi/handle_mm_fault")
int fault(struct pt_regs *ctx)
{
	u32 flags = (u32)PT_REGS_PARM3(ctx), cpu = bpf_get_smp_processor_id();
	struct task_struct *p = bpf_get_current_task_btf();
	bool user = flags & FAULT_FLAG_USER_;
	struct inside *in;

	fault_handler = bpf_get_func_ip(ctx);
	if (!counting || cpu >= OBS_MAX_CPUS || who_is(p) != WHO_SUBJECT)
		return 0;
	in = bpf_task_storage_get(&insides, p, NULL, user ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (in) {
		in->fault = user;
		in->faults = faults_of(p);
		in->boosted &= !user;
	}
	if (!user)
		return 0;
	__sync_fetch_and_add(&seen[cpu].faults, 1);
	if (on_rt(cpu))
		offence(p, cpu, flags & FAULT_FLAG_TRIED_ ? OBS_CAUSE_FAULT_AGAIN : OBS_CAUSE_FAULT,
			OBS_NR_FAULT);
	return 0;
}

/*
 * Ground truth, on kernels that have the preemptirq tracepoints (none of
 * Debian's): preemption goes off inside an endangering body on an RT CPU.
 */
SEC("?tp_btf/preempt_disable")
int BPF_PROG(section, unsigned long ip, unsigned long parent_ip)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();
	struct inside *in;

	if (!counting || !on_rt(cpu) || cpu >= OBS_MAX_CPUS)
		return 0;
	if (p->flags & (PF_KTHREAD_ | PF_EXITING_))
		return 0;
	in = bpf_task_storage_get(&insides, p, NULL, 0);
	if (!in || !inside_call(p, in) || who_is(p) != WHO_SUBJECT)
		return 0;
	__sync_fetch_and_add(&seen[cpu].sections, 1);
	offence(p, cpu, OBS_CAUSE_SECTION, in->call - 1);
	return 0;
}
