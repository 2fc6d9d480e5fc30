/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From an RT CPU to an NRT CPU without waiting (model section 6): the RT CPU
 * writes into the FIFO of the pair and sends an interrupt; the NRT CPU puts
 * what it finds into the queue of its group. Neither the lock of that queue nor
 * a scan of it ever holds up an RT CPU.
 *
 * A task in a FIFO is in BPF's custody. When the kernel takes it out of there
 * (new affinity, class, cgroup) it is queued anew or leaves the class: the
 * sequence number in the entry is old then, or the kernel refuses the insertion,
 * since each of its queued states has a number, too (kernel/sched/ext.c, qseq).
 */
#ifndef ARTIS_QUEUES_HANDOVER_BPF_H
#define ARTIS_QUEUES_HANDOVER_BPF_H

#include "../policy/handover.h"

/* ARTIS_NEAR FIFOs for each CPU as writer; sized by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARTIS_NEAR);
	__type(key, u32);
	__type(value, struct artis_ring);
} rings SEC(".maps");

/* Some NRT CPU's FIFOs may hold a task; a hint, set after writing. */
u32 handover_hint;
/* So many times all FIFOs are to be looked through, whomever they were written for. */
u32 rings_astray;

/* The FIFO from CPU @from to its @pos-th nearest NRT CPU. */
static __always_inline struct artis_ring *ring_of(s32 from, u32 pos)
{
	u32 index = (u32)from * ARTIS_NEAR + pos;

	return bpf_map_lookup_elem(&rings, &index);
}

/* Position of NRT CPU @to among the nearest of @from; ARTIS_NEAR: it is none of them. */
__noinline u32 near_pos(s32 from, s32 to)
{
	u32 pos;

	/* not unrolled: it is short on small machines */
#pragma clang loop unroll(disable)
	for (pos = 0; pos < ARTIS_NEAR; pos++) {
		if (near_of(from, pos) == (u32)to)
			break;
	}
	return pos;
}

/*
 * Which time of being queued this is: of the kernel's number, which moves first, and of our own,
 * which does not repeat where the task changes its CPU, half each.
 */
static __always_inline u32 queued_seq(const struct task_struct *p, const struct artis_task *t)
{
	u64 state = *(const volatile u64 *)&p->scx.ops_state.counter;

	return (u32)(state >> SCX_OPSS_QSEQ_SHIFT) << 16 | (t->queued_seq & 0xffff);
}

/*
 * Hand @p over from this CPU to NRT CPU @to. False: the caller has to queue it.
 * Runs under a runqueue lock, with interrupts off: one writer at a time.
 */
static __always_inline bool hand_over(const struct task_struct *p, struct artis_task *t, s32 here,
				      s32 to)
{
	struct artis_cpu *c = cpu_of(to);
	struct artis_ring *ring;
	u32 pos = near_pos(here, to);

	/* a real-time task holds it: the queue is open to the other CPUs */
	if (pos >= ARTIS_NEAR || c->rt.in_rt)
		return false;
	/* on its way out it may have no id any more by which the reader could find it */
	if (p->flags & PF_EXITING)
		return false;
	ring = ring_of(here, pos);
	if (!ring)
		return false;
	if (!artis_ring_push(ring, artis_ring_entry(p->pid, queued_seq(p, t)))) {
		count(ARTIS_STAT_HANDOVER_FULL);
		return false;
	}
	__sync_fetch_and_or(&c->inbox, 1ULL << (here & 63));
	if (!handover_hint)
		handover_hint = 1;
	count(ARTIS_STAT_HANDOVER);
	tally_fifo(t);
	return true;
}

/*
 * Queue the task of @entry for the CPUs of @cpu's group. False: it is not to be queued.
 *
 * The number is compared after the insertion, which the kernel only carries out later and only
 * if the task has not been queued anew since: before it, a task that is queued anew in between
 * for other CPUs would end here.
 *
 * Global: in the loop that calls it, the verifier looked at it some fifty times.
 */
__noinline bool accept(u64 entry, s32 cpu, u64 slice_ns)
{
	struct task_struct *p = bpf_task_from_pid(artis_ring_pid(entry));
	struct artis_task *t;
	bool ok = false;

	if (!p)
		goto stale;
	t = bpf_task_storage_get(&task_stor, p, 0, 0);
	if (t) {
		scx_bpf_dsq_insert_vtime(p, nrt_dsq(cpu), slice_away(t, slice_ns),
					 order_of(t, vtime_in(t, llc_of(cpu))), 0);
		ok = queued_seq(p, t) == artis_ring_seq(entry);
		if (!ok)
			scx_bpf_dispatch_cancel();
	}
	if (ok) {
		group_join(t, cpu);
		seat_join(t, seat_of_cpu(cpu));
		if (artis_before(order_of(t, t->vtime), cpu_of(cpu)->came_vtime))
			cpu_of(cpu)->came_vtime = order_of(t, t->vtime);
	}
	bpf_task_release(p);
stale:
	if (!ok)
		count(ARTIS_STAT_HANDOVER_STALE);
	return ok;
}

/*
 * Take what is in FIFO @index on behalf of NRT CPU @cpu's group. Returns how many were queued.
 *
 * Global, as the functions in take.bpf.h are: verified by itself.
 */
__noinline int drain_ring(u32 index, s32 cpu)
{
	struct artis_ring *ring = bpf_map_lookup_elem(&rings, &index);
	u32 n = 0, i;
	u64 entry, slice_ns;

	__sink(n);
	/* whoever has the claim is told that we came */
	if (!ring || artis_ring_is_empty(ring) || !artis_ring_claim(ring))
		return 0;
	slice_ns = slice_nrt(cpu);
	bpf_for(i, 0, ARTIS_RING_SLOTS) {
		/* the kernel takes so many insertions at once, and ejects the scheduler for one more */
		if (scx_bpf_dispatch_nr_slots() < 2 || !artis_ring_pop(ring, &entry))
			break;
		n += accept(entry, cpu, slice_ns);
	}
	if (!artis_ring_release(ring) || !artis_ring_is_empty(ring)) {
		/* somebody came and left, or there was more: look once more, soon */
		__sync_fetch_and_or(&cpu_of(cpu)->inbox, 1ULL << (index / ARTIS_NEAR & 63));
		rings_astray = 1;
		handover_hint = 1;
		scx_bpf_kick_cpu(cpu, 0);
	}
	return n;
}

/* Take what @from handed over to NRT CPU @to, on behalf of NRT CPU @cpu's group. */
static __always_inline int drain_from(s32 from, s32 to, s32 cpu)
{
	u32 pos = near_pos(from, to);

	return pos < ARTIS_NEAR ? drain_ring((u32)from * ARTIS_NEAR + pos, cpu) : 0;
}

/* A number whose 64 windows of six bits all differ (de Bruijn), and the position of each. */
#define ARTIS_DE_BRUIJN 0x03f79d71b4cb0a89ULL
static const u8 bit_position[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

/* Number of the lowest bit that is set in @bits, which is not 0. Without branches: for the verifier. */
static __always_inline u32 lowest_bit(u64 bits)
{
	return bit_position[(bits & -bits) * ARTIS_DE_BRUIJN >> 58];
}

/* What the CPUs with these last six bits of their id handed over to NRT CPU @to. */
__noinline int drain_alike(u32 low, s32 to, s32 cpu)
{
	u32 n = 0, from;

	__sink(n);
	bpf_for(from, 0, ARTIS_MAX_CPUS / 64) {
		if (64 * from + low >= policy.nr_cpus)
			break;
		n += drain_from(64 * from + low, to, cpu);
	}
	return n;
}

/* Take all that was handed over to NRT CPU @to. Returns how many tasks were queued. */
__noinline int drain(s32 to, s32 cpu)
{
	u64 bits = __sync_lock_test_and_set(&cpu_of(to)->inbox, 0);
	u32 n = 0, i;

	__sink(n);
	bpf_for(i, 0, 64) {
		if (!bits)
			break;
		n += drain_alike(lowest_bit(bits), to, cpu);
		bits &= bits - 1;
	}
	return n;
}

/*
 * NRT CPUs that a real-time task holds cannot look themselves; and a FIFO may have lost its
 * reader, since a CPU's place among the nearest is its address and changes with the partition.
 */
__noinline int drain_held(s32 cpu)
{
	s32 to;
	u32 i;

	handover_hint = 0;
	if (rings_astray) {
		rings_astray--;
		bpf_for(i, 0, policy.nr_cpus * ARTIS_NEAR)
			drain_ring(i, cpu);
		if (rings_astray)
			handover_hint = 1;
	}
	bpf_for(to, 0, policy.nr_cpus) {
		struct artis_cpu *c = cpu_of(to);

		if (!c->inbox)
			continue;
		if (c->kind == ARTIS_CPU_NRT && !c->rt.in_rt)
			handover_hint = 1; /* it has been asked to */
		else
			drain(to, cpu);
	}
	return 0;
}

#endif /* ARTIS_QUEUES_HANDOVER_BPF_H */
