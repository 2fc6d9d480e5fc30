/* SPDX-License-Identifier: GPL-2.0-only */
/* Holds the CPU for a while. */
#ifndef ARTIS_OBSERVER_SPIN_H
#define ARTIS_OBSERVER_SPIN_H

/* the most that an iterator does */
#define SPIN_LOOKS (1 << 23)

static void spin(u64 ns)
{
	u64 until_ns = bpf_ktime_get_ns() + ns;
	int i;

	bpf_for(i, 0, SPIN_LOOKS) {
		if (bpf_ktime_get_ns() >= until_ns)
			break;
	}
}

#endif /* ARTIS_OBSERVER_SPIN_H */
