/* SPDX-License-Identifier: GPL-2.0-only */
/* What a real-time task has preempted waits beneath it with its account open: most soon sleep again.
 * From 6.19 on it stays in the local queue. To 6.18 only ops.cpu_release could put it back from there,
 * before the real-time task runs, so it is held: with no slice the kernel calls ops.enqueue, which leaves
 * it in no queue until its CPU dispatches, or ticks (docs/decisions/0003-put-back.md). */
#pragma once
#include "insert.bpf.h"

/* Can @p be held? A thread that exits loses its id before it stops for good. A held task goes on
 * before the queues are looked at: without a slice it would run on as long as ticks meet RT0. */
static __always_inline bool can_be_held(const struct task_struct *p, const struct rq *rq)
{
	return p->scx.slice && likely(!rq->scx.local_dsq.nr) && likely(!(p->flags & PF_EXITING));
}

/* Does the task on @c leave its account open? Not on a CPU that goes: where it is not active, the
 * kernel gives what it puts back a slice, which is to be set anew. */
static __always_inline bool goes_beneath(const struct artis_cpu *c)
{
	return put_back_lazy && likely(!c->curr_rt1) && likely(!c->evict_cause) &&
	       likely(!c->section_since_ns) && likely(!watches(ARTIS_WATCH_TASKS)) &&
	       likely(!c->gone);
}

static __always_inline void hold(struct artis_cpu *c, struct task_struct *p)
{
	c->held = ARTIS_HELD_NEXT;
	c->held_slice_ns = p->scx.slice;
	scx_bpf_task_set_slice(p, 0);
}

/* Closes the account of @p, which runs elsewhere, after another task, or is queued. Was it held? */
__noinline bool settle_beneath(struct task_struct *p __arg_trusted,
			       struct artis_task *t __arg_nonnull)
{
	struct artis_cpu *c = cpu_of(t->cpu);
	bool held;

	if (__sync_val_compare_and_swap(&c->beneath_pid, p->pid, 0) != p->pid)
		return false;
	held = c->held;
	c->held = 0;
	bpf_rcu_read_lock(); /* the program of the caller may sleep */
	if (!c->ext_running)
		set_makes_way(c, t->cpu, NULL);
	bpf_rcu_read_unlock();
	settle(c, t, p);
	t->section = c->section;
	t->section_nr = c->section_nr;
	return held;
}

/* Held tasks to be queued: a CPU holds one, and dispatches before it holds another one. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, ARTIS_MAX_CPUS);
	__type(value, u32); /* thread id */
} late SEC(".maps");
u32 nr_late;

/* The next ops.dispatch, on any CPU, is to insert @p, which was held: only there is it possible for
 * a task that is not current. */
static __always_inline void queue_later(struct task_struct *p, struct artis_task *t)
{
	u32 pid = p->pid;

	t->late = true;
	count(ARTIS_STAT_REENQUEUE);
	if (bpf_map_push_elem(&late, &pid, 0))
		scx_bpf_error("more held tasks than CPUs");
	__sync_fetch_and_add(&nr_late, 1);
}

/* Held task @p, its account closed, is to leave its CPU, for an idle one if there is one. Returns 0. */
__noinline int send_on(struct task_struct *p __arg_trusted, struct artis_task *t __arg_nonnull)
{
	struct artis_facts f = { .cpu = cpu_of_task(p), .pinned = is_migration_disabled(p) };
	u32 group = group_of(f.cpu), queue;
	s32 cpu = -EBUSY;

	f.inside = is_inside(t->section, false);
	queue = note_facts(&f, p, t);
	if (queue == ARTIS_QUEUE_OWN) {
		join_as_is(t, queue, f.cpu, false);
	} else {
		cpu = idle_for(p, t, queue, group);
		group = group_for(&f, queue, cpu < 0 ? group : group_of(cpu));
		join_as_is(t, queue, group, false);
	}
	queue_later(p, t);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return 0;
}

/* In ops.dispatch, which the kernel calls again after it has inserted a task. */
static __noinline void queue_late(void)
{
	struct task_struct *p;
	struct artis_task *t;
	u32 pid;

	if (bpf_map_pop_elem(&late, &pid))
		return;
	__sync_fetch_and_sub(&nr_late, 1);
	p = bpf_task_from_pid(pid);
	if (!p)
		return;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (t && t->late) { /* else ops.enqueue has queued it since */
		t->late = false;
		insert(p, t, t->queue, t->where, slice_nrt(t, t->group), 0);
	}
	bpf_task_release(p);
}

/* Another task than the one beneath runs on @c, or the real-time task stays. */
static __noinline void overtake(struct artis_cpu *c)
{
	struct task_struct *p = bpf_task_from_pid(c->beneath_pid);
	struct artis_task *t = p ? bpf_task_storage_get(&task_stor, p, 0, 0) : NULL;

	if (t && settle_beneath(p, t))
		send_on(p, t);
	if (p)
		bpf_task_release(p);
	c->beneath_pid = 0;
}

/* In ops.dispatch: the task held on @c goes on, unless an RT1+ task waits by now. */
static __noinline bool goes_on(struct artis_cpu *c, s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(dsq_of(ARTIS_QUEUE_CALM, group_of(cpu)));

	if (p && artis_is_rt1_order(p->scx.dsq_vtime) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
		overtake(c);
		return false;
	}
	p = bpf_task_from_pid(c->beneath_pid);
	c->held = 0;
	if (!p)
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, c->held_slice_ns, 0);
	bpf_task_release(p);
	return true;
}
