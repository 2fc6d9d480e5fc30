/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where may a runnable task go: facts in, verdict out (design: model sections
 * 3 and 6). The caller turns the verdict into a queue.
 *
 * Pure: compiled for BPF and for the host (tests/policy.rs).
 */
#ifndef ARTIS_POLICY_PLACE_H
#define ARTIS_POLICY_PLACE_H

#include "../abi/stat.h"

enum artis_place {
	ARTIS_PLACE_NRT, /* NRT CPUs only */
	ARTIS_PLACE_RT_IDLE, /* an idle RT CPU if there is one and NRT CPUs are busy, else NRT */
	ARTIS_PLACE_RT_STAY, /* the queue of the RT CPU where it computed */
};

struct artis_place_in {
	/* enum artis_section the task is in */
	u32 section;
	/* it wakes; else it was preempted or put back */
	bool woken;
	/* no attempt expected (policy/predict.h) */
	bool calm;
	/* kernel thread, or user-space helper that never leaves the kernel */
	bool kernel;
	/* new, or in the middle of exec, or exiting */
	bool unsettled;
	/* it ran on an RT CPU */
	bool on_rt;
	/* that CPU was taken by an rt/dl task just now */
	bool put_back;
	/* and the rt/dl task has been there for long */
	bool displaced;
	/* firm real time: it prefers RT CPUs, also busy ones, and its share of time is no matter */
	bool rt1;
	/* it computed longer than its share: ahead of the clock by lead_max_ns */
	bool ahead;
};

/*
 * artis_place - the one rule of placement
 *
 * Never ARTIS_PLACE_RT_* for a task in an endangering section: that is the
 * promise, and tests/policy.rs checks it over all inputs.
 */
static inline enum artis_place artis_place(const struct artis_place_in *in)
{
	if (in->kernel || in->unsettled || !in->calm)
		return ARTIS_PLACE_NRT;
	if (in->woken)
		/* whoever wakes is in the kernel: only from the sleeping class it may go on there */
		return in->section == ARTIS_SECTION_SLEEPING ? ARTIS_PLACE_RT_IDLE :
							       ARTIS_PLACE_NRT;
	if (in->section != ARTIS_SECTION_NONE)
		return ARTIS_PLACE_NRT;
	/* a real-time task or one of higher priority took its CPU: not to wait beneath it */
	if (in->rt1)
		return ARTIS_PLACE_RT_IDLE;
	if (in->on_rt && in->displaced)
		return ARTIS_PLACE_NRT;
	if (in->on_rt)
		return in->put_back || !in->ahead ? ARTIS_PLACE_RT_STAY : ARTIS_PLACE_NRT;
	return ARTIS_PLACE_RT_IDLE;
}

#endif /* ARTIS_POLICY_PLACE_H */
