// SPDX-License-Identifier: GPL-2.0-only
//! The page in a real browser: nothing fetched, nothing complained of, every chart to be
//! seen on wide and narrow, bright and dark screens and on paper.
#![allow(clippy::unwrap_used)]

mod fixtures;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use headless_chrome::browser::tab::Tab;
use headless_chrome::protocol::cdp::Emulation::{
    MediaFeature, SetDeviceMetricsOverride, SetEmulatedMedia,
};
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Network, Page};
use headless_chrome::types::PrintToPdfOptions;
use headless_chrome::{Browser, LaunchOptions};
use lollobrigida::outlets::html;
use lollobrigida::result::comparison::compare;
use lollobrigida::result::{Cpu, Run, Span, Task};
use serde::Deserialize;

/// What tests/fixtures/inspect.js tells.
#[derive(Debug, Deserialize)]
struct Seen {
    heading: String,
    text: String,
    foreign: u32,
    width: f64,
    scrolls: f64,
    background: String,
    pale: Vec<String>,
    charts: Vec<SeenChart>,
}

#[derive(Debug, Deserialize)]
struct SeenChart {
    id: String,
    left: f64,
    right: f64,
    width: f64,
    height: f64,
    marks: usize,
    titled: u32,
    rows: usize,
    letters: f64,
    out: u32,
}

/// A page in a tab of its own.
struct Opened {
    tab: Arc<Tab>,
    /// Complaints in the console, and what was asked of the network.
    told: Arc<Mutex<Vec<String>>>,
    _directory: tempfile::TempDir,
}

fn chrome() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium-headless-shell", "chromium"];
    std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|file| file.is_file())
        .expect(
            "no chromium-headless-shell and no chromium on PATH: the report cannot be looked at. \
             Install Debian's package chromium-headless-shell (scripts/setup does)",
        )
}

fn launch() -> Browser {
    let options = LaunchOptions::default_builder()
        .path(Some(chrome()))
        // Chrome refuses to run as root with one, and only this file is opened.
        .sandbox(false)
        .idle_browser_timeout(std::time::Duration::from_secs(300))
        .build()
        .unwrap();
    Browser::new(options).unwrap()
}

fn open(browser: &Browser, page: &str) -> Opened {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.html");
    std::fs::write(&file, page).unwrap();
    let tab = browser.new_tab().unwrap();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&told);
    tab.add_event_listener(Arc::new(move |event: &Event| {
        let text = match event {
            Event::LogEntryAdded(e) => format!("log: {}", e.params.entry.text),
            Event::RuntimeConsoleAPICalled(e) => format!("console: {:?}", e.params.args),
            Event::RuntimeExceptionThrown(e) => format!("thrown: {:?}", e.params.exception_details),
            Event::NetworkRequestWillBeSent(e) => format!("request: {}", e.params.request.url),
            _ => return,
        };
        sink.lock().unwrap().push(text);
    }))
    .unwrap();
    tab.enable_log().unwrap().enable_runtime().unwrap();
    tab.call_method(Network::Enable {
        max_total_buffer_size: None,
        max_resource_buffer_size: None,
        max_post_data_size: None,
        report_direct_socket_traffic: None,
        enable_durable_messages: None,
    })
    .unwrap();
    tab.navigate_to(&format!("file://{}", file.display())).unwrap().wait_until_navigated().unwrap();
    Opened { tab, told, _directory: directory }
}

impl Opened {
    fn resize(&self, width: u32, height: u32, dark: bool) {
        let metrics = serde_json::json!({
            "width": width, "height": height, "deviceScaleFactor": 1.0, "mobile": false,
        });
        let metrics: SetDeviceMetricsOverride = serde_json::from_value(metrics).unwrap();
        self.tab.call_method(metrics).unwrap();
        let value = if dark { "dark" } else { "light" };
        let feature = MediaFeature { name: "prefers-color-scheme".into(), value: value.into() };
        self.tab
            .call_method(SetEmulatedMedia { media: None, features: Some(vec![feature]) })
            .unwrap();
    }

    fn screen(&self, width: u32, dark: bool) -> Seen {
        self.resize(width, 900, dark);
        let told = self.tab.evaluate(include_str!("fixtures/inspect.js"), false).unwrap();
        let told = told.value.expect("inspect.js returns a text");
        serde_json::from_str(told.as_str().unwrap()).unwrap()
    }

    /// What the browser was asked for besides the page itself, and complaints.
    fn told(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let page = |t: &&String| !(t.starts_with("request: file:") && t.ends_with("/report.html"));
        told.iter().filter(page).filter(|t| !t.starts_with("request: data:")).cloned().collect()
    }

    /// Pages of its print.
    fn pages(&self) -> usize {
        let options = PrintToPdfOptions { print_background: Some(false), ..Default::default() };
        let pdf = self.tab.print_to_pdf(Some(options)).unwrap();
        assert!(pdf.starts_with(b"%PDF"));
        let mark = b"/Type /Page";
        pdf.windows(mark.len() + 1).filter(|w| w.starts_with(mark) && w[mark.len()] != b's').count()
    }
}

/// What is wrong with a page at this width; the same is wrong in light and in dark.
fn faults(seen: &Seen) -> Vec<String> {
    let mut all = seen.pale.clone();
    if seen.scrolls > seen.width {
        all.push(format!("the page is {} wide on a screen of {}", seen.scrolls, seen.width));
    }
    if seen.foreign > 0 {
        all.push(format!("{} elements that load or run something", seen.foreign));
    }
    for chart in &seen.charts {
        let id = &chart.id;
        if chart.width < 1.0 || chart.height < 1.0 {
            all.push(format!("{id} has no size"));
        }
        if chart.left < 0.0 || chart.right > seen.width {
            all.push(format!("{id} is from {} to {}", chart.left, chart.right));
        }
        if chart.titled == 0 || chart.rows == 0 {
            all.push(format!("{id} says nothing to those who do not see it"));
        }
        if chart.letters < 10.0 || chart.out > 0 {
            all.push(format!("{id}: letters of {} px, {} texts out", chart.letters, chart.out));
        }
    }
    all
}

fn everywhere(page: &Opened, charts: &[&str]) {
    let mut grounds = Vec::new();
    for (width, dark) in [(1280, false), (1280, true), (360, false), (360, true)] {
        let seen = page.screen(width, dark);
        assert_eq!(faults(&seen), [""; 0], "{width} px wide, dark: {dark}");
        assert_eq!(seen.charts.iter().map(|c| &*c.id).collect::<Vec<_>>(), charts);
        grounds.push(seen.background);
    }
    assert_ne!(grounds[0], grounds[1], "dark is not light");
    assert!(page.pages() > 0);
    assert_eq!(page.told(), [""; 0]);
}

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

/// Pictures for one's own eyes, in parts that a viewer can show.
#[test]
#[ignore = "writes pictures to target/tmp/pictures and checks nothing"]
fn pictures() {
    let browser = launch();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&directory).unwrap();
    for (name, page) in [
        ("run", html::run(&fixtures::default_run(0)).unwrap()),
        ("comparison", comparison(fixtures::default_run, fixtures::artis_run)),
        ("huge", html::run(&huge()).unwrap()),
    ] {
        std::fs::write(directory.join(format!("{name}.html")), &page).unwrap();
        let page = open(&browser, &page);
        for (width, dark) in [(1280, false), (1280, true), (360, false)] {
            page.resize(width, 900, dark);
            let size = page.tab.evaluate("document.documentElement.scrollHeight", false).unwrap();
            let height = size.value.unwrap().as_u64().unwrap() as u32;
            page.resize(width, height, dark);
            let kind = if dark { "dark" } else { "light" };
            for (part, y) in (0..height).step_by(1400).enumerate() {
                let height = (height - y).min(1400).into();
                let clip =
                    Page::Viewport { x: 0.0, y: y.into(), width: width.into(), height, scale: 1.0 };
                let png = Page::CaptureScreenshotFormatOption::Png;
                let bytes = page.tab.capture_screenshot(png, None, Some(clip), true).unwrap();
                std::fs::write(directory.join(format!("{name}-{width}-{kind}-{part}.png")), bytes)
                    .unwrap();
            }
        }
        std::fs::write(directory.join(format!("{name}.pdf")), page.tab.print_to_pdf(None).unwrap())
            .unwrap();
    }
}
