// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl` against a daemon in this process: the real socket, the real
//! checks, and a scheduler that only remembers what it was told.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::{fs, thread};

use anyhow::{Result, bail};
use clap::Parser;

use super::*;
use crate::cli::{Command, Opts};
use crate::config::{CallTable, Layout, Machine, Place, Policy};
use crate::control::{self, Asked, Server};
use crate::daemon::classes::Source;
use crate::daemon::classes::adoption::Adoption;
use crate::daemon::scheduler::news::{Item, Kind};
use crate::daemon::setup::Wanted;

mod partition;
mod rules;

/// A scheduler that remembers.
#[derive(Default)]
pub(in crate::daemon) struct Fake {
    policy: artis_policy,
    rt: String,
    groups: Vec<u16>,
    pub refuses: bool,
    /// Each task whose treatment was set, in the order of time.
    pub classes: Vec<(i32, Treatment)>,
    /// The kinds of news that are wanted, each time that they were set.
    pub wanted: Vec<Vec<Kind>>,
    /// The news to be told next, and whether some are missing.
    pub news: (Vec<Item>, bool),
}

impl Fake {
    /// How a task is treated now.
    pub fn treated(&self, pid: i32) -> Option<Treatment> {
        self.classes.iter().rev().find(|(of, _)| *of == pid).map(|(_, to)| *to)
    }
}

impl Informed for Fake {
    fn want_news(&mut self, kinds: &[Kind]) -> Result<()> {
        if self.refuses && !kinds.is_empty() {
            bail!("attaching \"artis_news_exec\": EINVAL");
        }
        self.wanted.push(kinds.to_vec());
        Ok(())
    }

    fn take_news(&mut self) -> Result<(Vec<Item>, bool)> {
        Ok(std::mem::take(&mut self.news))
    }
}

impl InCharge for Fake {
    fn set_policy(&mut self, wanted: &artis_policy) -> Result<()> {
        self.policy = *wanted;
        Ok(())
    }

    fn repartition(
        &mut self,
        partition: &Partition,
        wanted: &artis_policy,
        topology: &artis_topology,
    ) -> Result<()> {
        if self.refuses {
            bail!("BPF did not take the partition: EINVAL");
        }
        self.policy = *wanted;
        self.rt = partition.rt.to_string();
        self.groups = topology.group[..6].to_vec();
        Ok(())
    }

    fn set_class(&mut self, task: TaskId, to: &Treatment) -> Result<Option<Treatment>> {
        self.classes.push((task.tid, *to));
        Ok(Some(Treatment::default()))
    }
}

/// The first thread id that no task has.
const NOBODY: i32 = 1 << 22;

/// CPUs 0-5, of which 5 is offline. 0 and 3 are one core; 1 and 4 share a cache.
fn machine() -> Result<Seen> {
    machine_of("0-4")
}

fn machine_of(online: &str) -> Result<Seen> {
    let online: CpuSet = online.parse()?;
    let machine = Machine {
        possible: "0-5".parse()?,
        online: online.clone(),
        smt_groups: vec!["0,3".parse()?],
    };
    let place = |cpu| Place {
        cpu,
        core: if cpu == 3 { 0 } else { cpu },
        llc: cpu % 3,
        node: 0,
        capacity: 1,
    };
    Ok(Seen { machine, layout: Layout::new(online.iter().map(place)) })
}

fn opts(args: &[&str]) -> Opts {
    Opts::try_parse_from([&["scx_artis"], args].concat()).expect("a valid command line")
}

pub(in crate::daemon) fn setup(rt: &str) -> Setup {
    let opts = opts(&["--rt-cpus", rt]);
    let Seen { machine, layout } = machine().expect("a machine");
    let wanted = Wanted { rt: rt.parse().expect("a set"), values: opts.policy.clone(), seq: 0 };
    let partition = Partition::new(&wanted.rt, &machine).expect("a partition");
    let calls = CallTable::new(false, &[]).expect("a table");
    Setup {
        policy: wanted.values.constants(&partition, &calls, 6, 0),
        topology: layout.topology(&partition),
        wanted,
        partition,
        watchdog_ms: None,
        exit_dump_len: 0,
        ring_bytes: 4 << 20,
        warnings: Vec::new(),
        hotplug_seq: 0,
        libbpf: opts.libbpf,
    }
}

/// Classes without a rule, whatever this machine has.
fn classes() -> Classes {
    let file = tempfile::NamedTempFile::new().expect("a file");
    Classes::new(Source::new(Some(file.path().to_owned())), Adoption::default()).expect("no rules")
}

fn answer_alone(request: &Request, setup: &mut Setup, fake: &mut Fake) -> Result<Reply, Failure> {
    answer(request, setup, fake, &mut classes(), machine)
}

/// A daemon on a thread of its own; it ends with its server.
struct Daemon {
    _dir: tempfile::TempDir,
    path: PathBuf,
    server: Option<Server>,
    thread: Option<JoinHandle<(Setup, Fake)>>,
}

impl Daemon {
    fn start(setup: Setup, fake: Fake) -> Self {
        Self::with(setup, fake, classes())
    }

    fn with(mut setup: Setup, mut fake: Fake, mut classes: Classes) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("control");
        let server = Server::launch(&path, nix::unistd::geteuid().as_raw()).expect("launched");
        let asked = server.asked();
        let thread = thread::spawn(move || {
            while let Ok(asked) = asked.recv() {
                let asked: Asked = asked;
                let reply = answer(&asked.request, &mut setup, &mut fake, &mut classes, machine);
                asked.answer(reply.unwrap_or_else(Reply::from));
            }
            (setup, fake)
        });
        Self { _dir: dir, path, server: Some(server), thread: Some(thread) }
    }

    /// `scx_artis ctl` with these words: what is on stdout, or the failure.
    fn ctl(&self, args: &[&str]) -> Result<String, Failure> {
        ctl(&self.path, args)
    }

    /// Ends it; what has become of it.
    fn end(mut self) -> (Setup, Fake) {
        drop(self.server.take());
        self.thread.take().expect("a thread").join().expect("no panic")
    }
}

fn ctl(path: &Path, args: &[&str]) -> Result<String, Failure> {
    let opts = opts(&[&["ctl"], args].concat());
    let Some(Command::Ctl(ctl)) = opts.command else { panic!("not a ctl command") };
    let mut out = Vec::new();
    control::execute(&ctl.command, path, &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8"))
}

/// Exit code and words of a command that fails.
fn failure(result: Result<String, Failure>) -> (u8, String) {
    let failure = result.expect_err("must fail");
    (failure.code(), failure.to_string())
}

#[test]
fn a_value_is_set_and_seen() {
    let daemon = Daemon::start(setup("2"), Fake::default());
    assert_eq!(daemon.ctl(&["get", "predict-c-us"]).expect("told"), "1000\n");
    assert_eq!(
        daemon.ctl(&["set", "predict-c-us", "2000"]).expect("set"),
        "predict-c-us is 2000 µs (was 1000)\n"
    );
    let set = || daemon.ctl(&["set", "predict", "thesis"]).expect("set");
    assert_eq!(set(), "predict is thesis (was least)\n");
    assert_eq!(set(), "predict is thesis (already)\n");
    assert_eq!(daemon.ctl(&["get", "predict"]).expect("told"), "thesis\n");
    let json = daemon.ctl(&["get", "--json"]).expect("told");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["policy_seq"], 2, "what changes nothing is no change");
    assert_eq!((&json["rt_cpus"], &json["nrt_cpus"]), (&"2".into(), &"0-1,3-4".into()));
    let value = &json["values"]["predict-c-us"];
    assert_eq!((&value["value"], &value["default"]), (&2000.into(), &1000.into()));
    assert_eq!((&value["unit"], &value["max"]), (&"µs".into(), &1_000_000.into()));
    assert_eq!(json["values"]["predict"]["one_of"], serde_json::json!(["least", "thesis"]));

    let (setup, fake) = daemon.end();
    assert_eq!((fake.policy.predict_c_ns, fake.policy.predict_rule), (2_000_000, 1));
    assert_eq!((fake.policy.seq, fake.policy.slice_nrt_ns), (2, 3_000_000));
    assert_eq!(fake.policy.cpu_kind, setup.policy.cpu_kind);
    assert_eq!((setup.wanted.values.predict_c_us, setup.wanted.seq), (2_000, 2));
}

#[test]
fn what_is_wrong_changes_nothing() {
    let daemon = Daemon::start(setup("2"), Fake::default());
    for (args, words) in [
        (
            ["set", "predict-c-us", "1000001"],
            "predict-c-us: 1000001 is out of bounds; 0 to 1000000 µs",
        ),
        (["set", "predict-c-us", "-1"], "no whole number"),
        (["set", "predict-k", "1"], "2 to 100"),
        (["set", "predict", "thesys"], "none of least, thesis"),
        (["set", "predict-c-su", "1"], "did you mean predict-c-us?"),
        (["set", "nr-cpus", "1"], "no policy constant \"nr-cpus\""),
        // two values that do not go together: only the daemon knows the other one
        (["set", "slice-nrt-us", "400"], "--slice-nrt-min-us (500) is greater"),
    ] {
        let (code, text) = failure(daemon.ctl(&args));
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
    let (code, text) = failure(daemon.ctl(&["get", "quiet-us"]));
    assert_eq!((code, text.contains("quiet-us")), (2, true), "{text}");
    let (setup, fake) = daemon.end();
    assert_eq!((setup.policy.seq, fake.policy.seq), (0, 0));
}

#[test]
fn a_daemon_checks_for_itself() {
    // a client of another version may know other bounds
    let mut setup = setup("2");
    for (name, value) in [("predict-k", "101"), ("predict", "x"), ("fast", "1")] {
        let request = Request::Set { name: name.to_owned(), value: value.to_owned() };
        let failure = answer_alone(&request, &mut setup, &mut Fake::default());
        assert_eq!(failure.expect_err(name).code(), 2, "{name}");
    }
    let request = Request::RtCpus { cpus: "2-".to_owned() };
    let failure = answer_alone(&request, &mut setup, &mut Fake::default());
    assert_eq!(failure.expect_err("no list").code(), 2);
    assert_eq!(setup.policy.seq, 0);
}

#[test]
fn what_the_scheduler_does_not_take_is_told() {
    let daemon = Daemon::start(setup("2"), Fake { refuses: true, ..Fake::default() });
    let (code, text) = failure(daemon.ctl(&["rt-cpus", "3"]));
    assert_eq!(code, 4);
    assert!(text.contains("did not take") && text.contains("EINVAL"), "{text}");
    let (setup, _) = daemon.end();
    assert_eq!((setup.partition.rt.to_string(), setup.policy.seq), ("2".to_owned(), 0));
    assert_eq!(setup.policy.cpu_kind[2..4], [2, 1]);
}

#[test]
fn no_daemon_is_a_code_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("control");
    let (code, text) = failure(ctl(&path, &["get"]));
    assert_eq!((code, text.contains("no scx_artis runs")), (3, true), "{text}");
    // one that died without a word
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    let (code, text) = failure(ctl(&path, &["set", "predict-k", "3"]));
    assert_eq!((code, text.contains("no scx_artis runs")), (3, true), "{text}");
    // what is wrong anyway is told anyway
    assert_eq!(failure(ctl(&path, &["set", "predict-k", "1"])).0, 2);
    // its successor takes its place, and leaves nothing behind
    let server = Server::launch(&path, 0).expect("launched");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn only_the_owner_is_heard() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("control");
    let me = nix::unistd::geteuid().as_raw();
    let server = Server::launch(&path, me + 1).expect("launched");
    let mode = fs::metadata(&path).expect("a socket").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    // by credentials, even if the mode lets somebody through
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("opened");
    let (code, text) = failure(ctl(&path, &["get"]));
    assert_eq!(code, 3);
    assert!(text.contains(&format!("user {me} may not")), "{text}");
    assert!(server.asked().try_recv().is_err(), "the request went through");
}

#[test]
fn noise_is_answered_and_does_not_block() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let daemon = Daemon::start(setup("2"), Fake::default());
    for noise in ["hello\n", "{\"set\":{}}\n", "\"get\"trailing\n"] {
        let mut stream = UnixStream::connect(&daemon.path).expect("connected");
        stream.write_all(noise.as_bytes()).expect("written");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("answered");
        assert!(reply.contains("not understood"), "{noise}: {reply}");
    }
    // somebody who says nothing, and somebody who does not wait for the answer
    let silent = UnixStream::connect(&daemon.path).expect("connected");
    drop(UnixStream::connect(&daemon.path).expect("connected").write_all(b"\"get\"\n"));
    assert!(daemon.ctl(&["get"]).is_ok());
    drop(silent);
}

#[test]
fn the_table_looks_like_this() {
    let policy: Policy =
        opts(&["--rt-cpus", "2-3", "--predict", "thesis", "--slice-nrt-us", "5000"]).policy;
    let partition =
        Partition { rt: "2-3".parse().expect("a set"), nrt: "0-1".parse().expect("a set") };
    let mut setup = setup("2");
    (setup.partition, setup.wanted.values, setup.policy.seq) = (partition, policy, 12);
    let daemon = Daemon::start(setup, Fake::default());
    insta::assert_snapshot!(daemon.ctl(&["get"]).expect("told"));
}
