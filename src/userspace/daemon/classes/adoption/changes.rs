// SPDX-License-Identifier: GPL-2.0-only
//! What was changed of which task, as the kernel remembers it: src/bpf/change.bpf.c, whose maps and
//! links are pinned, so that the records outlive the daemon and follow forks meanwhile.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramMut};
use nix::libc::{ENOENT, ESRCH};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::aim::{Aim, Aimed};
use super::attr::Was;
use super::record::{Change, change, of, was, words};
use crate::abi::bindings as abi;
use crate::abi::{CHANGE_OBJECT, artis_change, artis_keeper};
use crate::config::CpuSet;
use crate::daemon::classes::facts::TaskId;
use crate::daemon::kernel;
use crate::daemon::plain::{Plain, run_with};

/// Where the maps and links are pinned; gone after a reboot, as the tasks are.
pub const PINNED: &str = "/sys/fs/bpf/scx_artis";
/// The maps of src/bpf/change.bpf.c.
const CHANGES: &str = "changes";
const KEEPER: &str = "keeper";
const AIM: &str = "aim";
const MAPS: [&str; 3] = [CHANGES, KEEPER, AIM];
/// Keeps the daemon to the tasks that it means.
const REFUSE: &str = "artis_change_refuse";
/// That one, and the programs that follow the tasks.
const HOOKS: [&str; 6] = [
    REFUSE,
    "artis_change_fork",
    "artis_change_exec",
    "artis_change_exit",
    "artis_change_policy",
    "artis_change_affinity",
];

/// The records, while a daemon changes tasks.
#[derive(Debug)]
pub struct Changes {
    object: Object,
    aim: Aim,
    _links: Vec<Link>,
}

impl Changes {
    /// Loads the object and pins what outlives this process below `dir`. Records that are there,
    /// as [`Left::open`] has found them, are kept, and the programs that follow their tasks.
    ///
    /// # Errors
    /// When `dir` is not on a BPF file system, or the kernel does not take the object: it cannot
    /// trace its functions, for example.
    pub fn new(dir: &Path) -> Result<Self> {
        let kept = dir.join(CHANGES).exists();
        let made = Self::make(dir);
        if made.is_err() && !kept && foreign(dir).is_none() {
            unpin(dir)?;
        }
        made
    }

    fn make(dir: &Path) -> Result<Self> {
        let parent = dir.parent().context("a directory for what is pinned")?;
        let there = statfs(parent).is_ok_and(|there| there.filesystem_type() == BPF_FS_MAGIC);
        ensure!(
            there,
            "no BPF file system is mounted at {0}, and without it changed tasks could not be put \
             back after a crash: mount -t bpf bpf {0}",
            parent.display()
        );
        if let Some(owner) = foreign(dir) {
            bail!("{owner}: remove it");
        }
        DirBuilder::new()
            .mode(0o700)
            .recursive(true) // one that is there is root's own
            .create(dir)
            .with_context(|| format!("making {}", dir.display()))?;
        let mut open = ObjectBuilder::default().open_memory(CHANGE_OBJECT)?;
        for mut map in open.maps_mut() {
            if let Some(name) = MAPS.into_iter().find(|name| map.name() == *name) {
                // libbpf pins it there, or takes the one that is
                map.set_pin_path(dir.join(name)).with_context(|| format!("the map {name}"))?;
            }
        }
        let can_refuse = kernel::has_function("security_task_setscheduler");
        for mut program in open.progs_mut().filter(|program| program.name() == REFUSE) {
            program.set_autoload(can_refuse);
        }
        let object = open.load()?;
        let left = Left::open(dir)?.context("what was pinned is gone")?;
        left.take_over()?;
        let mut links = Vec::new();
        if !can_refuse {
            log::warn!(
                "this kernel has no security hooks (CONFIG_SECURITY): a task that gets the thread id \
                 of one that ends just before it is adopted or put back is changed instead"
            );
        }
        let hooks = HOOKS.into_iter().filter(|name| can_refuse || *name != REFUSE);
        for name in hooks.filter(|name| !dir.join(name).exists()) {
            let link = program(&object, name)?.attach();
            let mut link = link.with_context(|| {
                format!(
                    "attaching {name}: this kernel cannot tell what becomes of changed tasks, so \
                     they could not be put back (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)"
                )
            })?;
            link.pin(dir.join(name)).with_context(|| format!("pinning the link {name}"))?;
            links.push(link);
        }
        Ok(Self { object, aim: left.aim, _links: links })
    }

    /// Of the tasks, this is changed next.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn at(&self, id: TaskId) -> Result<Aimed> {
        self.aim.at(id)
    }

    /// Remembers that the task is about to be adopted. Returns what it is; `None`: it is gone, or
    /// neither SCHED_FIFO nor SCHED_RR now.
    ///
    /// # Errors
    /// When that cannot be remembered: it must not be changed.
    pub fn note_adopted(&self, id: TaskId) -> Result<Option<Was>> {
        let mut args = artis_change { kind: abi::artis_change_kind_ARTIS_CHANGE_ADOPTED, ..of(id) };
        match run_with(&program(&self.object, "artis_change_note")?, &mut args)? {
            0 => Ok(was(&args)),
            code if [-ESRCH, -nix::libc::EINVAL].contains(&code) => Ok(None),
            code => Err(full(code)),
        }
    }

    /// Remembers that the task, which may run on `from`, is about to be bound to `nr_to` of these
    /// CPUs. A task that is gone is nothing to remember.
    ///
    /// # Errors
    /// When that cannot be remembered: it must not be changed.
    pub fn note_confined(&self, id: TaskId, from: &CpuSet, nr_to: usize) -> Result<()> {
        let mut args = artis_change {
            kind: abi::artis_change_kind_ARTIS_CHANGE_CONFINED,
            nr_to: u32::try_from(nr_to)?,
            from: words(from),
            ..of(id)
        };
        match run_with(&program(&self.object, "artis_change_note")?, &mut args)? {
            0 => Ok(()),
            code if code == -ESRCH => Ok(()),
            code => Err(full(code)),
        }
    }

    /// The record of a task; `None`: it has none. A task that is not as the record says that it was
    /// changed has got back what it was.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn of(&self, id: TaskId) -> Result<Option<Change>> {
        let mut args = of(id);
        match run_with(&program(&self.object, "artis_change_note")?, &mut args)? {
            0 => Ok(change(&args)),
            code if [-ESRCH, -ENOENT].contains(&code) => Ok(None),
            code => bail!("artis_change_note: {code}"),
        }
    }
}

/// The records as they are pinned: a daemon's own, or those that a dead one left.
#[derive(Debug)]
pub struct Left {
    dir: PathBuf,
    changes: MapHandle,
    keeper: MapHandle,
    aim: Aim,
}

impl Left {
    /// Opens what is pinned below `dir`. `None`: nothing, so no task is changed; or it is not
    /// root's own, and no record.
    ///
    /// # Errors
    /// When it cannot be opened, or is of another version.
    pub fn open(dir: &Path) -> Result<Option<Self>> {
        if let Some(owner) = foreign(dir) {
            log::warn!("{owner}: what is in it is ignored");
            return Ok(None);
        }
        if !dir.join(CHANGES).exists() || !dir.join(KEEPER).exists() {
            // of one that was killed before it changed anything
            unpin(dir)?;
            return Ok(None);
        }
        let open = |name| {
            MapHandle::from_pinned_path(dir.join(name))
                .with_context(|| format!("opening {}", dir.join(name).display()))
        };
        let (changes, keeper) = (open(CHANGES)?, open(KEEPER)?);
        let fits = changes.value_size() as usize == size_of::<artis_change>()
            && keeper.value_size() as usize == size_of::<artis_keeper>()
            && [0, abi::artis_change_limits_ARTIS_CHANGE_VERSION].contains(&read(&keeper)?.version);
        ensure!(
            fits,
            "{} was left by another version of scx_artis, and this one cannot read it: put the \
             tasks back with 'scx_artis restore' of that version",
            dir.display()
        );
        if !dir.join(AIM).exists() {
            unpin(dir)?; // as above
            return Ok(None);
        }
        Ok(Some(Self { dir: dir.to_owned(), changes, keeper, aim: Aim::open(&dir.join(AIM))? }))
    }

    /// From now on this process is the one whose own calls change no record.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn take_over(&self) -> Result<()> {
        let mut keeper = artis_keeper {
            version: abi::artis_change_limits_ARTIS_CHANGE_VERSION,
            tgid: std::process::id(),
            ..read(&self.keeper)?
        };
        let value = keeper.bytes_mut();
        Ok(self.keeper.update(&0_u32.to_ne_bytes(), value, MapFlags::ANY)?)
    }

    /// All records.
    ///
    /// # Errors
    /// When the kernel does not tell them.
    pub fn all(&self) -> Result<Vec<(TaskId, Change)>> {
        let at_once = abi::artis_change_limits_ARTIS_MAX_CHANGES;
        let found = self.changes.lookup_batch(at_once, MapFlags::ANY, MapFlags::ANY)?;
        Ok(found
            .filter_map(|(_, value)| {
                let record = artis_change::of_bytes(&value)?;
                let id = TaskId { tid: record.tid.cast_signed(), start_ticks: record.start_ticks };
                Some((id, change(&record)?))
            })
            .collect())
    }

    /// Of the tasks, this is changed next.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn at(&self, id: TaskId) -> Result<Aimed> {
        self.aim.at(id)
    }

    /// Children of changed tasks of which there is no record, because there was no room.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn lost(&self) -> Result<u32> {
        Ok(read(&self.keeper)?.lost)
    }

    /// Removes it: nothing is changed any more.
    ///
    /// # Errors
    /// When something of it cannot be removed.
    pub fn remove(self) -> Result<()> {
        unpin(&self.dir)
    }
}

fn read(keeper: &MapHandle) -> Result<artis_keeper> {
    let value = keeper.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
    value.as_deref().and_then(artis_keeper::of_bytes).context("the keeper's map is damaged")
}

/// Says so if `dir` is there and was not made by a scx_artis: where systemd does not mount it, the
/// BPF file system is writable by all. Below a directory of root's own nobody else can write.
fn foreign(dir: &Path) -> Option<String> {
    let there = fs::symlink_metadata(dir).ok()?;
    let owner = nix::unistd::geteuid().as_raw();
    let ours = there.is_dir() && there.uid() == owner && there.mode() & 0o077 == 0;
    (!ours).then(|| {
        let (dir, uid, mode) = (dir.display(), there.uid(), there.mode() & 0o7777);
        format!("{dir} is not a directory of scx_artis's (owner {uid}, mode {mode:o})")
    })
}

/// Removes what is pinned below `dir`, if it is there, and `dir`.
fn unpin(dir: &Path) -> Result<()> {
    // the programs first: nothing is to be written into maps that are gone
    for name in HOOKS.into_iter().chain(MAPS) {
        gone(fs::remove_file(dir.join(name)))
            .with_context(|| format!("removing {}", dir.join(name).display()))?;
    }
    gone(fs::remove_dir(dir)).with_context(|| format!("removing {}", dir.display()))
}

/// What is not there needs not be removed.
fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn program<'o>(object: &'o Object, name: &str) -> Result<ProgramMut<'o>> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.with_context(|| format!("the BPF object has no program {name}"))
}

fn full(code: i32) -> anyhow::Error {
    anyhow!("what it was cannot be remembered: {}", std::io::Error::from_raw_os_error(-code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_pinned_nothing_was_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("scx_artis");
        assert!(Left::open(&below).expect("nothing").is_none());
        // killed between the first step and the last before a task is changed
        DirBuilder::new().mode(0o700).create(&below).expect("made");
        fs::write(below.join(KEEPER), "").expect("written");
        assert!(Left::open(&below).expect("nothing").is_none() && !below.exists());
        let error = Changes::new(&below).expect_err("no BPF file system");
        assert!(error.to_string().contains("mount -t bpf"), "{error:#}");
    }

    #[test]
    fn what_others_could_have_pinned_is_neither_read_nor_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("scx_artis");
        DirBuilder::new().mode(0o711).create(&below).expect("made");
        fs::write(below.join(CHANGES), "").expect("written");
        fs::write(below.join(KEEPER), "").expect("written");
        assert!(Left::open(&below).expect("ignored").is_none());
        assert!(below.join(CHANGES).exists());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&below, &link).expect("linked");
        assert!(Left::open(&link).expect("ignored").is_none() && below.join(KEEPER).exists());
    }
}
