/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How an RT CPU hands evicted tasks to an NRT CPU without ever waiting for it:
 * a FIFO for each pair of them, one writer, one reader at a time
 * (design: model section 6).
 *
 * A bounded ring (Lamport), not the list of Valois that the thesis takes: its
 * nodes have to be allocated and, once read, reclaimed, and it retries its
 * compare-and-swap when it loses a race. That is lock-free, but no number of
 * steps bounds it. Here a push is two loads and two stores whatever the reader
 * does, and a full ring is an answer, not a wait.
 *
 * The writer is the RT CPU, or another CPU that holds its runqueue's lock in its
 * stead: one at a time. Readers are NRT CPUs, exclusive among themselves by the
 * claim; the writer never looks at it. Entries may be stale when they are read.
 * Whoever reads inserts the task first, then compares the sequence number with
 * what it is now, and takes the insertion back if that has moved: compared
 * before, it could still move (docs/decisions/0007-handover-check.md).
 *
 * The caller wakes a reader after the push. A reader that finds the ring
 * claimed may leave: whoever holds it is told by artis_ring_release() that
 * somebody came meanwhile, and has to look again. Without that, an entry pushed
 * between the holder's last look and its release would wait for nobody.
 *
 * Pure: compiled for BPF and for the host (tests/policy), where a checker of
 * interleavings supplies the atomic operations.
 */
#ifndef ARTIS_POLICY_HANDOVER_H
#define ARTIS_POLICY_HANDOVER_H

#include "../abi/types.h"

/*
 * The atomic operations, unless whoever includes this defines all of them.
 *
 * BPF has no load-acquire and no store-release before 6.15. On x86 every load
 * and store is one. Elsewhere the read-modify-write operations, which are fully
 * ordered, stand in: some twenty cycles each, and the line becomes the reader's
 * own, so that the writer's next store to it misses.
 */
#ifndef ARTIS_LOAD_RELAXED
#ifdef __bpf__
#define ARTIS_LOAD_RELAXED(ptr) (*(volatile __typeof__(*(ptr)) *)(ptr))
#define ARTIS_STORE_RELAXED(ptr, val) (*(volatile __typeof__(*(ptr)) *)(ptr) = (val))
#if defined(__TARGET_ARCH_x86) || defined(__SCX_TARGET_ARCH_x86)
#define ARTIS_BARRIER() __asm__ volatile("" ::: "memory")
#define ARTIS_LOAD_ACQUIRE(ptr)                                    \
	({                                                         \
		__typeof__(*(ptr)) val_ = ARTIS_LOAD_RELAXED(ptr); \
		ARTIS_BARRIER();                                   \
		val_;                                              \
	})
#define ARTIS_STORE_RELEASE(ptr, val)          \
	do {                                   \
		ARTIS_BARRIER();               \
		ARTIS_STORE_RELAXED(ptr, val); \
	} while (0)
#else
#define ARTIS_LOAD_ACQUIRE(ptr) __sync_fetch_and_add(ptr, 0)
#define ARTIS_STORE_RELEASE(ptr, val) ((void)__sync_lock_test_and_set(ptr, val))
#endif
/* in BPF an exchange and a fetching add are full barriers */
#define ARTIS_FETCH_ADD(ptr, val) __sync_fetch_and_add(ptr, val)
#define ARTIS_XCHG(ptr, val) __sync_lock_test_and_set(ptr, val)
#else
#define ARTIS_LOAD_RELAXED(ptr) __atomic_load_n(ptr, __ATOMIC_RELAXED)
#define ARTIS_STORE_RELAXED(ptr, val) __atomic_store_n(ptr, val, __ATOMIC_RELAXED)
#define ARTIS_LOAD_ACQUIRE(ptr) __atomic_load_n(ptr, __ATOMIC_ACQUIRE)
#define ARTIS_STORE_RELEASE(ptr, val) __atomic_store_n(ptr, val, __ATOMIC_RELEASE)
#define ARTIS_FETCH_ADD(ptr, val) __atomic_fetch_add(ptr, val, __ATOMIC_ACQ_REL)
#define ARTIS_XCHG(ptr, val) __atomic_exchange_n(ptr, val, __ATOMIC_ACQ_REL)
#endif
#endif

/* Evictions that one RT CPU may have under way to one NRT CPU. A power of two. */
#ifndef ARTIS_RING_SLOTS
#define ARTIS_RING_SLOTS 16
#endif

struct artis_ring {
	/* entries read so far, modulo 2^32; written by the reader that holds the claim */
	u32 head __attribute__((aligned(64)));
	/* 0: free; else one that holds it, and those who came meanwhile */
	u32 claim;
	/* entries written so far, modulo 2^32; written by the RT CPU */
	u32 tail __attribute__((aligned(64)));
	u64 slot[ARTIS_RING_SLOTS] __attribute__((aligned(64)));
};

_Static_assert((ARTIS_RING_SLOTS & (ARTIS_RING_SLOTS - 1)) == 0,
	       "the counters run on modulo 2^32: the slots must divide it");

/* An entry: whom, and which time of being queued. */
static inline u64 artis_ring_entry(u32 pid, u32 seq)
{
	return (u64)seq << 32 | pid;
}

static inline u32 artis_ring_pid(u64 entry)
{
	return (u32)entry;
}

static inline u32 artis_ring_seq(u64 entry)
{
	return entry >> 32;
}

/* artis_ring_push - the RT CPU hands over; false if the ring is full, which changes nothing */
static inline bool artis_ring_push(struct artis_ring *ring, u64 entry)
{
	u32 tail = ARTIS_LOAD_RELAXED(&ring->tail);

	/* acquire: the slot is free only once its entry has been read */
	if (tail - ARTIS_LOAD_ACQUIRE(&ring->head) >= ARTIS_RING_SLOTS)
		return false;
	ARTIS_STORE_RELAXED(&ring->slot[tail & (ARTIS_RING_SLOTS - 1)], entry);
	ARTIS_STORE_RELEASE(&ring->tail, tail + 1);
	return true;
}

/* artis_ring_is_empty - a look without the claim, to save it */
static inline bool artis_ring_is_empty(struct artis_ring *ring)
{
	return ARTIS_LOAD_ACQUIRE(&ring->tail) == ARTIS_LOAD_RELAXED(&ring->head);
}

/* artis_ring_queued - how many entries lie in it, for who only wants to know */
static inline u32 artis_ring_queued(struct artis_ring *ring)
{
	return ARTIS_LOAD_RELAXED(&ring->tail) - ARTIS_LOAD_RELAXED(&ring->head);
}

/*
 * artis_ring_claim - become the reader, until artis_ring_release()
 *
 * False: another one is, and will be told that somebody came.
 */
static inline bool artis_ring_claim(struct artis_ring *ring)
{
	return ARTIS_FETCH_ADD(&ring->claim, 1) == 0;
}

/*
 * artis_ring_release - be the reader no more
 *
 * False: somebody came meanwhile and left again. What brought them may have
 * been pushed after the last look: the caller claims and drains once more.
 */
static inline bool artis_ring_release(struct artis_ring *ring)
{
	return ARTIS_XCHG(&ring->claim, 0) == 1;
}

/* artis_ring_pop - the oldest entry, for who holds the claim; false if there is none */
static inline bool artis_ring_pop(struct artis_ring *ring, u64 *entry)
{
	u32 head = ARTIS_LOAD_RELAXED(&ring->head);

	/* acquire: what is behind the tail has been written */
	if (head == ARTIS_LOAD_ACQUIRE(&ring->tail))
		return false;
	*entry = ARTIS_LOAD_RELAXED(&ring->slot[head & (ARTIS_RING_SLOTS - 1)]);
	/* release: the slot is the writer's again after it was read */
	ARTIS_STORE_RELEASE(&ring->head, head + 1);
	return true;
}

#endif /* ARTIS_POLICY_HANDOVER_H */
