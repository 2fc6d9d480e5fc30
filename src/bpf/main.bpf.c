// SPDX-License-Identifier: GPL-2.0-only
/* artis: asymmetric real-time scheduling. The includes are in the order of the flow; what each folder
 * is for is in ARCHITECTURE.md. */
#include <scx/common.bpf.h>
#include <scx/compat.bpf.h>

char _license[] SEC("license") = "GPL";

#include "abi/abi.h"
#include "config/rodata.bpf.h"
#include "config/sched.bpf.h"
#include "ledger/cpu.bpf.h"
#include "ledger/task.bpf.h"
#include "report/tally.bpf.h"
#include "queues/take.bpf.h"
#include "events/entry.bpf.h"
#include "events/rt.bpf.h"
#include "events/run.bpf.h"
#include "report/walk.bpf.h"
#include "events/class.bpf.h"
#include "events/life.bpf.h"

SCX_OPS_DEFINE(artis_ops,
	       .select_cpu = (void *)artis_select_cpu,
	       .enqueue = (void *)artis_enqueue,
	       .dispatch = (void *)artis_dispatch,
	       .update_idle = (void *)artis_update_idle,
	       .running = (void *)artis_running,
	       .stopping = (void *)artis_stopping,
	       .yield = (void *)artis_yield,
	       .cpu_release = (void *)artis_cpu_release,
	       .init_task = (void *)artis_init_task,
	       .exit_task = (void *)artis_exit_task,
	       .enable = (void *)artis_enable,
	       .disable = (void *)artis_disable,
	       .set_weight = (void *)artis_set_weight,
	       .set_cpumask = (void *)artis_set_cpumask,
	       .cgroup_init = (void *)artis_cgroup_init,
	       .cgroup_set_weight = (void *)artis_cgroup_set_weight,
	       .cgroup_move = (void *)artis_cgroup_move,
	       .cpu_online = (void *)artis_cpu_online,
	       .cpu_offline = (void *)artis_cpu_offline,
	       .init = (void *)artis_init,
	       .exit = (void *)artis_exit,
	       .timeout_ms = 30000U, /* the daemon lowers it where it can */
	       .name = "artis");
