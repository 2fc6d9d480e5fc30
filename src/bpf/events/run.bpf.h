/* SPDX-License-Identifier: GPL-2.0-only */
/* A task starts and stops on a CPU. Both callbacks may run on another CPU than that of the task. */
#pragma once

/* Does an RT1+ task higher than @t wait for RT CPU @cpu? */
static __noinline bool waits_higher(s32 cpu, const struct artis_task *t)
{
	struct task_struct *head =
		__COMPAT_scx_bpf_dsq_peek(dsq_of(ARTIS_QUEUE_CALM, group_of(cpu)));

	return head && artis_is_rt1_order(head->scx.dsq_vtime) &&
	       artis_before(head->scx.dsq_vtime, order_of(t)) &&
	       bpf_cpumask_test_cpu(cpu, head->cpus_ptr);
}

void BPF_STRUCT_OPS(artis_running, struct task_struct *p)
{
	s32 cpu = cpu_of_task(p);
	struct artis_cpu *c = cpu_of(cpu);
	bool rt = c->kind == ARTIS_CPU_RT;
	struct artis_clock *clock;
	struct artis_task *t;

	if (c->rt.in_rt)
		rt_switch(c, cpu, false);
	if (c->beneath_pid) {
		if (likely(c->beneath_pid == p->pid)) {
			c->beneath_pid = 0;
			c->curr_pid = p->pid;
			c->ext_running = 1;
			return;
		}
		overtake(c);
	}
	t = task_of(p);
	if (!t)
		return;
	if (unlikely(cpu_of(t->cpu)->beneath_pid == p->pid))
		settle_beneath(p, t);
	t->cpu = cpu;
	t->exec_start_ns = p->se.sum_exec_runtime;
	t->fresh = false;
	t->advance_ns = 0;
	c->began_in = t->section;
	c->door = t->section >= ARTIS_SECTION_FAULT ? t->section : ARTIS_SECTION_NONE;
	c->attempts = 0;
	if (t->queue != ARTIS_QUEUE_OWN)
		queue_join(t, t->queue, group_of(cpu));
	clock = clock_of(t->queue, t->where);
	clock->vtime = artis_clock_catch_up(&policy, clock->vtime, t->vtime);
	c->curr_order = common_order(order_of(t), t->queue, t->where);
	c->curr_pid = p->pid;
	c->curr_rt1 = t->rt1;
	c->movable = t->nrt_groups && !is_kernel_task(p);
	set_makes_way(c, cpu, t->queue == ARTIS_QUEUE_CALM && !t->rt1);
	if (t->slice_rt != (rt && t->queue == ARTIS_QUEUE_CALM) || unlikely(dispatches_no_more(c)))
		set_slice(p, t, cpu);
	if (!rt) {
		if (c->kind == ARTIS_CPU_NRT)
			t->nrt_cpu = cpu;
		t->on_rt = false;
	} else if (!t->on_rt && c->movable) {
		t->on_rt = true;
		t->moved_exec_ns = t->exec_start_ns;
		count(ARTIS_STAT_MOVE_RT);
		if (watches(ARTIS_WATCH_TASKS))
			t->stats.moves_rt++;
	}
	if (rt && c->movable &&
	    (unlikely(t->section >= ARTIS_SECTION_CALL) || unlikely(t->rt_forbidden))) {
		/* It may not be here: it cannot migrate, the user has just forbidden it RT CPUs, or
		 * (PREEMPT_RT) the rt class moved it here while a lock boosted it. */
		if (in_charge && t->section >= ARTIS_SECTION_CALL)
			c->section_since_ns = scx_bpf_now();
		if (!is_migration_disabled(p)) { /* it leaves */
			count(ARTIS_STAT_EVICTION);
			c->evict_cause = t->section == ARTIS_SECTION_FAULT ? ARTIS_CAUSE_FAULT :
					 t->section == ARTIS_SECTION_DEATH ? ARTIS_CAUSE_DEATH :
									     t->section_nr + 1;
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		}
	}
	if (unlikely(t->rt1) && waits_higher(cpu, t)) /* came after select_rt1() chose @p */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	c->ext_running = 1;
	if (watches(ARTIS_WATCH_TASKS))
		tally_begins(c, cpu, t, p);
}

struct sched_rt_entity___group {
	struct rt_rq *my_q; /* CONFIG_RT_GROUP_SCHED: what is queued may be a group of tasks */
} __attribute__((preserve_access_index));

/* The first real-time task of this CPU is a kernel thread, which is soon gone as a rule. */
static __noinline bool kthread_is_next(const struct rq *rq)
{
	u32 prio = rq->rt.highest_prio.curr, flags = 0;
	const struct list_head *first = NULL;

	if (prio >= ARTIS_MAX_RT_PRIO ||
	    bpf_core_field_exists(struct sched_rt_entity___group, my_q))
		return false;
	bpf_probe_read_kernel(&first, sizeof(first),
			      (void *)&rq->rt.active.queue + prio * sizeof(struct list_head));
	bpf_probe_read_kernel(&flags, sizeof(flags),
			      (void *)first -
				      bpf_core_field_offset(struct task_struct, rt.run_list) +
				      bpf_core_field_offset(struct task_struct, flags));
	return flags & PF_KTHREAD;
}

/* From 6.19: @t stops for a real-time task and does not stay beneath it. Lazy: an RT1+ task only. */
static __always_inline bool is_put_back(const struct artis_task *t, s32 cpu)
{
	const struct rq *rq;

	if ((likely(!t->rt1) && put_back == ARTIS_PUT_BACK_LAZY) || !cpu_of(cpu)->rt.in_rt ||
	    cpu != (s32)bpf_get_smp_processor_id())
		return false;
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	return put_back == ARTIS_PUT_BACK_EAGER || (rq && !kthread_is_next(rq));
}

void BPF_STRUCT_OPS(artis_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = cpu_of_task(p);
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_task *t;

	c->ext_running = 0;
	c->curr_pid = 0;
	if (has_rt_task(cpu) && !c->rt.in_rt)
		rt_switch(c, cpu, true);
	if (runnable && goes_beneath(c)) {
		c->beneath_pid = p->pid;
		return;
	}
	c->curr_rt1 = 0;
	set_makes_way(c, cpu, false);
	t = task_of(p);
	if (!t)
		return;
	if (runnable && put_back != ARTIS_PUT_BACK_RELEASE && unlikely(is_put_back(t, cpu)))
		scx_bpf_reenqueue_local_from_anywhere();
	settle(c, t, p);
	if (!runnable)
		queue_leave(t);
	t->section = c->section;
	t->section_nr = c->section_nr;
	if (unlikely(t->follow))
		follow_stopped(p, cpu);
	if (watches(ARTIS_WATCH_TASKS))
		tally_ends(c, cpu, t, p);
	if (unlikely(c->evict_cause)) {
		tally_eviction(t, c->evict_cause);
		if (is_wasted(t))
			count(ARTIS_STAT_WASTED);
		c->evict_cause = 0;
	}
	if (unlikely(c->section_since_ns))
		residence_ends(c);
}

/* sched_yield(2): an RT1+ task goes behind its equals. yield_to() is not supported. */
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
