// SPDX-License-Identifier: GPL-2.0-only
//! Malformed files, made of the shipped ones: each is a scene still, or mistakes that all
//! have a line. The same files in every run.

use std::time::{Duration, Instant};

use lollobrigida::scene::{Format, Mistakes, convert, find, keys, parse, read, render, shipped};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Files made; how many of them must be malformed is the issue's bar.
const FILES: usize = 4000;
const MALFORMED: usize = 1000;
/// Nothing here is near it on any machine: a file beyond it hangs.
const HANG: Duration = Duration::from_secs(60);

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A stretch of the bytes, not long.
    fn stretch(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len());
        start..(start + 1 + self.below(40)).min(bytes.len())
    }
}

/// Tokens that hurt: syntax, huge and odd numbers, known keys, odd letters.
fn token(dice: &mut Dice) -> Vec<u8> {
    const ODD: [&str; 34] = [
        "{",
        "}",
        "[",
        "]",
        "[[",
        "]]",
        "[[group]]",
        "[[group.phase]]",
        "[group]",
        "=",
        "==",
        "#",
        "\"",
        "'",
        "\"\"\"",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{feff}",
        "é",
        "\u{1f600}",
        "-1",
        "0",
        "99999999999999999999999999999999999999999999",
        "1e999",
        "nan",
        "-inf",
        "0x",
        "0xffffffffffffffffffff",
        "1979-05-27",
        "true",
        "a.b.c.d",
        "[[[[[[{{{{{{",
    ];
    match dice.below(4) {
        0 => keys::KEYS[dice.below(keys::KEYS.len())].name.as_bytes().to_vec(),
        1 => format!("{} = {}\n", dice.pick(keys::KEYS).name, dice.pick(&ODD)).into_bytes(),
        _ => dice.pick(&ODD).as_bytes().to_vec(),
    }
}

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let at = dice.below(bytes.len() + 1);
    match dice.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(dice.stretch(bytes))),
        2 => {
            let part = bytes[dice.stretch(bytes)].to_vec();
            bytes.splice(at..at, part);
        }
        3 => {
            let (a, b) = (dice.below(bytes.len()), dice.below(bytes.len()));
            if a < bytes.len() && b < bytes.len() {
                bytes.swap(a, b);
            }
        }
        4 => {
            let noise: Vec<u8> = (0..1 + dice.below(8)).map(|_| dice.below(256) as u8).collect();
            bytes.splice(at..at, noise);
        }
        5 | 6 => {
            let token = token(dice);
            bytes.splice(at..at, token);
        }
        7 => {
            let nest = *dice.pick(&["[", "{", "{a=", "[[", "a.", "'"]);
            let nested = nest.repeat(1 + dice.below(3000));
            let before = if dice.below(2) == 0 { "\nx = " } else { "\n" };
            bytes.splice(at..at, (before.to_owned() + &nested).into_bytes());
        }
        _ => {
            // A digit becomes a number that no key takes.
            if let Some(digit) = bytes.iter().position(u8::is_ascii_digit) {
                bytes.splice(digit..digit, "9".repeat(1 + dice.below(400)).into_bytes());
            }
        }
    }
}

fn judge(mistakes: &Mistakes, text: &str) {
    assert!(!mistakes.list().is_empty());
    let lines = text.lines().count().max(1) + 1;
    for mistake in mistakes.list() {
        assert!((1..=lines).contains(&mistake.line), "{mistake:?} of {lines} lines");
        assert!(mistake.column >= 1, "{mistake:?}");
        assert!(!mistake.seen.is_empty() && !mistake.expected.is_empty(), "{mistake:?}");
    }
}

#[test]
fn thousands_of_malformed_files_are_answered_with_lines() {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(0x6c6f_6c6c));
    let seeds: Vec<(String, Format)> = shipped()
        .flat_map(|(name, text)| {
            let path = if name == "annexb" { "annexb.scn" } else { "a.toml" };
            let converted = convert(&find(name).unwrap());
            [(text.to_owned(), Format::guess(path.as_ref(), text)), (converted, Format::Toml)]
        })
        .collect();
    let old = seeds.iter().find(|(_, format)| *format == Format::AnnexB).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (mut malformed, mut old_malformed) = (0, 0);
    for i in 0..FILES {
        let (text, format) = if i % 2 == 0 { old } else { dice.pick(&seeds) };
        let mut bytes = text.clone().into_bytes();
        for _ in 0..1 + dice.below(6) {
            mutate(&mut dice, &mut bytes);
        }
        let begin = Instant::now();
        let text = String::from_utf8_lossy(&bytes);
        let other = if dice.below(8) == 0 { Format::Toml } else { *format };
        match parse("fuzz", &text, other) {
            Ok(scene) => drop(convert(&scene)),
            Err(mistakes) => {
                judge(&mistakes, &text);
                malformed += 1;
                old_malformed += usize::from(other == Format::AnnexB);
                // Drawing is slow: a sample of it.
                if i % 16 == 0 {
                    assert!(render(&mistakes.into(), true).contains("fuzz"));
                }
            }
        }
        if i % 16 == 1 {
            let path = dir.path().join("f");
            std::fs::write(&path, &bytes).unwrap();
            if let Err(report) = read(&path) {
                judge(report.downcast_ref().expect("mistakes"), &text);
            }
        }
        assert!(begin.elapsed() < HANG, "{:?} for\n{text}", begin.elapsed());
    }
    assert!(malformed >= MALFORMED, "only {malformed} of {FILES} files were malformed");
    assert!(old_malformed >= MALFORMED / 2, "only {old_malformed} of annex B's format");
}

/// What is large in a way that could take long: many groups, phases, CPUs, names.
#[test]
fn large_files_are_answered_in_time() {
    let begin = Instant::now();
    let group = |i: usize| format!("[[group]]\nname='g{i}'\nloop=1\nfollows='h{i}'\n");
    let many: String = (0..20_000).map(group).collect();
    let phases = "[[group.phase]]\nloop=1\n".repeat(400);
    let repeated: String =
        (0..100).map(|i| format!("[[group]]\nname='g{i}'\nrepeat=4096\n{phases}")).collect();
    let all = (0..6_000).map(|_| "0-8191").collect::<Vec<_>>().join(",");
    let texts = [
        format!("why='w'\n{many}"),
        format!("why='w'\n{repeated}"),
        format!("why='w'\nrt_cpus='{all}'\n"),
        format!("why='w'\ncpu_mask=0x{}\n", "f".repeat(500_000)),
        format!("why='w'\n{}", "[[group]]\n".repeat(50_000)),
    ];
    for text in texts {
        judge(&parse("large", &text, Format::Toml).unwrap_err(), &text);
    }
    let texts = ["{\n".repeat(300_000), "{}".repeat(200_000), "a=b\n".repeat(200_000)];
    for text in texts {
        let mistakes = parse("large", &text, Format::AnnexB).unwrap_err();
        judge(&mistakes, &text);
        let all = mistakes.list().len();
        assert!(render(&mistakes.into(), true).lines().count() >= all, "some are not shown");
    }
    assert!(begin.elapsed() < HANG, "{:?}", begin.elapsed());
}
