// SPDX-License-Identifier: GPL-2.0-only
//! Rules: who is of which class, from a file and by `scx_artis ctl rule`.

use std::ffi::CStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::control::{refused, told};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cgroup::Cgroup;
use crate::daemon::{Daemon, Stats};
use crate::guest::{PATIENCE, until};
use crate::load::Load;
use crate::residue::Inventory;

/// Catches: a task that begins, executes, renames itself or moves to a cgroup and is not looked
/// at; one that keeps what a rule gave it when no rule is about it any more, or loses what the user
/// gave it by hand; a wrong file that takes rules out of force; a hangup that ends the daemon.
pub const RULES: Scenario = Scenario {
    name: "rules",
    what: "classes by program, name, cgroup, user and parent; reload, a wrong file, ctl rule",
    scope: Scope::First,
    boot: &[],
    secs: 6,
    host: Host::Alone,
    complaints: &[],
    run: rules,
};

const DIR: &str = "/tmp/artis-rules";
const GROUP: &str = "artis-rules.service";
/// A user who is not root; it needs no name.
const USER: u32 = 4242;
/// Programs that are started to see how soon they are classified.
const STARTS: usize = 20;

/// The file; `firm` is the priority of the program `firm`.
fn file(firm: u32) -> String {
    format!(
        "[[rule]]\nname = 'the program'\nexe = '{DIR}/fi*'\nclass = 'rt1'\npriority = {firm}\n\
         [[rule]]\ncomm = 'renamed'\nclass = 'rt1'\npriority = 30\nrr = true\n\
         [[rule]]\ncgroup = '/artis-*.service'\nclass = 'rt1'\npriority = 20\n\
         [[rule]]\ncomm-regex = '^qui.t$'\nrt-cpus = 'forbid'\n"
    )
}

/// A copy of sleep(1) under a name of its own; killed when dropped.
struct Program(Child);

impl Program {
    fn start(name: &str) -> Result<Self> {
        Self::of_user(name, 0)
    }

    fn of_user(name: &str, uid: u32) -> Result<Self> {
        let path = Path::new(DIR).join(name);
        if !path.exists() {
            fs::create_dir_all(DIR)?;
            fs::copy(sleep()?, &path).with_context(|| path.display().to_string())?;
        }
        let mut command = Command::new(&path);
        // whatever it is called: busybox goes by this
        command.arg0("sleep").arg("1000").stdin(Stdio::null()).uid(uid);
        Ok(Self(command.spawn().with_context(|| path.display().to_string())?))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleep() -> Result<PathBuf> {
    let found =
        ["/bin/sleep", "/usr/bin/sleep"].iter().find_map(|path| fs::canonicalize(path).ok());
    found.context("no sleep in the guest")
}

/// Waits until the scheduler treats the task so; how long it took.
fn becomes(stats: &mut Stats, pid: u32, what: &str, expected: &Value) -> Result<Duration> {
    let began = Instant::now();
    let mut last = Value::Null;
    let waited = until(what, PATIENCE, || {
        // an error: the kernel does not know it yet
        last = stats.task(pid).unwrap_or_default();
        let keys = expected.as_object().context("an object")?;
        Ok(keys.iter().all(|(key, value)| last[key] == *value))
    });
    waited.with_context(|| format!("{what}: expected {expected}, but task {pid} is {last}"))?;
    say(&format!("{what}: {expected}"));
    Ok(began.elapsed())
}

fn rules(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let path = format!("{DIR}/config.toml");
    let quiet = Program::start("quiet")?;
    fs::write(&path, file(40))?;
    let mut daemon = ctx.load(&["--config", &path])?;
    let mut stats = daemon.stats()?;
    let treated = json!({"rt1": 0, "rt_cpus": false});
    becomes(&mut stats, quiet.pid(), "a task from before", &treated)?;

    let firm = started(&mut stats)?;
    in_cgroup(&mut stats)?;
    renamed(&mut stats)?;
    let by_hand = by_hand(ctx, &mut stats)?;
    reloaded(ctx, &mut daemon, &mut stats, &firm, &path)?;
    by_ctl(ctx, &mut stats, &firm)?;
    by_user_and_parent(ctx, &mut stats)?;
    becomes(&mut stats, quiet.pid(), "without rules", &json!({"rt_cpus": true}))?;
    becomes(&mut stats, by_hand.pid(), "by hand, without rules", &json!({"rt1": 10}))?;

    daemon.ensure_loaded("at the end")?;
    drop((firm, quiet, by_hand, stats));
    daemon.finish()?;
    fs::remove_dir_all(DIR)?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// Programs that begin; how soon they have their class. Returns the last one.
fn started(stats: &mut Stats) -> Result<Program> {
    let (mut took, mut looks) = (Vec::new(), Vec::new());
    let mut last = Program::start("firm")?;
    for _ in 0..STARTS {
        last = Program::start("firm")?;
        let pid = last.pid();
        let began = Instant::now();
        // not by becomes(): it sleeps between two looks
        while stats.task(pid).is_ok_and(|task| task["rt1"] != 40) {
            ensure!(began.elapsed() < PATIENCE, "the program is not classified");
        }
        took.push(began.elapsed());
        let began = Instant::now();
        stats.task(pid)?;
        looks.push(began.elapsed());
    }
    becomes(stats, last.pid(), "a program", &json!({"rt1": 40, "rt1_rr": false, "rt_cpus": true}))?;
    took.sort();
    looks.sort();
    say(&format!(
        "from exec to class: median {:?}, longest {:?} of {STARTS}, seen through the same daemon, of \
         which one look takes {:?}",
        took[STARTS / 2],
        took[STARTS - 1],
        looks[STARTS / 2]
    ));
    Ok(last)
}

/// Who moves into a cgroup, what it starts there, and the same after all of it was restarted.
fn in_cgroup(stats: &mut Stats) -> Result<()> {
    for turn in ["a service", "the service, restarted"] {
        let group = Cgroup::with_weight(GROUP, 100)?;
        let program = Program::start("served")?;
        becomes(stats, program.pid(), "outside of its group", &json!({"rt1": 0}))?;
        fs::write(group.procs(), program.pid().to_string())?;
        becomes(stats, program.pid(), turn, &json!({"rt1": 20}))?;
        fs::write("/sys/fs/cgroup/cgroup.procs", program.pid().to_string())?;
        becomes(stats, program.pid(), "outside again", &json!({"rt1": 0}))?;
    }
    Ok(())
}

/// A thread of this process, under one name and another.
fn renamed(stats: &mut Stats) -> Result<()> {
    let (name, names) = mpsc::channel::<&'static CStr>();
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || -> Result<()> {
        for name in names {
            nix::sys::prctl::set_name(name)?;
            tell.send(nix::unistd::gettid().as_raw().unsigned_abs())?;
        }
        Ok(())
    });
    for (comm, rt1) in [(c"plain", 0), (c"renamed", 30), (c"plain", 0)] {
        name.send(comm)?;
        let tid = told.recv().context("the thread has ended")?;
        let expected = json!({"rt1": rt1, "rt1_rr": rt1 != 0});
        becomes(stats, tid, &format!("a thread named {comm:?}"), &expected)?;
    }
    drop(name);
    thread.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?
}

/// One that the user treats by hand, and what it starts.
fn by_hand(ctx: &Ctx, stats: &mut Stats) -> Result<Program> {
    let program = Program::start("firm-by-hand")?;
    becomes(stats, program.pid(), "by its rule", &json!({"rt1": 40, "by_hand": false}))?;
    let pid = program.pid().to_string();
    told(ctx, &["class", &pid, "--class", "rt1", "--priority", "10"], 0)?;
    becomes(stats, program.pid(), "by hand", &json!({"rt1": 10, "by_hand": true}))?;
    Ok(program)
}

/// The file changes: wrong, then right.
fn reloaded(
    ctx: &Ctx,
    daemon: &mut Daemon,
    stats: &mut Stats,
    firm: &Program,
    path: &str,
) -> Result<()> {
    let list = told(ctx, &["rule", "list"], 0)?;
    say(&format!("the rules:\n{list}"));
    ensure!(list.lines().count() == 5, "not four rules:\n{list}");
    let hang_up = |daemon: &Daemon| kill(Pid::from_raw(daemon.pid().cast_signed()), Signal::SIGHUP);

    fs::write(path, file(41) + "colour = 'red'\n")?;
    refused(ctx, &["rule", "reload"], 2, "line 18: unknown field `colour`")?;
    hang_up(daemon)?;
    until("the daemon says what is wrong with the file", PATIENCE, || {
        Ok(daemon.output().contains("the rules are as before"))
    })?;
    daemon.ensure_loaded("after a hangup")?;
    ensure!(told(ctx, &["rule", "list"], 0)? == list, "a wrong file has changed the rules");
    let another = Program::start("firm")?;
    becomes(stats, another.pid(), "after a wrong file", &json!({"rt1": 40}))?;

    fs::write(path, file(41))?;
    hang_up(daemon)?;
    for program in [firm, &another] {
        becomes(stats, program.pid(), "after a right file", &json!({"rt1": 41}))?;
    }
    daemon.ensure_loaded("after two hangups")
}

/// Whose task it is, and who started it.
fn by_user_and_parent(ctx: &Ctx, stats: &mut Stats) -> Result<()> {
    told(ctx, &["rule", "add", &format!("user={USER}"), "class=rt1", "priority=25"], 0)?;
    let (own, other) = (Program::of_user("whose", USER)?, Program::start("whose")?);
    becomes(stats, own.pid(), "a program of that user", &json!({"rt1": 25}))?;
    becomes(stats, other.pid(), "a program of root", &json!({"rt1": 0}))?;
    told(ctx, &["rule", "remove", "1"], 0)?;
    becomes(stats, own.pid(), "without the rule", &json!({"rt1": 0}))?;

    // this program by its number, and by its name
    for (priority, parent) in [(26, std::process::id().to_string()), (27, "artis-gu*".to_string())]
    {
        let class = format!("priority={priority}");
        told(ctx, &["rule", "add", &format!("parent={parent}"), "class=rt1", &class], 0)?;
        let child = Program::start("child")?;
        let what = format!("a child of {parent}");
        becomes(stats, child.pid(), &what, &json!({"rt1": priority}))?;
        // a child begins as its parent
        let shell = Load::shell("sleep 1000 & echo $! >/tmp/artis-rules/grandchild; wait")?;
        let mut grandchild = None;
        until("the shell has a child", PATIENCE, || {
            let text = fs::read_to_string(format!("{DIR}/grandchild")).unwrap_or_default();
            grandchild = text.ends_with('\n').then(|| text.trim().parse().ok()).flatten();
            Ok(grandchild.is_some())
        })?;
        let grandchild = grandchild.context("the shell has no child")?;
        becomes(stats, grandchild, "its child's child", &json!({"rt1": 0}))?;
        drop(shell);
        fs::remove_file(format!("{DIR}/grandchild"))?;
        told(ctx, &["rule", "remove", "1"], 0)?;
        becomes(stats, child.pid(), "without the rule", &json!({"rt1": 0}))?;
    }
    Ok(())
}

/// Rules come and go one by one.
fn by_ctl(ctx: &Ctx, stats: &mut Stats, firm: &Program) -> Result<()> {
    let pid = firm.pid();
    say(&told(ctx, &["rule", "add", "--before", "1", "comm=firm", "class=nrt"], 0)?);
    becomes(stats, pid, "an exception", &json!({"rt1": 0}))?;
    say(&told(ctx, &["rule", "remove", "1"], 0)?);
    becomes(stats, pid, "without the exception", &json!({"rt1": 41}))?;
    refused(ctx, &["rule", "remove", "5"], 2, "there is no rule 5")?;
    refused(ctx, &["rule", "add", "comm=firm", "class=rt1"], 2, "needs a priority")?;
    for _ in 0..4 {
        say(&told(ctx, &["rule", "remove", "1"], 0)?);
    }
    becomes(stats, pid, "without rules", &json!({"rt1": 0}))?;
    let list = told(ctx, &["rule", "list"], 0)?;
    ensure!(list.starts_with("no rules"), "{list}");
    Ok(())
}
