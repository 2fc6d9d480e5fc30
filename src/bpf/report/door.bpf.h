/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only door to the ring buffer, and who keeps it: nothing is written while
 * nobody watches, events have a budget per CPU and second, and whatever does
 * not get through is counted.
 */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20); /* some 4000 tasks; the daemon may choose another size */
} records SEC(".maps");

/* Bits of enum artis_watch, set by the daemon. Of its own page: read by all CPUs all the time. */
u32 watching SEC(".data.watch");
/* Moves by one each time that watching begins anew. */
u32 watch_seq SEC(".data.watch");

static __always_inline bool watches(u32 what)
{
	return unlikely(watching & what);
}

/* May this CPU write one more event in this second? */
static __always_inline bool in_budget(struct artis_cpu *c, u64 now_ns)
{
	/* 2^30 ns: a division less */
	u32 second = now_ns >> 30;

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

/* Room for a record of @size bytes of @kind, or NULL, which is counted. record_end() submits it. */
static __always_inline void *record_begin(u16 kind, u32 size, u64 now_ns)
{
	struct artis_record *head = bpf_ringbuf_reserve(&records, size, 0);

	if (!head) {
		/* by whoever may be interrupted by one that counts, too */
		__sync_fetch_and_add(&this_cpu()->records_lost, 1);
		return NULL;
	}
	__sync_fetch_and_add(&this_cpu()->records, 1);
	head->kind = kind;
	head->version = ARTIS_RECORD_VERSION;
	head->size = size;
	head->time_ns = now_ns;
	return head;
}

/* Room for an event, if somebody wants @what of them and the budget of this CPU, @c, has some left. */
static __always_inline void *event_begin(struct artis_cpu *c, u32 what, u16 kind, u32 size,
					 u64 now_ns)
{
	if (!watches(what) || !in_budget(c, now_ns))
		return NULL;
	return record_begin(kind, size, now_ns);
}

/* Without waking the reader: that would be an interrupt to this CPU, and it may be an RT CPU. */
static __always_inline void record_end(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}
