// SPDX-License-Identifier: GPL-2.0-only
//! Replays a trace of attempts through the prediction rules, for a grid of C and K.
//!
//! ```text
//! cargo run --release -p artis-policy --example replay             # a synthetic mix
//! cargo run --release -p artis-policy --example replay -- FILE     # a recorded trace
//! cargo run --release -p artis-policy --example replay -- --print  # the synthetic trace itself
//! ```
//!
//! A trace has lines "task,run_ns,clock_ns,attempt|run|place": see `src/replay/trace.rs`. `--seed N`
//! and `--seconds N` shape the synthetic mix, `--habit N` takes one of its habits only (0 to 5),
//! `--horizon-us N` says how near an attempt makes a move useless (500).

use artis_policy::Policy;
use artis_policy::replay::{judge::judge, rules::Name, synthetic, trace};
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Write};

const US: u64 = 1_000;
const C_US: [u64; 5] = [250, 500, 1_000, 2_000, 4_000];
const K: [u32; 4] = [2, 4, 8, 20];
/// The thesis's weight of the past at each attempt, in 1/2048.
const PAST: u32 = 2028;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut seed, mut seconds, mut horizon_us) = (1, 20, 500);
    let (mut habit, mut print, mut file) = (None, false, None);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || -> Result<u64, Box<dyn Error>> {
            Ok(args.next().ok_or("a number is missing")?.parse()?)
        };
        match arg.as_str() {
            "--seed" => seed = number()?,
            "--seconds" => seconds = number()?,
            "--horizon-us" => horizon_us = number()?,
            "--habit" => habit = Some(number()? as usize),
            "--print" => print = true,
            _ => file = Some(arg),
        }
    }
    let span_ns = seconds * 1_000_000_000;
    let events = match (file, habit) {
        (Some(path), _) => trace::read(BufReader::new(File::open(path)?))?,
        (None, Some(nr)) => {
            let habit = synthetic::Habit::ALL.get(nr).ok_or("habits are 0 to 5")?;
            synthetic::live(0, *habit, seed, span_ns)
        }
        (None, None) => synthetic::mix(4, seed, span_ns),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    if print {
        writeln!(out, "# task,run_ns,clock_ns,event")?;
        return Ok(events.iter().try_for_each(|event| writeln!(out, "{event}"))?);
    }
    writeln!(
        out,
        "# wasted: moves to an RT CPU with an eviction within C; within {horizon_us} us"
    )?;
    writeln!(
        out,
        "# missed: of the run time more than {horizon_us} us before an attempt, on NRT CPUs"
    )?;
    writeln!(out, "rule\tC_us\tK\tmoves\twasted_pct\twasted_{horizon_us}us_pct\tmissed_pct")?;
    for name in Name::ALL {
        for c_us in C_US {
            for k in K {
                let policy = Policy {
                    predict_c_ns: c_us * US,
                    predict_k: k,
                    predict_past: PAST,
                    ..Policy::default()
                };
                let v = judge(&events, name, &policy, horizon_us * US);
                let (wasted, horizon) = (v.wasted_pct(), v.wasted_horizon_pct());
                writeln!(
                    out,
                    "{name:?}\t{c_us}\t{k}\t{}\t{wasted:.1}\t{horizon:.1}\t{:.1}",
                    v.moves,
                    v.missed_pct()
                )?;
                if name == Name::Off {
                    break;
                }
            }
        }
    }
    Ok(())
}
