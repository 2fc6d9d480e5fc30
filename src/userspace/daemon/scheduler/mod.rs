// SPDX-License-Identifier: GPL-2.0-only
//! One life of the BPF scheduler: open, constants, load, attach, read, change,
//! let go.

mod change;
mod constants;
mod faults;
pub mod news;
mod read;
mod report;
mod takeover;
mod watch;

pub use watch::Watched;

use std::fs;
use std::mem::MaybeUninit;
use std::ptr;

use anyhow::{Context, Result};
use libbpf_rs::{Link, OpenObject};
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open};

use super::exit_report::ExitReport;
use super::plain::{Plain, run_with};
use super::setup::Setup;
use crate::abi::artis_set_class;
use crate::abi::skel::{BpfSkel, BpfSkelBuilder};
use crate::config::Partition;
use crate::model::Reading;
use faults::Faults;
use news::Herald;
use watch::Watch;

/// The BPF programs, through the verifier but not in charge.
pub struct Loaded<'obj> {
    skel: BpfSkel<'obj>,
}

/// The scheduler in charge of the machine. Dropping it gives the machine back.
pub struct Scheduler<'obj> {
    skel: BpfSkel<'obj>,
    /// Gone as soon as the scheduler is let go of.
    link: Option<Link>,
    faults: Faults,
    partition: Partition,
    started_ns: u64,
    /// Exists while somebody watches.
    watch: Option<Watch>,
    /// Exists while somebody wants news of tasks.
    herald: Option<Herald>,
}

impl<'obj> Loaded<'obj> {
    /// Opens the BPF object in `object`, writes all constants, and loads it.
    ///
    /// # Errors
    /// When libbpf or the verifier refuses; broken BTF is named as the cause.
    pub fn new(
        setup: &Setup,
        put_back_lazy: bool,
        object: &'obj mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let builder = BpfSkelBuilder::default();
        let open_opts = setup.libbpf.clone().into_bpf_open_opts();
        let mut skel = scx_ops_open!(builder, object, artis_ops, open_opts)?;
        // it follows CPUs that go and come by itself
        skel.struct_ops.artis_ops_mut().hotplug_seq = 0;
        constants::write(&mut skel, setup, put_back_lazy)?;
        Ok(Self { skel: scx_ops_load!(skel, artis_ops, uei)? })
    }

    /// Puts the scheduler in charge.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn attach(mut self, setup: &Setup) -> Result<Scheduler<'obj>> {
        change::set_partition(&self.skel)?;
        let mut faults = Faults::default();
        // before, as the other hooks: when this process dies, the kernel closes what was opened last
        // first, and the scheduler is to be gone before its hooks are
        faults.watch(&self.skel, setup.partition.cpus())?;
        // attaches all programs, tracepoints included: another skel.attach()
        // would replace and drop their links
        let link = takeover::attended(|| scx_ops_attach!(self.skel, artis_ops))
            .context("the kernel did not take the scheduler (sudo dmesg | tail says why)")?;
        Ok(Scheduler {
            started_ns: sample(&self.skel)?,
            skel: self.skel,
            link: Some(link),
            faults,
            partition: setup.partition.clone(),
            watch: None,
            herald: None,
        })
    }
}

/// Runs the sampling program: it fills in the queue lengths and returns the
/// time, ns, of the clock that all time stamps are in.
fn sample(skel: &BpfSkel<'_>) -> Result<u64> {
    let mut now_ns = 0u64;
    run_with(&skel.progs.artis_sample, &mut now_ns).context("sampling the scheduler")?;
    Ok(now_ns)
}

// SAFETY: u32 only.
unsafe impl Plain for artis_set_class {}

impl Scheduler<'_> {
    /// Name of the scheduler as the kernel shows it.
    pub fn ops_name(&self) -> String {
        fs::read_to_string("/sys/kernel/sched_ext/root/ops")
            .map_or_else(|_| "artis".to_owned(), |name| name.trim().to_owned())
    }

    /// Has the kernel ended the scheduler?
    pub fn has_ended(&self) -> bool {
        self.exit_kind() != 0
    }

    /// Gives the machine back and says how it ended, with a last reading from
    /// before if the scheduler was still in charge: while the kernel takes it
    /// away, tasks run anywhere, and the counters see it.
    ///
    /// # Errors
    /// When a sample cannot be taken; the machine is given back even so.
    pub fn stop(&mut self) -> Result<(Reading, ExitReport)> {
        let before = (!self.has_ended()).then(|| self.read());
        self.link.take();
        let left = self.counted_as_runnable();
        if !left.is_empty() {
            log::warn!(
                "tasks are counted as runnable although none is left ({}): loads were told and \
                 evened out wrongly. This is a bug of scx_artis: please report it",
                left.join("; ")
            );
        }
        let after = self.read()?;
        let report = self.exit_report(after.now_ns);
        Ok((before.transpose()?.unwrap_or(after), report))
    }

    fn exit_kind(&self) -> i32 {
        let Some(data) = self.skel.maps.data_data.as_ref() else { return 0 };
        // SAFETY: a valid reference to an integer in the map's memory, which
        // lives as long as the skeleton; volatile, because BPF sets it.
        unsafe { ptr::read_volatile(&data.uei.kind) }
    }
}
