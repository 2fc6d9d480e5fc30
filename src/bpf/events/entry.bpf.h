/* SPDX-License-Identifier: GPL-2.0-only */
/* The attempt hook has its task preempted before the body of the call: to 7.0 on the way out of the
 * tracepoint, later first inside the hook, with migration disabled, then in migrate_enable(). It writes
 * only this CPU's struct: task storage would be a look-up per call. */
#pragma once

u32 in_charge; /* set by the first sample: the kernel drops kicks while it enables a scheduler */

#define ARTIS_OTHERS_TOO 1 /* returned by a classic tracepoint; 0 hides the event from perf */

/* The rest of attempts(), out of line: each call pays for the registers that its hook saves. */
static __noinline int attempted(struct artis_cpu *c, u32 cause)
{
	if (watches(ARTIS_WATCH_TASKS))
		tally_attempt(cause);
	if (c->kind != ARTIS_CPU_RT)
		return 0;
	if (unlikely(c->section_since_ns))
		body_ended(c);
	if (likely(in_charge))
		c->section_since_ns = scx_bpf_now();
	c->stat[ARTIS_STAT_EVICTION]++;
	c->evict_cause = cause;
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
	return 0;
}

/* The task on @c begins an endangering section, counted as @attempt. From an RT CPU it is evicted. */
static __always_inline void attempts(struct artis_cpu *c, enum artis_stat attempt, u32 cause)
{
	bool rt = c->kind == ARTIS_CPU_RT;

	if (rt && !c->movable) { /* it may not leave, so this is no attempt */
		c->stat[ARTIS_STAT_EXEMPT_PINNED]++;
		return;
	}
	c->stat[attempt]++;
	note_attempt(c);
	if (rt || watches(ARTIS_WATCH_TASKS))
		attempted(c, cause);
}

/* Is a call that may be harmless an attempt? Those of loose real-time tasks are counted only. */
static __noinline bool is_other_attempt(struct artis_cpu *c, struct pt_regs *regs, u64 nr)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 section;

	if (!c->ext_running &&
	    (likely(!c->loose_ns) || c->kind != ARTIS_CPU_RT || !is_realtime(p) || !is_loose(p)))
		return false;
	section = section_of_call(p, nr, regs);
	if (!c->ext_running) {
		c->loose_calls += section == ARTIS_SECTION_CALL;
		return false;
	}
	c->door = ARTIS_SECTION_NONE; /* from user mode: no fault or signal is handled */
	if (section != ARTIS_SECTION_CALL && unlikely(c->section_since_ns))
		body_ended(c); /* the call before has returned */
	return section == ARTIS_SECTION_CALL;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(artis_sys_enter, struct pt_regs *regs, long id)
{
	struct artis_cpu *c = this_cpu();

	if (likely(c->ext_running && is_endangering(id)))
		c->door = ARTIS_SECTION_NONE;
	else if (!is_other_attempt(c, regs, id))
		return 0;
	attempts(c, ARTIS_STAT_ATTEMPT_CALL, (u32)id + 1);
	return 0;
}

/* perf's page-fault event, each one on each CPU: in user mode or in a call, on every architecture,
 * interrupts on, after the checks of do_user_addr_fault() (arch/x86/mm/fault.c). */
SEC("perf_event")
int artis_fault(struct bpf_perf_event_data *ctx)
{
	struct artis_cpu *c = this_cpu();

	if (!c->ext_running)
		return 0;
	c->door = ARTIS_SECTION_FAULT;
	c->faults = faults_of(bpf_get_current_task_btf());
	attempts(c, ARTIS_STAT_ATTEMPT_FAULT, ARTIS_CAUSE_FAULT);
	return 0;
}

/* Signals whose default action does nothing, or stops: kernel/signal.c, x86 and arm64 numbers. */
#define ARTIS_HARMLESS_SIGNALS                                                   \
	(1ULL << 17 /* CHLD */ | 1ULL << 18 /* CONT */ | 1ULL << 19 /* STOP */ | \
	 1ULL << 20 /* TSTP */ | 1ULL << 21 /* TTIN */ | 1ULL << 22 /* TTOU */ | \
	 1ULL << 23 /* URG */ | 1ULL << 28 /* WINCH */)

/* A signal (or exit_group(2)): next, memory is torn down, or a frame for the handler is written to
 * the stack. What a handler runs counts as the section: it ends in rt_sigreturn(2). */
SEC("tp/signal/signal_deliver")
int artis_signal(struct trace_event_raw_signal_deliver *ctx)
{
	struct artis_cpu *c = this_cpu();

	if (!c->ext_running || (!ctx->sa_handler && ARTIS_HARMLESS_SIGNALS >> (ctx->sig & 63) & 1))
		return ARTIS_OTHERS_TOO;
	c->door = ARTIS_SECTION_SIGNAL;
	attempts(c, ARTIS_STAT_ATTEMPT_SIGNAL, ARTIS_CAUSE_SIGNAL);
	return ARTIS_OTHERS_TOO;
}

/* Attached for preemption models under which a body may end before the eviction, to count it. */
SEC("tp_btf/sys_exit")
int BPF_PROG(artis_sys_exit, struct pt_regs *regs, long ret)
{
	struct artis_cpu *c = this_cpu();

	if (c->ext_running && unlikely(c->section_since_ns))
		body_ended(c);
	return 0;
}
