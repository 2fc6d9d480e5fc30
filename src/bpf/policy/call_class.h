/* SPDX-License-Identifier: GPL-2.0-only */
/* Which system calls are attempts (design: model section 3). The class of a call comes from Rust;
 * some calls also depend on an argument. Pure: compiled for BPF and for the host (tests/policy). */
#pragma once
#include "../abi/abi.h"

/* linux/futex.h: the operation without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define ARTIS_FUTEX_CMD_MASK 0x7f
#define ARTIS_FUTEX_WAIT 0
#define ARTIS_FUTEX_WAIT_BITSET 9

/* linux/time.h: the kernel walks the threads of a process to read these */
#define ARTIS_CLOCK_PROCESS_CPUTIME_ID 2
#define ARTIS_CLOCK_THREAD_CPUTIME_ID 3

/* Is it read without a driver or a walk? Negative: a device's clock or CPU time of another task. */
static inline bool artis_is_plain_clock(s32 id)
{
	return id >= 0 && id != ARTIS_CLOCK_PROCESS_CPUTIME_ID &&
	       id != ARTIS_CLOCK_THREAD_CPUTIME_ID;
}

/* Section that a call begins: ARTIS_SECTION_NONE, _SLEEPING or _CALL, of which _CALL is an attempt.
 * @class: enum artis_call_class; @arg0: clock; @arg1: futex operation or number of descriptors. */
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
