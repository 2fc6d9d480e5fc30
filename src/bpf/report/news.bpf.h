/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * News of tasks, for the daemon, which is woken at once: rules about classes
 * (docs/rules.md) and adoption are applied there. Nothing is attached or written
 * of what nobody has asked for.
 */
#ifndef ARTIS_REPORT_NEWS_BPF_H
#define ARTIS_REPORT_NEWS_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10); /* 5000 of them */
} news SEC(".maps");

/* Bits of enum artis_news_kind, set by the daemon. */
u32 news_wanted SEC(".data.watch");
/* News that found no room: the daemon looks at all tasks when this moves. */
u32 news_lost SEC(".data.watch");

static __always_inline void tell_news(struct task_struct *p, u32 kind, const char *comm,
				      bool all_threads)
{
	struct artis_news *n;

	if (likely(!(news_wanted & kind)))
		return;
	n = bpf_ringbuf_reserve(&news, sizeof(*n), 0);
	if (!n) {
		__sync_fetch_and_add(&news_lost, 1);
		return;
	}
	n->time_ns = scx_bpf_now();
	n->pid = p->pid;
	n->tgid = p->tgid;
	n->kind = kind;
	n->all_threads = all_threads;
	bpf_probe_read_kernel_str(n->comm, sizeof(n->comm), comm ? comm : p->comm);
	/* the reader is woken: whoever forks or changes its policy is in the kernel anyway */
	bpf_ringbuf_submit(n, 0);
}

/* Is it a task that the user has made real time? Others are boosted for a moment only. */
static __always_inline bool has_rt_policy(const struct task_struct *p)
{
	return p->policy == 1 || p->policy == 2 || p->policy == 6; /* SCHED_FIFO, _RR, _DEADLINE */
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(artis_news_fork, struct task_struct *parent, struct task_struct *child)
{
	tell_news(child, has_rt_policy(child) ? ARTIS_NEWS_FORK_RT : ARTIS_NEWS_FORK, NULL, false);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(artis_news_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	tell_news(p, ARTIS_NEWS_EXEC, NULL, false);
	return 0;
}

/* Before the name changes. */
SEC("?tp_btf/task_rename")
int BPF_PROG(artis_news_name, struct task_struct *p, const char *comm)
{
	tell_news(p, ARTIS_NEWS_NAME, comm, false);
	return 0;
}

SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(artis_news_cgroup, struct cgroup *to, const char *path, struct task_struct *p,
	     bool all_threads)
{
	tell_news(p, ARTIS_NEWS_CGROUP, NULL, all_threads);
	return 0;
}

#endif /* ARTIS_REPORT_NEWS_BPF_H */
