// SPDX-License-Identifier: GPL-2.0-only
//! Who follows whom, as BPF has it (src/bpf/ledger/follow.bpf.h).

use std::ptr;

use anyhow::{Context, Result, bail};
use libbpf_rs::ProgramInput;
use nix::errno::Errno;

use super::{Scheduler, run_with};
use crate::abi::bindings::ARTIS_FOLLOW_PAIRS;
use crate::abi::{FOLLOW_MAX, artis_set_follow};
use crate::control::Following;
use crate::daemon::follow::{Followed, Follows};
use crate::model::printable;

impl Follows for Scheduler<'_> {
    fn follow(&mut self, consumer: i32, producers: &[i32]) -> Result<Followed> {
        if producers.len() > FOLLOW_MAX {
            bail!("{} producers are too many, {FOLLOW_MAX} can be followed", producers.len());
        }
        let mut args = artis_set_follow {
            pid: consumer.cast_unsigned(),
            nr: producers.len() as u32,
            ..Default::default()
        };
        for (to, pid) in args.producer.iter_mut().zip(producers) {
            *to = pid.cast_unsigned();
        }
        let code = run_with(&self.skel.progs.artis_set_follow, &mut args)
            .context("having a task follow others")?;
        match code {
            0 => Ok(Followed::Done {
                before: args.old_nr,
                cpus: args.nr_cpus,
                realtime: args.realtime != 0,
            }),
            _ if code == -(Errno::ESRCH as i32) => Ok(Followed::Missing(args.missing)),
            _ if code == -(Errno::EPERM as i32) => Ok(Followed::Kernel),
            _ => bail!(
                "BPF did not take whom task {consumer} is to follow: {}",
                Errno::from_raw(-code)
            ),
        }
    }

    fn followers(&self) -> Result<(Vec<Following>, bool)> {
        let run = self.skel.progs.artis_list_follow.test_run(ProgramInput::default());
        run.context("looking who follows whom")?;
        let data = self.skel.maps.bss_follow_data.as_ref();
        let data = data.context("the BPF object has no list of followers")?;
        // SAFETY: a valid reference into the map's memory, which lives as long as the skeleton;
        // volatile, because BPF writes it. Plain integers: whatever is read is a valid value.
        let all = unsafe { ptr::read_volatile(&raw const data.follow_pairs) };
        let comm = |name: [i8; 16]| printable(&name.map(i8::cast_unsigned));
        let pairs = all.pair.iter().take(all.nr as usize).map(|pair| Following {
            consumer: pair.consumer,
            consumer_comm: comm(pair.consumer_comm),
            producer: pair.producer,
            producer_comm: comm(pair.producer_comm),
        });
        Ok((pairs.collect(), all.nr > ARTIS_FOLLOW_PAIRS))
    }
}
