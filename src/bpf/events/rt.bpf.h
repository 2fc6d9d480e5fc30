/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Real-time tasks: never scheduled by us, seen at context switches. Their share
 * of each CPU is kept exactly, the last one is remembered by name for the
 * report of a stall, and ext tasks are put back from under them.
 */
#pragma once

static __always_inline void rt_begins(struct artis_cpu *c, s32 cpu, struct task_struct *p)
{
	u64 now = scx_bpf_now();

	if (!c->rt.in_rt) {
		if (smt)
			__sync_fetch_and_add(core_rt_of(cpu), 1);
		c->held_since_ns = now;
	}
	artis_share_switch(&c->rt, now, true);
	c->rt_since_ns = now;
	c->rt_pid = p->pid;
	c->rt_policy = p->policy;
	c->rt_kthread = !!(p->flags & PF_KTHREAD);
	__builtin_memcpy(c->rt_comm, p->comm, sizeof(c->rt_comm));
}

static __always_inline void rt_ends(struct artis_cpu *c, s32 cpu)
{
	if (smt)
		__sync_fetch_and_sub(core_rt_of(cpu), 1);
	artis_share_switch(&c->rt, scx_bpf_now(), false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(artis_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	bool was = is_realtime(prev), is = is_realtime(next);
	struct artis_cpu *c;
	s32 cpu;

	if (likely(!was && !is))
		return 0;
	cpu = bpf_get_smp_processor_id();
	c = cpu_of(cpu);
	if (was && watches(ARTIS_WATCH_TASKS))
		tally_rt_ends(c, cpu, prev);
	if (is)
		rt_begins(c, cpu, next);
	else if (c->rt.in_rt)
		rt_ends(c, cpu);
	if (is && watches(ARTIS_WATCH_TASKS))
		tally_rt_begins(c, next, prev);
	/*
	 * The ext task that was preempted lies in the local queue now. An RT1+ task has a better
	 * place, unless it is a kernel thread that came: those are gone soon as a rule.
	 */
	if (is && !was && !(prev->flags & PF_IDLE) &&
	    (put_back == ARTIS_PUT_BACK_EAGER ||
	     (put_back == ARTIS_PUT_BACK_LAZY && unlikely(c->left_rt1) &&
	      !(next->flags & PF_KTHREAD))))
		scx_bpf_reenqueue_local_from_anywhere();
	return 0;
}

/*
 * The load average of the rt class: updated under the runqueue lock at each
 * tick of a real-time task, so it serves as the tick that ops.tick is not.
 * A short real-time task leaves what it preempted in place, at no cost; a long
 * one gives it up here.
 */
SEC("tp_btf/pelt_rt_tp")
int BPF_PROG(artis_rt_tick, struct rq *rq)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct artis_cpu *c = this_cpu();

	if (rq->cpu != bpf_get_smp_processor_id() || !is_realtime(p))
		return 0;
	/* it became a real-time task while it ran: no switch told, and ops.disable came before */
	if (unlikely(!c->rt.in_rt)) {
		rt_begins(c, rq->cpu, p);
		return 0;
	}
	/* before that, to 6.12, a look at idle CPUs is an error */
	if (!in_charge || scx_bpf_now() - c->held_since_ns < policy.put_back_ns)
		return 0;
	if (put_back == ARTIS_PUT_BACK_LAZY && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
		scx_bpf_reenqueue_local_from_anywhere();
	offer(c, rq->cpu);
	return 0;
}

/* To 6.18: called before the real-time task runs, when an ext task made way for it. */
void BPF_STRUCT_OPS(artis_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	struct artis_cpu *c = cpu_of(cpu);

	c->releasing = 1;
	scx_bpf_reenqueue_local();
	c->releasing = 0;
}
