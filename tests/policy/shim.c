/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pure policy headers as linkable functions: nothing is mocked, for there is
 * nothing in them that would need it.
 */
#include "abi/abi.h"
#include "policy/call_class.h"
#include "policy/fair.h"
#include "policy/place.h"
#include "policy/predict.h"
#include "policy/rt_share.h"

u32 shim_share_decay(u32 avg, u64 dt_ns)
{
	return artis_share_decay(avg, dt_ns);
}
u32 shim_share_at(const struct artis_rt_share *s, u64 now_ns)
{
	return artis_share_at(s, now_ns);
}
void shim_share_switch(struct artis_rt_share *s, u64 now_ns, bool in_rt)
{
	artis_share_switch(s, now_ns, in_rt);
}
u32 shim_call_section(u8 class, u64 arg0, u64 arg1, u32 fds)
{
	return artis_call_section(class, arg0, arg1, fds);
}
u64 shim_quiet_after(u64 quiet, u64 run, bool attempted)
{
	return artis_quiet_after(quiet, run, attempted);
}
bool shim_is_calm(u64 quiet_ns, u64 quiet_run_ns)
{
	struct artis_policy policy = { .quiet_ns = quiet_ns };

	return artis_is_calm(&policy, quiet_run_ns);
}
u32 shim_inv_weight(u32 weight)
{
	return artis_inv_weight(weight);
}
u32 shim_weight_in(u32 weight, u32 cgroup)
{
	return artis_weight_in(weight, cgroup);
}
u64 shim_vtime_of(u64 run_ns, u32 inv)
{
	return artis_vtime_of(run_ns, inv);
}
u64 shim_vtime_clamp(u64 credit, u64 lead, u64 vtime, u64 clock, u32 inv)
{
	struct artis_policy policy = { .sleep_credit_ns = credit, .lead_max_ns = lead };

	return artis_vtime_clamp(&policy, vtime, clock, inv);
}
u64 shim_clock_next(u64 clock, u64 vtime, u64 elapsed_ns)
{
	return artis_clock_next(clock, vtime, elapsed_ns);
}
u64 shim_slice_nrt(u64 slice, u64 min, u32 waiting)
{
	struct artis_policy policy = { .slice_nrt_ns = slice, .slice_nrt_min_ns = min };

	return artis_slice_nrt(&policy, waiting);
}
bool shim_preempts(u64 margin, u64 vtime, u64 curr)
{
	struct artis_policy policy = { .preempt_margin_ns = margin };

	return artis_preempts(&policy, vtime, curr);
}
u32 shim_place(u32 section, u32 bits)
{
	struct artis_place_in in = {
		.section = section,
		.woken = bits & 1,
		.calm = bits & 2,
		.kernel = bits & 4,
		.unsettled = bits & 8,
		.on_rt = bits & 16,
		.put_back = bits & 32,
		.displaced = bits & 64,
		.ahead = bits & 128,
	};

	return artis_place(&in);
}
