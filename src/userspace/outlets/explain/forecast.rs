// SPDX-License-Identifier: GPL-2.0-only
//! The prediction for one task, by the rule in force: src/bpf/policy/predict.h in words.
//!
//! Both rules have one form: of the time since the last attempt, a beginning is calm (the next
//! attempt is still far) and so is all from some point on (it is overdue, the task computes).
//! They differ in the clock and in the two bounds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::History;
use crate::outlets::words::ns;

/// What a rule measures time by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The clock of the scheduler.
    Wall,
    /// The task's own run time.
    OwnRunTime,
}

/// What the rule says of a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Name of the rule: least or thesis.
    pub rule: String,
    /// C, ns.
    pub c_ns: u64,
    /// K.
    pub k: u64,
    /// What the times below are measured by.
    pub clock: Clock,
    /// Time since the last attempt, ns.
    pub since_ns: u64,
    /// The interval between attempts that the rule goes by, ns; 0: none is known.
    pub interval_ns: u64,
    /// Calm while `since_ns` is below this.
    pub far_below_ns: u64,
    /// Calm once `since_ns` has reached this.
    pub calm_from_ns: u64,
    /// Is it calm?
    pub calm: bool,
    /// So much later that changes unless it enters the kernel before; `None`: it does not.
    pub changes_in_ns: Option<u64>,
}

impl Forecast {
    /// By the rule and the constants in `policy` (as `scx_artis ctl get` prints them), at
    /// `now_ns` of the scheduler's clock. `None`: `policy` does not name them.
    pub fn of(policy: &BTreeMap<String, String>, history: &History, now_ns: u64) -> Option<Self> {
        let word = |name: &str| policy.get(name)?.split_whitespace().next();
        let number = |name: &str| word(name)?.parse::<u64>().ok();
        let rule = word("predict")?.to_owned();
        let (c_ns, k) = (number("predict-c-us")?.saturating_mul(1_000), number("predict-k")?);
        let clock = match rule.as_str() {
            "thesis" if history.period_ns > 0 => Clock::Wall,
            _ => Clock::OwnRunTime,
        };
        let since_ns = match clock {
            Clock::Wall => now_ns.saturating_sub(history.last_ns),
            Clock::OwnRunTime => history.quiet_run_ns,
        };
        // by the thesis's rule nothing is known where no interval was seen by the clock
        let interval_ns = match rule.as_str() {
            "thesis" => history.period_ns,
            _ => history.least_run_ns,
        };
        let far_below_ns = interval_ns.saturating_sub(c_ns);
        let calm_from_ns = match clock {
            Clock::Wall => interval_ns.saturating_mul(k).saturating_add(1),
            Clock::OwnRunTime => c_ns.saturating_mul(k),
        };
        let far = since_ns < far_below_ns;
        let calm = far || since_ns >= calm_from_ns;
        let changes_in_ns = match (far, calm) {
            (true, _) if far_below_ns >= calm_from_ns => None,
            (true, _) => Some(far_below_ns - since_ns),
            (false, true) => None,
            (false, false) => Some(calm_from_ns - since_ns),
        };
        Some(Self {
            rule,
            c_ns,
            k,
            clock,
            since_ns,
            interval_ns,
            far_below_ns,
            calm_from_ns,
            calm,
            changes_in_ns,
        })
    }

    /// In sentences.
    pub fn sentences(&self, history: &History, now_ns: u64) -> Vec<String> {
        let mut said = vec![format!(
            "The rule in force is {} (C {}, K {}).",
            self.rule,
            ns(self.c_ns as f64),
            self.k
        )];
        said.push(match history.last_ns {
            0 => format!(
                "No attempt of it is known; it has computed for {}.",
                ns(history.quiet_run_ns as f64)
            ),
            last_ns => format!(
                "Its last attempt (t_d) was {} ago; since then it computed for {}.",
                ns(now_ns.saturating_sub(last_ns) as f64),
                ns(history.quiet_run_ns as f64)
            ),
        });
        said.extend(self.interval(history));
        said.push(self.verdict());
        said
    }

    /// What distance of two attempts the rule goes by.
    fn interval(&self, history: &History) -> Option<String> {
        let interval = ns(self.interval_ns as f64);
        (self.interval_ns > 0).then(|| match self.clock {
            Clock::OwnRunTime => format!(
                "The least of its last intervals between two attempts is {interval} of own run \
                 time (the mean, P, is {}).",
                ns(history.period_run_ns as f64)
            ),
            Clock::Wall => format!("On the average it attempts every {interval} (P)."),
        })
    }

    /// Calm or not, why, and until when.
    fn verdict(&self) -> String {
        let own = match self.clock {
            Clock::Wall => "",
            Clock::OwnRunTime => " of own run time",
        };
        let change = self.changes_in_ns.map(|ns_left| ns(ns_left as f64));
        let bound = format!("{}{own}", ns(self.calm_from_ns as f64));
        match (self.calm, change) {
            (true, Some(left)) => format!(
                "It is calm: the next attempt is expected later than C from now. After \
                 {left} more{own} that is no longer so."
            ),
            (true, None) if self.since_ns < self.calm_from_ns => {
                "It is calm, and stays so until it enters the kernel: it attempts seldom."
                    .to_owned()
            }
            (true, None) => format!(
                "It is calm: it has gone without an attempt for {bound} or longer, so it is \
                 taken to compute until it enters the kernel again."
            ),
            (false, change) => format!(
                "It is not calm: an attempt is to be expected soon, so nobody sends it to an RT \
                 CPU. It becomes calm after {} more{own} without one ({} in all).",
                change.unwrap_or_default(),
                ns(self.calm_from_ns as f64)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn policy(rule: &str, c_us: u64, k: u64) -> BTreeMap<String, String> {
        let text = [
            ("predict", rule.to_owned()),
            ("predict-c-us", format!("{c_us} µs")),
            ("predict-k", format!("{k} periods")),
        ];
        text.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
    }

    fn history(quiet: u64, least: u64) -> History {
        History {
            last_ns: 1_000 * MS,
            quiet_run_ns: quiet,
            period_ns: 40 * MS,
            period_run_ns: 10 * MS,
            least_run_ns: least,
        }
    }

    /// (calm, changes in ms) of a rule with C 1 ms and K 8.
    fn at(rule: &str, history: History, now_ms: u64) -> (bool, Option<u64>) {
        let forecast =
            Forecast::of(&policy(rule, 1_000, 8), &history, now_ms * MS).expect("a rule");
        (forecast.calm, forecast.changes_in_ns.map(|ns| ns / MS))
    }

    #[test]
    fn least_has_two_calm_times() {
        assert_eq!(at("least", history(0, 5 * MS), 1_000), (true, Some(4)));
        assert_eq!(at("least", history(4 * MS, 5 * MS), 1_000), (false, Some(4)));
        assert_eq!(at("least", history(8 * MS, 5 * MS), 1_000), (true, None));
        assert_eq!(at("least", history(0, 90 * MS), 1_000), (true, None), "they overlap");
        assert_eq!(at("least", history(0, 0), 1_000), (false, Some(8)), "none is known");
    }

    #[test]
    fn the_thesis_goes_by_the_clock() {
        // P is 40 ms
        assert_eq!(at("thesis", history(0, 0), 1_010), (true, Some(29)));
        assert_eq!(at("thesis", history(0, 0), 1_100), (false, Some(220)));
        assert_eq!(at("thesis", history(0, 0), 1_321), (true, None));
        // without a known P: C x K of own run time
        let new = History { quiet_run_ns: 3 * MS, ..History::default() };
        assert_eq!(at("thesis", new, 1_000), (false, Some(5)));
    }

    #[test]
    fn an_unknown_policy_is_no_forecast() {
        assert_eq!(Forecast::of(&BTreeMap::new(), &History::default(), 0), None);
    }

    #[test]
    fn each_verdict_is_a_sentence() {
        let say = |h: History| {
            let forecast = Forecast::of(&policy("least", 1_000, 8), &h, 1_020 * MS).expect("rule");
            forecast.sentences(&h, 1_020 * MS).join(" ").replace('\u{a0}', " ")
        };
        assert!(
            say(history(0, 5 * MS))
                .contains("After 4.00 ms more of own run time that is no longer")
        );
        assert!(say(history(0, 90 * MS)).contains("attempts seldom"));
        assert!(say(history(9 * MS, 5 * MS)).contains("for 8.00 ms of own run time or longer"));
        let soon = say(history(5 * MS, MS));
        assert!(
            soon.contains("calm after 3.00 ms more of own run time without one (8.00 ms in all)"),
            "{soon}"
        );
        assert!(soon.contains("(t_d) was 20.0 ms ago"), "{soon}");
    }
}
