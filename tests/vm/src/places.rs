// SPDX-License-Identifier: GPL-2.0-only
//! An observer of where tasks run (observer/places.bpf.c), to judge lollobrigida by.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use libbpf_rs::{MapCore, MapFlags};

use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/places_skel.rs"));
}
use skel::{PlacesSkel, PlacesSkelBuilder};

/// The attached programs. They count from the begin.
pub struct Places {
    skel: PlacesSkel<'static>,
}

/// What was seen of the tasks of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Time on each CPU, ns.
    pub run_ns: BTreeMap<u32, u64>,
    /// Entries by system calls.
    pub calls: u64,
}

impl Places {
    /// Loads and attaches.
    pub fn attach() -> Result<Self> {
        Ok(Self { skel: skeleton::attach(PlacesSkelBuilder::default(), |_| Ok(()))? })
    }

    /// All tasks that ran since, by name.
    pub fn seen(&self) -> Result<BTreeMap<String, Seen>> {
        let mut all: BTreeMap<String, Seen> = BTreeMap::new();
        for (name, cpu, ns) in entries(&self.skel.maps.run_ns)? {
            *all.entry(name).or_default().run_ns.entry(cpu).or_default() += ns;
        }
        for (name, _, calls) in entries(&self.skel.maps.calls)? {
            all.entry(name).or_default().calls += calls;
        }
        Ok(all)
    }
}

/// Name, CPU and value of each entry.
fn entries(map: &impl MapCore) -> Result<Vec<(String, u32, u64)>> {
    let mut all = Vec::new();
    for key in map.keys() {
        let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
        ensure!(key.len() == 20 && value.len() == 8, "the observer's map is of another size");
        let comm = key[..16].split(|b| *b == 0).next().unwrap_or_default();
        let cpu = u32::from_ne_bytes(key[16..].try_into()?);
        let sum = u64::from_ne_bytes(value.as_slice().try_into()?);
        all.push((String::from_utf8_lossy(comm).into_owned(), cpu, sum));
    }
    Ok(all)
}
