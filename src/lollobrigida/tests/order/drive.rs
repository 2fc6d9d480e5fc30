// SPDX-License-Identifier: GPL-2.0-only
//! The order of what is done to the machine, seen by an executor that does nothing: a
//! scheduler that was started is stopped, and the machine is restored, whatever happens.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, bail};
use lollobrigida::compare::drive::{Driven, Job, drive};
use lollobrigida::compare::order::{Order, sequence};
use lollobrigida::execute::{EJECTED, Executor, Interrupted, Purpose, Under};
use lollobrigida::plan::{Plan, Scale};
use lollobrigida::result::{Run, Scheduler, Warning};

/// What goes wrong, at the n-th event.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Fails,
    Panics,
    Interrupts,
    Ejects,
}

struct Fake<'a> {
    events: &'a RefCell<Vec<String>>,
    interrupted: &'a Cell<bool>,
    trouble: Option<(&'static str, Trouble)>,
}

impl Fake<'_> {
    /// Notes the event; trouble comes at its first appearance only.
    fn event(&mut self, event: &str) -> Result<bool> {
        self.events.borrow_mut().push(event.into());
        match self.trouble.take_if(|(at, _)| *at == event) {
            Some((_, Trouble::Fails)) => bail!("{event} does not work"),
            Some((_, Trouble::Panics)) => panic!("{event} panics"),
            Some((_, Trouble::Interrupts)) => self.interrupted.set(true),
            Some((_, Trouble::Ejects)) => return Ok(true),
            None => {}
        }
        Ok(false)
    }
}

impl Executor for Fake<'_> {
    fn survey(&mut self) -> Result<Vec<Warning>> {
        self.event("survey")?;
        Ok(vec![Warning { code: "noisy".into(), text: "noisy".into() }])
    }

    fn start(&mut self, under: &Under) -> Result<Scheduler> {
        self.event(&format!("start {}", under.title))?;
        Ok(Scheduler { name: under.title.clone(), ops: None })
    }

    fn run(&mut self, plan: &Plan, purpose: Purpose) -> Result<Run> {
        let ejected = self.event(&match purpose {
            Purpose::WarmUp => "warm-up".into(),
            Purpose::Measure(n) => format!("run {n}"),
        })?;
        let mut run = Run::empty(plan);
        if ejected {
            run.warnings.push(Warning { code: EJECTED.into(), text: "gone".into() });
        }
        Ok(run)
    }

    fn stop(&mut self) -> Result<()> {
        self.event("stop").map(drop)
    }

    fn restore(&mut self) -> Result<()> {
        self.event("restore").map(drop)
    }
}

fn plan() -> Plan {
    Plan {
        scene: "s".into(),
        why: String::new(),
        good: String::new(),
        scale: Scale { steps_per_us: 500.0, steps_per_loop: 4096.0, work: 1.0 },
        limit_us: None,
        rt_cpus: None,
        groups: Vec::new(),
        tasks: Vec::new(),
        links: Vec::new(),
    }
}

/// Drives A and B, two runs each in ABBA with a warm-up, and tells the events.
fn driven(trouble: Option<(&'static str, Trouble)>) -> (String, Driven) {
    let (events, interrupted) = (RefCell::default(), Cell::new(false));
    let mut fake = Fake { events: &events, interrupted: &interrupted, trouble };
    let unders = ["A", "B"].map(|title| Under { title: title.into(), command: None });
    let steps = sequence(Order::Abba, 2, 2, 1, 0);
    let plan = plan();
    let job = Job { plan: &plan, unders: &unders, steps: &steps };
    let result = drive(&mut fake, job, &|| interrupted.get(), &mut |_, _| {});
    (events.take().join(", "), result)
}

fn error_of(driven: &Driven) -> String {
    driven.errors.iter().map(|e| format!("{e:#}")).collect::<Vec<_>>().join("; ")
}

#[test]
fn all_goes_well() {
    let (events, driven) = driven(None);
    assert_eq!(
        events,
        "survey, start A, warm-up, run 0, stop, start B, warm-up, run 0, run 1, stop, start A, \
         warm-up, run 1, stop, restore"
    );
    assert!(driven.errors.is_empty(), "{:?}", driven.errors);
    assert_eq!(driven.runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let codes = driven.runs[0][0].warnings.iter().map(|w| w.code.as_str()).collect::<Vec<_>>();
    assert_eq!(codes, ["noisy"], "the survey's warnings are in each run");
}

#[test]
fn a_survey_that_fails_starts_nothing() {
    let (events, driven) = driven(Some(("survey", Trouble::Fails)));
    assert_eq!(events, "survey, restore");
    assert!(error_of(&driven).contains("survey does not work"));
}

#[test]
fn a_start_that_fails_ends_it_and_what_was_measured_stays() {
    let (events, driven) = driven(Some(("start B", Trouble::Fails)));
    assert_eq!(events, "survey, start A, warm-up, run 0, stop, start B, restore");
    assert_eq!(driven.runs[0].len(), 1);
    assert!(error_of(&driven).contains("starting B"), "{}", error_of(&driven));
}

#[test]
fn a_run_that_fails_is_followed_by_stop_and_restore() {
    let (events, driven) = driven(Some(("warm-up", Trouble::Fails)));
    assert_eq!(events, "survey, start A, warm-up, stop, restore");
    assert!(error_of(&driven).contains("a run under A"), "{}", error_of(&driven));
}

#[test]
fn a_stop_that_fails_ends_it_and_is_not_tried_by_itself_again() {
    let (events, driven) = driven(Some(("stop", Trouble::Fails)));
    assert_eq!(events, "survey, start A, warm-up, run 0, stop, restore");
    assert!(error_of(&driven).contains("stop does not work"));
}

#[test]
fn a_restore_that_fails_is_told() {
    let (_, driven) = driven(Some(("restore", Trouble::Fails)));
    assert_eq!(driven.runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    assert!(error_of(&driven).contains("restore does not work"));
}

#[test]
fn an_interrupt_gives_the_machine_back_and_drops_the_run() {
    let whole = "survey, start A, warm-up, run 0, stop, start B, warm-up, run 0";
    for (at, events) in [
        ("survey", "survey, restore".to_owned()),
        ("start B", "survey, start A, warm-up, run 0, stop, start B, stop, restore".to_owned()),
        ("run 1", format!("{whole}, run 1, stop, restore")),
        ("stop", "survey, start A, warm-up, run 0, stop, start B, stop, restore".to_owned()),
    ] {
        let (seen, driven) = driven(Some((at, Trouble::Interrupts)));
        assert_eq!(seen, events, "interrupted at {at}");
        assert!(driven.errors[0].is::<Interrupted>(), "{:?}", driven.errors);
        let kept: usize = driven.runs.iter().map(Vec::len).sum();
        assert_eq!(kept, events.matches("run 0").count(), "interrupted at {at}");
        assert_eq!(driven.cut_short.is_some(), at == "run 1", "interrupted at {at}");
    }
}

#[test]
fn the_run_of_an_ejected_scheduler_is_put_aside_and_it_is_started_again() {
    let (events, driven) = driven(Some(("run 1", Trouble::Ejects)));
    assert_eq!(
        events,
        "survey, start A, warm-up, run 0, stop, start B, warm-up, run 0, run 1, stop, start A, \
         warm-up, run 1, stop, restore"
    );
    assert_eq!(driven.runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(driven.put_aside.len(), 1);
}

#[test]
fn an_ejected_warm_up_is_followed_by_a_new_start() {
    let (events, driven) = driven(Some(("warm-up", Trouble::Ejects)));
    assert!(events.starts_with("survey, start A, warm-up, stop, start A, run 0, stop"), "{events}");
    assert_eq!(driven.put_aside.len(), 1);
}

#[test]
fn a_panic_passes_by_the_machine_and_leaves_it_restored() {
    for (at, last) in [("run 1", "run 1, stop, restore"), ("start A", "start A, restore")] {
        let (events, interrupted) = (RefCell::default(), Cell::new(false));
        let unders = ["A", "B"].map(|title| Under { title: title.into(), command: None });
        let steps = sequence(Order::Abba, 2, 2, 1, 0);
        let plan = plan();
        let job = Job { plan: &plan, unders: &unders, steps: &steps };
        let mut fake = Fake {
            events: &events,
            interrupted: &interrupted,
            trouble: Some((at, Trouble::Panics)),
        };
        let caught = catch_unwind(AssertUnwindSafe(|| {
            drive(&mut fake, job, &|| false, &mut |_, _| {});
        }));
        assert!(caught.is_err());
        assert!(events.take().join(", ").ends_with(last), "panic at {at}");
    }
}
