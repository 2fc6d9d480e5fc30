/* SPDX-License-Identifier: GPL-2.0-only */
/* Queue ids, without SCX_DSQ_FLAG_BUILTIN: enum artis_queue + 1, then 16 bits of group or CPU. */
#pragma once

_Static_assert(ARTIS_MAX_CPUS <= 1 << 16, "a CPU id must fit below the queue");

static __always_inline u64 dsq_of(u32 queue, u32 where)
{
	return (u64)(queue + 1) << 16 | where;
}
