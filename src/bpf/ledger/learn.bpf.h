/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --auto-follow: who is whose producer is found out from wake-ups.
 */
#ifndef ARTIS_LEDGER_LEARN_BPF_H
#define ARTIS_LEDGER_LEARN_BPF_H

#include <bpf_experimental.h>

#include "follow.bpf.h"

/* Puts @who into the list of @f, if there is room and it is not there; false: nothing to do. */
static __always_inline bool follow_learned(struct artis_follow *f, u64 who)
{
	u32 i, free = ARTIS_FOLLOW_MAX;

	for (i = 0; i < ARTIS_FOLLOW_MAX; i++) {
		if (f->producer[i].who == who)
			return false;
		if (!f->producer[i].who && free == ARTIS_FOLLOW_MAX)
			free = i;
	}
	if (free == ARTIS_FOLLOW_MAX)
		return false;
	f->producer[free & (ARTIS_FOLLOW_MAX - 1)].learned = 1;
	f->producer[free & (ARTIS_FOLLOW_MAX - 1)].turn = 0;
	f->producer[free & (ARTIS_FOLLOW_MAX - 1)].who = who;
	return true;
}

/* Learned producers that stopped waking the task of @f are forgotten. */
static __always_inline void follow_forget(struct artis_follow *f)
{
	u32 i;

	for (i = 0; i < ARTIS_FOLLOW_MAX; i++) {
		u64 who = f->producer[i].who;

		if (who && f->producer[i].learned && artis_learn_has_stopped(&f->learn, who))
			__sync_val_compare_and_swap(&f->producer[i].who, who, 0);
	}
}

/*
 * The task of @f is woken by @by (0: none), that of @g, which wakes @whom. Returns 1 if @by has
 * become a producer now. Global: verified once.
 */
__noinline int follow_note(struct artis_follow *f, struct artis_follow *g, u64 by, u64 whom)
{
	if (!f || !g)
		return 0;
	artis_learn_woken(&f->learn, by);
	follow_forget(f);
	if (!by)
		return 0;
	artis_learn_wakes(&g->learn, whom);
	return artis_learn_is_producer(&f->learn, &g->learn, by) && follow_learned(f, by);
}

/* @p is woken by the running task, or by an interrupt that came upon it. */
static __noinline void follow_learn(struct task_struct *p)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct artis_follow *f, *g;

	if (is_kernel_task(p))
		return;
	f = bpf_task_storage_get(&follow_stor, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!f)
		return;
	if (bpf_in_interrupt() || is_kernel_task(waker)) {
		follow_note(f, f, 0, 0);
		return;
	}
	g = bpf_task_storage_get(&follow_stor, waker, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (g && follow_note(f, g, who_is(waker), who_is(p))) {
		follow_remember(p, ARTIS_FOLLOW_CONSUMER);
		follow_remember(waker, ARTIS_FOLLOW_PRODUCER);
	}
}

#endif /* ARTIS_LEDGER_LEARN_BPF_H */
