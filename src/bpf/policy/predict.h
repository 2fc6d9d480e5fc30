/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who will enter the kernel soon? The one place to replace when the prediction
 * of model section 4 (t_d, P, C, K) arrives.
 *
 * Today: a task is calm after it has run for a fixed time without an attempt.
 * Run time, not wall time: a task that waits in a queue shows nothing of what
 * it will do next, and by wall time every waiting task would look calm.
 *
 * Pure: compiled for BPF and for the host (tests/policy.rs).
 */
#ifndef ARTIS_POLICY_PREDICT_H
#define ARTIS_POLICY_PREDICT_H

#include "../abi/consts.h"

/*
 * artis_quiet_after - the quiet time of a task after a run of @run_ns
 *
 * An attempt during the run sets it to 0: when in the run it happened is not
 * recorded, and too small is the safe side.
 */
static inline u64 artis_quiet_after(u64 quiet_run_ns, u64 run_ns, bool attempted)
{
	return attempted ? 0 : quiet_run_ns + run_ns;
}

/* artis_is_calm - may a task be expected to compute on without an attempt? */
static inline bool artis_is_calm(const struct artis_policy *policy, u64 quiet_run_ns)
{
	return quiet_run_ns >= policy->quiet_ns;
}

#endif /* ARTIS_POLICY_PREDICT_H */
