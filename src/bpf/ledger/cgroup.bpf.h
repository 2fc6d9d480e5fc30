/* SPDX-License-Identifier: GPL-2.0-only */
/* cpu.weight of cgroups scales the weights of their tasks: docs/decisions/0004-cgroup-weight.md. */
#pragma once

struct artis_cgroup {
	u32 weight;
};
struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct artis_cgroup);
} cgroup_stor SEC(".maps");
u32 cgroup_gen; /* moves with each change of weight: tasks recompute when queued next */

static void cgroup_note_weight(struct cgroup *cgrp, u32 weight)
{
	struct artis_cgroup *c =
		bpf_cgrp_storage_get(&cgroup_stor, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (c)
		c->weight = weight;
	__sync_fetch_and_add(&cgroup_gen, 1);
}

static u32 cgroup_path_weight(struct cgroup *cgrp)
{
	u32 weight = ARTIS_WEIGHT_DEFAULT, depth = cgrp->level, level;

	bpf_for(level, 1, ARTIS_CGROUP_LEVELS) { /* the root, level 0, has no weight */
		struct artis_cgroup *c;
		struct cgroup *pos;

		if (level > depth)
			break;
		pos = bpf_cgroup_ancestor(cgrp, level);
		if (!pos)
			break;
		c = bpf_cgrp_storage_get(&cgroup_stor, pos, 0, 0);
		if (c && c->weight)
			weight = artis_weight_in(weight, c->weight);
		bpf_cgroup_release(pos);
	}
	return weight;
}

/* Kernel threads and the daemon count least: their work is short or bound, even at nice -20. */
static void task_note_weight(const struct task_struct *p, struct artis_task *t, u32 weight)
{
	weight = artis_weight_in(weight, t->cgroup_weight);
	t->weight = is_kernel_task(p) || p->tgid == daemon_tgid ? ARTIS_WEIGHT_MIN : weight;
	t->inv_weight = artis_inv_weight(weight);
}

static void task_forget_cgroup(struct artis_task *t)
{
	t->cgroup_gen = cgroup_gen - 1; /* task_refresh_weight() looks again */
}

/* Takes over changed weights before @p is queued. Only for ops that hold the rq lock of @p. */
static __always_inline void task_refresh_weight(struct task_struct *p, struct artis_task *t)
{
	struct cgroup *cgrp;

	if (likely(t->cgroup_gen == cgroup_gen))
		return;
	cgrp = scx_bpf_task_cgroup(p);
	if (!cgrp)
		return;
	t->cgroup_gen = cgroup_gen;
	t->cgroup_weight = cgroup_path_weight(cgrp);
	task_note_weight(p, t, p->scx.weight);
	bpf_cgroup_release(cgrp);
}
