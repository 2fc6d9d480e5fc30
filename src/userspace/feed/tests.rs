// SPDX-License-Identifier: GPL-2.0-only

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{HEAD, encode, kind, put};
use super::*;
use crate::abi::bindings::{artis_event_record, artis_task_record};
use crate::model::{Begin, Reading, What};

/// More than anything here takes, however busy the machine.
const LONG: Duration = Duration::from_secs(60);
/// Bytes that may wait for a viewer.
const ROOM: usize = 1 << 20;

fn interval(second: u64, begins: bool) -> Vec<u8> {
    let mut frames = Vec::new();
    let now_ns = second * 1_000_000_000;
    if begins {
        encode(&mut frames, kind::BEGIN, now_ns, &Begin { started_ns: 1, ..Begin::default() });
    }
    let mut task = vec![0; size_of::<artis_task_record>() - HEAD];
    task[..4].copy_from_slice(&7u32.to_ne_bytes()); // its pid
    put(&mut frames, kind::TASK, now_ns, &task);
    let mut eviction = vec![0; size_of::<artis_event_record>() - HEAD];
    eviction[..4].copy_from_slice(&7u32.to_ne_bytes());
    put(&mut frames, kind::EVICTION, now_ns, &eviction);
    encode(&mut frames, kind::READING, now_ns, &Reading { now_ns, ..Reading::default() });
    frames
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A daemon's socket in a directory of its own.
struct Daemon {
    dir: tempfile::TempDir,
    hub: Arc<Hub>,
    server: Option<Server>,
}

impl Daemon {
    fn new() -> Self {
        Self::of(nix::unistd::geteuid().as_raw())
    }

    /// One of the user `own`.
    fn of(own: u32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let hub = Arc::new(Hub::default());
        let gid = nix::unistd::getegid().as_raw();
        let path = dir.path().join("feed");
        fs::write(&path, "of a dead daemon").expect("written");
        let server = Server::launch(&path, own, gid, &hub).expect("launched");
        Self { dir, hub, server: Some(server) }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("feed")
    }

    /// A viewer whose stream has begun.
    fn viewer(&self, wanted: Wanted) -> Source {
        let (path, hub) = (self.path(), Arc::clone(&self.hub));
        let begin = thread::spawn(move || {
            until("nobody came", || hub.has_new());
            hub.send(To::New, &interval(1, true), true);
        });
        let source = Source::new(connect(&path, wanted).expect("connected"), Duration::ZERO);
        begin.join().expect("no panic");
        source
    }
}

#[test]
fn a_viewer_gets_intervals_until_the_daemon_ends() {
    let mut daemon = Daemon::new();
    let metadata = fs::metadata(daemon.path()).expect("there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
    assert_eq!(metadata.gid(), nix::unistd::getegid().as_raw());

    let wanted = Wanted { events: true, ..Wanted::default() };
    let mut source = daemon.viewer(wanted);
    assert_eq!(daemon.hub.wanted(), Some(wanted));
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    assert!(source.next(deadline).expect("no error").is_none() && !source.has_ended());
    daemon.hub.send(To::Begun, &interval(2, false), true);
    let snapshot = source.next(Some(Instant::now() + LONG)).expect("no error").expect("in time");
    assert_eq!((snapshot.machine.interval_s, snapshot.tasks.len()), (1.0, 1));
    assert!(matches!(snapshot.events[1].what, What::Eviction { .. }), "{:?}", snapshot.events);

    daemon.hub.send(To::Begun, &interval(3, false), true);
    daemon.server = None;
    assert!(!daemon.path().exists(), "the socket is left behind");
    assert!(source.next(None).expect("no error").is_some(), "what was sent arrives");
    assert!(source.next(None).expect("no error").is_none() && source.has_ended());
    let error = connect(&daemon.path(), wanted).err().expect("no daemon");
    assert_eq!(error.code(), 3);
    assert!(error.to_string().contains("no scx_artis runs"), "{error}");
}

#[test]
fn viewers_get_what_each_wants() {
    let daemon = Daemon::new();
    let slow = Wanted::every(Duration::from_secs(5));
    let mut totals = daemon.viewer(slow);
    let fast = Wanted { interval: Duration::from_millis(1), events: true, runs: false };
    let mut events = daemon.viewer(fast);
    let both = Wanted { interval: Wanted::INTERVAL_MIN, ..fast };
    assert_eq!(daemon.hub.wanted(), Some(both), "the least interval is kept");
    daemon.hub.send(To::Begun, &interval(2, false), true);
    let count = |source: &mut Source| source.next(None).expect("ok").expect("one").nr_events;
    assert_eq!((count(&mut totals), count(&mut events)), (0, 2));
    drop(events);
    until("who left is still there", || daemon.hub.wanted() == Some(slow));
    drop(totals);
    until("who left is still there", || daemon.hub.wanted().is_none());
}

#[test]
fn who_says_nothing_sensible_is_sent_away() {
    let daemon = Daemon::new();
    for line in ["what?\n", "{\"interval_s\":-1}\n", "{\"interval_s\":1,\"all\":true}\n", ""] {
        let mut socket = UnixStream::connect(daemon.path()).expect("connected");
        socket.write_all(line.as_bytes()).expect("written");
        socket.shutdown(std::net::Shutdown::Write).expect("shut down");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("the end");
        assert!(answer.is_empty() && daemon.hub.wanted().is_none(), "{line}");
    }
}

/// Connections that say nothing are closed after a while, but not one of these at once.
#[test]
fn a_silent_connection_takes_a_seat() {
    let daemon = Daemon::of(nix::unistd::geteuid().as_raw() + 1);
    let connect = || {
        let socket = UnixStream::connect(daemon.path()).expect("connected");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
        socket
    };
    let is_closed = |mut socket: &UnixStream| matches!(socket.read(&mut [0]), Ok(0));
    let silent: Vec<_> = (0..4).map(|_| connect()).collect();
    assert!(is_closed(&connect()), "a fifth is let in");
    assert!(!silent.iter().any(is_closed), "their time is not over");
    drop(silent);
    until("their seats are not free again", || !is_closed(&connect()));
}

#[test]
fn there_is_room_for_some_only() {
    let hub = Arc::new(Hub::default());
    let viewers: Vec<_> = (0..17).map(|_| hub.subscribe(Wanted::default(), ROOM)).collect();
    assert_eq!(viewers.iter().flatten().count(), 16);
    drop(viewers);
    assert!(hub.subscribe(Wanted::default(), ROOM).is_some());
    hub.close();
    assert!(hub.subscribe(Wanted::default(), ROOM).is_none(), "it ends");
}

#[test]
fn the_begin_of_another_scheduler_is_for_all() {
    let hub = Arc::new(Hub::default());
    let mut source = Source::inside(&hub, Wanted::default()).expect("room");
    hub.send(To::New, &interval(1, true), true);
    hub.begin_anew();
    hub.send(To::Begun, &interval(2, false), true);
    assert!(source.next(Some(Instant::now())).expect("ok").is_none(), "not its stream any more");
    hub.send(To::New, &interval(3, true), true);
    assert!(source.next(Some(Instant::now())).expect("ok").is_some());
}

/// A recording of so many intervals, the first of which ends none.
fn recording(dir: &Path, intervals: u64) -> PathBuf {
    let path = dir.join("run.artis");
    let mut recorder = Recorder::create(&path).expect("made");
    for second in 1..=intervals {
        let bytes = interval(second, second == 1);
        let mut rest = &bytes[..];
        while let Some((frame, after)) = Frame::split(rest).expect("sound") {
            recorder.add(&frame).expect("written");
            rest = after;
        }
    }
    let bytes = recorder.finish().expect("finished");
    let made = fs::metadata(&path).expect("there");
    assert_eq!((bytes, made.mode() & 0o777), (made.len(), 0o600));
    path
}

/// How many intervals a recording has.
fn intervals(path: &Path) -> usize {
    let Ok(mut source) = source(Some(path), Wanted::default()) else { return 0 };
    let mut n = 0;
    while source.next(None).expect("not damaged").is_some() {
        n += 1;
    }
    n
}

#[test]
fn a_recording_is_the_same_stream() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = recording(dir.path(), 9);
    assert_eq!(intervals(&path), 8);
    let error = Recorder::create(&path).expect_err("it is there");
    assert!(error.code() == 2 && error.to_string().contains("not overwritten"), "{error}");
    let nowhere = Recorder::create(&dir.path().join("no/such/file")).expect_err("no directory");
    assert!(nowhere.to_string().contains("nothing was recorded"), "{nowhere}");
    fs::write(dir.path().join("text"), "hello").expect("written");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&interval(1, false)).expect("packed");
    fs::write(dir.path().join("no begin"), packed.finish().expect("packed")).expect("written");
    for file in ["text", "absent", "no begin"] {
        let error = source(Some(&dir.path().join(file)), Wanted::default()).err().expect("none");
        assert_eq!(error.code(), 2, "{error}");
    }
}

#[test]
fn a_recording_that_was_cut_off_has_whole_intervals() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = recording(dir.path(), 9);
    let whole = fs::read(&path).expect("readable");
    let cut = dir.path().join("cut");
    let mut before = 0;
    for len in (2..whole.len()).step_by(7) {
        fs::write(&cut, &whole[..len]).expect("written");
        let n = intervals(&cut);
        assert!(n >= before, "{n} intervals in {len} bytes, {before} in less");
        before = n;
    }
    assert_eq!(before, 8, "the last bytes of the file are no interval");
}

#[test]
fn the_fixture_is_a_real_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/small.artis");
    let mut source = source(Some(&path), Wanted::default()).expect("a recording");
    let mut n = 0;
    while let Some(snapshot) = source.next(None).expect("not damaged") {
        n += 1;
        assert_eq!((snapshot.begin.rt_cpus.as_str(), snapshot.machine.cpus.len()), ("2-3", 4));
        let hard: Vec<_> = snapshot.tasks.values().filter(|t| t.metrics.class == "RT0").collect();
        assert_eq!(hard.len(), 1);
        assert_eq!((hard[0].metrics.rt_prio, hard[0].metrics.comm.as_str()), (95, "cyclictest"));
        assert!(hard[0].metrics.cpu == 2 && hard[0].metrics.wait_p99_us > 0.0);
    }
    let last = source.last();
    assert!((9..=11).contains(&n), "{n} intervals");
    assert_eq!((last.lost.ring, last.machine.bodies_on_rt), (0, 0));
    let evictions = last.events.iter().filter(|e| matches!(e.what, What::Eviction { .. })).count();
    let counted: u64 = last.tasks.values().map(|task| task.metrics.evictions).sum();
    assert!(
        evictions > 0 && counted >= evictions as u64,
        "{counted} evictions of tasks, {evictions} told"
    );
}
