// SPDX-License-Identifier: GPL-2.0-only
//! How a scheduler ended: what the kernel and our own dump say.

use std::cmp::Reverse;
use std::ffi::CStr;

use scx_utils::UEI_DUMP_PTR_MUTEX;

use super::Scheduler;
use super::read::{rt_comm, since};
use crate::abi::artis_cpu;
use crate::daemon::exit_report::{ExitReport, Holder, c_text};

impl Scheduler<'_> {
    pub(super) fn exit_report(&self, now_ns: u64) -> ExitReport {
        let Some(data) = self.skel.maps.data_data.as_ref() else { return ExitReport::default() };
        let uei = &data.uei;
        let bytes = |text: &[i8]| text.iter().map(|byte| byte.cast_unsigned()).collect::<Vec<_>>();
        let mut holders: Vec<_> =
            self.partition.cpus().filter_map(|id| holder(id, &self.cpu(id), now_ns)).collect();
        holders.sort_by_key(|holder| Reverse(holder.held_ns));
        ExitReport {
            kind: self.exit_kind(),
            code: uei.exit_code,
            // older kernels do not have it, and leave 0
            cpu: scx_utils::compat::struct_has_field("scx_exit_info", "exit_cpu")
                .unwrap_or(false)
                .then_some(uei.exit_cpu)
                .filter(|cpu| *cpu >= 0),
            reason: c_text(&bytes(&uei.reason)),
            message: c_text(&bytes(&uei.msg)),
            dump: dump(),
            holders,
        }
    }
}

/// The kernel's debug dump, which scx_ops_load! made room for.
fn dump() -> String {
    let Ok(dump) = UEI_DUMP_PTR_MUTEX.lock() else { return String::new() };
    if dump.ptr.is_null() {
        return String::new();
    }
    // SAFETY: scx_ops_load! sets the pointer to the dump's map, which the kernel
    // keeps mapped as long as the skeleton lives; our caller has one. The BPF
    // side ends the text with a NUL within the map, and has ended by now.
    c_text(unsafe { CStr::from_ptr(dump.ptr) }.to_bytes())
}

fn holder(id: usize, cpu: &artis_cpu, now_ns: u64) -> Option<Holder> {
    (cpu.rt.in_rt != 0).then(|| Holder {
        cpu: id,
        pid: cpu.rt_pid,
        comm: rt_comm(cpu),
        policy: cpu.rt_policy,
        held_ns: since(cpu.rt.since_ns, now_ns),
    })
}
