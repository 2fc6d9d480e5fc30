/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Evening out seats (design: model sections 5, 6 and 9): filter, select and
 * steal of policy/balance.h over the CPUs of this machine.
 *
 * An NRT CPU does it inside ops.dispatch, for its group and the RT CPUs, every
 * balance_ns at most; for other groups every balance_nrt_ns. A pass looks at
 * each CPU twice and at ARTIS_PUSH_SCAN waiting tasks; no RT CPU takes part in
 * it, and none waits for it longer than for one look at its own queue.
 */
#ifndef ARTIS_QUEUES_BALANCE_BPF_H
#define ARTIS_QUEUES_BALANCE_BPF_H

#include "../policy/balance.h"

/* What one CPU's pass works on: too much for a stack, and global functions share it. */
struct artis_pass {
	u64 now_ns;
	/* what real-time tasks leave of the group's CPUs, in whole ones (policy/load.h) */
	u64 power;
	/* least and greatest weight of the group at the last passes */
	u64 weight_low, weight_high;
	/* the group, the seat that is looked at, and the best ones so far */
	struct artis_seat group, one, to, from;
	struct artis_haul haul;
	s32 to_cpu, from_cpu;
	u32 to_group;
};

struct artis_pass passes[ARTIS_MAX_CPUS];

static __always_inline struct artis_pass *pass_of(s32 by)
{
	return &passes[(u32)by & (ARTIS_MAX_CPUS - 1)];
}

/*
 * A hint may be lost where a virtual CPU stands still between ops.enqueue's insertion and the
 * kernel's for longer than the hint is kept (take.bpf.h): nobody else would look there again.
 */
static __always_inline void mend_hint(struct artis_cpu *c, s32 cpu)
{
	if (likely(c->own_hint) || !scx_bpf_dsq_nr_queued(own_dsq(cpu)))
		return;
	c->own_hint = 1;
	if (c->kind == ARTIS_CPU_RT)
		rt_queued_hint = 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* The seat of RT CPU @cpu, into @by's pass. */
__noinline int look_at_rt(s32 cpu, s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct artis_cpu *c = cpu_of(cpu);
	/* who may leave: not the bound ones, nor the one that a CPU which runs nothing is about to take */
	s32 queued = scx_bpf_dsq_nr_queued(own_dsq(cpu)) - c->own_nr;

	if (!c->ext_running && !c->rt.in_rt)
		queued--;
	mend_hint(c, cpu);
	pass->one = (struct artis_seat){
		.weight = c->weight,
		.m = artis_m_of(artis_share_at(&c->rt, pass->now_ns),
				topology.capacity[(u32)cpu & (ARTIS_MAX_CPUS - 1)]),
		.queued = queued > 0 ? queued : 0,
		.rt = true,
		.rt_busy = c->rt.in_rt,
		.rt_held = is_held(c, pass->now_ns) || rt1_stays(c),
		.rt_bound = !!c->own_nr,
		.rt1 = c->rt1_nr,
		.near = llc_of(cpu) == llc_of(by),
	};
	return 0;
}

/*
 * The weight of @by's group at the last passes. A heavy task that runs for a moment would look like
 * many computing ones: as a giver the group counts with its least weight, as a receiver with
 * its greatest.
 */
__noinline int note_weight(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct artis_group *g = group_of(by);
	u32 i;

	g->recent[g->next_recent++ % ARTIS_RECENT] = g->weight;
	pass->weight_low = pass->weight_high = g->weight;
	for (i = 0; i < ARTIS_RECENT; i++) {
		if (g->recent[i] < pass->weight_low)
			pass->weight_low = g->recent[i];
		if (g->recent[i] > pass->weight_high)
			pass->weight_high = g->recent[i];
	}
	g->weight_low = pass->weight_low;
	return 0;
}

/* The seat of the group of NRT CPU @by, into its pass: all its CPUs are looked at for their power. */
__noinline int look_at_group(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct artis_group *g = group_of(by);
	u32 group = llc_of(by);
	s32 cpu, queued = scx_bpf_dsq_nr_queued(group_dsq(group));

	pass->power = 0;
	bpf_for(cpu, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(cpu);

		if (c->kind != ARTIS_CPU_NRT || llc_of(cpu) != group)
			continue;
		mend_hint(c, cpu);
		pass->power += artis_power_of(artis_share_at(&c->rt, pass->now_ns),
					      topology.capacity[(u32)cpu & (ARTIS_MAX_CPUS - 1)]);
	}
	g->m = artis_m_of_power(pass->power);
	note_weight(by);
	pass->group = (struct artis_seat){
		.weight = pass->weight_low,
		.m = g->m,
		.queued = queued > 0 ? queued : 0,
		/* the scan tells */
		.calm_waiting = queued > 0,
		.rt1_waiting = g->rt1_hint,
		.near = true,
	};
	return 0;
}

/* What only the kernel's task_struct tells. */
#define ARTIS_FACT_BARRED 1
#define ARTIS_FACT_KERNEL 2
#define ARTIS_FACT_UNSETTLED 4

static __always_inline u32 facts_of(const struct task_struct *p, const struct artis_task *t,
				    bool allowed)
{
	return (is_migration_disabled(p) || !allowed) * ARTIS_FACT_BARRED |
	       is_kernel_task(p) * ARTIS_FACT_KERNEL | is_unsettled(p, t) * ARTIS_FACT_UNSETTLED;
}

static __always_inline struct artis_candidate candidate_of(const struct artis_task *t, u32 facts)
{
	return (struct artis_candidate){
		.weight = t->weight,
		.calm = is_calm(t),
		.in_section = t->section != ARTIS_SECTION_NONE,
		.kernel = !!(facts & ARTIS_FACT_KERNEL),
		.settled = !(facts & ARTIS_FACT_UNSETTLED),
		.allowed = !(facts & ARTIS_FACT_BARRED),
		.rt_only = !t->movable,
		.rt1 = !!t->rt1,
	};
}

/* Does the waiting task @t move with the haul of @by's pass? */
__noinline int takes(enum artis_migration migration, struct artis_task *t, u32 facts, s32 by)
{
	struct artis_candidate task;

	if (!t)
		return 0;
	task = candidate_of(t, facts);
	return artis_steals(migration, &task, &pass_of(by)->haul);
}

/* May the waiting task @t go to an idle RT CPU? */
__noinline int may_go_to_rt(struct artis_task *t, u32 facts)
{
	struct artis_candidate task;

	if (!t)
		return 0;
	task = candidate_of(t, facts);
	return task.allowed && artis_may_go_to_rt(&task);
}

/* What counts a migration. */
static __always_inline enum artis_stat why_of(enum artis_migration migration)
{
	switch (migration) {
	case ARTIS_MIGRATION_FILL:
		return ARTIS_STAT_PUSH;
	case ARTIS_MIGRATION_RT_RT:
		return ARTIS_STAT_BALANCE_RT;
	case ARTIS_MIGRATION_RETURN:
		return ARTIS_STAT_RETURN;
	case ARTIS_MIGRATION_RT_NRT:
		return ARTIS_STAT_BALANCE_NRT;
	default:
		return ARTIS_STAT_BALANCE_LLC;
	}
}

/*
 * Move tasks that wait in @from_dsq by @pass's haul to the own queue of RT CPU @to_cpu, or to
 * the queue of NRT CPU @by's group if that is negative. Returns how many.
 */
__noinline int steal(enum artis_migration migration, u64 from_dsq, s32 to_cpu, s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct task_struct *p;
	u32 seen = 0, moved = 0;

	__sink(seen);
	__sink(moved);
	bpf_for_each(scx_dsq, p, from_dsq, 0) {
		struct artis_task *t;
		u32 facts;
		bool ok;

		if (seen++ >= ARTIS_PUSH_SCAN || artis_haul_is_done(&pass->haul))
			break;
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
		if (!t)
			continue;
		facts = facts_of(p, t,
				 to_cpu >= 0 ? bpf_cpumask_test_cpu(to_cpu, p->cpus_ptr) :
					       t->movable && p->nr_cpus_allowed > 1);
		if (!takes(migration, t, facts, by))
			continue;
		if (to_cpu >= 0) {
			scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_rt(t));
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, rt_vtime(t, to_cpu));
			ok = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, own_dsq(to_cpu), 0);
		} else {
			group_join(t, by);
			scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, policy.slice_nrt_ns);
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, order_of(t, t->vtime));
			ok = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, nrt_dsq(by), 0);
		}
		/* it ran or left meanwhile */
		if (!ok)
			continue;
		seat_join(t, to_cpu >= 0 ? seat_of_cpu(to_cpu) : seat_of_cpu(by));
		artis_haul_took(&pass->haul, t->weight);
		count_why(t, why_of(migration));
		moved++;
	}
	return moved;
}

/* How much the chosen pair of seats has to move, into @by's pass. 0: it may not do this migration. */
__noinline int haul_of(enum artis_migration migration, s32 by)
{
	struct artis_pass *pass = pass_of(by);
	bool gives = migration == ARTIS_MIGRATION_FILL || migration == ARTIS_MIGRATION_RETURN;
	bool among_rt = migration == ARTIS_MIGRATION_RT_RT;
	struct artis_seat *from = gives ? &pass->group : &pass->from;
	struct artis_seat *to = gives || among_rt ? &pass->to : &pass->group;

	if (!artis_filter(migration, from, to, &policy))
		return 0;
	pass->haul = artis_haul_of(migration, from, to);
	return 1;
}

/* Is RT CPU @cpu a better one for @by's group to give to? */
__noinline int consider_fill(s32 cpu, s32 by)
{
	struct artis_pass *pass = pass_of(by);

	look_at_rt(cpu, by);
	if (!artis_filter(ARTIS_MIGRATION_FILL, &pass->group, &pass->one, &policy) ||
	    !artis_prefers_to(ARTIS_MIGRATION_FILL, &pass->one,
			      pass->to_cpu >= 0 ? &pass->to : NULL))
		return 0;
	pass->to = pass->one;
	pass->to_cpu = cpu;
	return 0;
}

/* Is RT CPU @cpu a better one for an RT1+ task to return to? */
__noinline int consider_return(s32 cpu, s32 by)
{
	struct artis_pass *pass = pass_of(by);

	look_at_rt(cpu, by);
	if (!artis_filter(ARTIS_MIGRATION_RETURN, &pass->group, &pass->one, &policy) ||
	    !artis_prefers_to(ARTIS_MIGRATION_RETURN, &pass->one,
			      pass->to_cpu >= 0 ? &pass->to : NULL))
		return 0;
	pass->to = pass->one;
	pass->to_cpu = cpu;
	return 0;
}

/* An RT1+ task that waits in the queue of @by's group goes to an RT CPU, whatever the loads. */
__noinline int balance_return(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	s32 cpu, moved;

	pass->to_cpu = -1;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (is_rt_cpu(cpu))
			consider_return(cpu, by);
	}
	cpu = pass->to_cpu;
	if (cpu < 0 || !haul_of(ARTIS_MIGRATION_RETURN, by))
		return 0;
	moved = steal(ARTIS_MIGRATION_RETURN, nrt_dsq(by), cpu, by);
	if (!moved) {
		group_of(by)->rt1_hint = 0;
		return 0;
	}
	gave_to_rt(cpu);
	/* a guest that computes there makes way */
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return moved;
}

/* @by's group gives to the RT CPU with the least load. */
__noinline int balance_fill(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	s32 cpu, moved;

	pass->to_cpu = -1;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (is_rt_cpu(cpu))
			consider_fill(cpu, by);
	}
	cpu = pass->to_cpu;
	if (cpu < 0 || !haul_of(ARTIS_MIGRATION_FILL, by))
		return 0;
	moved = steal(ARTIS_MIGRATION_FILL, nrt_dsq(by), cpu, by);
	if (!moved)
		return 0;
	gave_to_rt(cpu);
	return moved;
}

/* Is RT CPU @cpu a better one for a move between RT CPUs, to give or to take? */
__noinline int consider_relieve(s32 cpu, s32 by)
{
	struct artis_pass *pass = pass_of(by);

	look_at_rt(cpu, by);
	if (pass->one.queued &&
	    artis_prefers_from(&pass->one, pass->from_cpu >= 0 ? &pass->from : NULL)) {
		pass->from = pass->one;
		pass->from_cpu = cpu;
	}
	if (artis_takes_guests(&pass->one) &&
	    artis_prefers_to(ARTIS_MIGRATION_RT_RT, &pass->one,
			     pass->to_cpu >= 0 ? &pass->to : NULL)) {
		pass->to = pass->one;
		pass->to_cpu = cpu;
	}
	return 0;
}

/* The RT CPU with the most load gives to the RT CPU with the least, or else to @by's group. */
__noinline int balance_relieve(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	s32 cpu, moved;

	pass->from_cpu = pass->to_cpu = -1;
	pass->group.weight = pass->weight_high;
	bpf_for(cpu, 0, policy.nr_cpus) {
		if (is_rt_cpu(cpu))
			consider_relieve(cpu, by);
	}
	cpu = pass->from_cpu;
	if (cpu < 0)
		return 0;
	if (pass->to_cpu >= 0 && pass->to_cpu != cpu && haul_of(ARTIS_MIGRATION_RT_RT, by)) {
		moved = steal(ARTIS_MIGRATION_RT_RT, own_dsq(cpu), pass->to_cpu, by);
		if (moved) {
			gave_to_rt(pass->to_cpu);
			return moved;
		}
	}
	if (!haul_of(ARTIS_MIGRATION_RT_NRT, by))
		return 0;
	return steal(ARTIS_MIGRATION_RT_NRT, own_dsq(cpu), -1, by);
}

/* Is @group a better one for @by's group to take from? */
__noinline int consider_group(u32 group, s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct artis_group *g = group_nr(group);
	s32 queued = scx_bpf_dsq_nr_queued(group_dsq(group));

	if (queued <= 0)
		return 0;
	pass->one = (struct artis_seat){
		.weight = g->weight_low,
		/* nobody of its own is left to run what waits there */
		.m = g->nr_cpus ? g->m : artis_m_of_power(0),
		.queued = queued,
	};
	if (!artis_filter(ARTIS_MIGRATION_NRT_NRT, &pass->one, &pass->group, &policy) ||
	    !artis_prefers_from(&pass->one, pass->from_cpu >= 0 ? &pass->from : NULL))
		return 0;
	pass->from = pass->one;
	pass->from_cpu = group;
	return 0;
}

/* @by's group takes from the group with the most load. */
__noinline int balance_groups(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	u32 group, mine = llc_of(by);

	pass->from_cpu = -1;
	pass->group.weight = pass->weight_high;
	bpf_for(group, 0, nr_groups) {
		if (group != mine)
			consider_group(group, by);
	}
	if (pass->from_cpu < 0 || !haul_of(ARTIS_MIGRATION_NRT_NRT, by))
		return 0;
	return steal(ARTIS_MIGRATION_NRT_NRT, group_dsq(pass->from_cpu), -1, by);
}

/* Is it @g's turn to be evened out, by this CPU? */
static __always_inline bool is_due(u64 *looked_ns, u64 now_ns, u64 every_ns)
{
	u64 looked = *looked_ns;

	return (s64)(now_ns - looked) >= (s64)every_ns &&
	       __sync_val_compare_and_swap(looked_ns, looked, now_ns) == looked;
}

/* One pass by NRT CPU @by; see above. */
__noinline int balance(s32 by)
{
	struct artis_pass *pass = pass_of(by);
	struct artis_group *g = group_of(by);
	u64 now_ns = scx_bpf_now();

	if (!is_due(&g->looked_ns, now_ns, policy.balance_ns))
		return 0;
	pass->now_ns = now_ns;
	look_at_group(by);
	/* no fill in the round of a return (model section 6) */
	if (unlikely(g->rt1_hint) && balance_return(by))
		return 0;
	if (nr_groups > 1 && is_due(&g->looked_far_ns, now_ns, policy.balance_nrt_ns) &&
	    balance_groups(by))
		return 0;
	if (balance_relieve(by))
		return 0;
	pass->group.weight = pass->weight_low;
	balance_fill(by);
	return 0;
}

#endif /* ARTIS_QUEUES_BALANCE_BPF_H */
