// SPDX-License-Identifier: GPL-2.0-only
//! One life of the BPF scheduler: open, constants, load, attach, read, let go.

use std::ffi::CStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use std::{ptr, thread};

use anyhow::{Context, Result, bail};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, ProgramInput};
use nix::errno::Errno;
use scx_utils::{UEI_DUMP_PTR_MUTEX, scx_ops_attach, scx_ops_load, scx_ops_open};

use super::exit_report::{ExitReport, Holder, c_text};
use super::kernel;
use super::preempt::Model;
use super::task;
use crate::abi::bindings::ARTIS_SHARE_SHIFT;
use crate::abi::skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use crate::abi::{CpuKind, PutBack, artis_cpu, artis_policy, artis_sample};
use crate::config::Partition;
use crate::model::{CpuReading, Reading, RtShare, Task, TaskReading, printable};

/// What a scheduler is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The two sets of CPUs.
    pub partition: Partition,
    /// The policy constants.
    pub policy: artis_policy,
    /// How long a runnable task may wait, ms; `None`: what suits the kernel.
    pub watchdog_ms: Option<u32>,
    /// Size of the kernel's debug dump, bytes; 0: its default.
    pub exit_dump_len: u32,
    /// What is unwise about it, in sentences.
    pub warnings: Vec<String>,
    /// Options for libbpf.
    pub libbpf: scx_utils::libbpf_clap_opts::LibbpfOpts,
}

/// The BPF programs, through the verifier but not in charge.
pub struct Loaded<'obj> {
    skel: BpfSkel<'obj>,
}

/// The scheduler in charge of the machine. Dropping it gives the machine back.
pub struct Scheduler<'obj> {
    skel: BpfSkel<'obj>,
    /// Gone as soon as the scheduler is let go of.
    link: Option<Link>,
    partition: Partition,
    started_ns: u64,
}

impl<'obj> Loaded<'obj> {
    /// Opens the BPF object in `object`, writes all constants, and loads it.
    ///
    /// # Errors
    /// When libbpf or the verifier refuses; broken BTF is named as the cause.
    pub fn new(
        setup: &Setup,
        put_back: PutBack,
        object: &'obj mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let builder = BpfSkelBuilder::default();
        let open_opts = setup.libbpf.clone().into_bpf_open_opts();
        let mut skel = scx_ops_open!(builder, object, artis_ops, open_opts)?;
        write_constants(&mut skel, setup, put_back)?;
        let skel = scx_ops_load!(skel, artis_ops, uei)?;
        Ok(Self { skel })
    }

    /// Puts the scheduler in charge.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn attach(mut self, setup: &Setup) -> Result<Scheduler<'obj>> {
        set_partition(&self.skel)?;
        // attaches all programs, tracepoints included: another skel.attach()
        // would replace and drop their links
        let link = scx_ops_attach!(self.skel, artis_ops)
            .context("the kernel did not take the scheduler (sudo dmesg | tail says why)")?;
        let started_ns = sample(&self.skel)?;
        Ok(Scheduler {
            skel: self.skel,
            link: Some(link),
            partition: setup.partition.clone(),
            started_ns,
        })
    }
}

/// Writes what BPF only reads: the policy whole, and what this kernel can do.
fn write_constants(skel: &mut OpenBpfSkel<'_>, setup: &Setup, put_back: PutBack) -> Result<()> {
    let policy = skel.maps.data_policy_data.as_mut().context("the BPF object has no policy")?;
    policy.policy = setup.policy;

    let rodata = skel.maps.rodata_data.as_mut().context("the BPF object has no constants")?;
    rodata.put_back = put_back as u32;
    rodata.dispatch_before_rt = kernel::dispatches_before_rt();
    rodata.nr_nrt_cpus = u32::try_from(setup.partition.nrt.len())?;
    // needed where ops.disable comes before the task has its new priority; on
    // older kernels its kfunc may be called from ops.cpu_release only
    skel.progs.artis_rt_tick.set_autoload(put_back != PutBack::Release);

    // elsewhere the registers at a switch tell as much (src/bpf/ledger/section.bpf.h)
    let registers_tell = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    let hooks_returns = !(registers_tell && Model::now().moves_at_once());
    skel.progs.artis_sys_exit.set_autoload(hooks_returns);

    let ops = skel.struct_ops.artis_ops_mut();
    ops.exit_dump_len = setup.exit_dump_len;
    ops.timeout_ms = setup.watchdog_ms.unwrap_or_else(kernel::default_watchdog_ms);
    ops.flags |= kernel::ops_flags();
    if put_back != PutBack::Release {
        ops.cpu_release = ptr::null_mut(); // deprecated there; its work is done another way
    }
    log::info!(
        "put back: {put_back:?}; returns of calls hooked: {hooks_returns}; scheduler flags {:#x}; watchdog {} ms",
        ops.flags,
        ops.timeout_ms
    );
    Ok(())
}

/// Has BPF take the two sets over from the policy, which ops.init needs.
///
/// BPF's allocator on PREEMPT_RT has nothing at first and is filled behind the
/// scenes: -ENOMEM means "ask again".
fn set_partition(skel: &BpfSkel<'_>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let run = skel.progs.artis_set_partition.test_run(ProgramInput::default());
        let code = run.context("handing the partition to BPF")?.return_value.cast_signed();
        match code {
            0 => return Ok(()),
            _ if code == -(Errno::ENOMEM as i32) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            _ => bail!("BPF did not take the partition: {}", Errno::from_raw(-code)),
        }
    }
}

/// Runs the sampling program: it fills in the queue lengths and returns the
/// time, ns, of the clock that all time stamps are in.
fn sample(skel: &BpfSkel<'_>) -> Result<u64> {
    let mut sample = artis_sample::default();
    // SAFETY: the slice covers exactly the bytes of `sample`, which outlives it;
    // artis_sample is plain integers without padding, so any bytes are valid.
    let context = unsafe {
        std::slice::from_raw_parts_mut(
            ptr::from_mut(&mut sample).cast::<u8>(),
            size_of::<artis_sample>(),
        )
    };
    let input = ProgramInput { context_in: Some(context), ..Default::default() };
    skel.progs.artis_sample.test_run(input).context("sampling the scheduler")?;
    Ok(sample.now_ns)
}

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

    /// Looks at all counters now.
    ///
    /// # Errors
    /// When the sampling program cannot be run.
    pub fn read(&self) -> Result<Reading> {
        let now_ns = sample(&self.skel)?;
        let cpus = self.cpu_ids().map(|id| self.read_cpu(id, now_ns)).collect();
        Ok(Reading { now_ns, started_ns: self.started_ns, cpus })
    }

    /// What is remembered of the task with this thread id; `None`: there is no such task,
    /// or it never was one of the ext class.
    ///
    /// # Errors
    /// When the kernel refuses the look-up.
    pub fn read_task(&self, tid: u32) -> Result<Option<TaskReading>> {
        let Some(pidfd) = task::pidfd(tid) else { return Ok(None) };
        let key = pidfd.as_raw_fd().to_ne_bytes();
        let value = self.skel.maps.task_stor.lookup(&key, MapFlags::ANY);
        let value = value.with_context(|| format!("looking up task {tid}"))?;
        Ok(value.as_deref().and_then(task::reading))
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
        let after = self.read()?;
        let report = self.exit_report(after.now_ns);
        Ok((before.transpose()?.unwrap_or(after), report))
    }

    fn cpu_ids(&self) -> impl Iterator<Item = usize> {
        let mut ids: Vec<_> = self.partition.rt.iter().chain(self.partition.nrt.iter()).collect();
        ids.sort_unstable();
        ids.into_iter()
    }

    /// A copy of one CPU's struct. BPF goes on writing it: the fields are each
    /// whole, but may be of slightly different moments.
    fn cpu(&self, id: usize) -> artis_cpu {
        let Some(cpu) = self.skel.maps.bss_cpus_data.as_ref().and_then(|data| data.cpus.get(id))
        else {
            return artis_cpu::default();
        };
        // SAFETY: `cpu` is a valid reference into the map's memory, which lives
        // as long as the skeleton; volatile, because BPF writes it meanwhile.
        // The struct is plain integers, so whatever is read is a valid value.
        unsafe { ptr::read_volatile(cpu) }
    }

    fn read_cpu(&self, id: usize, now_ns: u64) -> CpuReading {
        let cpu = self.cpu(id);
        let in_section_ns = since(cpu.section_since_ns, now_ns);
        CpuReading {
            id,
            kind: self.partition.kind(id),
            rt: RtShare {
                avg: f64::from(cpu.rt.avg) / f64::from(1u32 << ARTIS_SHARE_SHIFT),
                in_rt: cpu.rt.in_rt != 0,
                updated_ns: cpu.rt.updated_ns,
                total_ns: cpu.rt.total_ns,
            },
            ext_ns: cpu.ext_ns,
            ext_running: cpu.ext_running != 0,
            running: running(&cpu),
            residence_ns: cpu.residence_ns + in_section_ns,
            residence_max_ns: cpu.residence_max_ns.max(in_section_ns),
            own_queued: u64::from(cpu.own_queued),
            shared_queued: match self.partition.kind(id) {
                CpuKind::Nrt => u64::from(cpu.shared_queued),
                _ => 0,
            },
            stat: cpu.stat,
        }
    }

    fn exit_kind(&self) -> i32 {
        let Some(data) = self.skel.maps.data_data.as_ref() else { return 0 };
        // SAFETY: a valid reference to an integer in the map's memory, which
        // lives as long as the skeleton; volatile, because BPF sets it.
        unsafe { ptr::read_volatile(&data.uei.kind) }
    }

    fn exit_report(&self, now_ns: u64) -> ExitReport {
        let Some(data) = self.skel.maps.data_data.as_ref() else { return ExitReport::default() };
        let uei = &data.uei;
        let bytes = |text: &[i8]| text.iter().map(|byte| byte.cast_unsigned()).collect::<Vec<_>>();
        let mut holders: Vec<_> =
            self.cpu_ids().filter_map(|id| holder(id, &self.cpu(id), now_ns)).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held_ns));
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

/// Time from `begin_ns` (0: not begun) to `now_ns`.
fn since(begin_ns: u64, now_ns: u64) -> u64 {
    if begin_ns == 0 { 0 } else { now_ns.saturating_sub(begin_ns) }
}

fn holder(id: usize, cpu: &artis_cpu, now_ns: u64) -> Option<Holder> {
    (cpu.rt.in_rt != 0).then(|| Holder {
        cpu: id,
        pid: cpu.rt_pid,
        comm: rt_comm(cpu),
        policy: cpu.rt_policy,
        held_ns: since(cpu.rt_since_ns, now_ns),
    })
}

fn rt_comm(cpu: &artis_cpu) -> String {
    printable(&cpu.rt_comm.map(i8::cast_unsigned))
}

fn running(cpu: &artis_cpu) -> Option<Task> {
    if cpu.rt.in_rt != 0 {
        return Some(Task { pid: cpu.rt_pid, comm: rt_comm(cpu), realtime: true });
    }
    (cpu.ext_running != 0 && cpu.curr_pid != 0).then(|| {
        // a thread that has ended meanwhile has no name any more
        let comm = fs::read(format!("/proc/{}/comm", cpu.curr_pid)).unwrap_or_default();
        Task { pid: cpu.curr_pid, comm: printable(comm.trim_ascii_end()), realtime: false }
    })
}
