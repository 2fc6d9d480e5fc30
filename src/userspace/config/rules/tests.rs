// SPDX-License-Identifier: GPL-2.0-only
//! What is taken for a rule, and what is said of what is none.

use super::*;
use crate::control::{Class, Treatment};

fn words(text: &str) -> Result<Rule, Mistake> {
    of_words(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn a_file_of_all_keys() {
    let text = r#"
# comments are welcome
[[rule]]
name = "everything"
cgroup = "/system.slice/*.service"
comm = "a*"
comm-regex = "^a[0-9]+$"
exe = "/usr/{bin,sbin}/*"
user = "root"
pid = 7
tgid = 8
parent = "systemd"
policy = "other"
class = "rt1"
priority = 98
rr = true
rt-cpus = "forbid"
adopt = false

[[rule]]
user = 1000
parent = 1
"#;
    let rules = parse(text).expect("rules");
    assert_eq!(rules.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 20]);
    let rule = &rules[0].1;
    assert_eq!(
        rule.treatment(),
        Treatment {
            class: Class::Rt1 { priority: 98, round_robin: true },
            rt_cpus: false,
            by_hand: false
        }
    );
    assert_eq!(rule.adopt, Some(false));
    assert_eq!(rules[1].1.treatment(), Treatment::default());
    // as it goes through the control socket
    let json = serde_json::to_string(rule).expect("JSON");
    assert_eq!(&serde_json::from_str::<Rule>(&json).expect("a rule"), rule);
    assert!(!json.contains("null"), "{json}");
    assert_eq!(parse("").expect("no rule"), []);
}

#[test]
fn the_example_is_right() {
    let rules = parse(include_str!("../../../../dist/config.example.toml")).expect("rules");
    assert_eq!(rules.len(), 6);
    assert!(rules.iter().all(|(_, rule)| !rule.trusts_names()));
}

#[test]
fn a_wrong_file_is_told_by_line_and_reason() {
    for (text, line, what) in [
        ("[[rule]]\ncomm = 'a'\ncom = 'b'\n", 3, "unknown field `com`"),
        ("[[rules]]\n", 1, "unknown field `rules`"),
        ("\n[[rule]]\ncomm = 'a'\nclass = 'rt0'\n", 4, "unknown variant `rt0`"),
        ("[[rule]]\ncgroup = 'a/b'\n", 2, "begin with a slash"),
        ("[[rule]]\ncomm = 'a['\n", 2, "is no glob"),
        ("[[rule]]\ncomm-regex = '('\n", 2, "is no regular expression: unclosed group"),
        ("[[rule]]\nuser = 'nobody-like-that'\n", 2, "no user \"nobody-like-that\""),
        ("[[rule]]\nuser = -1\n", 2, "a number below 0"),
        ("[[rule]]\npid = 0\n", 2, "nonzero"),
        ("[[rule]]\ncomm = 'a'\n\n[[rule]]\ncomm = 'a\n", 5, "invalid literal string"),
        ("[[rule]]\ncomm = 'a'\n[[rule]]\nclass = 'nrt'\n", 3, "which tasks"),
        ("[[rule]]\ncomm = 'a'\nclass = 'rt1'\n", 1, "needs a priority; 1 to 98"),
        ("[[rule]]\ncomm = 'a'\nclass = 'rt1'\npriority = 99\n", 1, "99 is no priority"),
        ("[[rule]]\ncomm = 'a'\npriority = 9\n", 1, "only class = \"rt1\" has a priority"),
        ("[[rule]]\ncomm = 'a'\nrr = true\n", 1, "has rr"),
        ("[[rule]]\ncomm = 'sixteen-bytes-it'\n", 1, "write \"sixteen-bytes-i\""),
        ("[[rule]]\ncomm = 'a'\ncalls.read = 'harmless'\n", 3, "unknown field `calls`"),
        ("[[rule]]\ncomm = 'a'\nfollows = ['b']\n", 3, "unknown field `follows`"),
    ] {
        let mistake = parse(text).expect_err(text);
        assert_eq!(mistake.line, Some(line), "{text}: {mistake}");
        assert!(mistake.what.contains(what), "{text}: {mistake}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read(Path::new("/nonexistent/rules.toml")).expect_err("not there");
    assert!(error.contains("/nonexistent/rules.toml: No such file"), "{error}");
}

#[test]
fn words_need_no_quotes() {
    let rule = words("comm=jack* class=rt1 priority=50 rr=true").expect("a rule");
    let quoted =
        of_words(&[r#"{ comm = "jack*", class = "rt1", priority = 50, rr = true }"#.into()]);
    assert_eq!(Ok(rule), quoted);
    // a number where a name is meant has to say so
    assert!(words("comm='123'").is_ok() && words("comm=123").is_err());
    for (wrong, what) in [
        ("comm", "no KEY=VALUE"),
        ("a.b=c", "no key"),
        ("comm=a]] nice=3", "unknown field `nice`"),
        ("class=nrt", "which tasks"),
        ("comm=a,class=rt1,rr=true", "cuts names after"),
    ] {
        let mistake = words(wrong).expect_err(wrong);
        assert!(mistake.what.contains(what), "{wrong}: {mistake}");
    }
    // no value breaks out of its place
    assert_eq!(words("comm=x\ny").expect("a rule").comm.expect("it").text(), "x\ny");
}
