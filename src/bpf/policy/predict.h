/* SPDX-License-Identifier: GPL-2.0-only */
/* Prediction of kernel entry (design: model section 4; docs/decisions/0009-prediction.md) from t_d,
 * the last attempt, P, the mean interval, and the least of the last intervals in own run time: by
 * the clock any task that waits long looks calm. Pure: BPF and host (tests/policy). */
#pragma once
#include "fair.h"

/* Fraction bits of means. In whole ns a mean would stop 1 us off at weight 2047/2048 (rounding). */
#define ARTIS_PERIOD_SHIFT 8
#define ARTIS_PERIOD_MAX ((1ULL << (34 + ARTIS_PERIOD_SHIFT)) - 1) /* 17 s: as calm as can be */
#define ARTIS_INTERVALS_MAX (1ULL << 55) /* 1 year; fits when shifted by ARTIS_PERIOD_SHIFT */
#define ARTIS_PAST_SHIFT 30 /* fraction bits of weights of the past */
#define ARTIS_PAST_ONE (1ULL << ARTIS_PAST_SHIFT)
#define ARTIS_PAST_POLICY_SHIFT 11 /* fraction bits of policy->predict_past */
#define ARTIS_PAST_STEPS 10 /* of a power by squaring: at most 1023 attempts of one run count */

/* What a task did on a CPU since it was last charged. Times are of the scheduler's clock. */
struct artis_run {
	u64 end_ns;
	u64 run_ns; /* own run time */
	u64 first_attempt_ns; /* 0: none */
	u32 attempts;
};

/* A mean interval of struct artis_history in ns; 0: unknown. */
static inline u64 artis_period(u64 period)
{
	return (period + (1 << (ARTIS_PERIOD_SHIFT - 1))) >> ARTIS_PERIOD_SHIFT;
}

/* (@past / 2048)^@n, the weight of the past after @n intervals, in 1 / ARTIS_PAST_ONE. */
static inline u64 artis_past_power(u32 past, u32 n)
{
	u64 square = (u64)past << (ARTIS_PAST_SHIFT - ARTIS_PAST_POLICY_SHIFT);
	u64 power = ARTIS_PAST_ONE;
	u32 step;

	n = artis_clamp(n, 0, (1U << ARTIS_PAST_STEPS) - 1);
	for (step = 0; n && step < ARTIS_PAST_STEPS; step++) {
		if (n & 1)
			power = (power * square + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT;
		square = (square * square + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT;
		n >>= 1;
	}
	return power;
}

/* @past x @weight + @fresh x (1 - @weight); @past and @fresh are at most ARTIS_PERIOD_MAX. */
static inline u64 artis_mix(u64 past, u64 fresh, u64 weight)
{
	u64 rest = ARTIS_PAST_ONE - weight;
	u64 high = (past >> 32) * weight + (fresh >> 32) * rest;
	u64 low = (u64)(u32)past * weight + (u64)(u32)fresh * rest;

	return (high << (32 - ARTIS_PAST_SHIFT)) + ((low + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT);
}

/* Mean interval after @n more with the sum @sum_ns; 0: unknown. The first becomes the mean: from 0,
 * at the thesis's weight e^(-1/100), the mean would be too low for hundreds of attempts. */
static inline u64 artis_period_next(u64 period, u64 sum_ns, u32 n, u32 past)
{
	u64 fresh;

	if (!n)
		return period;
	fresh = (artis_clamp(sum_ns, 0, ARTIS_INTERVALS_MAX) << ARTIS_PERIOD_SHIFT) / n;
	fresh = artis_clamp(fresh, 0, ARTIS_PERIOD_MAX);
	if (period)
		fresh = artis_mix(period, fresh, artis_past_power(past, n));
	return fresh ? fresh : 1;
}

#define ARTIS_LEAST_RISE 32 /* the least interval rises by 1/32 at each attempt: doubles in 22 */

/* Least of the last intervals after one of @interval_ns, never 0: falls at once, rises slowly. */
static inline u64 artis_least_next(u64 least_ns, u64 interval_ns)
{
	u64 risen = least_ns + least_ns / ARTIS_LEAST_RISE;

	if (!least_ns || interval_ns < risen)
		risen = interval_ns;
	return risen ? risen : 1;
}

/* Adds @run to @h. The entry hook stamps only the first attempt, for speed; the others count as
 * equally spaced between it and the end of the run, the last one a space before the end. */
static inline void artis_history_note(struct artis_history *h, const struct artis_policy *policy,
				      const struct artis_run *run)
{
	u64 first_ns = run->first_attempt_ns, run_ns = run->run_ns;
	u64 span_ns, space_ns, after_run_ns, last_ns, wall_ns, own_ns;
	u32 n = run->attempts, past = policy->predict_past;

	if (!n) {
		h->quiet_run_ns += run_ns;
		return;
	}
	/* the clocks of two CPUs may differ */
	span_ns = artis_after(run->end_ns, first_ns);
	space_ns = span_ns / n;
	last_ns = first_ns + (span_ns - space_ns);
	/* a real-time task may have run in between */
	after_run_ns = space_ns < run_ns ? space_ns : run_ns;
	own_ns = run_ns - after_run_ns;
	if (h->last_ns) { /* one interval up to the first attempt, then n - 1 equal ones */
		h->least_run_ns = artis_least_next(
			h->least_run_ns,
			h->quiet_run_ns + (run_ns > span_ns ? run_ns - span_ns : 0));
		wall_ns = artis_after(last_ns, h->last_ns);
		own_ns += h->quiet_run_ns;
	} else { /* the one before the first attempt is unknown */
		wall_ns = last_ns - first_ns;
		own_ns = own_ns < wall_ns ? own_ns : wall_ns;
	}
	if (n > 1)
		h->least_run_ns = artis_least_next(h->least_run_ns, space_ns);
	n -= !h->last_ns;
	h->period_ns = artis_period_next(h->period_ns, wall_ns, n, past);
	h->period_run_ns = artis_period_next(h->period_run_ns, own_ns, n, past);
	h->last_ns = last_ns;
	h->quiet_run_ns = after_run_ns;
}

/* The thesis's two tests, @since_ns after the last attempt: is the next one more than C away, or is
 * it overdue after K periods? (So the text; its formula K x t_d < t - P multiplies an instant.) */
static inline bool artis_is_far(const struct artis_policy *policy, u64 since_ns, u64 period_ns)
{
	return period_ns > since_ns + policy->predict_c_ns ||
	       since_ns > period_ns * policy->predict_k;
}

/* Is the task predicted to compute on without an attempt? Without a known interval, once it has run
 * for C x K. @now_ns is the scheduler's clock; C is below 2^32 ns and K below 2^29. */
static inline bool artis_is_calm(const struct artis_policy *policy, const struct artis_history *h,
				 u64 now_ns)
{
	u64 long_ns = policy->predict_c_ns * policy->predict_k;

	/* the mean hides bursts: this rule wastes a sixth of its moves (docs/decisions/0009) */
	if (policy->predict_rule == ARTIS_PREDICT_LEAST)
		return h->least_run_ns > h->quiet_run_ns + policy->predict_c_ns ||
		       h->quiet_run_ns >= long_ns;
	if (!h->period_ns)
		return h->quiet_run_ns >= long_ns;
	return artis_is_far(policy, artis_after(now_ns, h->last_ns), artis_period(h->period_ns));
}

/* linux/futex.h: the operation without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define ARTIS_FUTEX_CMD_MASK 0x7f
#define ARTIS_FUTEX_WAIT 0
#define ARTIS_FUTEX_WAIT_BITSET 9

/* linux/time.h: the kernel walks the threads of a process to read these */
#define ARTIS_CLOCK_PROCESS_CPUTIME_ID 2
#define ARTIS_CLOCK_THREAD_CPUTIME_ID 3

/* Section that a call begins: ARTIS_SECTION_NONE, _SLEEPING or _CALL, of which _CALL is an attempt.
 * @class: enum artis_call_class; @arg0: clock; @arg1: futex operation or descriptors; @arg2: events. */
static inline u32 artis_call_section(u8 class, u64 arg0, u64 arg1, u64 arg2, u32 poll_fds_max)
{
	u32 op = arg1 & ARTIS_FUTEX_CMD_MASK;
	s32 clock = arg0;

	switch (class) {
	case ARTIS_CALL_HARMLESS:
		return ARTIS_SECTION_NONE;
	case ARTIS_CALL_HARMLESS_CLOCK: /* negative: a device's clock or CPU time of another task */
		if (clock >= 0 && clock != ARTIS_CLOCK_PROCESS_CPUTIME_ID &&
		    clock != ARTIS_CLOCK_THREAD_CPUTIME_ID)
			return ARTIS_SECTION_NONE;
		break;
	case ARTIS_CALL_SLEEPING:
		return ARTIS_SECTION_SLEEPING;
	case ARTIS_CALL_SLEEPING_FUTEX:
		if (op == ARTIS_FUTEX_WAIT || op == ARTIS_FUTEX_WAIT_BITSET)
			return ARTIS_SECTION_SLEEPING;
		break;
	case ARTIS_CALL_SLEEPING_POLL:
		if ((u32)arg1 <= poll_fds_max)
			return ARTIS_SECTION_SLEEPING;
		break;
	case ARTIS_CALL_SLEEPING_EPOLL:
		if ((u32)arg2 <= poll_fds_max)
			return ARTIS_SECTION_SLEEPING;
	}
	return ARTIS_SECTION_CALL;
}
