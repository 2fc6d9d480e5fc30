/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of tasks that wake the daemon, which applies class rules (docs/rules.md) and adoption, and
 * what it then says: which tasks are RT1+. Only events that it asks for are attached and written. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10); /* 5000 events */
} news SEC(".maps");

u32 news_wanted SEC(".data.watch"); /* bits of enum artis_news_kind, set by the daemon */
u32 news_lost SEC(".data.watch"); /* the daemon looks at all tasks when this changes */

/* The caller submits it. NULL: not wanted, or no room. */
static __always_inline struct artis_news *begin_news(struct task_struct *p, u32 kind)
{
	struct artis_news *n;

	if (likely(!(news_wanted & kind)))
		return NULL;
	n = bpf_ringbuf_reserve(&news, sizeof(*n), 0);
	if (!n) {
		__sync_fetch_and_add(&news_lost, 1);
		return NULL;
	}
	*n = (struct artis_news){ p->pid, p->tgid, kind };
	return n;
}

static __always_inline void tell_news(struct task_struct *p, u32 kind)
{
	struct artis_news *n = begin_news(p, kind);

	if (n)
		bpf_ringbuf_submit(n, 0); /* wakes the reader; the task is in the kernel anyway */
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(artis_news_fork, struct task_struct *parent, struct task_struct *child)
{
	tell_news(child, has_rt_policy(child) ? ARTIS_NEWS_FORK_RT : ARTIS_NEWS_FORK);
	return 0;
}

/* Is a call that set the policy or affinity of @p news? The daemon's own calls are not. */
static __always_inline bool changed_by_others(struct task_struct *p, s32 err)
{
	struct artis_task *t;

	if (err || bpf_get_current_pid_tgid() >> 32 == daemon_tgid || (p->flags & PF_KTHREAD))
		return false;
	if (has_rt_policy(p))
		return true;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	return t && t->rt1;
}

/* No op is called for this and the next event if the task stays in its class. The news has the
 * arguments of the call: the daemon may have changed the task since. */
SEC("?fexit/__sched_setscheduler")
int BPF_PROG(artis_news_policy, struct task_struct *p, const struct sched_attr *attr, bool user,
	     bool pi, int err)
{
	struct artis_news *n;

	if (!changed_by_others(p, err))
		return 0;
	n = begin_news(p, ARTIS_NEWS_POLICY);
	if (!n)
		return 0;
	n->policy = attr->sched_policy;
	n->priority = attr->sched_priority;
	n->nice = attr->sched_nice;
	n->reset_on_fork = attr->sched_flags & SCHED_FLAG_RESET_ON_FORK;
	bpf_ringbuf_submit(n, 0);
	return 0;
}

SEC("?fexit/__sched_setaffinity")
int BPF_PROG(artis_news_affinity, struct task_struct *p, struct affinity_context *to, int err)
{
	if (changed_by_others(p, err))
		tell_news(p, ARTIS_NEWS_AFFINITY);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(artis_news_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	tell_news(p, ARTIS_NEWS_EXEC);
	return 0;
}

SEC("?tp_btf/task_rename") /* before p->comm changes */
int BPF_PROG(artis_news_name, struct task_struct *p, const char *comm)
{
	struct artis_news *n = begin_news(p, ARTIS_NEWS_NAME);

	if (!n)
		return 0;
	bpf_probe_read_kernel_str(n->comm, sizeof(n->comm), comm);
	bpf_ringbuf_submit(n, 0);
	return 0;
}

SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(artis_news_cgroup, struct cgroup *to, const char *path, struct task_struct *p,
	     bool all_threads)
{
	struct artis_news *n = begin_news(p, ARTIS_NEWS_CGROUP);

	if (!n)
		return 0;
	n->all_threads = all_threads;
	bpf_ringbuf_submit(n, 0);
	return 0;
}

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
	bool rr = to->rt1 && to->rr, forbidden = to->rt_forbidden, by_hand = to->by_hand;

	if (t->rt1 == to->rt1 && t->rt1_rr == rr && t->rt_forbidden == forbidden &&
	    t->by_hand == by_hand)
		return; /* as often: rules are applied at each exec */
	if (settle_beneath(p, t))
		queue_later(p, t);
	t->rt1 = to->rt1;
	t->rt1_rr = rr;
	t->rt1_order = to->rt1 ? artis_rt1_order(to->rt1, scx_bpf_now()) : 0;
	t->rt1_turn_exec_ns = p->se.sum_exec_runtime;
	t->rt_forbidden = forbidden;
	t->by_hand = by_hand;
	if (c->curr_pid == p->pid && c->ext_running) {
		c->curr_rt1 = t->rt1;
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	cpu = t->queue == ARTIS_QUEUE_OWN ? (s32)t->where : t->nrt_cpu;
	if (t->counted && requeue(p->pid, dsq_of(t->queue, t->where), order_of(t)) && t->rt1 &&
	    gives_way(cpu, t->rt1))
		preempt(cpu, ARTIS_STAT_RT1_PREEMPT);
}

/* Run by the daemon. Returns 0 or -ESRCH. */
SEC("syscall")
int artis_set_class(struct artis_set_class *args)
{
	struct artis_set_class to = *args;
	struct task_struct *p = bpf_task_from_pid(to.pid);
	struct artis_task *t = NULL;

	if (p && start_ticks(p) == to.start_ticks)
		t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (t) {
		args->rt1 = t->rt1;
		args->rr = t->rt1_rr;
		args->rt_forbidden = t->rt_forbidden;
		args->by_hand = t->by_hand;
		if (to.by_hand || !t->by_hand)
			class_set(p, t, &to);
	}
	if (p)
		bpf_task_release(p);
	return t ? 0 : -ESRCH;
}
