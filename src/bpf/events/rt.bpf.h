/* SPDX-License-Identifier: GPL-2.0-only */
/* Real-time tasks at context switches: share of each CPU, the last one (for a stall), put-back. */
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
	/* The preempted ext task is in the local queue. Lazy: only an RT1+ task is put back, and
	 * not if @next is a kernel thread, which is soon gone as a rule. */
	if (is && !was && !(prev->flags & PF_IDLE) &&
	    (put_back == ARTIS_PUT_BACK_EAGER ||
	     (put_back == ARTIS_PUT_BACK_LAZY && unlikely(c->left_rt1) &&
	      !(next->flags & PF_KTHREAD))))
		scx_bpf_reenqueue_local_from_anywhere();
	return 0;
}

/* At each tick of a real-time task, under the rq lock; ops.tick is for ext tasks only. What a short
 * real-time task preempts stays in place, at no cost (docs/decisions/0003-put-back.md). */
static __always_inline void rt_tick(struct task_struct *p)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct artis_cpu *c = cpu_of(cpu);

	if (unlikely(!c->rt.in_rt)) { /* changed its class on the CPU, after ops.disable */
		rt_begins(c, cpu, p);
		return;
	}
	if (!in_charge || scx_bpf_now() - c->held_since_ns < policy.put_back_ns)
		return; /* to 6.12 a look at idle CPUs is an error before in_charge */
	if (put_back == ARTIS_PUT_BACK_LAZY && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
		scx_bpf_reenqueue_local_from_anywhere();
	if (unlikely(nr_groups > 1) && c->kind == ARTIS_CPU_NRT &&
	    scx_bpf_now() - c->power_ns >= policy.balance_ns)
		tell_power(c, cpu, scx_bpf_now());
	offer(c, cpu);
}

SEC("fentry/task_tick_rt")
int BPF_PROG(artis_tick_rt, struct rq *rq, struct task_struct *p, int queued)
{
	rt_tick(p);
	return 0;
}

SEC("fentry/task_tick_dl")
int BPF_PROG(artis_tick_dl, struct rq *rq, struct task_struct *p, int queued)
{
	rt_tick(p);
	return 0;
}

/* To 6.18: an ext task makes way for a real-time task, which runs after this. */
void BPF_STRUCT_OPS(artis_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	struct artis_cpu *c = cpu_of(cpu);

	c->releasing = 1;
	scx_bpf_reenqueue_local();
	c->releasing = 0;
}
