// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket that scxtop and scx's OpenMetrics script read, and the
//! client behind `--monitor`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Receiver, Sender, never, unbounded};
use scx_stats::prelude::*;

use super::line;
use crate::feed::{Hub, Source, Wanted};
use crate::model::{CpuMetrics, Metrics, Reading, TaskMetrics, TaskReading};
use crate::socket;

/// Where scx's tools look for the statistics of the scheduler in charge.
pub const SOCKET: &str = "/var/run/scx/root/stats";

/// How much longer than an interval it may take until the daemon has one: it may have to load
/// the BPF programs again.
const WATCH_TIME: Duration = Duration::from_secs(30);

/// What a client wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// All counters.
    Top,
    /// One task, by thread id.
    Task(u32),
}

/// What the daemon says to an [`Ask`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Ask::Top`].
    Top(Reading),
    /// To [`Ask::Task`]; `None`: no such task.
    Task(Option<TaskReading>),
    /// To both, when the kernel did not tell: why.
    Failed(String),
}

impl Answer {
    /// Why it is not what was asked for.
    fn unfit(self) -> String {
        match self {
            Self::Failed(why) => why,
            _ => "the daemon answers another question: this is a bug of scx_artis".to_owned(),
        }
    }
}

/// A server that asks with an [`Ask`] and is given an [`Answer`]. Dropping it
/// removes the socket, too.
pub struct Server {
    /// Gone only while this is being dropped.
    server: Option<StatsServer<Ask, Answer>>,
    path: PathBuf,
    /// Directories on the way that were not there before, deepest first.
    made: Vec<PathBuf>,
}

impl Server {
    /// Serves at `path`.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn launch(path: &Path, hub: &Arc<Hub>) -> Result<Self> {
        let missing = |dir: &&Path| !dir.exists();
        let made = path.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
        // its directories and the socket are root's alone, whatever the umask is
        let launch = || StatsServer::new(data(hub)).set_path(path).launch();
        let server = socket::masked(0o077, launch);
        let server = server.context("starting the statistics server")?;
        Ok(Self { server: Some(server), path: path.to_owned(), made })
    }

    /// Where to answer, and where requests come from.
    pub fn channels(&self) -> (Sender<Answer>, Receiver<Ask>) {
        match &self.server {
            Some(server) => server.channels(),
            None => (unbounded().0, never()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // first the server: to end, it calls itself through the socket
        drop(self.server.take());
        let _ = fs::remove_file(&self.path);
        for dir in &self.made {
            let _ = fs::remove_dir(dir); // not while somebody else has something in it
        }
    }
}

/// What the server serves.
pub fn data(hub: &Arc<Hub>) -> StatsServerData<Ask, Answer> {
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_meta(CpuMetrics::meta())
        .add_ops("top", StatsOps { open: top(), close: None })
        .add_meta(TaskMetrics::meta())
        .add_ops("task", StatsOps { open: task(), close: None })
        .add_ops("tasks", StatsOps { open: tasks(Arc::clone(hub)), close: None })
}

/// Each client has its own previous reading: its rates are about the time since it last
/// asked, the first time since the begin.
fn top() -> Box<dyn StatsOpener<Ask, Answer>> {
    Box::new(|_| {
        let mut prev: Option<Reading> = None;
        let read: Box<dyn StatsReader<Ask, Answer>> = Box::new(move |_args, (ask, answer)| {
            ask.send(Ask::Top)?;
            let now = match answer.recv()? {
                Answer::Top(now) => now,
                other => bail!(other.unfit()),
            };
            let metrics = Metrics::between(prev.as_ref(), &now);
            prev = Some(now);
            metrics.to_json()
        });
        Ok(read)
    })
}

/// One task, whose thread id is in the argument `pid`.
fn task() -> Box<dyn StatsOpener<Ask, Answer>> {
    Box::new(|_| {
        let read: Box<dyn StatsReader<Ask, Answer>> = Box::new(move |args, (ask, answer)| {
            let pid = args.get("pid").context("which task? say so with the argument pid")?;
            let pid = pid.parse().with_context(|| format!("pid \"{pid}\" is no thread id"))?;
            ask.send(Ask::Task(pid))?;
            let reading = match answer.recv()? {
                Answer::Task(reading) => reading,
                other => bail!(other.unfit()),
            };
            let reading = reading.with_context(|| format!("task {pid}: no such ext task"))?;
            Ok(serde_json::to_value(reading)?)
        });
        Ok(read)
    })
}

/// All tasks by thread id, watched for a second, or for as long as the argument `interval`
/// says; not at all while nobody asks.
fn tasks(hub: Arc<Hub>) -> Box<dyn StatsOpener<Ask, Answer>> {
    Box::new(move |_| {
        let hub = Arc::clone(&hub);
        let read: Box<dyn StatsReader<Ask, Answer>> = Box::new(move |args, _| {
            let mut wanted = Wanted::default();
            if let Some(secs) = args.get("interval") {
                let interval = secs.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                wanted.interval = interval
                    .filter(|t| (Wanted::INTERVAL_MIN..=Wanted::INTERVAL_MAX).contains(t))
                    .with_context(|| format!("interval \"{secs}\" is not 0.1 to 60 seconds"))?;
            }
            let deadline = Instant::now() + wanted.interval + WATCH_TIME;
            let mut source = Source::inside(&hub, wanted).context("too many watch already")?;
            let snapshot = source.next(Some(deadline)).map_err(anyhow::Error::from)?;
            let snapshot = snapshot.context("the daemon is busy or ends: no interval came")?;
            let tasks = snapshot.tasks.iter().map(|(tid, task)| (tid, &task.metrics));
            Ok(serde_json::to_value(tasks.collect::<BTreeMap<_, _>>())?)
        });
        Ok(read)
    })
}

/// Prints a line every `interval` about a scheduler that runs already, and
/// waits for one that does not yet. Ends by a signal.
///
/// # Errors
/// When the socket is there but may not be used, or stdout is gone.
pub fn monitor(interval: Duration) -> Result<()> {
    if !Path::new(SOCKET).exists() {
        eprintln!("scx_artis: no scheduler serves statistics at {SOCKET} yet: waiting for one");
    }
    scx_utils::monitor_stats::<Metrics>(
        &[],
        interval,
        || false,
        |metrics| {
            use std::io::Write;
            Ok(writeln!(std::io::stdout(), "{}", line::render(&metrics))?)
        },
    )
    .with_context(|| format!("watching the scheduler through {SOCKET} (root may)"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::feed::frame::kind;
    use crate::feed::{Next, To};

    #[test]
    fn every_figure_has_a_description() {
        for meta in [Metrics::meta(), CpuMetrics::meta()] {
            for (name, field) in &meta.fields {
                assert!(
                    field.attrs.desc.as_ref().is_some_and(|desc| !desc.is_empty()),
                    "{}.{name}",
                    meta.name
                );
            }
        }
    }

    #[test]
    fn a_client_gets_rates_since_it_last_asked() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("scx/root/stats");
        let server = Server::launch(&path, &Arc::default()).expect("launched");
        for made in ["scx", "scx/root", "scx/root/stats"] {
            let mode = fs::metadata(dir.path().join(made)).expect("there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "others may use {made}");
        }
        let (answer, ask) = server.channels();
        let daemon = std::thread::spawn(move || {
            for second in 1..=2 {
                ask.recv().expect("asked");
                let reading = Reading { now_ns: second * 1_000_000_000, ..Reading::default() };
                answer.send(Answer::Top(reading)).expect("answered");
            }
        });
        let mut client =
            StatsClient::new().set_path(&path).connect(Some(5_000)).expect("connected");
        for uptime in [1.0, 2.0] {
            let metrics: Metrics = client.request("stats", vec![]).expect("metrics");
            assert_eq!((metrics.uptime_s, metrics.interval_s), (uptime, 1.0));
        }
        daemon.join().expect("no panic");
        drop(server);
        assert!(!dir.path().join("scx").exists(), "something is left behind");
    }

    #[test]
    fn a_client_gets_all_tasks_of_one_interval() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("stats");
        let hub = Arc::new(Hub::default());
        let _server = Server::launch(&path, &hub).expect("launched");
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/small.artis");
        let daemon = {
            let hub = Arc::clone(&hub);
            std::thread::spawn(move || {
                let changes = hub.changes();
                while !hub.has_new() {
                    changes.recv_timeout(Duration::from_secs(60)).expect("somebody asks");
                }
                let interval = hub.wanted().expect("a viewer").interval;
                let mut frames = crate::feed::replay(&recorded).expect("a recording");
                let mut to = To::New;
                let mut bytes = Vec::new();
                while let Next::Frame(frame) = frames.next(None).expect("sound") {
                    bytes.extend(frame.bytes);
                    if frame.kind == kind::READING {
                        hub.send(to, &std::mem::take(&mut bytes), true);
                        to = To::Begun;
                    }
                }
                interval
            })
        };
        let mut client =
            StatsClient::new().set_path(&path).connect(Some(5_000)).expect("connected");
        let mut ask = |interval: &str| {
            let args = [("target", "tasks"), ("interval", interval)];
            let args = args.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
            client.request::<BTreeMap<u64, TaskMetrics>>("stats", args)
        };
        for wrong in ["0", "61", "x"] {
            assert!(ask(wrong).is_err(), "{wrong}");
        }
        let tasks = ask("0.5").expect("tasks");
        assert_eq!(daemon.join().expect("no panic"), Duration::from_millis(500));
        let hard: Vec<_> = tasks.values().filter(|task| task.class == "RT0").collect();
        assert!(hard.len() == 1 && hard[0].comm == "cyclictest", "{hard:?}");
        assert!(hub.wanted().is_none(), "it goes on watching");
    }

    #[test]
    fn a_client_asks_about_a_task() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("stats");
        let server = Server::launch(&path, &Arc::default()).expect("launched");
        let (answer, ask) = server.channels();
        let daemon = std::thread::spawn(move || {
            while let Ok(Ask::Task(tid)) = ask.recv() {
                let evictions = [("fault".to_owned(), u64::from(tid))].into();
                let reading =
                    (tid == 7).then_some(TaskReading { evictions, ..TaskReading::default() });
                let _ = answer.send(Answer::Task(reading));
            }
        });
        let mut client =
            StatsClient::new().set_path(&path).connect(Some(5_000)).expect("connected");
        let mut ask = |args: &[(&str, &str)]| {
            let target = [("target", "task")].into_iter();
            let args = target.chain(args.iter().copied());
            let args = args.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            client.request::<serde_json::Value>("stats", args)
        };
        let told = ask(&[("pid", "7")]).expect("told");
        assert_eq!(told["evictions"], serde_json::json!({ "fault": 7 }));
        for wrong in [&[][..], &[("pid", "x")], &[("pid", "8")]] {
            assert!(ask(wrong).is_err(), "{wrong:?}");
        }
        drop((client, server));
        daemon.join().expect("no panic");
    }
}
