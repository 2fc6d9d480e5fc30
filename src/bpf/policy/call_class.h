/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is this system call an attempt? (design: model section 3). The table comes
 * from Rust, by name; some depend on an argument.
 *
 * Pure: compiled for BPF and for the host (tests/policy.rs).
 */
#pragma once

#include "../abi/consts.h"
#include "../abi/stat.h"

/* linux/futex.h: the operation without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define ARTIS_FUTEX_CMD_MASK 0x7f
#define ARTIS_FUTEX_WAIT 0
#define ARTIS_FUTEX_WAIT_BITSET 9

/* linux/time.h: clocks that walk the threads of a process */
#define ARTIS_CLOCK_PROCESS_CPUTIME_ID 2
#define ARTIS_CLOCK_THREAD_CPUTIME_ID 3

/* A negative id names a device's clock or another task's: a driver or a walk answers. */
static inline bool artis_is_plain_clock(s32 id)
{
	return id >= 0 && id != ARTIS_CLOCK_PROCESS_CPUTIME_ID &&
	       id != ARTIS_CLOCK_THREAD_CPUTIME_ID;
}

/*
 * artis_call_section - the section that entering a call begins
 *
 * @class: enum artis_call_class of the call
 * @arg0: its first argument: clock_gettime(2)'s clock
 * @arg1: its second argument: futex(2)'s operation, poll(2)'s number of descriptors
 * @poll_fds_max: up to so many descriptors poll(2) counts as sleeping
 *
 * Returns ARTIS_SECTION_NONE for a harmless call, ARTIS_SECTION_SLEEPING or
 * ARTIS_SECTION_CALL; only the last is an attempt.
 */
static inline u32 artis_call_section(u8 class, u64 arg0, u64 arg1, u32 poll_fds_max)
{
	u32 op;

	switch (class) {
	case ARTIS_CALL_HARMLESS:
		return ARTIS_SECTION_NONE;
	case ARTIS_CALL_HARMLESS_CLOCK:
		return artis_is_plain_clock((s32)arg0) ? ARTIS_SECTION_NONE : ARTIS_SECTION_CALL;
	case ARTIS_CALL_SLEEPING:
		return ARTIS_SECTION_SLEEPING;
	case ARTIS_CALL_SLEEPING_FUTEX:
		op = arg1 & ARTIS_FUTEX_CMD_MASK;
		return op == ARTIS_FUTEX_WAIT || op == ARTIS_FUTEX_WAIT_BITSET ?
			       ARTIS_SECTION_SLEEPING :
			       ARTIS_SECTION_CALL;
	case ARTIS_CALL_SLEEPING_POLL:
		return (u32)arg1 <= poll_fds_max ? ARTIS_SECTION_SLEEPING : ARTIS_SECTION_CALL;
	default:
		return ARTIS_SECTION_CALL;
	}
}
