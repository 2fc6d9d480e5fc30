// SPDX-License-Identifier: GPL-2.0-only
//! A page in a real browser: nothing fetched, nothing complained of, every chart to be seen on
//! wide and narrow, bright and dark screens and on paper. For tests: it panics where something
//! is missing.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use headless_chrome::browser::tab::Tab;
use headless_chrome::protocol::cdp::Emulation::{
    MediaFeature, SetDeviceMetricsOverride, SetEmulatedMedia,
};
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Network, Page};
use headless_chrome::types::PrintToPdfOptions;
use headless_chrome::{Browser, LaunchOptions};
use serde::Deserialize;

/// What inspect.js tells of a page.
#[derive(Debug, Deserialize)]
pub struct Seen {
    /// Text of its h1.
    pub heading: String,
    /// All its text.
    pub text: String,
    /// Elements that load or run something.
    pub foreign: u32,
    /// Of the window, px.
    pub width: f64,
    /// Of the page, px.
    pub scrolls: f64,
    /// Its colour.
    pub background: String,
    /// What has too little contrast.
    pub pale: Vec<String>,
    /// Those that are shown.
    pub charts: Vec<SeenChart>,
}

/// One chart, px.
#[derive(Debug, Deserialize)]
pub struct SeenChart {
    /// Of its figure.
    pub id: String,
    /// Edge.
    pub left: f64,
    /// Edge.
    pub right: f64,
    /// Size.
    pub width: f64,
    /// Size.
    pub height: f64,
    /// Rectangles.
    pub marks: usize,
    /// 1: it has a title and a description.
    pub titled: u32,
    /// Of its table.
    pub rows: usize,
    /// Height of the smallest text.
    pub letters: f64,
    /// Texts that stick out.
    pub out: u32,
}

/// A page in a tab of its own.
pub struct Opened {
    /// The tab.
    pub tab: Arc<Tab>,
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

/// A browser.
pub fn launch() -> Browser {
    let options = LaunchOptions::default_builder()
        .path(Some(chrome()))
        // Chrome refuses to run as root with one, and only this file is opened.
        .sandbox(false)
        .idle_browser_timeout(std::time::Duration::from_secs(300))
        .build()
        .unwrap();
    Browser::new(options).unwrap()
}

/// A page in it.
pub fn open(browser: &Browser, page: &str) -> Opened {
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
    /// Another window.
    pub fn resize(&self, width: u32, height: u32, dark: bool) {
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

    /// What is to be seen at this width.
    pub fn screen(&self, width: u32, dark: bool) -> Seen {
        self.resize(width, 900, dark);
        let told = self.tab.evaluate(include_str!("inspect.js"), false).unwrap();
        let told = told.value.expect("inspect.js returns a text");
        serde_json::from_str(told.as_str().unwrap()).unwrap()
    }

    /// What the browser was asked for besides the page itself, and complaints.
    pub fn told(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let page = |t: &&String| !(t.starts_with("request: file:") && t.ends_with("/report.html"));
        told.iter().filter(page).filter(|t| !t.starts_with("request: data:")).cloned().collect()
    }

    /// Pages of its print.
    pub fn pages(&self) -> usize {
        let options = PrintToPdfOptions { print_background: Some(false), ..Default::default() };
        let pdf = self.tab.print_to_pdf(Some(options)).unwrap();
        assert!(pdf.starts_with(b"%PDF"));
        let mark = b"/Type /Page";
        pdf.windows(mark.len() + 1).filter(|w| w.starts_with(mark) && w[mark.len()] != b's').count()
    }
}

/// What is wrong with a page at this width; the same is wrong in light and in dark.
pub fn faults(seen: &Seen) -> Vec<String> {
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

/// It is without fault on all screens, has these charts, can be printed, and asks for nothing.
pub fn everywhere(page: &Opened, charts: &[&str]) {
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

impl Opened {
    /// Pictures for one's own eyes, in parts that a viewer can show: files whose names begin
    /// with `name` in `directory`.
    pub fn pictures(&self, directory: &Path, name: &str) {
        std::fs::create_dir_all(directory).unwrap();
        for (width, dark) in [(1280, false), (1280, true), (360, false)] {
            self.resize(width, 900, dark);
            let size = self.tab.evaluate("document.documentElement.scrollHeight", false).unwrap();
            let height = size.value.unwrap().as_u64().unwrap() as u32;
            self.resize(width, height, dark);
            let kind = if dark { "dark" } else { "light" };
            for (part, y) in (0..height).step_by(1400).enumerate() {
                let height = (height - y).min(1400).into();
                let clip =
                    Page::Viewport { x: 0.0, y: y.into(), width: width.into(), height, scale: 1.0 };
                let png = Page::CaptureScreenshotFormatOption::Png;
                let bytes = self.tab.capture_screenshot(png, None, Some(clip), true).unwrap();
                std::fs::write(directory.join(format!("{name}-{width}-{kind}-{part}.png")), bytes)
                    .unwrap();
            }
        }
        std::fs::write(directory.join(format!("{name}.pdf")), self.tab.print_to_pdf(None).unwrap())
            .unwrap();
    }
}
