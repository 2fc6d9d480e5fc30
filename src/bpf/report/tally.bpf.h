/* SPDX-License-Identifier: GPL-2.0-only */
/* Totals of each task, kept while tasks are watched (else one branch), and events one by one. This is
 * the only access to the ring buffer: each CPU has a budget of events, and drops are counted. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20); /* some 4000 tasks; the daemon may choose another size */
} records SEC(".maps");

static __always_inline bool in_budget(struct artis_cpu *c, u64 now_ns)
{
	u32 second = now_ns >> 30; /* of 2^30 ns: saves a division */

	if (c->budget_second != second) {
		c->budget_second = second;
		c->budget_left = policy.record_budget;
	}
	if (!c->budget_left) {
		c->records_over++;
		return false;
	}
	c->budget_left--;
	return true;
}

/* Reserves a record of @size bytes; NULL, counted, if there is no room. It is submitted without a
 * wake-up of the reader: that would interrupt this CPU, which may be an RT CPU. */
static __always_inline void *record_begin(u16 kind, u32 size, u64 now_ns)
{
	struct artis_record *head = bpf_ringbuf_reserve(&records, size, 0);

	if (!head) { /* atomic: a program that counts, too, may interrupt this one */
		__sync_fetch_and_add(&this_cpu()->records_lost, 1);
		return NULL;
	}
	__sync_fetch_and_add(&this_cpu()->records, 1);
	*head = (struct artis_record){ kind, ARTIS_RECORD_VERSION, size, now_ns };
	return head;
}

/* The stats of @t; forgets what was under way before this watch began. */
static __always_inline struct artis_task_stats *stats_of(struct artis_task *t)
{
	if (unlikely(t->watch_seq != watch_seq)) {
		t->watch_seq = watch_seq;
		t->told_exec_ns = 0;
		t->run_since_ns = 0;
		t->stats.ready_ns = 0;
		t->stats.evict_entry_ns = 0;
		t->stats.why = ARTIS_NR_STATS;
	}
	return &t->stats;
}

static __always_inline void tally_ready(struct artis_task *t)
{
	if (watches(ARTIS_WATCH_TASKS) && !stats_of(t)->ready_ns)
		t->stats.ready_ns = scx_bpf_now();
}

static __always_inline void count_why(struct artis_task *t, enum artis_stat why)
{
	count(why);
	if (watches(ARTIS_WATCH_TASKS))
		stats_of(t)->why = why;
}

/* The next task that runs on this CPU was taken from elsewhere. */
static __always_inline void count_took(enum artis_stat why)
{
	count(why);
	if (watches(ARTIS_WATCH_TASKS))
		this_cpu()->took = why + 1;
}

/* The entry of @cause in @s. In a full list it replaces the rarest cause, which counts as other:
 * so a frequent cause gets an entry however late it comes. */
static __always_inline struct artis_cause *cause_place(struct artis_task_stats *s, u32 cause)
{
	u32 i, least = 0, least_times = ~0U;
	struct artis_cause *out;

	for (i = 0; i < ARTIS_NR_CAUSES; i++) {
		struct artis_cause *had = &s->causes[i];

		if (!had->cause)
			had->cause = cause;
		if (had->cause == cause)
			return had;
		if (had->attempts + had->evictions < least_times) {
			least_times = had->attempts + had->evictions;
			least = i;
		}
	}
	out = &s->causes[least < ARTIS_NR_CAUSES ? least : 0];
	s->attempts_other += out->attempts;
	s->evictions_other += out->evictions;
	*out = (struct artis_cause){ .cause = cause };
	return out;
}

/* The task on this CPU attempts with @cause. Global: keeps the entry hooks small. */
__noinline int tally_attempt(u32 cause)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, bpf_get_current_task_btf(), 0, 0);

	if (!t)
		return 0;
	stats_of(t)->attempts++;
	cause_place(&t->stats, cause)->attempts++;
	return 0;
}

/* Counts an eviction of @t, watched or not. Global: verified once. */
__noinline int tally_eviction(struct artis_task *t __arg_nonnull, u32 cause)
{
	t->stats.evictions++;
	cause_place(&t->stats, cause)->evictions++;
	return 0;
}

/* A wait of @s ends at @now_ns, for an RT task after @prev. Returns its length, ns; 0: unknown. */
static __always_inline u64 tally_waited(struct artis_task_stats *s, u64 now_ns,
					const struct task_struct *prev)
{
	u64 wait_ns = artis_after(now_ns, s->ready_ns); /* clocks of two CPUs may differ */

	if (!s->ready_ns)
		return 0;
	s->ready_ns = 0;
	s->waits++;
	s->wait_ns += wait_ns;
	hist_add(&s->wait, wait_ns);
	if (wait_ns > s->wait_max_ns) {
		s->wait_max_ns = wait_ns;
		s->wait_max_at_ns = now_ns;
		s->wait_max_after_pid = prev ? prev->pid : 0;
		s->wait_max_after[0] = 0;
		if (prev)
			__builtin_memcpy(s->wait_max_after, prev->comm, sizeof(prev->comm));
	}
	return wait_ns;
}

/* Writes @e as an event of @kind, if @watch is watched. Global: verified once in each program. */
__noinline int tell_event(struct task_struct *p __arg_trusted,
			  struct artis_event_record *e __arg_nonnull, u32 watch, u32 kind)
{
	struct artis_event_record *r;

	if (!watches(watch) || !in_budget(this_cpu(), e->head.time_ns))
		return 0;
	r = record_begin(kind, sizeof(*r), e->head.time_ns);
	if (!r)
		return 0;
	e->head = r->head;
	*r = *e;
	r->pid = p->pid;
	__builtin_memcpy(r->comm, p->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline void tally_begins(struct artis_cpu *c, s32 cpu, struct artis_task *t,
				    struct task_struct *p)
{
	struct artis_task_stats *s = stats_of(t);
	u64 now_ns = scx_bpf_now();
	u64 wait_ns = tally_waited(s, now_ns, NULL);
	u32 why = c->took ? c->took - 1 : s->why;

	c->took = 0;
	t->run_since_ns = now_ns;
	s->runs[c->kind == ARTIS_CPU_RT]++;
	if (s->evict_entry_ns && c->kind == ARTIS_CPU_NRT) {
		struct artis_event_record e = {
			.head.time_ns = now_ns,
			.what = s->evict_cause,
			.from = s->evict_from,
			.to = cpu,
			.begin_ns = s->evict_entry_ns,
			.left_ns = s->evict_left_ns,
		};

		hist_add(&c->arrival, artis_after(now_ns, e.begin_ns));
		tell_event(p, &e, ARTIS_WATCH_EVENTS, ARTIS_RECORD_EVICTION);
		s->evict_entry_ns = 0;
		why = ARTIS_STAT_EVICTION;
	}
	if (s->cpu != cpu || s->runs[0] + s->runs[1] == 1) { /* or this is its first run */
		struct artis_event_record e = {
			.head.time_ns = now_ns,
			.what = why,
			.from = s->cpu,
			.to = cpu,
			.begin_ns = now_ns - wait_ns,
		};

		tell_event(p, &e, ARTIS_WATCH_EVENTS, ARTIS_RECORD_MOVE);
		s->cpu = cpu;
	}
	s->why = ARTIS_NR_STATS;
}

/* A run of @p ends, which may have begun before it was watched. */
static __always_inline void tell_run(s32 cpu, struct task_struct *p, struct artis_task *t, bool rt,
				     u64 now_ns)
{
	struct artis_event_record e = {
		.head.time_ns = now_ns,
		.from = cpu,
		.to = cpu,
		.rt = rt,
		.begin_ns = t->run_since_ns,
	};

	if (t->run_since_ns)
		tell_event(p, &e, ARTIS_WATCH_RUNS, ARTIS_RECORD_RUN);
	t->run_since_ns = 0;
}

/* Ext task @p stops on @cpu; @c still holds the cause if it is evicted. */
static __noinline void tally_ends(struct artis_cpu *c, s32 cpu, struct artis_task *t,
				  struct task_struct *p)
{
	struct artis_task_stats *s = stats_of(t);
	u64 now_ns = scx_bpf_now();

	if (c->evict_cause) {
		s->misses += is_wasted(t);
		s->hits += !is_wasted(t);
		s->evict_cause = c->evict_cause;
		s->evict_from = cpu;
		s->evict_entry_ns = c->section_since_ns;
		s->evict_left_ns = now_ns;
	}
	tell_run(cpu, p, t, false, now_ns);
}

static __noinline void tally_rt_begins(struct artis_cpu *c, struct task_struct *p,
				       struct task_struct *prev)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);

	if (!t)
		return;
	stats_of(t)->runs[c->kind == ARTIS_CPU_RT]++;
	t->run_since_ns = scx_bpf_now();
	t->exec_start_ns = p->se.sum_exec_runtime;
	tally_waited(&t->stats, t->run_since_ns, prev);
}

static __noinline void tally_rt_ends(struct artis_cpu *c, s32 cpu, struct task_struct *p)
{
	struct artis_task *t = bpf_task_storage_get(&task_stor, p, 0, 0);
	u64 now_ns = scx_bpf_now(), held_ns, ran_ns;
	struct artis_task_stats *s = t ? stats_of(t) : NULL;

	if (!s || !t->run_since_ns)
		return;
	/* as the kernel accounts it, without interrupts; exec_start_ns may be stale */
	ran_ns = p->se.sum_exec_runtime - t->exec_start_ns;
	held_ns = now_ns - t->run_since_ns;
	s->run_ns[c->kind == ARTIS_CPU_RT] += ran_ns < held_ns ? ran_ns : held_ns;
	tell_run(cpu, p, t, true, now_ns);
}

/* Attached while tasks are watched. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(artis_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	s32 cpu = bpf_get_smp_processor_id();

	if (!watches(ARTIS_WATCH_TASKS))
		return 0;
	if (is_realtime(prev))
		tally_rt_ends(cpu_of(cpu), cpu, prev);
	if (is_realtime(next))
		tally_rt_begins(cpu_of(cpu), next, prev);
	return 0;
}

/* The wait of a real-time task begins in its waker, before the interrupt that starts it. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(artis_sched_waking, struct task_struct *p)
{
	struct artis_task *t = is_realtime(p) ? bpf_task_storage_get(&task_stor, p, 0, 0) : NULL;

	if (t)
		tally_ready(t);
	return 0;
}
