// SPDX-License-Identifier: GPL-2.0-only
//! docs/statistics.md has the figures that the code has, and Grafana's dashboard
//! asks for metrics that there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use scx_artis::feed::{self, Wanted};
use scx_artis::model::Snapshot;
use scx_artis::outlets::{describe, metrics};
use serde_json::Value;

const BEGIN: &str = "<!-- begin: generated";
const END: &str = "<!-- end -->\n";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn the_page_of_statistics_is_current() {
    let path = file("docs/statistics.md");
    let page = fs::read_to_string(&path).expect("the page");
    let begin = page.find(BEGIN).expect("the mark where the tables begin");
    let begin = begin + page[begin..].find('\n').expect("its end") + 1;
    let end = page.rfind(END).expect("the mark where the tables end");
    let fresh = format!("\n{}\n", describe::tables().expect("tables"));
    if env::var_os("ARTIS_UPDATE").is_some() {
        let page = format!("{}{fresh}{}", &page[..begin], &page[end..]);
        return fs::write(&path, page).expect("written");
    }
    assert!(
        page[begin..end] == fresh,
        "the tables of docs/statistics.md are not what the code says: run this test with \
         ARTIS_UPDATE=1 and commit the file"
    );
}

/// The last interval of the recording.
fn recorded() -> Snapshot {
    let path = file("tests/fixtures/small.artis");
    let mut source = feed::source(Some(&path), Wanted::default()).expect("a recording");
    while source.next(None).expect("an interval").is_some() {}
    source.last().clone()
}

/// Names of the samples that the exporter has.
fn exported() -> BTreeSet<String> {
    let text = metrics::encode(Arc::new(recorded()), 50).expect("encoded");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// Names of metrics in an expression of PromQL: words with the prefix of ours, outside of quotes.
fn asked_for(expression: &str) -> BTreeSet<String> {
    let outside = expression.split('"').step_by(2);
    let words =
        outside.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let prefix = format!("{}_", metrics::PREFIX);
    words.filter(|word| word.starts_with(&prefix)).map(str::to_owned).collect()
}

/// All values of `key` below `value`.
fn find<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                found.extend(member.as_str().filter(|_| name == key));
                find(member, key, found);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| find(member, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let text = fs::read_to_string(file("docs/grafana/scx_artis.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let (mut expressions, mut queries) = (Vec::new(), Vec::new());
    find(&dashboard, "expr", &mut expressions);
    find(&dashboard, "query", &mut queries);
    assert!(expressions.len() >= 10, "{expressions:?}");
    let exported = exported();
    for expression in expressions.iter().chain(&queries) {
        let asked = asked_for(expression);
        let is_metric = expression.contains('(') || expression.contains('{');
        assert!(!asked.is_empty() || !is_metric, "{expression} asks for nothing of ours");
        for name in asked {
            assert!(exported.contains(&name), "{name} in {expression} is not exported");
        }
    }
}

#[test]
fn names_are_found_in_expressions() {
    let names = asked_for(r#"sum by (cpu) (rate(artis_a_total{x="artis_b"}[1m])) / artis_c"#);
    assert_eq!(names, ["artis_a_total", "artis_c"].map(str::to_owned).into());
    assert!(exported().contains("artis_cpu_rt_ratio"));
    assert!(!exported().contains("artis_nothing"));
}

#[test]
fn the_page_names_metrics_that_there_are() {
    let page = fs::read_to_string(file("docs/statistics.md")).expect("the page");
    let exported = exported();
    let quoted = page.split('`').skip(1).step_by(2);
    let names: BTreeSet<_> =
        quoted.filter(|text| text.starts_with("artis_") && !text.ends_with('_')).collect();
    assert!(names.len() > 80, "{names:?}");
    for name in names {
        let is_there =
            [name.to_owned(), format!("{name}_bucket")].iter().any(|n| exported.contains(n));
        assert!(is_there, "{name} is not exported");
    }
}
