// SPDX-License-Identifier: GPL-2.0-only
//! From options and the machine to a validated configuration: which CPU is in
//! which set, the class of each system call, the policy constants.

mod address;
mod calls;
mod cpu_set;
mod knob;
mod machine;
mod partition;
mod policy;
pub mod rules;
mod topology;
mod word;

pub use address::Address;
pub use calls::{CallTable, Class, DEFAULTS as DEFAULT_CALLS, Override};
pub use cpu_set::{CpuSet, CpuSetError};
pub use knob::{Kind, Knob, KnobError};
pub use machine::{Machine, SYSFS_CPU};
pub use partition::Partition;
pub use policy::{KNOBS, Policy};
pub use topology::{Layout, Place, has_smt};
pub use word::Word;

/// A configuration that cannot be: what was seen, why it matters, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// CPUs that the machine can never have.
    #[error(
        "--rt-cpus names CPU {unknown}, but this machine has only CPUs {possible}; \
         name some of those"
    )]
    UnknownCpus {
        /// The CPUs in question.
        unknown: CpuSet,
        /// What there is.
        possible: CpuSet,
    },
    /// CPUs that are not up.
    #[error(
        "--rt-cpus names CPU {offline}, which is offline (online are {online}): nothing can run \
         there. Bring it up (echo 1 > /sys/devices/system/cpu/cpu{first}/online) or leave it out"
    )]
    OfflineCpus {
        /// The CPUs in question.
        offline: CpuSet,
        /// What is up.
        online: CpuSet,
        /// The lowest of the offline ones.
        first: usize,
    },
    /// The RT set is empty.
    #[error(
        "no RT CPU is given or left (online are CPUs {online}): without one there is nothing to \
         keep clear. Name at least one online CPU, for example --rt-cpus {}", last_of(.online)
    )]
    NoRtCpu {
        /// What is up.
        online: CpuSet,
    },
    /// The NRT set is empty.
    #[error(
        "with all of CPUs {online} in --rt-cpus no CPU is left for kernel work: evicted tasks \
         would have nowhere to go. Leave at least one CPU out of --rt-cpus"
    )]
    NoNrtCpu {
        /// What is up.
        online: CpuSet,
    },
    /// A system call that the kernel does not have.
    #[error("--call names \"{name}\", which is no system call of this architecture{}", did_you_mean(.nearest))]
    UnknownCall {
        /// As written.
        name: String,
        /// The nearest name that exists, if one is near.
        nearest: Option<&'static str>,
    },
    /// One call, two classes.
    #[error("--call gives \"{name}\" two classes, {first} and {second}; decide for one")]
    CallTwice {
        /// Name of the call.
        name: String,
        /// Class given first.
        first: Class,
        /// Class given later.
        second: Class,
    },
    /// Metrics would be open to other machines.
    #[error(
        "--metrics {address} is an address that other machines reach: whoever does could read \
         which programs run here and when, for there is no login and nothing is encrypted (no \
         TLS). Name 127.0.0.1:PORT, [::1]:PORT or unix:/PATH, with a proxy in front for others; \
         where everybody may read it add --metrics-anywhere"
    )]
    MetricsForAll {
        /// As written.
        address: Address,
    },
    /// A name that no policy constant has.
    #[error("there is no policy constant \"{name}\"{}", did_you_mean_knob(.nearest))]
    UnknownKnob {
        /// As written.
        name: String,
        /// The nearest name that exists, if one is near.
        nearest: Option<String>,
    },
    /// A text that is no value of a policy constant.
    #[error("{name}: {error}")]
    Knob {
        /// Name of the constant.
        name: String,
        /// What is wrong, with the bounds.
        error: KnobError,
    },
    /// The shortest slice is longer than the longest.
    #[error(
        "--slice-nrt-min-us ({min_us}) is greater than --slice-nrt-us ({max_us}); raise the latter or lower the former"
    )]
    SlicesCross {
        /// Shortest slice, µs.
        min_us: u64,
        /// Longest slice, µs.
        max_us: u64,
    },
}

fn last_of(cpus: &CpuSet) -> usize {
    cpus.iter().last().unwrap_or(0)
}

fn did_you_mean(nearest: &Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name}?"),
        None => "; scx_artis --print-calls shows the table, man 2 syscalls all names".to_owned(),
    }
}

fn did_you_mean_knob(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name}?"),
        None => "; scx_artis ctl get shows all".to_owned(),
    }
}
