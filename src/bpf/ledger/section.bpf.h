/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which kernel section a task is, and for how long it was in one on an RT CPU.
 *
 * The registers that user mode had on its way into the kernel tell: the entry
 * of a call saves its number there, that of an interrupt or a fault saves "no
 * call" (-1). A call that is on its way back to user mode still counts as
 * inside, which is the safe side. What the registers do not tell has a flag on
 * the CPU: a page fault that sleeps, and the death by a signal.
 */
#pragma once

#include "../policy/call_class.h"

/* A system call that the table cannot name, since its number is of another ABI. */
static __always_inline bool is_compat_call(const struct task_struct *p)
{
#ifdef __SCX_TARGET_ARCH_x86
	/* TS_COMPAT, arch/x86/include/asm/thread_info.h */
	return p->thread_info.status & 2;
#elif defined(__SCX_TARGET_ARCH_arm64)
	/* TIF_32BIT, arch/arm64/include/asm/thread_info.h */
	return p->thread_info.flags & (1UL << 22);
#else
	return false;
#endif
}

/* The section of a call by @p with these arguments; ARTIS_SECTION_NONE: it is harmless. */
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

/* Looks in which section @p is, which runs on @c or ran there until now. */
static __always_inline void find_section(struct artis_cpu *c, struct task_struct *p)
{
	const struct pt_regs *regs;

	c->section = c->door;
#if defined(__SCX_TARGET_ARCH_x86) || defined(__SCX_TARGET_ARCH_arm64)
	/* the registers of a kernel thread are its parent's call for good */
	if (c->door || is_kernel_task(p))
		return;
	regs = (const struct pt_regs *)bpf_task_pt_regs(p);
#ifdef __SCX_TARGET_ARCH_x86
	c->section_nr = regs->orig_ax;
	if ((s64)regs->orig_ax < 0)
		return;
	c->section = section_of_call(p, regs->orig_ax, regs->di, regs->si);
#else
	c->section_nr = regs->syscallno;
	if ((s32)regs->syscallno < 0)
		return;
	c->section = section_of_call(p, regs->syscallno, regs->orig_x0, regs->regs[1]);
#endif
#else
	/* the hooks of entry and return keep it there */
	if (!c->door)
		c->section = c->began_in;
#endif
}

/* The call that the task on @c is in begins or ends: only noted where registers do not tell. */
static __always_inline void note_section(struct artis_cpu *c, u32 section, u64 nr)
{
#if !defined(__SCX_TARGET_ARCH_x86) && !defined(__SCX_TARGET_ARCH_arm64)
	c->began_in = section;
	c->section_nr = nr;
#endif
}

/* Time of the ext task on this CPU in an endangering section ends. */
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

/* An endangering section ran to its end on this RT CPU: it should not have begun here. */
static __always_inline void body_ended(struct artis_cpu *c)
{
	c->stat[ARTIS_STAT_BODY_ON_RT]++;
	residence_ends(c);
}

/* An attempt by the task on @c: only the first one of a run is stamped, for what a clock costs. */
static __always_inline void note_attempt(struct artis_cpu *c)
{
	if (!c->attempts++)
		c->first_attempt_ns = scx_bpf_now();
}

/*
 * @p stops on @c, or is asked to: its section and its account are those of this moment. Returns 0.
 * Global: verified once in each program.
 */
__noinline int settle(struct artis_cpu *c __arg_nonnull, struct artis_task *t __arg_nonnull,
		      struct task_struct *p __arg_trusted)
{
	find_section(c, p);
	if (unlikely(c->section_since_ns) && c->section < ARTIS_SECTION_CALL)
		body_ended(c);
	/* time inside does not make a task calm, however long it was */
	if (unlikely(c->began_in >= ARTIS_SECTION_CALL) && !c->attempts)
		note_attempt(c);
	c->began_in = c->section;
	task_charge(c, t, p);
	return 0;
}
