// SPDX-License-Identifier: GPL-2.0-only
//! What `--metrics` serves, fetched over HTTP and read by Prometheus's own parser.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use scx_artis::config::Address;
use scx_artis::feed::{Hub, To, Wanted};
use scx_artis::model::{
    Begin, CpuMetrics, CpuTimes, Hist, Lost, Metrics, SLOTS, Snapshot, Task, TaskMetrics,
};
use scx_artis::outlets::metrics::{Answers, Exporter, Latest, Server, encode};
use serde::Deserialize;

/// Debian's own: the module is not there for other ones.
const PYTHON: &str = "/usr/bin/python3";

#[derive(Debug, Deserialize)]
struct Family {
    name: String,
    help: String,
    #[serde(rename = "type")]
    kind: String,
    unit: String,
    samples: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// What Prometheus's parser makes of `text`.
fn parse(text: &str) -> Vec<Family> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openmetrics.py");
    let mut parser = Command::new(PYTHON)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{PYTHON}: {error}; scripts/setup installs it"));
    parser.stdin.take().expect("stdin").write_all(text.as_bytes()).expect("written");
    let output = parser.wait_with_output().expect("an end");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the parser (see scripts/setup) refuses:\n{complaint}");
    // its values may be NaN or Infinity, which are no JSON: then this fails, as it should
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn family<'a>(families: &'a [Family], name: &str) -> &'a Family {
    families.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no family {name}"))
}

/// The value of the one sample with this name and these labels among its own.
fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&Sample| {
        let has = |(key, value): &(&str, &str)| sample.labels.get(*key).is_some_and(|v| v == value);
        sample.name == name && labels.iter().all(has)
    };
    let found: Vec<_> = families.iter().flat_map(|f| &f.samples).filter(fits).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0].value
}

fn close(seen: f64, wanted: f64) {
    assert!((seen - wanted).abs() <= 1e-9 * wanted.abs().max(1e-9), "{seen} is not {wanted}");
}

/// Names that would break a format that does not expect them.
const NASTY: &str = "a\"b\\c{d=\"e\"},";

fn snapshot() -> Snapshot {
    let cpu = CpuMetrics {
        kind: "RT".into(),
        is_rt: 1,
        rt_pct: 12.5,
        residence_max_us: 41.0,
        residence_us_per_s: 250.0,
        evictions_per_s: 430.0,
        bodies_on_rt: 3,
        ..CpuMetrics::default()
    };
    let machine = Metrics {
        uptime_s: 12.5,
        evictions: u64::MAX >> 12,
        cpus: [(0, CpuMetrics { kind: "NRT".into(), ..CpuMetrics::default() }), (2, cpu)].into(),
        ..Metrics::default()
    };
    let task = |pid, comm: &str, class: &str, waits| {
        let metrics = TaskMetrics {
            pid,
            comm: comm.into(),
            class: class.into(),
            cpu_pct: 50.0,
            run_s: 1.25,
            nice: -5,
            attempts: 77,
            wait_max_us: 88.0,
            ..TaskMetrics::default()
        };
        (pid, Arc::new(Task { metrics, waits, ..Task::default() }))
    };
    let mut slots = vec![0; SLOTS];
    (slots[4], slots[9]) = (98, 2);
    let tasks =
        [task(7, NASTY, "NRT", Hist(vec![1; SLOTS])), task(9, "cyclictest", "RT0", Hist(slots))];
    let begin = Begin { kernel: "6.18".into(), program: "0.1".into(), ..Begin::default() };
    let times = |nth| {
        let mut slots = vec![0; SLOTS];
        slots[nth] = 10;
        CpuTimes { residence: Hist(slots.clone()), arrival: Hist(slots) }
    };
    Snapshot {
        begin: Arc::new(begin),
        machine,
        cpu_times: [(0, times(6)), (2, times(3))].into(),
        tasks: tasks.into(),
        lost: Lost { ring: 3, over_budget: 4, feed: 5 },
        ..Snapshot::default()
    }
}

#[test]
fn prometheus_reads_it() {
    let text = encode(Arc::new(snapshot()), 50).expect("encoded");
    let families = parse(&text);
    close(value(&families, "artis_uptime_seconds", &[]), 12.5);
    close(value(&families, "artis_evictions_total", &[]), (u64::MAX >> 12) as f64);
    close(value(&families, "artis_cpu_rt_ratio", &[("cpu", "2"), ("kind", "RT")]), 0.125);
    close(value(&families, "artis_cpu_residence_max_seconds", &[("cpu", "2")]), 41e-6);
    close(value(&families, "artis_cpu_residence_ratio", &[("cpu", "2")]), 250e-6);
    close(value(&families, "artis_cpu_evictions_per_second", &[("cpu", "2")]), 430.0);
    close(value(&families, "artis_cpu_bodies_on_rt_total", &[("cpu", "2")]), 3.0);
    let nasty = [("pid", "7"), ("comm", NASTY), ("class", "NRT")];
    close(value(&families, "artis_task_cpu_ratio", &nasty), 0.5);
    close(value(&families, "artis_task_run_seconds_total", &nasty), 1.25);
    close(value(&families, "artis_task_nice", &nasty), -5.0);
    close(value(&families, "artis_task_attempts_total", &nasty), 77.0);
    close(value(&families, "artis_task_wait_max_seconds", &nasty), 88e-6);
    close(value(&families, "artis_scheduler_info", &[("kernel", "6.18"), ("version", "0.1")]), 1.0);
    close(value(&families, "artis_exporter_records_lost_total", &[]), 5.0);
}

#[test]
fn families_say_what_they_are() {
    let families = parse(&encode(Arc::new(snapshot()), 50).expect("encoded"));
    for family in &families {
        assert!(family.name.starts_with("artis_"), "{}", family.name);
        assert!(family.help.len() > 10, "{}: {}", family.name, family.help);
        assert!(!family.samples.is_empty(), "{} has no sample", family.name);
        let unit_fits = ["", "seconds", "ratio"].contains(&family.unit.as_str());
        assert!(unit_fits && family.kind != "unknown", "{family:?}");
    }
    let cpu = family(&families, "artis_cpu_rt_ratio");
    assert_eq!((cpu.kind.as_str(), cpu.unit.as_str()), ("gauge", "ratio"));
    let run = family(&families, "artis_task_run_seconds");
    assert_eq!((run.kind.as_str(), run.unit.as_str()), ("counter", "seconds"));
    assert_eq!(family(&families, "artis_scheduler").kind, "info");
}

#[test]
fn latencies_are_histograms() {
    let families = parse(&encode(Arc::new(snapshot()), 50).expect("encoded"));
    let waits = family(&families, "artis_task_wakeup_latency_seconds");
    assert_eq!((waits.kind.as_str(), waits.unit.as_str()), ("histogram", "seconds"));
    let only_hard = |sample: &Sample| sample.labels["class"] == "RT0";
    assert!(waits.samples.iter().all(only_hard), "{waits:?}");
    let name = "artis_task_wakeup_latency_seconds";
    let buckets = waits.samples.iter().filter(|s| s.name == format!("{name}_bucket"));
    assert_eq!(buckets.count(), SLOTS);
    let up_to = |slot| {
        let bound = Hist::from_ns(slot) as f64 / 1e9;
        let fits = |s: &&Sample| s.labels.get("le").is_some_and(|le| le.parse() == Ok(bound));
        waits.samples.iter().find(fits).unwrap_or_else(|| panic!("no bucket up to {bound}")).value
    };
    assert_eq!((up_to(4), up_to(5), up_to(9), up_to(10)), (0.0, 98.0, 98.0, 100.0));
    close(value(&families, &format!("{name}_count"), &[]), 100.0);
    close(value(&families, &format!("{name}_bucket"), &[("le", "+Inf")]), 100.0);
}

#[test]
fn each_cpu_has_the_times_of_its_kind() {
    let families = parse(&encode(Arc::new(snapshot()), 50).expect("encoded"));
    for (name, cpu) in
        [("artis_cpu_residence_seconds", "2"), ("artis_cpu_eviction_latency_seconds", "0")]
    {
        let family = family(&families, name);
        assert_eq!(family.kind, "histogram");
        assert!(family.samples.iter().all(|sample| sample.labels["cpu"] == cpu), "{family:?}");
        close(value(&families, &format!("{name}_count"), &[]), 10.0);
    }
}

#[test]
fn a_snapshot_of_nothing_is_well_formed() {
    parse(&encode(Arc::new(Snapshot::default()), 0).expect("encoded"));
}

/// Status and body of the answer to `request`; the server closes after it.
fn ask(mut stream: impl Read + Write, request: &str) -> (String, String) {
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

fn serve(address: &Address) -> (Server, Arc<Latest>) {
    serve_as(rustix::process::geteuid().as_raw(), address)
}

/// As a daemon of the user `own` does.
fn serve_as(own: u32, address: &Address) -> (Server, Arc<Latest>) {
    let latest = Arc::new(Latest::default());
    let answers = Answers { latest: Arc::clone(&latest), tasks: 50 };
    let gid = rustix::process::getgid().as_raw();
    (Server::launch(address, own, gid, answers).expect("served"), latest)
}

#[test]
fn it_is_served_at_a_port() {
    let (server, latest) = serve(&"127.0.0.1:0".parse().expect("an address"));
    let port = server.port().expect("a port");
    let connect = || TcpStream::connect(port).expect("connected");
    let (head, body) = ask(connect(), "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 503") && body.contains("no figures yet"), "{head}\n{body}");

    latest.set(Some(snapshot()));
    let (head, body) = ask(connect(), "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    close(value(&parse(&body), "artis_cpu_rt_ratio", &[("cpu", "2")]), 0.125);

    let (head, body) = ask(connect(), "HEAD /metrics");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}\n{body}");
    assert!(ask(connect(), "POST /metrics").0.starts_with("HTTP/1.1 405"));
    assert!(ask(connect(), "GET /etc/passwd").0.starts_with("HTTP/1.1 404"));
    assert!(ask(connect(), "GET /").1.contains("/metrics"));
}

#[test]
fn it_is_served_at_a_socket() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("metrics.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("what a dead daemon left"));
    let address = Address::Unix(path.clone());
    let (server, latest) = serve(&address);
    let mode = fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660, "of root and the group only");
    latest.set(Some(snapshot()));
    let (head, body) = ask(UnixStream::connect(&path).expect("connected"), "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200") && body.ends_with("# EOF\n"), "{head}");

    let answers = Answers { latest, tasks: 0 };
    let error = Server::launch(&address, 0, 0, answers).expect_err("in use");
    assert!(format!("{error:#}").contains("another program listens"), "{error:#}");
    drop(server);
    assert!(!path.exists(), "the socket is left behind");
}

#[test]
fn a_file_in_the_way_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("precious");
    fs::write(&path, "text").expect("written");
    let answers = Answers { latest: Arc::default(), tasks: 0 };
    let error = Server::launch(&Address::Unix(path.clone()), 0, 0, answers).expect_err("a file");
    assert!(format!("{error:#}").contains("is no socket"), "{error:#}");
    assert_eq!(fs::read_to_string(&path).expect("there still"), "text");
}

#[test]
fn clients_that_say_nothing_keep_nobody_out_for_ever() {
    let (server, latest) = serve(&"127.0.0.1:0".parse().expect("an address"));
    latest.set(Some(snapshot()));
    let port = server.port().expect("a port");
    let connect = || TcpStream::connect(port).expect("connected");
    let silent: Vec<_> = (0..20).map(|_| connect()).collect();
    let stream = connect();
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let (head, _) = ask(stream, "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    drop(silent);
}

#[test]
fn others_leave_places_to_the_daemons_user() {
    let me = rustix::process::geteuid().as_raw();
    for (own, places) in [(me, 15), (me + 1, 4)] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("metrics.sock");
        let (_server, latest) = serve_as(own, &Address::Unix(path.clone()));
        latest.set(Some(snapshot()));
        let connect = || UnixStream::connect(&path).expect("connected");
        // one after the other, more often than there are places
        for _ in 0..20 {
            assert!(ask(connect(), "GET /metrics").0.starts_with("HTTP/1.1 200"));
        }
        let silent: Vec<_> = (0..places).map(|_| connect()).collect();
        let mut next = connect();
        if own == me {
            assert!(ask(next, "GET /metrics").0.starts_with("HTTP/1.1 200"));
        } else {
            next.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
            // a silent one is closed after 5 s
            assert_eq!(next.read(&mut [0; 1]).expect("closed at once"), 0);
        }
        drop(silent);
    }
}

/// The bytes of the recording: a whole stream.
fn stream() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/small.artis");
    let mut bytes = Vec::new();
    let mut file = flate2::read::GzDecoder::new(fs::File::open(path).expect("a recording"));
    file.read_to_end(&mut bytes).expect("gzip");
    bytes
}

/// Asks until the status is `wanted`.
fn ask_until(exporter: &Exporter, wanted: &str) -> String {
    let port = exporter.server().port().expect("a port");
    for _ in 0..600 {
        let (head, body) = ask(TcpStream::connect(port).expect("connected"), "GET /metrics");
        if head.starts_with(&format!("HTTP/1.1 {wanted}")) {
            return body;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("a minute is over, and its status is not {wanted}");
}

#[test]
fn the_exporter_watches_by_itself() {
    let hub = Arc::new(Hub::default());
    let address = "127.0.0.1:0".parse().expect("an address");
    let exporter = Exporter::launch(&address, 0, 50, &hub).expect("served");
    ask_until(&exporter, "503");
    while !hub.has_new() {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(hub.wanted(), Some(Wanted::default()), "once a second, without events");
    hub.send(To::New, &stream(), true);
    let labels = [("comm", "cyclictest"), ("class", "RT0")];
    // it answers from the first interval of the stream on, and counts to the last
    let counted = (0..600).any(|_| {
        let families = parse(&ask_until(&exporter, "200"));
        value(&families, "artis_task_runs_total", &labels) > 1_000.0
    });
    assert!(counted, "the stream's intervals are not counted");
    // the scheduler cannot be watched any more: better nothing than what was
    hub.dismiss();
    ask_until(&exporter, "503");
    drop(exporter);
    assert_eq!(hub.wanted(), None, "it watches still");
}
