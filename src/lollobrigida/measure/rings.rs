// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's switch records: a ring for each CPU, into which the events of all tasks on
//! that CPU write. Nobody is woken for them unless a ring is half full.

use std::os::fd::{AsRawFd, RawFd};
use std::{io, iter};

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use crate::measure::perf;
use crate::measure::spans::Switch;

/// For all rings together. A record is 24 bytes, so two CPUs hold 1.4 million switches.
const ALL_RINGS_BYTES: usize = 64 << 20;
/// Of one ring. What everyone may lock (perf_event_mlock_kb is 516) less its first page is
/// between these.
const RING_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=8 << 20;
/// Records kept in memory; what comes after is counted as lost.
const KEPT_RECORDS: usize = 1 << 22;

/// PERF_RECORD_LOST, PERF_RECORD_SWITCH: include/uapi/linux/perf_event.h.
const RECORD_LOST: u32 = 2;
const RECORD_SWITCH: u32 = 14;
/// PERF_RECORD_MISC_SWITCH_OUT.
const MISC_SWITCH_OUT: u16 = 1 << 13;

/// The rings of all CPUs.
pub struct Rings {
    /// By index in the list of CPUs.
    rings: Vec<Sampler>,
    /// What was taken from each.
    taken: Vec<Vec<Switch>>,
    /// By the records that tell it.
    lost: u64,
    /// Above [`KEPT_RECORDS`].
    left_out: u64,
}

impl Rings {
    /// An event writes its records in this form.
    pub fn set_form(builder: &mut Builder) {
        builder
            .sample(SampleFlag::TID)
            .sample(SampleFlag::TIME)
            .sample_id_all(true)
            .clockid(Clock::MONOTONIC);
    }

    /// Makes a ring for each CPU, as large as permitted.
    ///
    /// # Errors
    /// In words: perf events or locked memory are not permitted.
    pub fn open(cpus: &[u32]) -> Result<Self, String> {
        let fair = ALL_RINGS_BYTES / cpus.len().max(1);
        Self::open_size(cpus, fair.clamp(*RING_BYTES.start(), *RING_BYTES.end()))
    }

    fn open_size(cpus: &[u32], bytes: usize) -> Result<Self, String> {
        let mut bytes = bytes.next_power_of_two();
        loop {
            let owners: io::Result<Vec<_>> = cpus.iter().map(|&cpu| owner(cpu, bytes)).collect();
            let owners = owners.map_err(|err| perf::why(&err, 2))?;
            let rings = owners.into_iter().map(|owner| owner.sampled(bytes));
            match rings.collect::<io::Result<Vec<_>>>() {
                Ok(rings) => {
                    let taken = iter::repeat_with(Vec::new).take(rings.len()).collect();
                    return Ok(Self { rings, taken, lost: 0, left_out: 0 });
                }
                Err(err) if bytes <= *RING_BYTES.start() => {
                    return Err(format!(
                        "no memory may be locked for the kernel's switch records ({err}): raise \
                         ulimit -l or /proc/sys/kernel/perf_event_mlock_kb, or run as root"
                    ));
                }
                Err(_) => bytes /= 2,
            }
        }
    }

    /// The records of an event of the CPU with index `i` go into that CPU's ring.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take_from(&self, i: usize, counter: &Counter) -> io::Result<()> {
        /// include/uapi/linux/perf_event.h
        const SET_OUTPUT: libc::Ioctl = libc::_IO(b'$' as u32, 5);
        let ring = self.rings[i].as_raw_fd();
        // SAFETY: both are open perf events; the call takes the second's number and no
        // memory of ours.
        match unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Readable when a ring is half full: then [`Rings::drain`].
    pub fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.rings.iter().map(AsRawFd::as_raw_fd)
    }

    /// Takes out what is there.
    pub fn drain(&mut self) {
        for (ring, taken) in self.rings.iter_mut().zip(&mut self.taken) {
            while let Some(record) = ring.next_record() {
                let bytes = record.to_contiguous();
                match record.ty() {
                    RECORD_SWITCH if taken.len() >= KEPT_RECORDS => self.left_out += 1,
                    RECORD_SWITCH => {
                        let on = record.misc() & MISC_SWITCH_OUT == 0;
                        taken.extend(switch(&bytes, on));
                    }
                    // an id, then how many
                    RECORD_LOST => self.lost += u64_at(&bytes, 8).unwrap_or(1),
                    _ => {}
                }
            }
        }
    }

    /// All switches so far, by index of the CPU and in their order, and how many were lost.
    /// `counted` is what the events themselves know of that: a record tells of a loss only
    /// when there is room again, so never of one that lasts until the end.
    #[must_use]
    pub fn finish(mut self, counted: u64) -> (Vec<Vec<Switch>>, u64) {
        self.drain();
        (self.taken, self.lost.max(counted) + self.left_out)
    }
}

/// A ring belongs to an event of the runner, which outlives all tasks.
fn owner(cpu: u32, ring_bytes: usize) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    Rings::set_form(&mut builder);
    builder.observe_self().one_cpu(cpu as usize).wakeup_watermark(ring_bytes / 2);
    perf::open_any_mode(&mut builder)
}

/// The body of a record in our form: pid, tid, time.
fn switch(bytes: &[u8], on: bool) -> Option<Switch> {
    let pid = i32::from_ne_bytes(*bytes.first_chunk()?);
    Some(Switch { at_ns: u64_at(bytes, 8)?, pid, on })
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use nix::sys::resource::{UsageWho, getrusage};

    use super::*;
    use crate::execute::run::poll::poll;
    use crate::measure::machine::online_cpus;
    use crate::measure::on_cpu::OnCpu;

    /// A ring of 64 KiB holds 2730 records; two for each sleep are more.
    const SLEEPS: u64 = 8000;
    /// So many until the rings are looked at: a third of one, however late that is.
    const SLEEPS_OF_TURN: u64 = 500;

    /// Of a thread that sleeps again and again.
    struct Sleeper {
        by_cpu: Vec<Vec<Switch>>,
        lost: u64,
        /// Times that it left its CPU and came back: a sleep that is over before the thread
        /// has left is none.
        sleeps: u64,
    }

    /// Times that this thread gave its CPU up by itself.
    fn left_its_cpu() -> u64 {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("own usage");
        usage.voluntary_context_switches().cast_unsigned()
    }

    /// `None` where perf events are not permitted.
    fn sleeper(drained: bool) -> Option<Sleeper> {
        let cpus = online_cpus().expect("CPUs");
        let mut rings = Rings::open_size(&cpus, *RING_BYTES.start()).ok()?;
        let (tid, its_tid) = channel();
        let (go, its_turn) = channel::<()>();
        let thread = thread::spawn(move || {
            tid.send(nix::unistd::gettid().as_raw()).expect("sent");
            its_turn.recv().expect("its turn");
            let before = left_its_cpu();
            for sleep in 1..=SLEEPS {
                thread::sleep(Duration::from_micros(1));
                if sleep.is_multiple_of(SLEEPS_OF_TURN) {
                    tid.send(0).expect("sent");
                    its_turn.recv().expect("its turn");
                }
            }
            left_its_cpu() - before
        });
        let tid = its_tid.recv().expect("its id");
        let mut clocks = OnCpu::open(&[tid], &cpus, Some(&rings)).ok()?;
        go.send(()).expect("told");
        for _ in 0..SLEEPS / SLEEPS_OF_TURN {
            its_tid.recv().expect("a turn is over");
            let fds: Vec<RawFd> = rings.fds().collect();
            let ready = poll(&fds, Some(Duration::ZERO)).expect("polled");
            if drained && ready.contains(&true) {
                rings.drain();
            }
            go.send(()).expect("told");
        }
        let sleeps = thread.join().expect("sleeper");
        let (by_cpu, lost) = rings.finish(clocks.lost().expect("read"));
        Some(Sleeper { by_cpu, lost, sleeps })
    }

    #[test]
    fn nothing_is_lost_when_half_full_rings_are_drained() {
        let Some(Sleeper { by_cpu, lost, sleeps }) = sleeper(true) else { return };
        assert_eq!(lost, 0);
        assert!(by_cpu.iter().all(|switches| switches.is_sorted_by_key(|switch| switch.at_ns)));
        let ons = by_cpu.iter().flatten().filter(|switch| switch.on).count() as u64;
        let offs = by_cpu.iter().flatten().filter(|switch| !switch.on).count() as u64;
        assert!(ons >= sleeps, "{ons} on, {sleeps} sleeps");
        // its last way off may be after its end
        assert!(ons.abs_diff(offs) <= 1, "{ons} on, {offs} off");
    }

    fn before_6_0() -> bool {
        let kernel = crate::measure::machine::machine().expect("a machine").kernel;
        kernel
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .is_some_and(|major: u32| major < 6)
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let Some(Sleeper { by_cpu, lost, sleeps }) = sleeper(false) else { return };
        let kept = by_cpu.iter().map(Vec::len).sum::<usize>() as u64;
        assert!(kept < 2 * sleeps, "the rings were large enough for {kept}");
        // before Linux 6.0 a loss that lasts until the end is not told
        assert!(lost == 0 || kept + lost >= 2 * sleeps - 1, "{kept} kept, {lost} lost");
        assert!(lost > 0 || before_6_0(), "{kept} kept, nothing told");
    }
}
