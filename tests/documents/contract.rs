// SPDX-License-Identifier: GPL-2.0-only
//! No dead knob, no mute counter: what src/bpf/abi declares is used in src/bpf
//! and described in Rust. (That sizes agree is asserted in src/userspace/abi.rs
//! when it is compiled.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use scx_artis::config::KNOBS;
use scx_artis::model::{COUNTERS, PERIOD_SHIFT};

/// The C sources, without comments.
struct Sources {
    abi: String,
    /// Everything outside abi/.
    bpf: String,
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|ext| ext == "h" || ext == "c") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn sources() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf");
    let (mut abi, mut bpf) = (String::new(), String::new());
    for path in files_below(&root) {
        let text = without_comments(&fs::read_to_string(&path).expect("readable"));
        let part = if path.starts_with(root.join("abi")) { &mut abi } else { &mut bpf };
        part.push_str(&text);
    }
    Sources { abi, bpf }
}

fn without_comments(c: &str) -> String {
    let mut text = String::new();
    let mut rest = c;
    while let Some(begin) = rest.find("/*") {
        text.push_str(&rest[..begin]);
        let after = &rest[begin + 2..];
        rest = after.find("*/").map_or("", |end| &after[end + 2..]);
    }
    text.push_str(rest);
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// All identifiers of a C text.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// The body between the braces of `head {`.
fn body<'a>(text: &'a str, head: &str) -> &'a str {
    let begin =
        text.find(&format!("{head} {{")).unwrap_or_else(|| panic!("{head} is not in src/bpf/abi"));
    let body = &text[begin + head.len() + 2..];
    &body[..body.find("\n}").expect("a closing brace")]
}

/// The members of an enum.
fn members(text: &str, head: &str) -> Vec<String> {
    let name = |member: &str| member.split('=').next().unwrap_or("").trim().to_owned();
    body(text, head).split(',').map(name).filter(|name| !name.is_empty()).collect()
}

/// The fields of a struct, without padding.
fn fields(text: &str, head: &str) -> Vec<String> {
    let name = |field: &str| {
        let field = field.split("__attribute__").next().unwrap_or("");
        let field = field.split('[').next().unwrap_or("");
        field.split_whitespace().last().unwrap_or("").to_owned()
    };
    let fields = body(text, head).split(';').map(name);
    fields.filter(|name| !name.is_empty() && !name.starts_with("pad")).collect()
}

/// Those of `names` that `text` does not mention.
fn unused(names: &[String], text: &str) -> Vec<String> {
    let used = words(text);
    names.iter().filter(|name| !used.contains(name.as_str())).cloned().collect()
}

#[test]
fn every_counter_is_incremented() {
    let sources = sources();
    let mut counters = members(&sources.abi, "enum artis_stat");
    assert_eq!(counters.pop().as_deref(), Some("ARTIS_NR_STATS"));
    assert_eq!(counters.len(), COUNTERS.len());
    assert_eq!(unused(&counters, &sources.bpf), [""; 0], "counters that nobody increments");
}

#[test]
fn every_counter_is_described_once() {
    let names: BTreeSet<_> = COUNTERS.iter().map(|counter| counter.name).collect();
    let descriptions: BTreeSet<_> = COUNTERS.iter().map(|counter| counter.desc).collect();
    assert_eq!((names.len(), descriptions.len()), (COUNTERS.len(), COUNTERS.len()));
    for counter in COUNTERS {
        assert!(
            !counter.title.is_empty() && counter.desc.len() > counter.title.len(),
            "{}",
            counter.name
        );
    }
}

#[test]
fn every_policy_constant_is_read_and_can_be_set() {
    let sources = sources();
    let fields = fields(&sources.abi, "struct artis_policy");
    let read: Vec<_> = fields
        .iter()
        .filter(|field| *field != "seq") // for the daemon, which reads it back for the statistics
        .filter(|field| {
            let forms =
                [format!("policy.{field}"), format!("policy->{field}"), format!("p->{field}")];
            !forms.iter().any(|form| sources.bpf.contains(form))
        })
        .collect();
    assert_eq!(read, [""; 0], "constants that src/bpf never reads");

    // what the daemon finds out by itself; the rest the user may set
    let derived = ["seq", "nr_cpus", "call_class", "cpu_kind"];
    let knobs: Vec<_> =
        fields.iter().map(String::as_str).filter(|field| !derived.contains(field)).collect();
    let described: Vec<_> = KNOBS.iter().map(|knob| knob.field).collect();
    assert_eq!(
        knobs, described,
        "config/policy.rs must have the constants of struct artis_policy, in order"
    );
}

#[test]
fn every_limit_and_cpu_field_is_used() {
    let sources = sources();
    let limits = members(&sources.abi, "enum artis_limits");
    let elsewhere = sources.abi.replace(body(&sources.abi, "enum artis_limits"), "") + &sources.bpf;
    assert_eq!(unused(&limits, &elsewhere), [""; 0], "limits that nothing is bounded by");
    let fields = fields(&sources.abi, "struct artis_cpu");
    assert_eq!(unused(&fields, &sources.bpf), [""; 0], "fields that src/bpf never touches");
}

#[test]
fn every_load_time_constant_is_written_by_the_daemon() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rodata = fs::read_to_string(root.join("src/bpf/config/rodata.bpf.h")).expect("readable");
    let daemon = fs::read_to_string(root.join("src/userspace/daemon/scheduler/constants.rs"))
        .expect("readable");
    let rodata = without_comments(&rodata);
    let constants: Vec<_> = rodata
        .lines()
        .filter_map(|line| line.trim().strip_prefix("const volatile ")?.strip_suffix(';'))
        .filter_map(|declaration| declaration.split_whitespace().last().map(str::to_owned))
        .collect();
    assert!(!constants.is_empty());
    assert_eq!(unused(&constants, &daemon), [""; 0], "constants that the daemon never writes");
}

#[test]
fn mean_periods_have_the_fraction_bits_of_bpf() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf/policy/predict.h");
    let predict = fs::read_to_string(path).expect("readable");
    let define = format!("#define ARTIS_PERIOD_SHIFT {PERIOD_SHIFT}");
    assert!(predict.lines().any(|line| line == define), "{define}");
}

#[test]
fn the_checks_would_notice() {
    let c = "/* ARTIS_STAT_A */ x; // ARTIS_STAT_B\ncount(ARTIS_STAT_C);\n";
    let names = ["ARTIS_STAT_A", "ARTIS_STAT_B", "ARTIS_STAT_C"].map(str::to_owned);
    assert_eq!(unused(&names, &without_comments(c)), ["ARTIS_STAT_A", "ARTIS_STAT_B"]);
    let abi = "enum e {\n\tA = 1,\n\tB,\n};\nstruct s {\n\tu32 one;\n\tu64 pad0[2];\n\tchar two[16];\n\tu8 three __attribute__((aligned(64)));\n};\n";
    assert_eq!(members(abi, "enum e"), ["A", "B"]);
    assert_eq!(fields(abi, "struct s"), ["one", "two", "three"]);
}
