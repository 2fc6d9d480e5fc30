/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task is put on a CPU and taken off it: the section and the attempt flag
 * move between the CPU's struct and the task's, run time becomes virtual time.
 * Both callbacks may run on another CPU than the task's.
 */
#ifndef ARTIS_EVENTS_RUN_BPF_H
#define ARTIS_EVENTS_RUN_BPF_H

/*
 * In the middle of an endangering section on an RT CPU. Whoever may not leave
 * gets here, and on PREEMPT_RT a task that the rt class moved while it was
 * boosted through a lock and that is an ext task again: it leaves at once.
 */
static __always_inline void resumes_in_section(struct artis_cpu *c, struct artis_task *t,
					       struct task_struct *p)
{
	if (!t->movable)
		return;
	if (in_charge)
		c->section_since_ns = scx_bpf_now();
	if (is_migration_disabled(p))
		return;
	count(ARTIS_STAT_EVICTION);
	c->evict_cause = artis_cause(t->section, t->section_nr);
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(artis_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_task *t = task_of(p);

	if (!t)
		return;
	t->exec_start_ns = p->se.sum_exec_runtime;
	t->fresh = false;
	t->advance_ns = 0;
	c->section = t->section;
	c->section_nr = t->section_nr;
	c->attempts = 0;
	c->curr_vtime = order_of(t, t->vtime);
	c->curr_pid = p->pid;
	c->curr_rt1 = t->rt1;
	c->call_table = t->call_table;
	c->curr_calm = is_calm(t);
	c->movable = t->movable && !is_kernel_task(p);
	if (c->kind == ARTIS_CPU_NRT) {
		t->nrt_cpu = cpu;
		t->on_rt = false;
		group_join(t, cpu);
		c->rt1_away = t->rt_allowed ? t->rt1 : 0;
		if (unlikely(c->rt1_away))
			rt1_away_hint = 1;
	} else if (!t->on_rt && t->movable) {
		t->on_rt = true;
		t->moved_exec_ns = t->exec_start_ns;
		count(ARTIS_STAT_MOVE_RT);
		if (watches(ARTIS_WATCH_TASKS))
			t->stats.moves_rt++;
	}
	seat_join(t, seat_of_cpu(cpu));
	clock_pick(t, cpu);
	if (c->kind == ARTIS_CPU_RT && t->section >= ARTIS_SECTION_CALL && !is_kernel_task(p))
		resumes_in_section(c, t, p);
	/* it was a real-time task until now, and no switch told */
	if (unlikely(c->rt.in_rt))
		rt_ends(c, cpu);
	c->ext_running = 1;
	if (watches(ARTIS_WATCH_TASKS))
		tally_begins(c, cpu, t, p);
}

void BPF_STRUCT_OPS(artis_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_task *t = task_of(p);

	c->ext_running = 0;
	c->curr_pid = 0;
	c->curr_rt1 = 0;
	if (!t)
		return;
	c->left_rt1 = runnable ? t->rt1 : 0;
	settle(c, cpu, t, p);
	if (!runnable)
		seat_leave(t);
	t->section = c->section;
	t->section_nr = c->section_nr;
	if (unlikely(t->follow))
		follow_stopped(p, cpu);
	if (watches(ARTIS_WATCH_TASKS))
		tally_ends(c, cpu, t, p, runnable);
	if (unlikely(c->evict_cause)) {
		t->stats.evictions++;
		tally_add_cause(&t->stats, c->evict_cause, 0, 1, 0);
		if (is_wasted(t))
			count(ARTIS_STAT_WASTED);
		c->evict_cause = 0;
	}
	if (unlikely(c->section_since_ns))
		residence_ends(c);
}

/* sched_yield(2): an RT1+ task lets its equals go first. To another task nobody yields. */
bool BPF_STRUCT_OPS(artis_yield, struct task_struct *from, struct task_struct *to)
{
	struct artis_task *t = task_of(from);

	if (to || !t)
		return false;
	if (unlikely(t->rt1))
		place_last(from, t);
	scx_bpf_task_set_slice(from, 0);
	return false;
}

#endif /* ARTIS_EVENTS_RUN_BPF_H */
