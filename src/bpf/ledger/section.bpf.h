/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the kernel section of the task on a CPU ends, and for how long it was on
 * an RT CPU.
 */
#ifndef ARTIS_LEDGER_SECTION_BPF_H
#define ARTIS_LEDGER_SECTION_BPF_H

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

/* The section of the task on @c is over. */
static __always_inline void section_ends(struct artis_cpu *c)
{
	if (unlikely(c->section_since_ns))
		body_ended(c);
	/* time inside does not make a task calm, however long it was */
	if (c->section >= ARTIS_SECTION_CALL && !c->attempts)
		note_attempt(c);
	c->section = ARTIS_SECTION_NONE;
}

/*
 * The return of a call is not hooked: it would cost more than the entry. Who
 * is switched out tells by its user registers whether it was still inside, and
 * who enters again has returned. @p runs on @c, or ran there until now.
 *
 * The entry of a call saves its number in the registers, that of an interrupt
 * or a fault from user mode saves "no call" (-1). A call that is on its way
 * back to user mode still counts as inside, which is the safe side.
 */
static __always_inline void note_return(struct artis_cpu *c, struct task_struct *p)
{
#if defined(__SCX_TARGET_ARCH_x86) || defined(__SCX_TARGET_ARCH_arm64)
	const struct pt_regs *regs;

	if (c->section != ARTIS_SECTION_CALL && c->section != ARTIS_SECTION_SLEEPING)
		return;
	/* its registers are its parent's call for good */
	if (is_kernel_task(p))
		return;
	regs = (const struct pt_regs *)bpf_task_pt_regs(p);
#ifdef __SCX_TARGET_ARCH_x86
	if ((s64)regs->orig_ax < 0)
		section_ends(c);
#else
	if ((s32)regs->syscallno < 0)
		section_ends(c);
#endif
#endif
}

/*
 * @p stops on @c, or is asked to: its section and its account are those of this moment. Returns 0.
 * Global: verified once in each program.
 */
__noinline int settle(struct artis_cpu *c __arg_nonnull, s32 cpu,
		      struct artis_task *t __arg_nonnull, struct task_struct *p __arg_trusted)
{
	note_return(c, p);
	task_charge(c, cpu, t, p);
	return 0;
}

#endif /* ARTIS_LEDGER_SECTION_BPF_H */
