//! Whole replays on a real directory.

use leadline_record::Interval;
use serde_json::{Value, json};

use super::files::lay_out;
use super::runner::run;
use super::script::ReplayJob;
use super::script::tests::{call, script};
use super::script::{Call, Kind};

struct Replayed {
    summary: Value,
    intervals: Vec<Interval>,
    directory: tempfile::TempDir,
}

fn replay(files: &[(Option<u64>, u32)], threads: &[(u32, Vec<Call>)], pace: &str) -> Replayed {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    std::fs::write(&path, script(files, threads)).unwrap();
    let job = json!({
        "format": "leadline.replay/1", "trial": "t", "directory": directory.path(), "prefix": "r",
        "script": path, "pace": pace, "seed": 7, "generation": 1, "interval_ns": 100_000_000,
        "deadline_ns": 60_000_000_000_u64, "parent_pid": null, "numjobs": 1,
    });
    let job = ReplayJob::parse(&job.to_string()).unwrap();
    lay_out(&job, &|| None).unwrap();
    let record = tempfile::NamedTempFile::new().unwrap();
    let summary = run(job, record.path(), &|| None).unwrap();
    let intervals = leadline_record::read(record.path()).unwrap().intervals;
    Replayed {
        summary,
        intervals,
        directory,
    }
}

#[test]
fn every_call_is_made_and_counted_in_its_class() {
    let calls = vec![
        call(Kind::Open, 0, 0, 0),
        call(Kind::Read, 0, 0, 4096),
        call(Kind::Read, 0, 4096, 904),
        call(Kind::Close, 0, 0, 0),
        call(Kind::Open, 1, 0, 0),
        call(Kind::Write, 1, 100, 300),
        call(Kind::Fsync, 1, 0, 0),
        call(Kind::Truncate, 1, 0, 50),
        call(Kind::Close, 1, 0, 0),
        call(Kind::Stat, 1, 0, 0),
        call(Kind::Mkdir, 2, 0, 0),
        call(Kind::List, 2, 0, 0),
        call(Kind::Rename, 1, 0, 0),
    ];
    let count = calls.len();
    let files = [(Some(5000), 0), (None, 6), (None, 5)];
    let found = replay(&files, &[(0, calls)], "fast");
    let (summary, total) = (&found.summary, &found.summary["directions"]);
    assert_eq!(summary["state"], "complete", "{}", summary["error"]);
    assert_eq!(summary["replay"]["calls"], count);
    assert_eq!(summary["replay"]["differed"], 0);
    assert_eq!(summary["replay"]["short"], 0);
    assert_eq!(
        (&total["read"]["operations"], &total["read"]["bytes"]),
        (&json!(2), &json!(5000))
    );
    assert_eq!(
        (&total["write"]["operations"], &total["write"]["bytes"]),
        (&json!(1), &json!(300))
    );
    assert_eq!(
        (&total["sync"]["operations"], &total["meta"]["operations"]),
        (&json!(1), &json!(9))
    );
    let recorded: u64 = found
        .intervals
        .iter()
        .map(|interval| interval.operations)
        .sum();
    assert_eq!(recorded, count as u64);
    let renamed = found.directory.path().join("r.1.renamed");
    assert_eq!(std::fs::metadata(renamed).unwrap().len(), 50);
}

#[test]
fn pauses_are_kept_and_left_out_where_asked() {
    let pause = |pause_ns| Call {
        pause_ns,
        ..call(Kind::Read, 0, 0, 10)
    };
    let calls = || vec![(0, vec![pause(0), pause(300_000_000)])];
    let kept = replay(&[(Some(10), 0)], &calls(), "recorded").summary;
    assert!(kept["measured_ns"].as_u64().unwrap() >= 300_000_000);
    let fast = replay(&[(Some(10), 0)], &calls(), "fast").summary;
    assert!(fast["measured_ns"].as_u64().unwrap() < 300_000_000);
}

#[test]
fn a_file_that_one_thread_closes_stays_open_for_the_others_of_its_process() {
    let reads = || {
        let mut calls = vec![call(Kind::Open, 0, 0, 0)];
        for offset in 0..200 {
            calls.push(call(Kind::Read, 0, offset, 100));
            calls.push(call(Kind::Close, 0, 0, 0));
        }
        (0, calls)
    };
    let found = replay(&[(Some(300), 0)], &[reads(), reads(), reads()], "fast").summary;
    assert_eq!(found["state"], "complete", "{}", found["error"]);
    assert_eq!(found["directions"]["read"]["bytes"], 3 * 200 * 100);
}

#[test]
fn what_goes_otherwise_than_in_the_trace_is_counted_and_no_failure() {
    let absent = Call {
        absent: true,
        ..call(Kind::Open, 0, 0, 0)
    };
    let short = Call {
        expected: 10,
        ..call(Kind::Read, 0, 95, 10)
    };
    let calls = vec![
        absent,
        call(Kind::Unlink, 1, 0, 0),
        call(Kind::Open, 0, 0, 0),
        short,
    ];
    let found = replay(&[(Some(100), 0), (None, 4)], &[(0, calls)], "fast").summary;
    assert_eq!(found["state"], "complete", "{}", found["error"]);
    assert_eq!(
        (&found["replay"]["differed"], &found["replay"]["short"]),
        (&json!(1), &json!(1))
    );
}
