/* SPDX-License-Identifier: GPL-2.0-only */
/* Records of tasks: once in an interval the daemon walks over all tasks. So a task has one record
 * at most, however often it switches, and only the daemon's CPU writes them. */
#pragma once

/* Writes the record of @p. False: there was no room, which record_begin() counts. */
static __noinline bool tell_task(struct task_struct *p, struct artis_task *t, bool exited)
{
	const struct cpumask *nrt = nrt_mask(), *rt = rt_mask();
	struct artis_task_record *r;

	if (!t || !nrt || !rt)
		return false;
	r = record_begin(ARTIS_RECORD_TASK, sizeof(*r), scx_bpf_now());
	if (!r)
		return false;
	r->pid = p->pid;
	r->tgid = p->tgid;
	__builtin_memcpy(r->comm, p->comm, sizeof(r->comm));
	r->start_ns = p->start_time;
	r->exec_ns = p->se.sum_exec_runtime;
	r->policy = p->policy;
	r->prio = p->prio;
	r->normal_prio = p->normal_prio;
	r->nice = p->static_prio - 120;
	r->cpu = cpu_of_task(p);
	/* not from @t: real-time tasks change their affinity without a call of an op */
	r->movable = bpf_cpumask_intersects(p->cpus_ptr, nrt);
	r->rt_allowed = bpf_cpumask_intersects(p->cpus_ptr, rt);
	r->kernel = is_kernel_task(p);
	r->exited = exited;
	r->runnable = !p->__state; /* TASK_RUNNING */
	r->calm = is_calm(t);
	r->section = t->section;
	r->rt1 = t->rt1;
	r->section_nr = t->section_nr;
	r->nr_cpus_allowed = p->nr_cpus_allowed;
	r->weight = t->weight;
	__builtin_memcpy(&r->history, &t->history, sizeof(r->history));
	__builtin_memcpy(&r->stats, &t->stats, sizeof(r->stats));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

/* kernel/bpf/task_iter.c; scx's headers do not declare them */
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym __weak;

/* Writes a record of each task that ran since its last one, or, if *@all is set, of each task. */
SEC("syscall")
int artis_walk(const u32 *all)
{
	struct task_struct *p;

	bpf_rcu_read_lock();
	bpf_for_each(task, p, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);
		u64 exec_ns = p->se.sum_exec_runtime;

		if (!t || p->exit_state) /* a zombie: ops.exit_task wrote its last record */
			continue;
		stats_of(t);
		if ((*all || exec_ns != t->told_exec_ns) && tell_task(p, t, false))
			t->told_exec_ns = exec_ns;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Queue lengths, and the clock of the time stamps: run before the array of CPUs is read by mmap. */
SEC("syscall")
int artis_sample(u64 *now_ns)
{
	u32 cpu, nr;

	bpf_for(cpu, 0, policy.nr_cpus)
		cpu_of(cpu)->own_queued = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_OWN, cpu));
	bpf_for(nr, 0, nr_groups) {
		group_nr(nr)->queued[0] = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_BOUND, nr));
		group_nr(nr)->queued[1] = scx_bpf_dsq_nr_queued(dsq_of(ARTIS_QUEUE_CALM, nr));
	}
	in_charge = 1;
	*now_ns = scx_bpf_now();
	return 0;
}
