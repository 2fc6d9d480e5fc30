// SPDX-License-Identifier: GPL-2.0-only
//! The policy constants: their defaults and bounds (here and nowhere else), and
//! the bytes of `struct artis_policy`.

use std::ops::RangeInclusive;

use super::{CallTable, ConfigError, Partition};
use crate::abi::{MAX_CPUS, artis_policy};

/// One constant that the user may set.
#[derive(Clone, Debug)]
pub struct Knob {
    /// Name of its field in `struct artis_policy`.
    pub field: &'static str,
    /// What it is, with its unit.
    pub what: &'static str,
    /// Value when the user says nothing, in the unit of the option.
    pub default: u64,
    /// Values that the option takes.
    pub range: RangeInclusive<u64>,
}

/// Declares the options of [`Policy`] and the table [`KNOBS`].
macro_rules! knobs {
    ($($option:ident $unit:literal => $field:ident: $what:literal, $default:literal of $min:literal to $max:literal;)*) => {
        /// The values of the knobs, as options of the command line. Times in µs.
        #[derive(Clone, Debug, clap::Args)]
        #[command(next_help_heading = "Policy constants")]
        pub struct Policy {
            $(
                #[doc = $what]
                #[arg(
                    long,
                    value_name = $unit,
                    default_value_t = $default,
                    value_parser = clap::value_parser!(u64).range($min..=$max),
                    help = concat!($what, " [", $min, " to ", $max, "]"),
                )]
                pub $option: u64,
            )*
        }

        /// All knobs, in the order of `struct artis_policy`.
        pub const KNOBS: &[Knob] = &[
            $(Knob { field: stringify!($field), what: $what, default: $default, range: $min..=$max }),*
        ];
    };
}

knobs! {
    slice_nrt_us "US" => slice_nrt_ns:
        "Longest run on an NRT CPU while others wait, µs", 3_000 of 100 to 100_000;
    slice_nrt_min_us "US" => slice_nrt_min_ns:
        "Shortest run on an NRT CPU, however many wait, µs", 500 of 100 to 100_000;
    slice_rt_us "US" => slice_rt_ns:
        "Run of a computing task on an RT CPU before its place is reconsidered, µs", 10_000 of 500 to 1_000_000;
    quiet_us "US" => quiet_ns:
        "Own run time without an attempt after which a task may go to an RT CPU, µs", 2_000 of 0 to 10_000_000;
    preempt_margin_us "US" => preempt_margin_ns:
        "Virtual time that a woken or evicted task must be behind to preempt, µs at nice 0", 1_000 of 0 to 1_000_000;
    sleep_credit_us "US" => sleep_credit_ns:
        "Virtual time that a sleeper may be behind when it wakes, µs at nice 0", 3_000 of 0 to 1_000_000;
    lead_max_us "US" => lead_max_ns:
        "Virtual time that a queued task may be ahead, µs at nice 0", 20_000 of 0 to 10_000_000;
    rescue_us "US" => rescue_ns:
        "Wait under a real-time task on an RT CPU after which NRT CPUs take a task back, µs", 2_000 of 100 to 1_000_000;
    poll_fds_max "NR" => poll_fds_max:
        "Descriptors up to which poll(2) sleeps and does not endanger", 16 of 0 to 1_024;
}

impl Policy {
    /// Checks what no single bound can say.
    ///
    /// # Errors
    /// When the shortest slice is longer than the longest.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.slice_nrt_min_us > self.slice_nrt_us {
            return Err(ConfigError::SlicesCross {
                min_us: self.slice_nrt_min_us,
                max_us: self.slice_nrt_us,
            });
        }
        Ok(())
    }

    /// All constants as BPF reads them.
    ///
    /// `nr_cpus` is the highest possible CPU plus one, at most [`MAX_CPUS`].
    pub fn constants(
        &self,
        partition: &Partition,
        calls: &CallTable,
        nr_cpus: usize,
    ) -> artis_policy {
        let mut cpu_kind = [0; MAX_CPUS];
        for (cpu, kind) in cpu_kind.iter_mut().enumerate() {
            *kind = partition.kind(cpu) as u8;
        }
        let ns = |us: u64| us * 1_000;
        artis_policy {
            slice_nrt_ns: ns(self.slice_nrt_us),
            slice_nrt_min_ns: ns(self.slice_nrt_min_us),
            slice_rt_ns: ns(self.slice_rt_us),
            quiet_ns: ns(self.quiet_us),
            preempt_margin_ns: ns(self.preempt_margin_us),
            sleep_credit_ns: ns(self.sleep_credit_us),
            lead_max_ns: ns(self.lead_max_us),
            rescue_ns: ns(self.rescue_us),
            // both are bounded far below 2^32: by the table above and MAX_CPUS
            poll_fds_max: self.poll_fds_max as u32,
            nr_cpus: nr_cpus.min(MAX_CPUS) as u32,
            call_class: calls.by_number(),
            cpu_kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::CpuKind;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        policy: Policy,
    }

    fn policy(args: &[&str]) -> Policy {
        Only::try_parse_from([&["x"], args].concat()).expect("valid").policy
    }

    #[test]
    fn constants_are_filled_whole() {
        let partition =
            Partition { rt: "2-3".parse().expect("set"), nrt: "0-1".parse().expect("set") };
        let calls = CallTable::new(false, &[]).expect("a table");
        let constants = policy(&["--quiet-us", "7"]).constants(&partition, &calls, 4);
        assert_eq!(constants.slice_nrt_ns, 3_000_000);
        assert_eq!(constants.quiet_ns, 7_000);
        assert_eq!((constants.poll_fds_max, constants.nr_cpus), (16, 4));
        assert_eq!(
            constants.cpu_kind[1..4],
            [CpuKind::Nrt as u8, CpuKind::Rt as u8, CpuKind::Rt as u8]
        );
        assert!(constants.cpu_kind[4..].iter().all(|kind| *kind == CpuKind::Absent as u8));
        assert!(constants.call_class.iter().any(|class| *class != 0));
    }

    #[test]
    fn defaults_are_in_their_bounds() {
        for knob in KNOBS {
            assert!(knob.range.contains(&knob.default), "{}", knob.field);
        }
        policy(&[]).validate().expect("the defaults are valid");
    }

    #[test]
    fn bounds_and_crossing_slices() {
        assert!(Only::try_parse_from(["x", "--slice-nrt-us", "99"]).is_err());
        let error =
            policy(&["--slice-nrt-us", "400"]).validate().expect_err("500 > 400").to_string();
        assert!(
            error.contains("--slice-nrt-min-us (500)") && error.contains("--slice-nrt-us (400)"),
            "{error}"
        );
    }
}
