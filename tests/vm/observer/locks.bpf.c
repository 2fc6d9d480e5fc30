/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which kernel locks do RT CPUs wait for, and who holds theirs for how long?
 * Shares nothing with src/bpf.
 *
 * A wait for a spinning lock is the slow path of qspinlock, entry to return.
 * The tracepoint lock:contention_begin would miss most of them: it is silent
 * for the first waiter of a lock, and for all of them in a virtual machine.
 * Reader-writer and sleeping locks come from that tracepoint.
 *
 * A hold is from the return of _raw_spin_lock() or a trylock that got it to
 * the entry of _raw_spin_unlock(); the kernel's runqueue and dispatch-queue
 * locks are taken and given back by no others.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "locks.h"
#include "tasks.h"

char _license[] SEC("license") = "GPL";

#define PF_IDLE_ 0x00000002
/* include/trace/events/lock.h */
#define LCB_F_SPIN_ (1U << 0)
#define LCB_F_READ_ (1U << 1)
#define LCB_F_WRITE_ (1U << 2)
/* kernel/sched/ext: ids of the kernel's own queues */
#define DSQ_FLAG_BUILTIN_ (1ULL << 63)

const volatile u64 rt_mask;
const volatile u32 nr_cpus;

/* off at first: the probes stay attached */
u32 counting;
/* waits and holds that began and whose end did not fit, or that found no room */
u64 lost;

extern const struct rq runqueues __ksym;

/* What is known of a lock, by its address. */
struct known_lock {
	u32 kind;
	u32 holder;
	u64 which;
	/* 0: not held, or not seen to be taken */
	u64 since_ns;
	/* scratch.spent_ns of the holder's CPU then */
	u64 spent_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LOCKS_KNOWN);
	__type(key, u64);
	__type(value, struct known_lock);
} known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LOCKS_PLACES);
	__type(key, struct lock_place);
	__type(value, struct times);
} places SEC(".maps");

/* Waits of one CPU, innermost last: interrupts wait, too. */
struct waits {
	u32 depth;
	/* this CPU is in note(): what it waits for there is the observer's own */
	u32 busy;
	u64 lock[LOCKS_NESTED];
	u64 since_ns[LOCKS_NESTED];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct waits);
} waiting SEC(".maps");

/* Too big for the stack. */
struct scratch {
	/* what note() took on this CPU so far: it falls into holds around the one it notes */
	u64 spent_ns;
	struct lock_place place;
	/* how a new place begins */
	struct times none;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* A wait that may sleep and so end on another CPU. */
struct sleep {
	u64 lock;
	u64 since_ns;
	u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sleep);
} sleeps SEC(".maps");

static bool on_rt(u32 cpu)
{
	return cpu < TIMES_MAX_CPUS && (rt_mask >> cpu & 1);
}

static u32 who_is(struct task_struct *p)
{
	if (p->flags & PF_IDLE_)
		return LOCK_BY_IDLE;
	if (p->prio < MAX_RT_PRIO_)
		return LOCK_BY_REALTIME;
	return p->flags & PF_KTHREAD_ ? LOCK_BY_KTHREAD : LOCK_BY_USER;
}

static struct scratch *scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

static void note(void *ctx, u32 what, u64 lock, const struct known_lock *k, u64 ns)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 began_ns = bpf_ktime_get_ns();
	struct scratch *s = scratch();
	struct times *t;

	if (!s)
		return;
	__builtin_memset(&s->place, 0, sizeof(s->place));
	s->place.what = what;
	s->place.who = who_is(bpf_get_current_task_btf());
	s->place.cpu = cpu;
	if (k) {
		s->place.kind = k->kind;
		s->place.which = k->which;
	} else {
		s->place.which = lock;
	}
	bpf_get_stack(ctx, s->place.ip, sizeof(s->place.ip), 0);
	t = bpf_map_lookup_elem(&places, &s->place);
	if (!t) {
		bpf_map_update_elem(&places, &s->place, &s->none, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&places, &s->place);
	}
	if (!t) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	times_add(t, ns);
	s->spent_ns += bpf_ktime_get_ns() - began_ns;
}

/* Run once by artis-guest: the locks of runqueues. */
SEC("syscall")
int locks_of_cpus(void *ctx)
{
	u32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		struct known_lock k = { .which = cpu };
		const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
		u64 at;

		if (!rq)
			break;
		at = (u64)&rq->__lock;
		k.kind = LOCK_RQ;
		bpf_map_update_elem(&known, &at, &k, BPF_ANY);
		at = (u64)&rq->scx.local_dsq.lock;
		k.kind = LOCK_DSQ_LOCAL;
		bpf_map_update_elem(&known, &at, &k, BPF_ANY);
	}
	return 0;
}

/* A task was queued: its queue is one of the scheduler's, or the kernel's own. */
static void learn(struct task_struct *p)
{
	struct scx_dispatch_q *dsq = p->scx.dsq;
	struct known_lock k = { .kind = LOCK_DSQ };
	u64 at;

	if (!counting || !dsq)
		return;
	k.which = dsq->id;
	if (k.which & DSQ_FLAG_BUILTIN_)
		return;
	at = (u64)&dsq->lock;
	if (!bpf_map_lookup_elem(&known, &at))
		bpf_map_update_elem(&known, &at, &k, BPF_NOEXIST);
}

SEC("fexit/enqueue_task_scx")
int BPF_PROG(locks_enqueued, struct rq *rq, struct task_struct *p)
{
	learn(p);
	return 0;
}

SEC("fexit/put_prev_task_scx")
int BPF_PROG(locks_put, struct rq *rq, struct task_struct *p)
{
	learn(p);
	return 0;
}

SEC("fentry/native_queued_spin_lock_slowpath")
int BPF_PROG(wait_begins, struct qspinlock *lock)
{
	u32 zero = 0, depth;
	struct waits *w;

	if (!counting || !on_rt(bpf_get_smp_processor_id()))
		return 0;
	w = bpf_map_lookup_elem(&waiting, &zero);
	if (!w || w->busy)
		return 0;
	depth = w->depth;
	if (depth >= LOCKS_NESTED) {
		w->depth = 0;
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	w->lock[depth] = (u64)lock;
	w->since_ns[depth] = bpf_ktime_get_ns();
	w->depth = depth + 1;
	return 0;
}

SEC("fexit/native_queued_spin_lock_slowpath")
int BPF_PROG(wait_ends, struct qspinlock *lock)
{
	u64 now_ns = bpf_ktime_get_ns(), at = (u64)lock;
	u32 zero = 0, depth;
	struct waits *w;

	if (!counting || !on_rt(bpf_get_smp_processor_id()))
		return 0;
	w = bpf_map_lookup_elem(&waiting, &zero);
	if (!w || w->busy || !w->depth)
		return 0;
	depth = w->depth - 1;
	w->depth = depth;
	if (depth >= LOCKS_NESTED || w->lock[depth] != at) {
		w->depth = 0;
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	w->busy = 1;
	note(ctx, LOCK_WAIT, at, bpf_map_lookup_elem(&known, &at), now_ns - w->since_ns[depth]);
	w->busy = 0;
	return 0;
}

static bool is_spinning(u32 flags)
{
	return (flags & LCB_F_SPIN_) && !(flags & (LCB_F_READ_ | LCB_F_WRITE_));
}

SEC("tp_btf/contention_begin")
int BPF_PROG(sleep_begins, void *lock, unsigned int flags)
{
	struct sleep *s;

	/* those are seen above */
	if (!counting || is_spinning(flags) || !on_rt(bpf_get_smp_processor_id()))
		return 0;
	s = bpf_task_storage_get(&sleeps, bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s)
		return 0;
	s->lock = (u64)lock;
	s->flags = flags;
	s->since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(sleep_ends, void *lock, int ret)
{
	struct sleep *s;

	if (!counting)
		return 0;
	s = bpf_task_storage_get(&sleeps, bpf_get_current_task_btf(), NULL, 0);
	if (!s || s->lock != (u64)lock)
		return 0;
	s->lock = 0;
	note(ctx, s->flags & LCB_F_SPIN_ ? LOCK_WAIT : LOCK_SLEEP, (u64)lock, NULL,
	     bpf_ktime_get_ns() - s->since_ns);
	return 0;
}

/* Locks whose holders an RT CPU may have to wait for. */
static struct known_lock *of_interest(u64 lock)
{
	struct known_lock *k;

	if (!counting)
		return NULL;
	k = bpf_map_lookup_elem(&known, &lock);
	if (k && k->kind == LOCK_RQ && !on_rt(k->which))
		return NULL;
	if (k && k->kind == LOCK_DSQ_LOCAL)
		return NULL; /* inside the runqueue's, always */
	return k;
}

static void taken(u64 lock)
{
	struct known_lock *k = of_interest(lock);
	struct scratch *s = scratch();

	if (!k || !s)
		return;
	k->spent_ns = s->spent_ns;
	k->holder = bpf_get_smp_processor_id();
	k->since_ns = bpf_ktime_get_ns();
}

SEC("?fexit/_raw_spin_lock")
int BPF_PROG(hold_begins, raw_spinlock_t *lock)
{
	taken((u64)lock);
	return 0;
}

SEC("?fexit/_raw_spin_trylock")
int BPF_PROG(hold_tried, raw_spinlock_t *lock, int got)
{
	if (got)
		taken((u64)lock);
	return 0;
}

SEC("?fentry/_raw_spin_unlock")
int BPF_PROG(hold_ends, raw_spinlock_t *lock)
{
	struct known_lock *k = of_interest((u64)lock);
	struct scratch *s = scratch();
	u64 ns;

	if (!k || !k->since_ns || !s)
		return 0;
	ns = bpf_ktime_get_ns() - k->since_ns;
	k->since_ns = 0;
	if (k->holder == bpf_get_smp_processor_id())
		note(ctx, LOCK_HOLD, (u64)lock, k, ns - (s->spent_ns - k->spent_ns));
	return 0;
}
