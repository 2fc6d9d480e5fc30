/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dispatch-queue ids. User queues have the top bit clear (kernel, SCX_DSQ_FLAG_BUILTIN).
 *
 *    63 .... 18   17    16   15 ............. 0
 *   |     0     | nrt | own |  group or CPU     |
 *
 * One queue for each group of NRT CPUs; each CPU has one of its own: on an NRT
 * CPU for tasks that may run nowhere else, on an RT CPU for all that it is
 * given. All are ordered by virtual time.
 */
#ifndef ARTIS_QUEUES_DSQ_ID_H
#define ARTIS_QUEUES_DSQ_ID_H

#define ARTIS_DSQ_OWN (1ULL << 16)
#define ARTIS_DSQ_NRT (1ULL << 17)

_Static_assert(ARTIS_MAX_CPUS <= ARTIS_DSQ_OWN, "a CPU id must fit below the own bit");

static __always_inline u64 own_dsq(s32 cpu)
{
	return ARTIS_DSQ_OWN | (u32)cpu;
}

/* The queue of group @group of NRT CPUs. */
static __always_inline u64 group_dsq(u32 group)
{
	return ARTIS_DSQ_NRT | group;
}

/* The queue that NRT CPU @cpu shares with its group. */
static __always_inline u64 nrt_dsq(s32 cpu)
{
	return group_dsq(llc_of(cpu));
}

#endif /* ARTIS_QUEUES_DSQ_ID_H */
