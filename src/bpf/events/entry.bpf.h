/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel entry and return: the attempt hook.
 *
 * The entry hook runs with preemption off and reschedules on its way out, before
 * the body of the call. To 7.0 every tracepoint does; in 7.2 only a
 * *classic* one, while tp_btf would be preempted inside itself, with migration
 * disabled (kernel.md section 1.3). It touches only this CPU's struct: the state moves to the task
 * when it stops, so no task-storage look-up happens per system call.
 */
#pragma once

/*
 * Set by the daemon's first sample, once the kernel has handed the machine over:
 * while it enables a scheduler it suppresses kicks, so bodies on RT CPUs then
 * are not ours to count.
 */
u32 in_charge;

/* Cause of an eviction from an endangering section. */
static __always_inline u32 artis_cause(u32 section, u64 nr)
{
	if (section == ARTIS_SECTION_FAULT)
		return ARTIS_CAUSE_FAULT;
	return section == ARTIS_SECTION_DEATH ? ARTIS_CAUSE_DEATH : (u32)nr + 1;
}

/*
 * An attempt by the task on this RT CPU: ask for a reschedule of the CPU. The
 * interrupt comes at once; ops.enqueue then finds the section and sends the
 * task to an NRT CPU.
 */
static __always_inline void evict(struct artis_cpu *c, u32 cause)
{
	if (!c->movable) {
		c->stat[ARTIS_STAT_EXEMPT_PINNED]++;
		return;
	}
	if (unlikely(c->section_since_ns))
		body_ended(c);
	if (likely(in_charge))
		c->section_since_ns = scx_bpf_now();
	c->stat[ARTIS_STAT_EVICTION]++;
	c->evict_cause = cause;
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
}

/*
 * What a program on a classic tracepoint returns: 0 would take the event away
 * from perf, so that perf trace and perf stat saw no system call and no fault
 * as long as we are loaded.
 */
#define ARTIS_OTHERS_TOO 1

/* The task on @c enters system call @nr with these arguments. */
static __always_inline void note_call(struct artis_cpu *c, u64 nr, u64 arg0, u64 arg1)
{
	u32 section = section_of_call(bpf_get_current_task_btf(), nr, arg0, arg1);

	/* a call enters from user mode: a fault is over, a death did not come */
	c->door = ARTIS_SECTION_NONE;
	note_section(c, section, nr);
	if (section != ARTIS_SECTION_CALL) {
		/* it has returned from the call before */
		if (unlikely(c->section_since_ns))
			body_ended(c);
		return;
	}
	note_attempt(c);
	c->stat[ARTIS_STAT_ATTEMPT_CALL]++;
	if (watches(ARTIS_WATCH_TASKS))
		tally_attempt(artis_cause(section, nr));
	if (c->kind == ARTIS_CPU_RT)
		evict(c, artis_cause(section, nr));
}

SEC("?tp/raw_syscalls/sys_enter")
int artis_sys_enter(struct trace_event_raw_sys_enter *ctx)
{
	struct artis_cpu *c = this_cpu();

	/* else a real-time task: seen, never touched */
	if (c->ext_running)
		note_call(c, ctx->id, ctx->args[0], ctx->args[1]);
	return ARTIS_OTHERS_TOO;
}

/*
 * The same where the kernel runs such a program with preemption off (to 7.0):
 * it is spared the record that a classic tracepoint makes for perf first.
 */
SEC("?tp_btf/sys_enter")
int BPF_PROG(artis_sys_enter_btf, struct pt_regs *regs, long id)
{
	struct artis_cpu *c = this_cpu();

	if (c->ext_running)
		note_call(c, id, PT_REGS_PARM1_SYSCALL(regs), PT_REGS_PARM2_SYSCALL(regs));
	return 0;
}

/* The task here is in a section that its registers do not tell. */
static __always_inline void note_door(struct artis_cpu *c, u32 section, enum artis_stat attempt)
{
	c->door = section;
	note_attempt(c);
	c->stat[attempt]++;
	if (watches(ARTIS_WATCH_TASKS))
		tally_attempt(artis_cause(section, 0));
	if (c->kind == ARTIS_CPU_RT)
		evict(c, artis_cause(section, 0));
}

/*
 * A page fault that the kernel is about to handle, in user mode or in a call that reads or writes
 * memory of user space: the software event of perf, sampled each time, on each CPU. It is told after
 * the checks that leave a fault unhandled (do_user_addr_fault(), arch/x86/mm/fault.c), with
 * interrupts on, and on every architecture.
 */
SEC("perf_event")
int artis_fault(struct bpf_perf_event_data *ctx)
{
	struct artis_cpu *c = this_cpu();

	if (c->ext_running)
		note_door(c, ARTIS_SECTION_FAULT, ARTIS_STAT_ATTEMPT_FAULT);
	return 0;
}

/* Signals whose default action does not end a task: kernel/signal.c, x86 and arm64 numbers. */
#define ARTIS_HARMLESS_SIGNALS                                                   \
	(1ULL << 17 /* CHLD */ | 1ULL << 18 /* CONT */ | 1ULL << 19 /* STOP */ | \
	 1ULL << 20 /* TSTP */ | 1ULL << 21 /* TTIN */ | 1ULL << 22 /* TTOU */ | \
	 1ULL << 23 /* URG */ | 1ULL << 28 /* WINCH */)

/*
 * A signal ends the task here, as exit_group(2) of another thread does: its memory is torn down
 * next. To init of a namespace it may do nothing.
 */
SEC("tp/signal/signal_deliver")
int artis_signal(struct trace_event_raw_signal_deliver *ctx)
{
	struct artis_cpu *c = this_cpu();

	if (c->ext_running && !ctx->sa_handler && !(ARTIS_HARMLESS_SIGNALS >> (ctx->sig & 63) & 1))
		note_door(c, ARTIS_SECTION_DEATH, ARTIS_STAT_ATTEMPT_DEATH);
	return ARTIS_OTHERS_TOO;
}

/*
 * The return of a call, hooked only where the registers at a switch are not enough: other
 * architectures, and the preemption models under which a body may run to its
 * end before the eviction, so that bodies on RT CPUs are counted there, too.
 */
SEC("tp_btf/sys_exit")
int BPF_PROG(artis_sys_exit, struct pt_regs *regs, long ret)
{
	struct artis_cpu *c = this_cpu();

	if (!c->ext_running)
		return 0;
	if (unlikely(c->section_since_ns))
		body_ended(c);
	note_section(c, ARTIS_SECTION_NONE, 0);
	return 0;
}

/*
 * The end of a page fault: a fault has no exit tracepoint, and may take longer
 * than any slice (a huge page to clear, memory to reclaim). A fault that is to
 * be retried goes on.
 */
SEC("fexit/handle_mm_fault")
int BPF_PROG(artis_fault_end, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
	     struct pt_regs *regs, unsigned int ret)
{
	struct artis_cpu *c = this_cpu();

	if (!c->ext_running || c->door != ARTIS_SECTION_FAULT || (ret & VM_FAULT_RETRY))
		return 0;
	c->door = ARTIS_SECTION_NONE;
	if (unlikely(c->section_since_ns))
		body_ended(c);
	return 0;
}
