// SPDX-License-Identifier: GPL-2.0-only
//! Which task follows which, as BPF has it (src/bpf/queues/follow.bpf.h).

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::libc;

use super::{Scheduler, run_with};
use crate::abi::{FOLLOW_MAX, artis_set_follow};
use crate::control::Following;
use crate::daemon::classes::facts::Facts;
use crate::daemon::follow::{Followed, Follows};

impl Follows for Scheduler<'_> {
    fn follow(&mut self, consumer: i32, producers: &[i32]) -> Result<Followed> {
        if producers.len() > FOLLOW_MAX {
            bail!("{} producers are too many, {FOLLOW_MAX} can be followed", producers.len());
        }
        for pid in producers {
            if Facts::read(*pid)?.is_none() {
                return Ok(Followed::Missing(pid.unsigned_abs()));
            }
        }
        let gone = Ok(Followed::Missing(consumer.unsigned_abs()));
        let Some(facts) = Facts::read(consumer)? else { return gone };
        if facts.kernel {
            return Ok(Followed::Kernel);
        }
        let Some(before) = self.followed(consumer, Some(producers))? else { return gone };
        let policies = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
        Ok(Followed::Done {
            before: before.len() as u32,
            cpus: facts.cpus.iter().count() as u32,
            realtime: policies.contains(&facts.policy.cast_signed()),
        })
    }

    fn followers(&self) -> Result<Vec<Following>> {
        let all: BTreeMap<_, _> =
            Facts::all()?.into_iter().map(|facts| (facts.pid.unsigned_abs(), facts)).collect();
        let mut pairs = Vec::new();
        for (consumer, facts) in &all {
            for producer in self.followed(facts.pid, None)?.unwrap_or_default() {
                pairs.push(Following {
                    consumer: *consumer,
                    consumer_comm: facts.shown(),
                    producer,
                    producer_comm: all.get(&producer).map(Facts::shown).unwrap_or_default(),
                });
            }
        }
        Ok(pairs)
    }
}

impl Scheduler<'_> {
    /// The living producers of a task, which follows `producers` from now on, if given. None: there
    /// is no such task.
    fn followed(&self, consumer: i32, producers: Option<&[i32]>) -> Result<Option<Vec<u32>>> {
        let mut args = artis_set_follow {
            pid: consumer.cast_unsigned(),
            set: producers.is_some().into(),
            ..Default::default()
        };
        for (to, pid) in args.producer.iter_mut().zip(producers.unwrap_or_default()) {
            *to = pid.cast_unsigned();
        }
        let code = run_with(&self.skel.progs.artis_set_follow, &mut args)
            .context("asking what a task follows")?;
        match code {
            0 => Ok(Some(args.producer.into_iter().filter(|pid| *pid != 0).collect())),
            _ if code == -(Errno::ESRCH as i32) => Ok(None),
            _ => bail!(
                "BPF did not take what task {consumer} is to follow: {}",
                Errno::from_raw(-code)
            ),
        }
    }
}
