// SPDX-License-Identifier: GPL-2.0-only
//! What is decided before the BPF programs are loaded.

use std::ptr;

use anyhow::{Context, Result};

use crate::abi::skel::OpenBpfSkel;
use crate::config::has_smt;
use crate::daemon::kernel;
use crate::daemon::preempt::Model;
use crate::daemon::setup::Setup;

/// Writes what BPF only reads: the policy and the topology whole, and what this kernel can do.
///
/// # Errors
/// When the BPF object lacks one of its maps.
pub fn write(skel: &mut OpenBpfSkel<'_>, setup: &Setup, put_back_lazy: bool) -> Result<()> {
    let policy = skel.maps.data_policy_data.as_mut().context("the BPF object has no policy")?;
    policy.policy = setup.policy;
    let topology = skel.maps.data_topology_data.as_mut();
    topology.context("the BPF object has no topology")?.topology = *setup.topology;

    let rodata = skel.maps.rodata_data.as_mut().context("the BPF object has no constants")?;
    rodata.put_back_lazy = put_back_lazy;
    rodata.release = !kernel::can_reenqueue_anywhere();
    rodata.daemon_tgid = std::process::id().cast_signed();
    rodata.smt = has_smt(&setup.topology);
    rodata.dispatch_before_rt = kernel::dispatches_before_rt();

    // elsewhere the registers at a switch tell as much (src/bpf/ledger/task.bpf.h)
    let hooks_returns = !Model::now().moves_at_once();
    skel.progs.artis_sys_exit.set_autoload(hooks_returns);

    skel.maps.records.set_max_entries(setup.ring_bytes)?;
    // attached while tasks are watched (watch.rs), the rest while such news are wanted
    for program in [
        &mut skel.progs.artis_sched_waking,
        &mut skel.progs.artis_sched_switch,
        &mut skel.progs.artis_news_fork,
        &mut skel.progs.artis_news_exec,
        &mut skel.progs.artis_news_name,
        &mut skel.progs.artis_news_cgroup,
    ] {
        program.set_autoload(true);
        program.set_autoattach(false);
    }
    for (program, function) in [
        (&mut skel.progs.artis_news_policy, "__sched_setscheduler"),
        (&mut skel.progs.artis_news_affinity, "__sched_setaffinity"),
    ] {
        // not part of the kernel's interfaces: a kernel without it is one that tells less
        program.set_autoload(kernel::has_function(function));
        program.set_autoattach(false);
    }

    let ops = skel.struct_ops.artis_ops_mut();
    ops.exit_dump_len = setup.exit_dump_len;
    ops.timeout_ms = setup.watchdog_ms.unwrap_or_else(kernel::default_watchdog_ms);
    ops.flags |= kernel::ops_flags();
    if kernel::can_reenqueue_anywhere() {
        ops.cpu_release = ptr::null_mut(); // deprecated there; its work is done another way
    }
    log::info!(
        "put back lazily: {put_back_lazy}; returns of calls hooked: {hooks_returns}; scheduler flags {:#x}; watchdog {} ms",
        ops.flags,
        ops.timeout_ms
    );
    Ok(())
}
