/* SPDX-License-Identifier: GPL-2.0-only */
/* How the observers of locks and of moves add up times. */
#ifndef ARTIS_OBSERVER_TIMES_H
#define ARTIS_OBSERVER_TIMES_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum times_limits {
	/* masks of CPUs are one word */
	TIMES_MAX_CPUS = 64,
	/* four to a doubling: to 8 s and more */
	TIMES_BUCKETS = 128,
};

struct times {
	u64 times;
	u64 sum_ns;
	u64 max_ns;
	u32 buckets[TIMES_BUCKETS];
};

#ifdef __VMLINUX_H__
/* Bucket of the histogram: four to a doubling, so a bound is at most a quarter off. */
static u32 bucket(u64 ns)
{
	u32 octave = 0, i;

	bpf_for(i, 0, 32) {
		if (ns < 8)
			break;
		ns >>= 1;
		octave++;
	}
	i = octave * 4 + ns;
	return i < TIMES_BUCKETS ? i : TIMES_BUCKETS - 1;
}

static void times_add(struct times *t, u64 ns)
{
	u32 b = bucket(ns);

	__sync_fetch_and_add(&t->times, 1);
	__sync_fetch_and_add(&t->sum_ns, ns);
	if (b < TIMES_BUCKETS)
		__sync_fetch_and_add(&t->buckets[b], 1);
	/* two CPUs at once: the greater one may get lost, which the histogram still shows */
	if (ns > t->max_ns)
		t->max_ns = ns;
}
#endif

#endif /* ARTIS_OBSERVER_TIMES_H */
