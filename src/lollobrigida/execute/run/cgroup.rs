// SPDX-License-Identifier: GPL-2.0-only
//! The cgroups (v2) of a scene, below one of the run's own.
//!
//! All are threaded (Documentation/admin-guide/cgroup-v2.rst, "Threads"): only so can the
//! run's own group hold tasks and groups side by side, and tasks without a cgroup compete
//! with the groups as the scene means it. The CPU controller is one that threaded groups
//! may have.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use nix::unistd::Pid;

use super::policy;
use crate::measure::notes::Notes;
use crate::plan::{Plan, Task};

/// The own group's name begins so; its runner's process id follows, and [`TURNED_ON`].
const PREFIX: &str = "lollobrigida-";
/// Ends the name where the CPU controller was turned on for it in the group above: the run that finds
/// the group of a killed one turns it off.
const TURNED_ON: &str = "+cpu";
/// A group may be busy for a moment after its last task.
const REMOVE_TRIES: u32 = 100;
const REMOVE_AGAIN: Duration = Duration::from_millis(10);

/// The run's groups. Dropped: removed; the tasks must be gone.
pub struct Cgroups {
    own: PathBuf,
    /// Parents before children.
    made: Vec<PathBuf>,
    /// The group in which the CPU controller was turned on for this.
    turned_on: Option<PathBuf>,
}

impl Cgroups {
    /// Makes the groups that the plan names; `None` if there are none, or if they cannot
    /// be made, which `notes` tells.
    pub fn make(plan: &Plan, notes: &mut Notes) -> Option<Self> {
        let named = plan.tasks.iter().filter_map(|task| task.cgroup.as_ref());
        let weights: BTreeMap<&Path, Option<u32>> =
            named.map(|cgroup| (Path::new(&cgroup.path), cgroup.weight)).collect();
        if weights.is_empty() {
            return None;
        }
        notes.some("cgroup", place().and_then(|parent| Self::make_below(&parent, &weights)).map_err(
            |why| format!("the scene's cgroups cannot be made ({why}); its tasks stay in the runner's group"),
        ))
        .inspect(|made| made.tell_controller(notes))
    }

    fn make_below(parent: &Path, weights: &BTreeMap<&Path, Option<u32>>) -> Result<Self, String> {
        remove_stale(parent);
        let turns_on = !controls_cpu(parent);
        let suffix = if turns_on { TURNED_ON } else { "" };
        let own = parent.join(format!("{PREFIX}{}{suffix}", std::process::id()));
        let mut groups = Self { own: own.clone(), made: Vec::new(), turned_on: None };
        groups.make_one(&own)?;
        if turns_on && turn_on(parent).is_ok() {
            groups.turned_on = Some(parent.to_owned());
        }
        for (path, weight) in weights {
            let mut dir = own.clone();
            for part in path.components() {
                let Component::Normal(name) = part else {
                    return Err(format!("{} is no relative path", path.display()));
                };
                let above = dir.clone();
                dir.push(name);
                if !groups.made.contains(&dir) {
                    groups.make_one(&dir)?;
                    write(&dir.join("cgroup.type"), "threaded")?;
                    // tell_controller says if this failed
                    let _ = turn_on(&above);
                }
            }
            if let Some(weight) = weight
                && dir.join("cpu.weight").exists()
            {
                write(&dir.join("cpu.weight"), &weight.to_string())?;
            }
        }
        Ok(groups)
    }

    fn make_one(&mut self, dir: &Path) -> Result<(), String> {
        fs::create_dir(dir).map_err(|err| {
            format!(
                "{}: {err}: run as root, or in a group of one's own: \
                 systemd-run --user --scope -p Delegate=yes lollobrigida ...",
                dir.display()
            )
        })?;
        self.made.push(dir.to_owned());
        Ok(())
    }

    /// Groups without the controller are there, but without effect.
    fn tell_controller(&self, notes: &mut Notes) {
        if !self.made[1..].iter().all(|dir| dir.join("cpu.weight").exists()) {
            notes.missing(
                "cgroup",
                format!(
                    "the cgroups below {} have no CPU controller, so they and their weights have no \
                     effect: the controller must be free (not in cgroup v1: boot with \
                     systemd.unified_cgroup_hierarchy=1) and on in cgroup.subtree_control of the \
                     groups above",
                    self.own.display()
                ),
            );
        }
    }

    /// Puts a task into its group, or beside the groups. A real-time task without a group
    /// stays where it is: no weight is about it, and some kernels let it nowhere else.
    ///
    /// # Errors
    /// In words.
    pub fn enter(&self, task: &Task, pid: Pid) -> Result<(), String> {
        let dir = match &task.cgroup {
            Some(cgroup) => self.own.join(&cgroup.path),
            None if policy::is_rt(&task.sched) => return Ok(()),
            None => self.own.clone(),
        };
        write(&dir.join("cgroup.procs"), &pid.to_string())
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for dir in self.made.iter().rev() {
            let mut gone = fs::remove_dir(dir);
            for _ in 0..REMOVE_TRIES {
                match &gone {
                    Err(err) if err.kind() == io::ErrorKind::ResourceBusy => {
                        thread::sleep(REMOVE_AGAIN);
                        gone = fs::remove_dir(dir);
                    }
                    _ => break,
                }
            }
            if let Err(err) = gone {
                eprintln!("the cgroup {} is left behind: {err}", dir.display());
            }
        }
        if let Some(parent) = &self.turned_on {
            turn_off(parent);
        }
    }
}

/// Where the run's own group goes: beside the runner's, since a group with processes may
/// have no controllers on, except the root; above it the first that hands the CPU
/// controller on, else the first.
///
/// # Errors
/// In words: there is no cgroup v2.
pub fn place() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mount = mount(&mounts).ok_or("no cgroup v2 is mounted: mount -t cgroup2 none /mnt")?;
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/"));
    let path = path.ok_or("/proc/self/cgroup names no group of v2")?;
    Ok(choose(&mount, path, controls_cpu))
}

fn choose(mount: &Path, own: &str, controls_cpu: impl Fn(&Path) -> bool) -> PathBuf {
    let own = if own.is_empty() { mount.to_owned() } else { mount.join(own) };
    let above = || own.ancestors().skip(1).take_while(|dir| dir.starts_with(mount));
    above().find(|dir| controls_cpu(dir)).or_else(|| above().next()).unwrap_or(mount).to_owned()
}

/// The mount point of cgroup v2: proc_pid_mountinfo(5).
fn mount(mountinfo: &str) -> Option<PathBuf> {
    let point = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let is_v2 = after.split(' ').next() == Some("cgroup2");
        is_v2.then(|| before.split(' ').nth(4)).flatten().map(PathBuf::from)
    };
    mountinfo.lines().find_map(point)
}

fn controls_cpu(dir: &Path) -> bool {
    let on = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    on.split_whitespace().any(|controller| controller == "cpu")
}

fn turn_on(dir: &Path) -> io::Result<()> {
    fs::write(dir.join("cgroup.subtree_control"), "+cpu")
}

/// Others may have begun to use it: then it stays on.
fn turn_off(dir: &Path) {
    let _ = fs::write(dir.join("cgroup.subtree_control"), "-cpu");
}

/// Groups of runners that were killed.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let pid = name.strip_suffix(TURNED_ON).unwrap_or(name);
        if pid.parse::<u32>().is_err() || Path::new("/proc").join(pid).exists() {
            continue;
        }
        remove_tree(&entry.path());
        // what is still in use is found again by the next
        if name != pid && !entry.path().exists() {
            turn_off(parent);
        }
    }
}

/// Children first. What is still in use stays.
fn remove_tree(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text)
        .map_err(|err| format!("{} cannot be set to {text}: {err}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_mount_of_v2_beside_v1() {
        let text = "25 1 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                    30 1 0:26 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 none rw\n";
        assert_eq!(mount(text), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount("25 1 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
    }

    #[test]
    fn the_runs_group_is_beside_the_runners() {
        let mount = Path::new("/cg");
        let chosen = |own, with: &'static str| choose(mount, own, |dir| dir == Path::new(with));
        assert_eq!(chosen("user/x.scope", "/cg/user"), Path::new("/cg/user"));
        assert_eq!(chosen("user/app/x.scope", "/cg/user"), Path::new("/cg/user"));
        // nobody hands it on: the nearest
        assert_eq!(chosen("user/app/x.scope", ""), Path::new("/cg/user/app"));
        assert_eq!(chosen("", ""), Path::new("/cg"));
    }

    #[test]
    fn only_groups_of_dead_runners_are_removed() {
        let parent = tempfile::tempdir().expect("temporary directory");
        // greater than any process id: PID_MAX_LIMIT is 4194304
        let dead = parent.path().join(format!("{PREFIX}4194305"));
        let ours = parent.path().join(format!("{PREFIX}{}", std::process::id()));
        let other = parent.path().join(format!("{PREFIX}notes"));
        for dir in [&dead.join("low/er"), &ours, &other] {
            fs::create_dir_all(dir).expect("directory");
        }
        remove_stale(parent.path());
        assert_eq!([dead.exists(), ours.exists(), other.exists()], [false, true, true]);
        let control = parent.path().join("cgroup.subtree_control");
        assert!(!control.exists(), "it was on before");
        fs::create_dir(dead.with_file_name(format!("{PREFIX}4194305+cpu"))).expect("directory");
        remove_stale(parent.path());
        assert_eq!(fs::read_to_string(control).expect("turned off"), "-cpu");
    }
}
