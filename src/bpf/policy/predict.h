/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is a task about to enter the kernel? (design: model section 4.) Of each task are
 * remembered t_d, the time of its last attempt, P, the mean time between attempts, and
 * the least of the last intervals in its own run time: by the clock every task that
 * waits for long enough looks calm. Pure: compiled for BPF and for the host (tests/policy).
 */
#pragma once

#include "../abi/consts.h"
#include "../abi/task.h"

/*
 * Fraction bits of the means in struct artis_history, which artis_period() reads. In whole ns a mean
 * would stick when its step rounds to nothing: at a weight of 2047/2048 1 us off the truth.
 */
#define ARTIS_PERIOD_SHIFT 8
/* 17 s: whoever attempts more seldom is as calm as can be */
#define ARTIS_PERIOD_MAX ((1ULL << (34 + ARTIS_PERIOD_SHIFT)) - 1)
/* 2 years: no interval is longer, so that the shift above fits */
#define ARTIS_INTERVALS_MAX (1ULL << 55)

/* Weights of the past have 30 fraction bits, policy->predict_past has 11. */
#define ARTIS_PAST_SHIFT 30
#define ARTIS_PAST_ONE (1ULL << ARTIS_PAST_SHIFT)
#define ARTIS_PAST_POLICY_SHIFT 11
/* Steps of a power by squaring; 1023 attempts of one run are told apart, more count as so many. */
#define ARTIS_PAST_STEPS 10

/* What a task did on a CPU since it was last charged. */
struct artis_run {
	/* when it ended, ns of the scheduler's clock */
	u64 end_ns;
	/* own run time in it, ns */
	u64 run_ns;
	/* the first attempt in it, ns of the same clock; 0 if there was none */
	u64 first_attempt_ns;
	/* attempts in it */
	u32 attempts;
};

/* artis_period - a mean interval of struct artis_history in ns; 0: none is known */
static inline u64 artis_period(u64 period)
{
	return (period + (1 << (ARTIS_PERIOD_SHIFT - 1))) >> ARTIS_PERIOD_SHIFT;
}

/*
 * artis_past_power - weight of the past after @n intervals at once: w^n
 *
 * @past: w in 1/2048, below 2048. Returns ARTIS_PAST_SHIFT fraction bits.
 */
static inline u64 artis_past_power(u32 past, u32 n)
{
	u64 square = (u64)past << (ARTIS_PAST_SHIFT - ARTIS_PAST_POLICY_SHIFT);
	u64 power = ARTIS_PAST_ONE;
	u32 step;

	if (n == 1)
		return square;
	if (n >= 1U << ARTIS_PAST_STEPS)
		n = (1U << ARTIS_PAST_STEPS) - 1;
	for (step = 0; n && step < ARTIS_PAST_STEPS; step++) {
		if (n & 1)
			power = (power * square + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT;
		square = (square * square + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT;
		n >>= 1;
	}
	return power;
}

/* artis_mix - @past x @weight + @fresh x (1 - @weight), both at most ARTIS_PERIOD_MAX */
static inline u64 artis_mix(u64 past, u64 fresh, u64 weight)
{
	u64 rest = ARTIS_PAST_ONE - weight;
	u64 high = (past >> 32) * weight + (fresh >> 32) * rest;
	u64 low = (u64)(u32)past * weight + (u64)(u32)fresh * rest;

	return (high << (32 - ARTIS_PAST_SHIFT)) + ((low + ARTIS_PAST_ONE / 2) >> ARTIS_PAST_SHIFT);
}

/*
 * artis_period_next - the mean interval after @n more that add up to @sum_ns
 *
 * The first interval is the mean: from 0, with the thesis's weight of e^(-1/100), it would take
 * hundreds of attempts, during which every task looked as if it attempted all the time.
 */
static inline u64 artis_period_next(u64 period, u64 sum_ns, u32 n, u32 past)
{
	u64 fresh;

	if (!n)
		return period;
	if (sum_ns > ARTIS_INTERVALS_MAX)
		sum_ns = ARTIS_INTERVALS_MAX;
	fresh = (sum_ns << ARTIS_PERIOD_SHIFT) / n;
	if (fresh > ARTIS_PERIOD_MAX)
		fresh = ARTIS_PERIOD_MAX;
	if (period)
		fresh = artis_mix(period, fresh, artis_past_power(past, n));
	/* 0 says that none is known */
	return fresh ? fresh : 1;
}

/* The least interval is let rise by one in so many at each attempt. */
#define ARTIS_LEAST_RISE 32

/*
 * artis_least_next - the least of the last intervals after one more of @interval_ns
 *
 * It follows a shorter interval at once and longer ones by and by, doubling in 22 attempts.
 */
static inline u64 artis_least_next(u64 least_ns, u64 interval_ns)
{
	u64 risen = least_ns + least_ns / ARTIS_LEAST_RISE;

	if (!least_ns || interval_ns < risen)
		risen = interval_ns;
	/* 0 says that none is known */
	return risen ? risen : 1;
}

/*
 * artis_history_note - remember what a task did in @run
 *
 * Only the first attempt of a run is stamped, which is all that the entry hook can afford. The others
 * are taken as equally spaced up to the end of the run: the last lies one space before it.
 */
static inline void artis_history_note(struct artis_history *h, const struct artis_policy *policy,
				      const struct artis_run *run)
{
	u64 first_ns = run->first_attempt_ns;
	u64 span_ns, last_ns, after_run_ns;
	u32 n = run->attempts;

	if (!n) {
		h->quiet_run_ns += run->run_ns;
		return;
	}
	/* clocks of two CPUs may differ a little */
	span_ns = run->end_ns > first_ns ? run->end_ns - first_ns : 0;
	/* the interval up to the first attempt; then one for all others, which are equal */
	if (h->last_ns)
		h->least_run_ns = artis_least_next(
			h->least_run_ns,
			h->quiet_run_ns + (run->run_ns > span_ns ? run->run_ns - span_ns : 0));
	if (n > 1)
		h->least_run_ns = artis_least_next(h->least_run_ns, span_ns / n);
	/* no product: a span of hours must not overflow */
	after_run_ns = span_ns / n;
	last_ns = first_ns + (span_ns - after_run_ns);
	/* a real-time task may have run in between: no more than the task's own time */
	if (after_run_ns > run->run_ns)
		after_run_ns = run->run_ns;
	if (h->last_ns) {
		h->period_ns = artis_period_next(h->period_ns,
						 last_ns > h->last_ns ? last_ns - h->last_ns : 0, n,
						 policy->predict_past);
		h->period_run_ns = artis_period_next(h->period_run_ns,
						     h->quiet_run_ns + run->run_ns - after_run_ns,
						     n, policy->predict_past);
	} else {
		/* one attempt less has an interval before it: what came before the first is not known */
		u64 between_ns = last_ns - first_ns;

		h->period_ns =
			artis_period_next(h->period_ns, between_ns, n - 1, policy->predict_past);
		if (between_ns > run->run_ns - after_run_ns)
			between_ns = run->run_ns - after_run_ns;
		h->period_run_ns = artis_period_next(h->period_run_ns, between_ns, n - 1,
						     policy->predict_past);
	}
	h->last_ns = last_ns;
	h->quiet_run_ns = after_run_ns;
}

/*
 * artis_is_far - the thesis's two tests: is the next attempt predicted later
 * than C from now, or overdue for so long that the task has begun to compute?
 *
 * @since_ns: time since the last attempt. The thesis prints the second test as
 * K x t_d < t - P, an instant multiplied by a constant; its text means this.
 */
static inline bool artis_is_far(const struct artis_policy *policy, u64 since_ns, u64 period_ns)
{
	return period_ns > since_ns + policy->predict_c_ns ||
	       since_ns > period_ns * policy->predict_k;
}

/*
 * artis_is_calm - may a task be expected to compute on without an attempt?
 *
 * @now_ns: the scheduler's clock. C is below 2^32 ns and K below 2^29.
 *
 * Without a known interval a task has to run for C x K first, by either rule.
 */
static inline bool artis_is_calm(const struct artis_policy *policy, const struct artis_history *h,
				 u64 now_ns)
{
	u64 long_ns = policy->predict_c_ns * policy->predict_k;

	/*
	 * The mean tells nothing of bursts: one long pause makes fifty short intervals look far apart.
	 * Replayed (tests/policy/examples/replay.rs), this rule wastes a sixth of the moves that the
	 * mean in own run time wastes, and misses no more calm.
	 */
	if (policy->predict_rule == ARTIS_PREDICT_LEAST)
		return h->least_run_ns > h->quiet_run_ns + policy->predict_c_ns ||
		       h->quiet_run_ns >= long_ns;
	if (!h->period_ns)
		return h->quiet_run_ns >= long_ns;
	return artis_is_far(policy, now_ns > h->last_ns ? now_ns - h->last_ns : 0,
			    artis_period(h->period_ns));
}
