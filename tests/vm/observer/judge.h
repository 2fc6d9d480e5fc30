/* SPDX-License-Identifier: GPL-2.0-only */
/* How the observers judge a system call: by a list of their own (src/classes.rs). */
#ifndef ARTIS_OBSERVER_JUDGE_H
#define ARTIS_OBSERVER_JUDGE_H

#define FUTEX_CMD_MASK_ 127
#define FUTEX_WAIT_ 0
#define FUTEX_WAIT_BITSET_ 9

const volatile u32 poll_fds_max;
const volatile u8 call_class[OBS_NR_CALLS];

static bool futex_waits(struct pt_regs *regs)
{
	u32 op = (u32)BPF_CORE_READ(regs, si) & FUTEX_CMD_MASK_;

	return op == FUTEX_WAIT_ || op == FUTEX_WAIT_BITSET_;
}

static bool endangers(struct pt_regs *regs, u32 nr)
{
	switch (nr < OBS_NR_CALLS ? call_class[nr] : OBS_ENDANGERING) {
	case OBS_OTHER:
		return false;
	case OBS_FUTEX:
		return !futex_waits(regs);
	case OBS_POLL:
		return (u32)BPF_CORE_READ(regs, si) > poll_fds_max;
	case OBS_EPOLL:
		return (u32)BPF_CORE_READ(regs, dx) > poll_fds_max;
	default:
		return true;
	}
}

#endif /* ARTIS_OBSERVER_JUDGE_H */
