//! What a job may be, and the words of every refusal.

use super::*;
use serde_json::{Value, json};

/// A small valid job that tests change.
pub fn example() -> Value {
    json!({
        "format": FORMAT, "trial": "t0001", "directory": "/nowhere", "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 4096, "size": 1 << 20, "nrfiles": 1, "numjobs": 1,
        "iodepth": 1, "engine": "psync", "direct": false, "overwrite": false, "fsync": 0,
        "end_fsync": false, "time_based": false, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": null, "rate_iops": null, "arrival": "constant", "verify": false,
        "incompressible": true, "sqthread_poll": false, "seed": 1, "generation": 1, "interval_ns": 100_000_000,
        "deadline_ns": 60_000_000_000_u64, "parent_pid": null
    })
}

fn refusal(changes: Value) -> String {
    let mut job = example();
    for (key, value) in changes.as_object().unwrap() {
        job[key] = value.clone();
    }
    match Job::parse(&job.to_string()) {
        Err(EngineError::Job(text)) => text,
        other => panic!("{changes} gave {other:?}"),
    }
}

#[test]
fn the_example_is_valid_and_round_trips() {
    let job = Job::parse(&example().to_string()).unwrap();
    assert_eq!(
        Job::parse(&serde_json::to_string(&job).unwrap()).unwrap(),
        job
    );
}

#[test]
fn every_missing_key_is_named() {
    for key in example().as_object().unwrap().keys() {
        let mut job = example();
        job.as_object_mut().unwrap().remove(key);
        let text = Job::parse(&job.to_string()).unwrap_err().to_string();
        assert!(text.contains(key.as_str()), "{key}: {text}");
    }
}

#[test]
fn an_unknown_key_is_refused() {
    assert!(refusal(json!({"blocksize": 4096})).contains("blocksize"));
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of refusals")]
fn contradictions_name_the_key_and_the_remedy() {
    for (changes, key, remedy) in [
        (json!({"iodepth": 2}), "iodepth", "io_uring"),
        (json!({"descriptor": -1}), "descriptor", "location"),
        (
            json!({"descriptor": 3, "nrfiles": 2}),
            "descriptor",
            "nrfiles: 1",
        ),
        (
            json!({"descriptor": 3, "rw": "write"}),
            "descriptor",
            "overwrite: true",
        ),
        (json!({"engine": "mmap", "direct": true}), "direct", "psync"),
        (
            json!({"rate_iops": 10.0, "rate_bytes_per_s": 10}),
            "rate_iops",
            "null",
        ),
        (json!({"rate_iops": 0.0}), "rate_iops", "above 0"),
        (
            json!({"verify": true, "bs": 1000}),
            "verify",
            "multiple of 4096",
        ),
        (json!({"verify": true, "rw": "rw"}), "verify", "randrw"),
        (
            json!({"verify": true, "size": (1_u64 << 40) + 4096}),
            "verify",
            "smaller size",
        ),
        (
            json!({"verify": true, "incompressible": false, "dedupe_percentage": 100}),
            "verify",
            "smaller share",
        ),
        (json!({"read_back": "other"}), "verify", "verify: true"),
        (json!({"ledger": "/ledger"}), "verify", "verify: true"),
        (json!({"direct": true, "bs": 1000}), "bs", "multiple of 512"),
        (json!({"fsync": 4}), "fsync", "0"),
        (json!({"size": 100}), "size", "raise size"),
        (
            json!({"size": i64::MAX, "numjobs": 2}),
            "size",
            "lower size or numjobs",
        ),
        (json!({"offset": 1 << 20}), "offset", "raise size"),
        (json!({"offset": 100}), "offset", "multiples of bs"),
        (
            json!({"rw": "write", "fsync": 2, "fdatasync": 2}),
            "fdatasync",
            "leave one",
        ),
        (json!({"fdatasync": 2}), "fsync", "0"),
        (
            json!({"dedupe_percentage": 20}),
            "dedupe_percentage",
            "incompressible: false",
        ),
        (
            json!({"buffer_compress_percentage": 101, "incompressible": false}),
            "buffer_compress_percentage",
            "100",
        ),
        (
            json!({"thinktime_ns": 5, "rate_iops": 3.0}),
            "thinktime_ns",
            "no rate",
        ),
        (
            json!({"shared": "strided", "nrfiles": 2}),
            "shared",
            "nrfiles: 1",
        ),
        (
            json!({"shared": "segmented", "offset": 4096}),
            "shared",
            "offset: 0",
        ),
        (
            json!({"bssplit": {"read": [[4096, 50]], "write": [[4096, 100]]}}),
            "bssplit",
            "100",
        ),
        (
            json!({"bssplit": {"read": [[6144, 100]], "write": [[4096, 100]]}}),
            "bssplit",
            "multiple of bs",
        ),
        (
            json!({"rw": "randread", "one_map": true}),
            "one_map",
            "one_map: false",
        ),
        (
            json!({"rw": "read", "one_map": true}),
            "one_map",
            "all random",
        ),
        (
            json!({"rw": "randread", "one_map": true, "size": 1_u64 << 43,
                   "bssplit": {"read": [[4096, 100]], "write": [[4096, 100]]}, "bs": 512}),
            "one_map",
            "larger blocks",
        ),
        (
            json!({"rw": "read", "random_distribution": "zipf:1.2"}),
            "random_distribution",
            "map",
        ),
        (
            json!({"verify": true, "rw": "randrw", "random_distribution": "random"}),
            "verify",
            "one direction",
        ),
        (json!({"time_based": true}), "runtime_ns", "above 0"),
        (
            json!({"runtime_ns": 60_000_000_000_u64}),
            "deadline_ns",
            "beyond",
        ),
        (json!({"interval_ns": 1}), "interval_ns", "100 ms"),
        (json!({"directory": "here"}), "directory", "absolute"),
        (json!({"prefix": "../x"}), "prefix", "without '/'"),
        (
            json!({"format": "leadline.job/2"}),
            "format",
            "leadline.job/1",
        ),
        (json!({"rwmixread": 101}), "rwmixread", "0 to 100"),
        (json!({"iodepth": 0}), "iodepth", "1 to"),
    ] {
        let text = refusal(changes);
        assert!(text.starts_with(key) && text.contains(remedy), "{text}");
    }
}
