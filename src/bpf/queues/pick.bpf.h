/* SPDX-License-Identifier: GPL-2.0-only */
/* Selects an idle CPU or one whose task makes way; masks keep the cost independent of the CPUs. */
#pragma once

/* CPUs of @of that @p may use; not @all: in the scratch mask of this CPU, until the next call. */
static __always_inline const struct cpumask *allowed_of(struct task_struct *p,
							struct bpf_cpumask *of, bool all)
{
	struct bpf_cpumask *mask;

	if (likely(all))
		return cast_mask(of);
	mask = mask_nr(ARTIS_MASKS_SCRATCH + bpf_get_smp_processor_id());
	if (mask)
		bpf_cpumask_and(mask, cast_mask(of), p->cpus_ptr);
	return cast_mask(mask);
}

/* Claims an idle CPU of @kind in @group or ARTIS_MASKS_ALL, < 0: none. SMT: idle cores first. */
__noinline s32 pick_idle(struct task_struct *p __arg_trusted, u32 group, u32 kind, bool all)
{
	struct bpf_cpumask *of = mask_of(group, kind);
	const struct cpumask *in;
	s32 cpu;

	if (!of)
		return -EBUSY;
	in = allowed_of(p, of, all);
	if (!in)
		return -EBUSY;
	if (smt) {
		cpu = scx_bpf_pick_idle_cpu(in, SCX_PICK_IDLE_CORE);
		if (cpu >= 0)
			return cpu;
	}
	return scx_bpf_pick_idle_cpu(in, 0);
}

/* Claims an idle NRT CPU, < 0: none. That of the last run (caches), else of @group, else any. */
static __always_inline s32 pick_idle_nrt(struct task_struct *p, struct artis_task *t, u32 group)
{
	s32 cpu = t->nrt_cpu;

	if (likely(!shares_core(cpu)) && likely(group_of(cpu) == group) &&
	    scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	cpu = pick_idle(p, group, ARTIS_CPU_NRT, t->nrt_all);
	if (cpu < 0 && unlikely(nr_groups > 1))
		cpu = pick_idle(p, ARTIS_MASKS_ALL, ARTIS_CPU_NRT, t->nrt_all);
	return cpu;
}

static __always_inline s32 pick_idle_rt(struct task_struct *p, struct artis_task *t, u32 group)
{
	s32 cpu;

	if (!t->rt_groups)
		return -EBUSY;
	cpu = pick_idle(p, group, ARTIS_CPU_RT, t->rt_all);
	if (cpu < 0 && unlikely(nr_groups > 1))
		cpu = pick_idle(p, ARTIS_MASKS_ALL, ARTIS_CPU_RT, t->rt_all);
	return cpu;
}

static __always_inline bool any_idle(const struct cpumask *of)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = of && bpf_cpumask_intersects(idle, of);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* A CPU of @kind in @group that runs a calm NRT task and that @p may use, < 0: none. */
__noinline s32 pick_calm(struct task_struct *p __arg_trusted, u32 group, u32 kind)
{
	struct bpf_cpumask *of = calm_of(group, kind);
	u32 cpu;

	if (!of)
		return -EBUSY;
	cpu = bpf_cpumask_any_and_distribute(cast_mask(of), p->cpus_ptr);
	return cpu < policy.nr_cpus ? (s32)cpu : -EBUSY;
}

static __always_inline void set_makes_way(struct artis_cpu *c, s32 cpu, bool on)
{
	struct bpf_cpumask *of;

	if (c->makes_way == on)
		return;
	c->makes_way = on;
	of = calm_of(group_of(cpu), c->kind);
	if (!of)
		return;
	if (on)
		bpf_cpumask_set_cpu(cpu, of);
	else
		bpf_cpumask_clear_cpu(cpu, of);
}
