/* SPDX-License-Identifier: GPL-2.0-only */
/* Which tasks are RT1+: the daemon says so, and a child inherits it. */
#pragma once

static __noinline bool requeue(u32 pid, u64 dsq, u64 order)
{
	struct task_struct *p;
	bool done = false;

	bpf_rcu_read_lock(); /* the program of the caller may sleep */
	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (p->pid != pid)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, order);
		done = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq, 0);
		break;
	}
	bpf_rcu_read_unlock();
	return done; /* false: it does not wait in @dsq */
}

/* @p has class @to from now on: it is placed anew, and may preempt a lower task. */
static __always_inline void class_set(struct task_struct *p, struct artis_task *t,
				      const struct artis_set_class *to)
{
	s32 cpu = cpu_of_task(p);
	struct artis_cpu *c = cpu_of(cpu);

	settle_beneath(p, t);
	t->rt1 = to->rt1;
	t->rt1_rr = to->rt1 && to->rr;
	t->rt1_order = to->rt1 ? artis_rt1_order(to->rt1, scx_bpf_now()) : 0;
	t->rt1_turn_exec_ns = p->se.sum_exec_runtime;
	t->rt_forbidden = !!to->rt_forbidden;
	t->by_hand = !!to->by_hand;
	if (c->curr_pid == p->pid && c->ext_running) {
		c->curr_rt1 = t->rt1;
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	cpu = t->queue == ARTIS_QUEUE_OWN ? (s32)t->where : t->nrt_cpu;
	if (t->counted && requeue(p->pid, dsq_of(t->queue, t->where), order_of(t)) && t->rt1 &&
	    gives_way(cpu, t->rt1))
		preempt_for_rt1(cpu);
}

/* In fork: the child has the class of its parent, RT1+ not after SCHED_RESET_ON_FORK. */
static __always_inline void class_inherit(struct artis_task *t)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct artis_task *of = bpf_task_storage_get(&task_stor, parent, 0, 0);

	if (!of)
		return;
	t->rt_forbidden = of->rt_forbidden;
	t->by_hand = of->by_hand;
	if (!of->rt1 || parent->sched_reset_on_fork) /* cleared in the child by now */
		return;
	t->rt1 = of->rt1;
	t->rt1_rr = of->rt1_rr;
}

/* Rules are applied at each exec: often nothing differs. */
static __always_inline bool class_differs(const struct artis_task *t,
					  const struct artis_set_class *to)
{
	return t->rt1 != to->rt1 || t->rt1_rr != (to->rt1 && to->rr) ||
	       t->rt_forbidden != !!to->rt_forbidden || t->by_hand != !!to->by_hand;
}

/* Run by the daemon. Returns 0 or -ESRCH. */
SEC("syscall")
int artis_set_class(struct artis_set_class *args)
{
	struct task_struct *p = bpf_task_from_pid(args->pid);
	struct artis_task *t;
	int err = -ESRCH;

	if (!p)
		return err;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (t) {
		args->old_rt1 = t->rt1;
		args->old_rr = t->rt1_rr;
		args->old_rt_forbidden = t->rt_forbidden;
		args->old_by_hand = t->by_hand;
		if ((args->by_hand || !t->by_hand) && class_differs(t, args))
			class_set(p, t, args);
		err = 0;
	}
	bpf_task_release(p);
	return err;
}
