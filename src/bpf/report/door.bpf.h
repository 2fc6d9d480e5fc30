/* SPDX-License-Identifier: GPL-2.0-only */
/* The only access to the ring buffer. Each CPU has a budget of events; drops are counted. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20); /* some 4000 tasks; the daemon may choose another size */
} records SEC(".maps");

/* Bits of enum artis_watch, set by the daemon. In a page of its own: all CPUs read it often. */
u32 watching SEC(".data.watch");
u32 watch_seq SEC(".data.watch"); /* incremented each time that watching begins anew */

static __always_inline bool watches(u32 what)
{
	return unlikely(watching & what);
}

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

/* Reserves a record of @size bytes; NULL, counted, if there is no room. record_end() submits it. */
static __always_inline void *record_begin(u16 kind, u32 size, u64 now_ns)
{
	struct artis_record *head = bpf_ringbuf_reserve(&records, size, 0);

	if (!head) { /* atomic: a program that counts, too, may interrupt this one */
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

/* The same for an event, if @what is watched and the budget of this CPU, @c, is not used up. */
static __always_inline void *event_begin(struct artis_cpu *c, u32 what, u16 kind, u32 size,
					 u64 now_ns)
{
	if (!watches(what) || !in_budget(c, now_ns))
		return NULL;
	return record_begin(kind, size, now_ns);
}

/* Does not wake the reader: that would interrupt this CPU, which may be an RT CPU. */
static __always_inline void record_end(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}
