// SPDX-License-Identifier: GPL-2.0-only
//! What preflight looks at, read from the running system.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use capctl::caps::{Cap, CapState};
use nix::sys::utsname::uname;
use scx_utils::compat;

use crate::abi::BPF_OBJECT;
use crate::daemon::preempt::{self, Model};

/// The state of sched_ext in a kernel that has it.
#[derive(Clone, Debug, Default)]
pub struct SchedExt {
    /// `disabled`, `enabled`, `enabling` or `disabling`.
    pub state: String,
    /// Name of the scheduler that is loaded, if one is.
    pub ops: Option<String>,
}

/// The running system as far as preflight cares. All fields are what was seen;
/// nothing is judged here.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Effective user id 0?
    pub is_root: bool,
    /// Capabilities without which no BPF program of the scheduler can be loaded, and that it lacks.
    pub missing_capabilities: Vec<Cap>,
    /// Namespaces of the process that are not the machine's own: `pid`, `time`, `user`.
    pub namespaces: Vec<&'static str>,
    /// How the kernel is locked down: `none`, `integrity`, `confidentiality`; empty: it cannot be.
    pub lockdown: String,
    /// Are processes in cgroups of version 2?
    pub has_cgroup2: bool,
    /// Kernel release, `uname -r`.
    pub release: String,
    /// The kernel's sched_ext, unless it has none.
    pub sched_ext: Option<SchedExt>,
    /// Does the kernel carry its BTF?
    pub has_btf: bool,
    /// scx kfuncs whose prototype in BTF is broken.
    pub malformed_kfuncs: Vec<String>,
    /// Does the kernel have the function tracer?
    pub has_function_tracer: bool,
    /// Do the BPF programs ask for values of the kernel's configuration?
    pub needs_kernel_config: bool,
    /// Is the kernel's configuration where libbpf looks for it?
    pub has_kernel_config: bool,
    /// Kernel command line.
    pub cmdline: String,
    /// CPUs that are isolated from load balancing, as a list.
    pub isolated: String,
    /// Preemption model.
    pub preemption: Model,
    /// Can the model be switched at run time?
    pub can_switch_preemption: bool,
    /// Is there a deadline server for ext tasks?
    pub has_ext_server: bool,
}

impl Facts {
    /// Looks at the running system.
    pub fn gather() -> Self {
        let release = uname()
            .map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned());
        let has_btf = Path::new("/sys/kernel/btf/vmlinux").exists();
        Self {
            is_root: nix::unistd::geteuid().is_root(),
            missing_capabilities: missing_capabilities(),
            namespaces: foreign_namespaces(),
            lockdown: marked(&read("/sys/kernel/security/lockdown")),
            has_cgroup2: read("/proc/self/cgroup").lines().any(|line| line.starts_with("0::")),
            sched_ext: sched_ext(),
            has_btf,
            // libbpf panics without BTF
            malformed_kfuncs: if has_btf { compat::malformed_scx_kfuncs() } else { Vec::new() },
            has_function_tracer: compat::function_tracer_available(),
            needs_kernel_config: contains(BPF_OBJECT, b"\0.kconfig\0"),
            has_kernel_config: Path::new("/proc/config.gz").exists()
                || Path::new(&format!("/boot/config-{release}")).exists(),
            cmdline: read("/proc/cmdline"),
            isolated: read("/sys/devices/system/cpu/isolated"),
            preemption: Model::now(),
            // where the kernel is locked down the file is there, and cannot be opened
            can_switch_preemption: fs::File::open(preempt::KNOB).is_ok(),
            has_ext_server: Path::new("/sys/kernel/debug/sched/ext_server").exists(),
            release,
        }
    }
}

/// All, where the kernel does not tell which it has.
fn missing_capabilities() -> Vec<Cap> {
    let has = CapState::get_current().map(|state| state.effective).unwrap_or_default();
    [Cap::BPF, Cap::PERFMON].into_iter().filter(|cap| !has.has(*cap)).collect()
}

/// Namespaces of this process that are others than those the kernel began with, by the numbers
/// of these (include/linux/proc_ns.h). One that the kernel does not have is none.
fn foreign_namespaces() -> Vec<&'static str> {
    let firsts = [("pid", 0xEFFF_FFFC_u64), ("time", 0xEFFF_FFFA), ("user", 0xEFFF_FFFD)];
    let others = firsts.into_iter().filter(|(name, first)| {
        fs::metadata(format!("/proc/self/ns/{name}")).is_ok_and(|own| own.ino() != *first)
    });
    others.map(|(name, _)| name).collect()
}

/// The word in brackets: `none [integrity] confidentiality`.
fn marked(words: &str) -> String {
    let word = words.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    word.unwrap_or_default().to_owned()
}

fn sched_ext() -> Option<SchedExt> {
    Path::new("/sys/kernel/sched_ext").exists().then(|| SchedExt {
        state: read("/sys/kernel/sched_ext/state"),
        ops: fs::read_to_string("/sys/kernel/sched_ext/root/ops")
            .ok()
            .map(|ops| ops.trim().to_owned()),
    })
}

/// The content of a file, trimmed; empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
