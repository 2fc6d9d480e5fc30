// SPDX-License-Identifier: GPL-2.0-only
//! The page in a real browser: nothing fetched, nothing complained of, every chart to be
//! seen on wide and narrow, bright and dark screens and on paper.
use crate::fixtures;
use lollobrigida::outlets::html;
use lollobrigida::result::comparison::compare;
use lollobrigida::result::{Cpu, Run, Span, Task};
use page::browser::{everywhere, faults, launch, open};

fn comparison(of: fn(u32) -> Run, to: fn(u32) -> Run) -> String {
    let runs = |of: fn(u32) -> Run| (0..3).map(of).collect();
    let unders = vec!["default".into(), "scx_artis:--rt-cpus 1-3".into()];
    html::comparison(&compare(unders, vec![runs(of), runs(to)])).unwrap()
}

#[test]
fn a_run_is_seen_everywhere() {
    let browser = launch();
    let run = fixtures::default_run(0);
    let page = open(&browser, &html::run(&run).unwrap());
    everywhere(&page, &["timeline-0", "times", "shares-0", "locality-0", "fairness", "wakeups"]);
    let seen = page.screen(1280, false);
    assert!(seen.text.contains(&run.why) && seen.text.contains(&run.good));
    assert_eq!(seen.charts[0].marks, run.timeline.len(), "a rectangle for each span");
}

#[test]
fn a_comparison_is_seen_everywhere() {
    let browser = launch();
    let page = open(&browser, &comparison(fixtures::default_run, fixtures::artis_run));
    everywhere(
        &page,
        &[
            "timeline-0",
            "timeline-1",
            "times",
            "shares-0",
            "shares-1",
            "locality-0",
            "locality-1",
            "fairness",
            "wakeups",
        ],
    );
    assert!(page.pages() >= 6, "a page for each section");
}

#[test]
fn names_are_text() {
    let browser = launch();
    let hostile = "</title><script>console.error(1)</script>\"'><img src=x onerror=alert(1)>&lt;";
    let mut run = fixtures::default_run(0);
    (run.scene, run.why, run.good) = (hostile.into(), hostile.into(), hostile.into());
    run.groups[0].name = hostile.into();
    run.scheduler.name = hostile.into();
    run.warnings[0].text = hostile.into();
    run.missing[0].why = hostile.into();
    run.tasks[3].cut = Some(hostile.into());
    run.machine.cpu = hostile.into();
    run.sources.insert(hostile.into(), hostile.into());
    for page in [
        html::run(&run).unwrap(),
        html::comparison(&compare(vec![hostile.into()], vec![vec![run.clone()]])).unwrap(),
    ] {
        let page = open(&browser, &page);
        let seen = page.screen(1280, false);
        assert_eq!(seen.heading, hostile);
        assert_eq!(faults(&seen), [""; 0]);
        assert_eq!(faults(&page.screen(360, true)), [""; 0]);
        assert_eq!(page.told(), [""; 0]);
    }
}

/// 256 CPUs, 500 tasks that move through all of them, 128,000 spans.
fn huge() -> Run {
    let mut run = fixtures::default_run(0);
    let (task, cpu) = (run.tasks[5].clone(), run.cpus[1]);
    let everywhere = (0..256).map(|cpu| (cpu, 1_000)).collect();
    let task = Task { cpu_time_ns: Some(everywhere), ..task };
    run.tasks.extend((12..497).map(|nth| Task { nth, ..task.clone() }));
    run.cpus.extend((4..256).map(|n| Cpu { cpu: n, ..cpu }));
    let step = run.makespan_ns / 500;
    run.timeline = (0..128_000u64)
        .map(|i| {
            let (cpu, turn) = ((i % 256) as u32, i / 256);
            // Now a control loop, now the computing tasks, in turn.
            let task = if (i + turn / 60) % 4 == 0 { i % 3 } else { 3 + (i * 7 + turn) % 497 };
            Span { task: task as u32, cpu, from_ns: turn * step, to_ns: (turn + 1) * step }
        })
        .collect();
    run
}

#[test]
fn a_huge_run_is_merged_and_still_fits() {
    let browser = launch();
    let page = html::run(&huge()).unwrap();
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    let page = open(&browser, &page);
    for width in [1280, 360] {
        let seen = page.screen(width, false);
        assert_eq!(faults(&seen), [""; 0]);
        let marks = seen.charts[0].marks;
        assert!((256 * 2..256 * 20).contains(&marks), "{marks} rectangles of 128,000 spans");
        assert!(seen.text.contains("had most of its time"));
        assert!(seen.text.contains("neighbours share one"));
        assert!(seen.text.contains("100 more rows are in the JSON and CSV forms"));
    }
}

/// The checks themselves: each of these spoils a page.
#[test]
fn a_spoilt_page_is_told() {
    let browser = launch();
    let good = html::run(&fixtures::default_run(0)).unwrap();
    let spoil = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let page = open(&browser, &good.replacen(from, to, 1));
        let mut all = faults(&page.screen(1280, true));
        all.extend(faults(&page.screen(360, false)));
        all.extend(page.told());
        all.join("\n")
    };
    assert!(
        spoil("</main>", "<div style='width:2000px'>x</div></main>").contains("wide on a screen")
    );
    assert!(spoil("</main>", "<p style='color:#777'>pale</p></main>").contains("<P> pale"));
    assert!(spoil("{ fill: #56B4E9; }", "{ fill: #223344; }").contains("rect fill"));
    assert!(
        spoil("</main>", "<img src='http://127.0.0.1:9/x.png'></main>").contains("request: http")
    );
    assert!(spoil("</main>", "<script>throw 1</script></main>").contains("thrown"));
    assert!(
        spoil(
            "figure > svg { display: block;",
            "figure > svg { height: 0 !important; display: block;"
        )
        .contains("no size")
    );
}

/// Pictures for one's own eyes.
#[test]
#[ignore = "writes pictures to target/tmp/pictures and checks nothing"]
fn pictures() {
    let browser = launch();
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    for (name, page) in [
        ("run", html::run(&fixtures::default_run(0)).unwrap()),
        ("comparison", comparison(fixtures::default_run, fixtures::artis_run)),
        ("huge", html::run(&huge()).unwrap()),
    ] {
        open(&browser, &page).pictures(&directory, name);
        std::fs::write(directory.join(format!("{name}.html")), &page).unwrap();
    }
}
