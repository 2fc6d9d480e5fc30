/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dispatch-queue ids. User queues have the top bit clear (kernel, SCX_DSQ_FLAG_BUILTIN).
 *
 *    63 .... 18   17 .. 16   15 ............. 0
 *   |     0     |  queue   |  group or CPU     |
 *
 * The queue is an enum artis_queue + 1. All are ordered by virtual time.
 */
#pragma once

_Static_assert(ARTIS_MAX_CPUS <= 1 << 16, "a CPU id must fit below the queue");

static __always_inline u64 dsq_of(u32 queue, u32 where)
{
	return (u64)(queue + 1) << 16 | where;
}
