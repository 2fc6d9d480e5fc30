// SPDX-License-Identifier: GPL-2.0-only
//! Tests of frames.

use proptest::prelude::*;

use super::*;

/// The bytes of a record with this head, and zeroes.
fn record(kind: u16, version: u16, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, kind, 5, &vec![0; size - HEAD]);
    bytes[2..4].copy_from_slice(&version.to_ne_bytes());
    bytes
}

fn first(bytes: &[u8]) -> Frame<'_> {
    Frame::split(bytes).expect("sound").expect("whole").0
}

#[test]
fn heads_are_those_of_bpf() {
    let head = abi::artis_record { kind: 2, version: VERSION, size: 17, time_ns: 1 << 40 };
    let mut bytes = Vec::new();
    put(&mut bytes, 2, 1 << 40, &[9]);
    // SAFETY: as many bytes as the struct has, which is integers.
    let seen: abi::artis_record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    assert_eq!(
        (seen.kind, seen.version, seen.size, seen.time_ns),
        (head.kind, head.version, head.size, head.time_ns)
    );
}

#[test]
fn records_of_older_and_newer_programs_can_be_read() {
    let whole = size_of::<artis_event_record>();
    let mut bytes = record(kind::EVICTION, VERSION, whole);
    bytes[whole - 8..].fill(1); // left_ns, its last field
    bytes[16..20].copy_from_slice(&77u32.to_ne_bytes());
    for (size, left_ns) in [(whole - 8, 0), (whole, 0x0101_0101_0101_0101)] {
        let Ok(Record::Eviction(seen)) = first_of(&bytes, size).record() else { panic!() };
        assert_eq!((seen.pid, seen.left_ns), (77, left_ns));
    }
    bytes.extend([3; 40]); // a field of the future
    let size = bytes.len();
    let Ok(Record::Eviction(seen)) = first_of(&bytes, size).record() else { panic!() };
    assert_eq!((seen.pid, seen.left_ns), (77, 0x0101_0101_0101_0101));
}

/// The frame of the first `size` of these bytes.
fn first_of(bytes: &[u8], size: usize) -> Frame<'_> {
    Frame { kind: kind::EVICTION, version: VERSION, time_ns: 0, bytes: &bytes[..size] }
}

#[test]
fn another_version_and_damage_are_told() {
    let error = first(&record(kind::MOVE, 9, 100)).record().expect_err("another version");
    let told = format!("version 9, this scx_artis reads version {VERSION}");
    assert!(error.to_string().contains(&told), "{error}");
    let mut bytes = Vec::new();
    put(&mut bytes, kind::READING, 0, b"{");
    let error = first(&bytes).record().expect_err("no JSON");
    assert!(error.to_string().contains("damaged (a frame of kind 65"), "{error}");
    let mut bytes = record(kind::TASK, VERSION, 64);
    for size in [0u32, 15, FRAME_MAX as u32 + 1] {
        bytes[4..8].copy_from_slice(&size.to_ne_bytes());
        assert!(Frame::split(&bytes).is_err(), "{size}");
    }
}

#[test]
fn a_reading_is_of_a_machine_that_can_be() {
    let read = |json: &str| {
        let mut bytes = Vec::new();
        put(&mut bytes, kind::READING, 0, json.as_bytes());
        first(&bytes).record().map(|_| ()).map_err(|error| error.to_string())
    };
    read(r#"{"cpus":[{"id":0},{"id":1023}]}"#).expect("sound");
    let slots = "0,".repeat(crate::model::SLOTS) + "0";
    for (json, what) in [
        (r#"{"cpus":[{"id":1024}]}"#.to_owned(), "CPU 1024 in"),
        (format!(r#"{{"cpus":[{{"id":{}}}]}}"#, usize::MAX), "CPU 18446744073709551615 in"),
        (r#"{"cpus":[{"id":1},{"id":1}]}"#.to_owned(), "CPU 1 in"),
        (format!(r#"{{"cpus":[{{"residence":[{slots}]}}]}}"#), "a histogram of"),
        (format!(r#"{{"cpus":[{{"arrival":[{slots}]}}]}}"#), "a histogram of"),
    ] {
        let error = read(&json).expect_err(&json);
        assert!(error.contains(what), "{json}: {error}");
    }
}

#[test]
fn figures_of_a_recording_may_be_of_any_size() {
    let most = u64::MAX;
    let cpu = format!(
        r#"{{"kind":"nrt","own_weight":{most},"bound_weight":{most},"shared_queued":{most},
        "records":{most},"records_lost":{most},"records_over":{most},"stat":[{most}],
        "residence":[{most},{most}],"arrival":[{most},{most}],
        "rt":{{"avg":0.5,"in_rt":true,"updated_ns":0,"total_ns":{most}}}"#
    );
    let cpus = format!(r#"[{cpu},"id":0}},{cpu},"id":1,"group":1}}]"#);
    let mut model = crate::model::Model::default();
    for now_ns in [1, most] {
        let mut bytes = Vec::new();
        let json = format!(r#"{{"now_ns":{now_ns},"cpus":{cpus}}}"#);
        put(&mut bytes, kind::READING, 0, json.as_bytes());
        model.take(&first(&bytes)).expect("sound");
    }
    assert_eq!(model.snapshot().machine.records, most);
}

#[test]
fn texts_of_a_recording_cannot_steer_the_terminal() {
    let mut bytes = Vec::new();
    let begin = br#"{"rt_cpus":"\u001b[2J","policy":{"a\nb":"\u009b2J","c":"d"}}"#;
    put(&mut bytes, kind::BEGIN, 0, begin);
    let Ok(Record::Begin(begin)) = first(&bytes).record() else { panic!() };
    assert_eq!(begin.rt_cpus, "?[2J");
    let policy = [("a?b", "?2J"), ("c", "d")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(begin.policy, policy.into());
    let mut array = serde_json::json!(["\t"]);
    make_printable(&mut array);
    assert_eq!(array, serde_json::json!(["?"]));
}

#[test]
fn what_a_newer_program_says_is_no_damage() {
    let bytes = record(200, 9, 64);
    assert!(matches!(first(&bytes).record(), Ok(Record::Unknown)));
    let mut bytes = Vec::new();
    put(&mut bytes, kind::BEGIN, 0, br#"{"rt_cpus":"2-3","of_the_future":[1]}"#);
    let Ok(Record::Begin(begin)) = first(&bytes).record() else { panic!() };
    assert_eq!(begin.rt_cpus, "2-3");
}

proptest! {
    #[test]
    fn what_is_put_is_split(
        frames in prop::collection::vec(
            (any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20),
        cut in 0usize..4000,
    ) {
        let mut bytes = Vec::new();
        for (kind, time_ns, rest) in &frames {
            put(&mut bytes, *kind, *time_ns, rest);
        }
        let cut = cut.min(bytes.len());
        let (mut rest, mut seen) = (&bytes[..cut], Vec::new());
        while let Some((frame, after)) = Frame::split(rest).expect("sound") {
            seen.push((frame.kind, frame.time_ns, frame.bytes[HEAD..].to_vec()));
            rest = after;
        }
        // whole frames only, and all of those before the cut
        prop_assert!(seen.len() == frames.len() || rest.len() < HEAD + 200);
        prop_assert_eq!(&seen[..], &frames[..seen.len()]);
    }

    #[test]
    fn whatever_comes_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), kind in 0u16..70) {
        if let Ok(Some((frame, _))) = Frame::split(&bytes) {
            let _ = frame.record();
        }
        let mut framed = Vec::new();
        put(&mut framed, kind, 0, &bytes);
        let _ = first(&framed).record();
        let mut model = crate::model::Model::default();
        let _ = model.take(&first(&framed));
        let _ = model.take(&first(&framed));
        let mut ends = Vec::new();
        encode(&mut ends, crate::feed::frame::kind::READING, 9, &Reading { now_ns: 9, ..Reading::default() });
        let _ = model.take(&first(&ends));
        let _ = model.take(&first(&ends));
    }
}
