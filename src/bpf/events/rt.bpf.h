/* SPDX-License-Identifier: GPL-2.0-only */
/* Real-time tasks: their share of each CPU, the last one there (for a stall), put-back. */
#pragma once

/* @cpu goes from another class to a real-time one, or back. */
static __always_inline void rt_switch(struct artis_cpu *c, s32 cpu, bool in_rt, u64 now_ns)
{
	if (smt)
		__sync_fetch_and_add(core_rt_of(cpu), in_rt ? 1 : -1);
	artis_share_switch(&c->rt, now_ns, in_rt);
}

/* About when the real-time task woke up that takes the CPU: scx_bpf_now() would read the clock. */
static __always_inline u64 woken_at(const struct rq *rq)
{
	return bpf_ksym_exists(scx_bpf_now) ? rq->clock :
					      scx_bpf_now(); /* which has another base */
}

/* When @due, what has not run yet in the local queue of this CPU goes, too. */
static __always_inline void put_back_local(struct artis_cpu *c, bool due)
{
	s32 nr = due ? scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) : 0;

	if (nr > 0) {
		c->stat[ARTIS_STAT_REENQUEUE] += nr;
		if (release)
			scx_bpf_reenqueue_local();
		else
			scx_bpf_reenqueue_local_from_anywhere();
	}
}

/* A real-time task takes this CPU from the idle task, for which ops.select_cpu may have chosen it. */
static __noinline void rt_begins(struct artis_cpu *c, s32 cpu)
{
	if (!c->rt.in_rt) /* as a rule: no ops.update_idle while the kernel enables the scheduler */
		rt_switch(c, cpu, true, scx_bpf_now());
	put_back_local(c, !release && !put_back_lazy); /* else at a tick */
	if (release && c->kind == ARTIS_CPU_NRT && in_charge)
		offer(c, cpu);
}

/* From the idle task; from ext tasks, see ops.stopping and ops.running. No hook of context switches:
 * each switch between ext tasks would pay for it. */
void BPF_STRUCT_OPS(artis_update_idle, s32 cpu, bool idle)
{
	struct artis_cpu *c = cpu_of(cpu);
	struct artis_look l = { .rt = c->kind != ARTIS_CPU_NRT, .may_stay = true };

	if (!idle && has_rt_task(cpu))
		rt_begins(c, cpu);
	else if (idle && c->rt.in_rt)
		rt_switch(c, cpu, false, scx_bpf_now());
	/* what has been queued since it looked: from 6.16 on its idle bit is set by now */
	if (idle)
		look_around(&l, c, cpu);
	if (unlikely(l.waits) && likely(!c->gone))
		scx_bpf_kick_cpu(cpu, 0);
}

/* The real-time task on RT CPU @c, loose or after such a task, has run until now. Returns 0. */
__noinline int note_loose(struct artis_cpu *c __arg_nonnull, bool loose)
{
	u64 now = scx_bpf_now();
	u64 since = artis_before(c->rt.since_ns, c->noted_ns) ? c->noted_ns : c->rt.since_ns;

	if (loose)
		c->loose_ns += now - since;
	c->noted_ns = now;
	return 0;
}

/* At a tick of @p, the current task, and when it stops. */
static __always_inline void note_rt(struct artis_cpu *c, const struct task_struct *p)
{
	bool loose;

	c->rt_pid = p->pid;
	c->rt_policy = p->policy;
	__builtin_memcpy(c->rt_comm, p->comm, sizeof(c->rt_comm));
	if (c->kind != ARTIS_CPU_RT || !c->rt.in_rt)
		return;
	loose = is_loose(bpf_get_current_task_btf());
	if (unlikely(loose) || unlikely(c->loose_ns))
		note_loose(c, loose);
}

SEC("fentry/put_prev_task_rt")
int BPF_PROG(artis_rt_stops, struct rq *rq, struct task_struct *p)
{
	note_rt(cpu_of(rq->cpu), p);
	return 0;
}

SEC("fentry/put_prev_task_dl")
int BPF_PROG(artis_dl_stops, struct rq *rq, struct task_struct *p)
{
	note_rt(cpu_of(rq->cpu), p);
	return 0;
}

/* At each tick of a real-time task, under the rq lock; ops.tick is for ext tasks only. What a short
 * real-time task preempts stays in place, at no cost (docs/decisions/0003-put-back.md). */
static __always_inline void rt_tick(struct task_struct *p)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct artis_cpu *c = cpu_of(cpu);

	note_rt(c, p);
	if (unlikely(!c->rt.in_rt)) { /* it ran already when the scheduler was loaded */
		rt_switch(c, cpu, true, scx_bpf_now());
		return;
	}
	if (!in_charge || scx_bpf_now() - c->rt.since_ns < policy.put_back_ns)
		return; /* to 6.12 a look at idle CPUs is an error before in_charge */
	put_back_local(c, stays_local());
	if (release && c->held)
		overtake(c);
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
	put_back_local(cpu_of(cpu), !cpu_of(cpu)->held); /* else the local queue is empty */
}
