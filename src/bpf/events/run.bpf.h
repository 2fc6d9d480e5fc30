/* SPDX-License-Identifier: GPL-2.0-only */
/* A task becomes runnable (ops.select_cpu if it wakes, ops.enqueue if that did not insert it), and
 * starts and stops on a CPU: these callbacks may run on another CPU than that of the task. */
#pragma once

/* Calm RT1+ task @p runs here at once if this RT CPU gives way: nothing in between could take it, no
 * other CPU has to be interrupted. Else ops.enqueue looks for an RT CPU. */
static __noinline s32 select_rt1(struct task_struct *p, struct artis_task *t)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct artis_cpu *c = cpu_of(cpu);

	if (c->kind != ARTIS_CPU_RT || c->curr_rt1 || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	    (!stays_local() && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL)) || !gives_way(cpu, t->rt1))
		return t->nrt_cpu;
	join(p, t, ARTIS_QUEUE_CALM, group_of(cpu), true);
	if (c->ext_running)
		count(ARTIS_STAT_RT1_PREEMPT);
	c->curr_rt1 = t->rt1; /* others look elsewhere */
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_rt(t), SCX_ENQ_PREEMPT);
	count_why(t, ARTIS_STAT_PLACE_CALM);
	count(ARTIS_STAT_TAKE_RT);
	return cpu;
}

/* The kernel does not call it for tasks that may run on one CPU only. */
s32 BPF_STRUCT_OPS(artis_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct artis_task *t = task_of(p);
	struct artis_facts f = { .cpu = prev_cpu };
	u64 slice_ns;
	u32 queue;
	s32 cpu;

	if (!t)
		return prev_cpu;
	note_partition(p, t);
	tally_ready(t);
	take_place(p, t, true);
	if (!t->nrt_groups)
		return prev_cpu;
	f.inside = is_inside(t->section, true);
	queue = note_facts(&f, p, t);
	if (unlikely(t->rt1) && artis_may_use_rt(&f))
		return select_rt1(p, t);
	cpu = pick_idle_nrt(p, t, group_of(t->nrt_cpu));
	if (cpu < 0) /* the waker takes this CPU's rq lock: no RT CPU (kernel.md section 7) */
		return t->nrt_cpu;
	join(p, t, queue, group_of(cpu), true);
	slice_ns = slice_nrt(t, group_of(cpu));
	if (release) /* from the local queue it could not leave if a real-time task came first */
		insert_as_is(p, t, queue, group_of(cpu), slice_ns, 0);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	count_why(t, ARTIS_STAT_PLACE_IDLE);
	return cpu;
}

/* Every path inserts the task or ends in scx_bpf_error(). */
static __noinline void enqueue(struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & SCX_ENQ_WAKEUP;
	s32 cpu = cpu_of_task(p);
	struct artis_task *t = task_of(p);
	struct artis_facts f = { .cpu = cpu };
	u32 queue;

	if (!t)
		return;
	if (unlikely(cpu_of(t->cpu)->beneath_pid == p->pid))
		settle_beneath(p, t);
	t->late = false;
	tally_ready(t);
	take_place(p, t, woken);
	note_partition(p, t);
	f.pinned = is_migration_disabled(p);
	if (unlikely(f.pinned))
		count(ARTIS_STAT_EXEMPT_MIGRATION_DISABLED);
	f.inside = is_inside(t->section, woken);
	queue = note_facts(&f, p, t);
	if (unlikely(queue == ARTIS_QUEUE_OWN) || unlikely(this_cpu()->gone == ARTIS_GONE_DEAD))
		enqueue_own(p, t, cpu, enq_flags);
	else
		enqueue_group(p, t, &f, queue, enq_flags);
}

/* To 6.18 in the wake-up of a real-time task, which pays for each line. */
void BPF_STRUCT_OPS(artis_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct artis_cpu *c = cpu_of(cpu_of_task(p));

	if (unlikely(c->held == ARTIS_HELD_NEXT) && c->beneath_pid == p->pid)
		c->held = ARTIS_HELD;
	else
		enqueue(p, enq_flags);
}

/* Does an RT1+ task higher than @t wait for RT CPU @cpu? */
static __noinline bool waits_higher(s32 cpu, const struct artis_task *t)
{
	struct task_struct *head =
		__COMPAT_scx_bpf_dsq_peek(dsq_of(ARTIS_QUEUE_CALM, group_of(cpu)));

	return head && artis_is_rt1_order(head->scx.dsq_vtime) &&
	       artis_before(head->scx.dsq_vtime, order_of(t)) &&
	       bpf_cpumask_test_cpu(cpu, head->cpus_ptr);
}

static __always_inline bool may_not_migrate(const struct task_struct *p)
{
	return is_migration_disabled(p) && p->cpus_ptr != &p->cpus_mask;
}

/* @p may not be on this RT CPU: it could not migrate, the user has just forbidden it RT CPUs, or
 * (PREEMPT_RT) a lock had it boosted. It leaves, or migrate_enable() gives it its CPUs first. */
static __always_inline void runs_astray(struct artis_cpu *c, s32 cpu, const struct artis_task *t,
					struct task_struct *p)
{
	if (may_not_migrate(p))
		return;
	if (in_charge && t->section >= ARTIS_SECTION_CALL)
		c->section_since_ns = scx_bpf_now();
	c->stat[ARTIS_STAT_EVICTION] += !c->evict_cause; /* else the hook of calls has counted it */
	c->evict_cause = t->section == ARTIS_SECTION_FAULT  ? ARTIS_CAUSE_FAULT :
			 t->section == ARTIS_SECTION_SIGNAL ? ARTIS_CAUSE_SIGNAL :
							      t->section_nr + 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(artis_running, struct task_struct *p)
{
	s32 cpu = cpu_of_task(p);
	struct artis_cpu *c = cpu_of(cpu);
	bool rt = c->kind == ARTIS_CPU_RT;
	struct artis_clock *clock;
	struct artis_task *t;

	if (c->rt.in_rt)
		rt_switch(c, cpu, false, scx_bpf_now());
	if (c->beneath_pid) {
		if (likely(c->beneath_pid == p->pid)) {
			c->beneath_pid = 0;
			c->held = 0;
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
	if (unlikely(c->door))
		c->faults = faults_of(p);
	c->attempts = 0;
	if (t->queue != ARTIS_QUEUE_OWN)
		queue_join(t, t->queue, group_of(cpu));
	clock = clock_of(t->queue, t->where);
	clock->vtime = artis_clock_catch_up(&policy, clock->vtime, t->vtime);
	c->curr_order = common_order(order_of(t), t->queue, t->where);
	c->curr_pid = p->pid;
	c->curr_rt1 = t->rt1;
	c->movable = t->nrt_groups && !is_kernel_task(p);
	set_makes_way(c, cpu, t);
	if (t->slice_rt != (rt && t->queue == ARTIS_QUEUE_CALM) ||
	    unlikely(c->gone >= ARTIS_GONE_EMPTY))
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
	    (unlikely(t->section >= ARTIS_SECTION_CALL) || unlikely(t->rt_forbidden)))
		runs_astray(c, cpu, t, p);
	if (unlikely(!p->scx.slice) && !may_not_migrate(p)) /* kept until it could migrate */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	if (unlikely(t->rt1)) {
		if (waits_higher(cpu, t)) /* came after select_rt1() chose @p */
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		if (stays_local() && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
			scx_bpf_reenqueue_local_from_anywhere(); /* before which it was put */
	}
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

/* Does the task that ran on @c, which a real-time task takes, go to a queue? See goes_beneath(). */
static __always_inline bool is_put_back(const struct artis_cpu *c, const struct rq *rq)
{
	return !c->gone && (!stays_local() || (unlikely(c->curr_rt1) && !kthread_is_next(rq)));
}

static __noinline void stops(struct task_struct *p, struct artis_cpu *c, s32 cpu, bool runnable)
{
	struct artis_task *t = task_of(p);

	c->curr_rt1 = 0;
	set_makes_way(c, cpu, NULL);
	if (!t)
		return;
	settle(c, t, p);
	if (!runnable) {
		queue_leave(t);
		if (unlikely(c->section_since_ns) && p->__state) /* it sleeps in its body */
			body_ended(c);
	}
	t->section = c->section;
	t->section_nr = c->section_nr;
	if (watches(ARTIS_WATCH_TASKS))
		tally_ends(c, cpu, t, p);
	/* not where the hook of calls is preempted inside itself: it leaves later */
	if (unlikely(c->evict_cause) && (p->__state || !is_migration_disabled(p))) {
		tally_eviction(t, c->evict_cause);
		if (is_wasted(t))
			count(ARTIS_STAT_WASTED);
		c->evict_cause = 0;
	}
	if (unlikely(c->section_since_ns))
		residence_ends(c);
}

void BPF_STRUCT_OPS(artis_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = cpu_of_task(p);
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	struct artis_cpu *c = cpu_of(cpu);

	c->ext_running = 0;
	c->curr_pid = 0;
	if (rq && has_rt(rq)) {
		if (!c->rt.in_rt)
			rt_switch(c, cpu, true, woken_at(rq));
		if (runnable && goes_beneath(c) && (!release || can_be_held(p, rq))) {
			c->beneath_pid = p->pid;
			if (release)
				hold(c, p);
			return;
		}
		if (runnable && is_put_back(c, rq)) {
			if (p->scx.slice) { /* else it has had its turn */
				scx_bpf_task_set_slice(p, 0); /* the kernel calls ops.enqueue */
				count(ARTIS_STAT_REENQUEUE);
			}
			put_back_local(c, !release && !put_back_lazy);
		}
	}
	stops(p, c, cpu, runnable);
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
