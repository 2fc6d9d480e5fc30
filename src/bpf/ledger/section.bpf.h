/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel section that a task is in, and the time that RT CPUs spend in one. */
#pragma once
#include "../policy/call_class.h"

static __always_inline bool is_compat_call(const struct task_struct *p)
{
#ifdef __SCX_TARGET_ARCH_x86
	return p->thread_info.status & 2; /* TS_COMPAT, arch/x86/include/asm/thread_info.h */
#elif defined(__SCX_TARGET_ARCH_arm64)
	return p->thread_info.flags & (1UL << 22); /* TIF_32BIT, arch/arm64, asm/thread_info.h */
#else
#error "which registers tell the call of a task on this architecture?"
#endif
}

static __always_inline u32 section_of_call(const struct task_struct *p, u64 nr, u64 arg0, u64 arg1)
{
	u8 class;

	if (unlikely(nr >= ARTIS_NR_CALLS))
		return ARTIS_SECTION_CALL;
	class = policy.call_class[nr & (ARTIS_NR_CALLS - 1)];
	if (class == ARTIS_CALL_ENDANGERING || is_compat_call(p))
		return ARTIS_SECTION_CALL;
	return artis_call_section(class, arg0, arg1, policy.poll_fds_max);
}

/* Sets the section of @p, which runs on @c or has just stopped there, by the registers saved at its
 * kernel entry. A call on its way back to user mode still counts: the safe side. */
static __always_inline void find_section(struct artis_cpu *c, struct task_struct *p)
{
	const struct pt_regs *regs;
	s64 nr;

	c->section = c->door; /* a fault that sleeps, a death by a signal: no register tells */
	if (c->door || is_kernel_task(p)) /* a kernel thread keeps registers of its parent's call */
		return;
	regs = (const struct pt_regs *)bpf_task_pt_regs(p);
#ifdef __SCX_TARGET_ARCH_x86
	nr = regs->orig_ax;
#else
	nr = regs->syscallno;
#endif
	c->section_nr = nr;
	if (nr >= 0) /* else entered by an interrupt or a fault */
		c->section = section_of_call(p, nr, PT_REGS_PARM1_SYSCALL(regs),
					     PT_REGS_PARM2_SYSCALL(regs));
}

static __always_inline void residence_ends(struct artis_cpu *c)
{
	u64 ns = scx_bpf_now() - c->section_since_ns;

	c->section_since_ns = 0;
	if ((s64)ns < 0)
		return;
	c->residence_ns += ns;
	hist_add(&c->residence, ns);
	if (ns > c->residence_max_ns)
		c->residence_max_ns = ns;
}

static __always_inline void body_ended(struct artis_cpu *c)
{
	c->stat[ARTIS_STAT_BODY_ON_RT]++;
	residence_ends(c);
}

static __always_inline void note_attempt(struct artis_cpu *c)
{
	if (!c->attempts++) /* reading a clock costs: only the first of a run has a time */
		c->first_attempt_ns = scx_bpf_now();
}

/* Updates section and account of @p, which stops on @c or may. Global: verified once. Returns 0. */
__noinline int settle(struct artis_cpu *c __arg_nonnull, struct artis_task *t __arg_nonnull,
		      struct task_struct *p __arg_trusted)
{
	find_section(c, p);
	if (unlikely(c->section_since_ns) && c->section < ARTIS_SECTION_CALL)
		body_ended(c);
	if (unlikely(c->began_in >= ARTIS_SECTION_CALL) && !c->attempts)
		note_attempt(c); /* time in a section does not make a task calm */
	c->began_in = c->section;
	task_charge(c, t, p);
	return 0;
}
