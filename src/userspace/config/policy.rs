// SPDX-License-Identifier: GPL-2.0-only
//! The policy constants: their defaults and bounds (here and nowhere else), and
//! the bytes of `struct artis_policy`.

use super::knob::{Kind, Knob, KnobParser, number, us};
use super::{CallTable, ConfigError, Partition, Word};
use crate::abi::{MAX_CPUS, artis_policy};

/// Declares the options of [`Policy`] and the table [`KNOBS`] from one list.
macro_rules! knobs {
    ($($option:ident: $kind:expr, $default:literal => $field:ident, $what:literal;)*) => { scx_utils::paste! {
        /// The values of the knobs, as options of the command line. Times in µs.
        #[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
        #[command(next_help_heading = "Policy constants")]
        pub struct Policy {
            $(
                #[doc = $what]
                #[arg(
                    long,
                    value_name = [<$option:upper>].placeholder(),
                    default_value = [<$option:upper>].default,
                    value_parser = KnobParser(&[<$option:upper>]),
                    help = [<$option:upper>].help(),
                )]
                pub $option: u64,
            )*
        }

        $(
            static [<$option:upper>]: Knob = Knob {
                option: stringify!($option),
                field: stringify!($field),
                word: |constants| Word::from(&mut constants.$field),
                what: $what,
                default: concat!($default),
                kind: $kind,
                get: |policy| policy.$option,
                set: |policy, value| policy.$option = value,
            };
        )*

        /// All knobs, in the order of `struct artis_policy`.
        pub static KNOBS: &[&Knob] = &[$(&[<$option:upper>]),*];
    }};
}

knobs! {
    slice_nrt_us: us(100, 100_000), 3_000 => slice_nrt_ns,
        "Longest run on an NRT CPU while others wait";
    slice_nrt_min_us: us(100, 100_000), 500 => slice_nrt_min_ns,
        "Shortest run on an NRT CPU, however many wait";
    slice_rt_us: us(500, 1_000_000), 10_000 => slice_rt_ns,
        "Run of a computing task on an RT CPU before its place is reconsidered";
    predict_c_us: us(0, 1_000_000), 1_000 => predict_c_ns,
        "C: the next kernel entry is far if it is predicted later than this";
    preempt_margin_us: us(0, 1_000_000), 1_000 => preempt_margin_ns,
        "Virtual time (at nice 0) that a woken or evicted task must be behind to preempt";
    sleep_credit_us: us(0, 1_000_000), 3_000 => sleep_credit_ns,
        "Virtual time (at nice 0) that a sleeper may be behind when it wakes";
    lead_max_us: us(1_000, 10_000_000), 20_000 => lead_max_ns,
        "Virtual time (at nice 0) that a queued task may be ahead";
    put_back_us: us(100, 1_000_000), 2_000 => put_back_ns,
        "Time for which real-time tasks may hold a CPU before what waits for it is offered to others";
    balance_us: us(100, 10_000_000), 200_000 => balance_ns,
        "Least time between two looks of a group of CPUs at the load of another one";
    record_budget: number(100, 10_000_000, "records/s"), 100_000 => record_budget,
        "Events (evictions, moves, runs) that one CPU may tell of in a second while somebody records them";
    predict_k: number(2, 100, "periods"), 8 => predict_k,
        "K: a kernel entry is overdue after so many mean periods; by the rule least, after so many C";
    predict_past: number(0, 2_047, "of 2048"), 2_028 => predict_past,
        "Weight of the past in the mean period at each kernel entry";
    predict: Kind::Word(&["least", "thesis"]), "least" => predict_rule,
        "Who is predicted to enter the kernel soon: by the least of the last intervals in own run time (least), or by the thesis's rule (thesis)";
    imbalance_pct: number(0, 1_000, "%"), 25 => imbalance_pct,
        "Imbalance of two loads, in percent of the lower, below which nothing moves";
    rt1_budget_pct: number(1, 100, "%"), 95 => rt1_budget_pct,
        "Share of each second that RT1+ tasks may use of a CPU while others wait for it; 100: all";
    rt1_rr_ms: number(1, 1_000, "ms"), 100 => rt1_rr_ms,
        "Turn of a round-robin RT1+ task while others of its priority wait";
    poll_fds_max: number(0, 1_024, "fds"), 16 => poll_fds_max,
        "Descriptors up to which poll(2), and events up to which epoll_wait(2), sleeps and does not endanger";
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

    /// The same with one value changed.
    ///
    /// # Errors
    /// When there is no knob of this name, `text` is no value of it, or the value does not go
    /// with another one.
    pub fn with(&self, name: &str, text: &str) -> Result<Self, ConfigError> {
        let knob = Knob::named(name)?;
        let value =
            knob.parse(text).map_err(|error| ConfigError::Knob { name: knob.name(), error })?;
        let mut changed = self.clone();
        (knob.set)(&mut changed, value);
        changed.validate()?;
        Ok(changed)
    }

    /// All constants as BPF reads them.
    ///
    /// `nr_cpus` is the highest possible CPU plus one, at most [`MAX_CPUS`]; `seq` the number
    /// of changes so far.
    pub fn constants(
        &self,
        partition: &Partition,
        calls: &CallTable,
        nr_cpus: usize,
        seq: u32,
    ) -> artis_policy {
        let mut constants = artis_policy {
            call_class: calls.by_number(),
            cpu_kind: partition.kinds(),
            // bounded far below 2^32
            nr_cpus: nr_cpus.min(MAX_CPUS) as u32,
            seq,
            ..Default::default()
        };
        for knob in KNOBS {
            knob.store(self, &mut constants);
        }
        constants
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::CpuKind;
    use crate::abi::bindings as abi;
    use clap::{CommandFactory, Parser};

    #[derive(Debug, Parser)]
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
        let args = ["--predict-c-us", "7", "--predict", "thesis"];
        let constants = policy(&args).constants(&partition, &calls, 4, 9);
        assert_eq!((constants.slice_nrt_ns, constants.predict_c_ns), (3_000_000, 7_000));
        assert_eq!((constants.balance_ns, constants.put_back_ns), (200_000_000, 2_000_000));
        assert_eq!((constants.predict_k, constants.predict_past), (8, 2_028));
        assert_eq!(constants.predict_rule, abi::artis_predict_rule_ARTIS_PREDICT_THESIS);
        assert_eq!((constants.imbalance_pct, constants.seq), (25, 9));
        assert_eq!((constants.poll_fds_max, constants.nr_cpus), (16, 4));
        assert_eq!(
            constants.cpu_kind[1..4],
            [CpuKind::Nrt as u8, CpuKind::Rt as u8, CpuKind::Rt as u8]
        );
        assert!(constants.cpu_kind[4..].iter().all(|kind| *kind == CpuKind::Absent as u8));
        assert!(constants.call_class.iter().any(|class| *class != 0));
    }

    #[test]
    fn words_have_the_numbers_of_bpf() {
        use abi::{
            artis_predict_rule_ARTIS_PREDICT_LEAST as LEAST,
            artis_predict_rule_ARTIS_PREDICT_THESIS as THESIS,
        };
        let predict = Knob::named("predict").expect("a knob");
        for (word, number) in [("least", LEAST), ("thesis", THESIS)] {
            assert_eq!(predict.parse(word), Ok(u64::from(number)), "{word}");
        }
    }

    #[test]
    fn every_knob_is_an_option_and_set_by_its_name() {
        policy(&[]).validate().expect("the defaults are valid");
        let command = Only::command();
        for knob in KNOBS {
            let name = knob.name();
            let option = command.get_arguments().find(|arg| arg.get_long() == Some(&name));
            let help = option.expect(&name).get_help().map(ToString::to_string);
            assert!(help.is_some_and(|help| help.starts_with(knob.what)), "{name}");

            let mut changed = policy(&[]);
            let other = match &knob.kind {
                Kind::Number { range, .. } => *range.end(),
                Kind::Word(words) => words.len() as u64 - 1,
            };
            assert_ne!((knob.get)(&changed), other, "{name}");
            (knob.set)(&mut changed, other);
            assert_eq!(policy(&[&format!("--{name}"), &knob.text(other)]), changed, "{name}");
        }
    }

    #[test]
    fn one_value_changes_and_is_checked() {
        let before = policy(&[]);
        let after = before.with("predict", "thesis").expect("a rule");
        assert_eq!(after, policy(&["--predict", "thesis"]));
        let error = |name, text| before.with(name, text).expect_err("refused").to_string();
        assert!(error("predict-k", "1").contains("predict-k: 1 is out of bounds; 2 to 100"));
        assert!(error("slice-nrt-us", "200").contains("--slice-nrt-min-us (500)"));
        assert!(error("predict-z", "1").contains("no policy constant"));
    }

    #[test]
    fn bounds_and_crossing_slices() {
        let error = Only::try_parse_from(["x", "--slice-nrt-us", "99"]).expect_err("too short");
        assert!(error.to_string().contains("100 to 100000 µs"), "{error}");
        let error =
            policy(&["--slice-nrt-us", "400"]).validate().expect_err("500 > 400").to_string();
        assert!(
            error.contains("--slice-nrt-min-us (500)") && error.contains("--slice-nrt-us (400)"),
            "{error}"
        );
    }
}
