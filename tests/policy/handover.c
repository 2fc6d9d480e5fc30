/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/handover.h with a ring of two slots, its atomic operations handed to
 * the checker (tests/handover): the same text, under every interleaving.
 */
#include <stdbool.h>
#include "abi/types.h"

#define ARTIS_RING_SLOTS 2

u64 checker_load(const void *ptr, bool acquire);
void checker_store(void *ptr, u64 val, bool release);
u32 checker_fetch_add(u32 *ptr, u32 val);
u32 checker_xchg(u32 *ptr, u32 val);

#define ARTIS_LOAD_RELAXED(ptr) ((__typeof__(*(ptr)))checker_load(ptr, false))
#define ARTIS_LOAD_ACQUIRE(ptr) ((__typeof__(*(ptr)))checker_load(ptr, true))
#define ARTIS_STORE_RELAXED(ptr, val) checker_store(ptr, val, false)
#define ARTIS_STORE_RELEASE(ptr, val) checker_store(ptr, val, true)
#define ARTIS_FETCH_ADD(ptr, val) checker_fetch_add(ptr, val)
#define ARTIS_XCHG(ptr, val) checker_xchg(ptr, val)
#include "policy/handover.h"

bool checked_push(struct artis_ring *ring, u64 entry)
{
	return artis_ring_push(ring, entry);
}
bool checked_claim(struct artis_ring *ring)
{
	return artis_ring_claim(ring);
}
bool checked_release(struct artis_ring *ring)
{
	return artis_ring_release(ring);
}
bool checked_pop(struct artis_ring *ring, u64 *entry)
{
	return artis_ring_pop(ring, entry);
}
bool checked_is_empty(struct artis_ring *ring)
{
	return artis_ring_is_empty(ring);
}
/* where the fields are, in the order: head, claim, tail, slots */
u64 checked_offset(u32 field)
{
	switch (field) {
	case 0:
		return __builtin_offsetof(struct artis_ring, head);
	case 1:
		return __builtin_offsetof(struct artis_ring, claim);
	case 2:
		return __builtin_offsetof(struct artis_ring, tail);
	default:
		return __builtin_offsetof(struct artis_ring, slot);
	}
}
