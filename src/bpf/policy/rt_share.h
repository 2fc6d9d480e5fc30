/* SPDX-License-Identifier: GPL-2.0-only */
/* Real-time share of a CPU (design: model section 5): exponential average, tau 500 ms, of "an rt/dl
 * task runs", exact at each switch (the thesis samples each ms): it or its complement decays by
 * e^(-dt/tau). 10^4 roundings a second stay below 10^-5. Pure: BPF and host (tests/policy). */
#pragma once
#include "../abi/abi.h"

#define ARTIS_SHARE_RATE_Q20 12994642ULL /* 2^32 / (500 ms * ln 2), with 20 more fraction bits */
#define ARTIS_LN2_Q32 2977044472ULL
#define ARTIS_SHARE_FORGET_NS 11000000000ULL /* 32 halvings leave nothing */

/* 2^32 * 2^(-i/16) */
static const u32 artis_exp2_q32[16] = {
	0xffffffff, 0xf5257d15, 0xeac0c6e8, 0xe0ccdeec, 0xd744fccb, 0xce248c15,
	0xc5672a11, 0xbd08a39f, 0xb504f334, 0xad583eea, 0xa5fed6aa, 0x9ef53261,
	0x9837f052, 0x91c3d374, 0x8b95c1e4, 0x85aac368,
};

/* @avg * e^(-@dt_ns / 500 ms), rounded down; @avg is 0 to ARTIS_SHARE_ONE. */
static inline u32 artis_share_decay(u32 avg, u64 dt_ns)
{
	u64 halvings_q32, f, u;

	if (dt_ns >= ARTIS_SHARE_FORGET_NS)
		return 0;
	halvings_q32 = dt_ns * ARTIS_SHARE_RATE_Q20 >> 20;
	/* f = 2^-(i/16) * e^-u in 1/2^32, u < ln2/16: e^-u by its series up to u^3 */
	u = (halvings_q32 & 0x0fffffff) * ARTIS_LN2_Q32 >> 32;
	f = 0x100000000ULL - u + (u * u >> 33) - ((u * u >> 32) * u >> 32) / 6;
	f = artis_exp2_q32[(halvings_q32 >> 28) & 15] * (f >> 1) >> 31;
	return (u32)((u64)avg * f >> 32 >> (halvings_q32 >> 32));
}

static inline u64 artis_share_since(u64 begin_ns, u64 now_ns)
{
	return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

/* The average at @now_ns, 0 to ARTIS_SHARE_ONE, also while a real-time task runs on. */
static inline u32 artis_share_at(const struct artis_rt_share *s, u64 now_ns)
{
	u64 idle_ns = artis_share_since(s->updated_ns, s->in_rt ? s->since_ns : now_ns);
	u32 avg = artis_share_decay(s->avg, idle_ns);

	if (!s->in_rt)
		return avg;
	return ARTIS_SHARE_ONE -
	       artis_share_decay(ARTIS_SHARE_ONE - avg, artis_share_since(s->since_ns, now_ns));
}

/* From @now_ns on an rt/dl task runs (@in_rt) or none does. It waits while the first is noted: the
 * rest is done when it has run. */
static inline void artis_share_switch(struct artis_rt_share *s, u64 now_ns, bool in_rt)
{
	if (s->in_rt == in_rt)
		return;
	if (in_rt) {
		s->since_ns = now_ns;
	} else {
		s->avg = artis_share_at(s, now_ns);
		s->total_ns += artis_share_since(s->since_ns, now_ns);
		s->updated_ns = now_ns;
	}
	s->in_rt = in_rt;
}
