//! What a transfer may be, and whole transfers on real files.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::acks::MAGIC;
use super::job::{FORMAT, TransferJob};
use super::runner::Transfers;
use super::{lay_out, run, stream};
use crate::engines;
use crate::error::{EngineError, Failure};
use crate::io::{Completion, Engine, Operation, Queueing, Setup};
use crate::sync::lock;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file;

const SIZE: u64 = 300_000;

/// A small valid job that tests change.
fn example() -> Value {
    json!({
        "format": FORMAT, "trial": "t0001", "directory": "/nowhere", "prefix": "data",
        "transfer": "write", "streams": 2, "readers": 0, "buffer": 65536, "in_flight": 4, "size": SIZE,
        "engine": "io_uring", "direct": false, "checksum": null, "sources": [], "time_based": false,
        "runtime_ns": 0, "ramp_time_ns": 0, "end_sync": false, "rate_bytes_per_s": null,
        "incompressible": true, "seed": 1, "generation": 1, "interval_ns": 100_000_000,
        "deadline_ns": 60_000_000_000_u64, "parent_pid": null, "acks": null, "acks_max": 1_000_000
    })
}

fn changed(changes: &Value) -> Value {
    let mut job = example();
    for (key, value) in changes.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

fn refusal(changes: &Value) -> String {
    match TransferJob::parse(&changed(changes).to_string()) {
        Err(EngineError::Job(text)) => text,
        other => panic!("{changes} gave {other:?}"),
    }
}

fn job_in(directory: &Path, changes: &Value) -> TransferJob {
    let mut job = changed(changes);
    job["directory"] = json!(directory);
    job["acks"] = json!(directory.join("acks"));
    TransferJob::parse(&job.to_string()).unwrap()
}

/// A record of the log: stream, direction, offset, length, submitted, acknowledged, result.
type Record = (u32, u8, u64, u64, u64, u64, i64);

fn records(directory: &Path) -> Vec<Record> {
    let bytes = std::fs::read(directory.join("acks")).unwrap();
    assert_eq!((&bytes[..8], word(&bytes, 8)), (MAGIC.as_slice(), 48));
    assert_eq!(bytes.len() as u64, 32 + 48 * long(&bytes, 16));
    let record = |at: &[u8]| {
        let times = (long(at, 24), long(at, 32));
        let result = long(at, 40) as i64;
        (
            word(at, 0),
            at[4],
            long(at, 8),
            long(at, 16),
            times.0,
            times.1,
            result,
        )
    };
    bytes[32..].chunks(48).map(record).collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The summary of a transfer, after the layout of what it reads.
fn transferred(directory: &Path, changes: &Value) -> Value {
    let job = job_in(directory, changes);
    lay_out(&job, &|| None).unwrap();
    let work = engines::loops(job.engine).stream;
    run(job, work, &directory.join("record"), None, &|| None).unwrap()
}

#[test]
fn the_example_is_valid_and_round_trips() {
    let job = TransferJob::parse(&example().to_string()).unwrap();
    let again = serde_json::to_string(&job).unwrap();
    assert_eq!(TransferJob::parse(&again).unwrap(), job);
}

#[test]
fn every_missing_key_is_named_and_an_unknown_one_refused() {
    for key in example().as_object().unwrap().keys() {
        let mut job = example();
        job.as_object_mut().unwrap().remove(key);
        let text = TransferJob::parse(&job.to_string())
            .unwrap_err()
            .to_string();
        assert!(text.contains(key.as_str()), "{key}: {text}");
    }
    assert!(refusal(&json!({"buffers": 1})).contains("buffers"));
}

#[test]
fn contradictions_name_the_key_and_the_remedy() {
    for (changes, key, remedy) in [
        (json!({"format": "leadline.transfer/2"}), "format", FORMAT),
        (json!({"streams": 0}), "streams", "1024"),
        (json!({"readers": 1}), "readers", "write"),
        (json!({"transfer": "read", "readers": 1}), "readers", "2"),
        (json!({"transfer": "duplex"}), "readers", "1"),
        (json!({"in_flight": 0}), "in_flight", "4096"),
        (json!({"buffer": 5000}), "buffer", "multiple of 4096"),
        (json!({"buffer": 2_u64 << 30}), "buffer", "1073741824"),
        (json!({"size": 5000}), "size", "raise size"),
        (json!({"size": 1_u64 << 62}), "size", "lower size"),
        (
            json!({"direct": true, "size": 300_001}),
            "size",
            "direct: false",
        ),
        (json!({"engine": "psync"}), "in_flight", "io_uring"),
        (
            json!({"engine": "mmap", "in_flight": 1, "direct": true, "size": 512_000}),
            "direct",
            "io_uring",
        ),
        (json!({"engine": "rados"}), "location", "URL"),
        (json!({"location": "rados://pool"}), "engine", "rados"),
        (json!({"time_based": true}), "runtime_ns", "above 0"),
        (
            json!({"runtime_ns": 60_000_000_000_u64}),
            "deadline_ns",
            "beyond",
        ),
        (json!({"rate_bytes_per_s": 0}), "rate_bytes_per_s", "null"),
        (
            json!({"transfer": "read", "readers": 2, "end_sync": true}),
            "end_sync",
            "false",
        ),
        (
            json!({"transfer": "read", "readers": 2, "sources": ["/a"]}),
            "sources",
            "[]",
        ),
        (json!({"sources": ["a"]}), "sources", "absolute"),
        (json!({"acks_max": 0}), "acks_max", "from 1"),
        (json!({"checksum": "sha1"}), "sha1", "adler32"),
        (
            json!({"engine": "libsmbclient", "location": "smb://h/s/d", "end_sync": true}),
            "end_sync",
            "false",
        ),
        (
            json!({"engine": "s3", "location": "s3://b?endpoint=http://h:1&object_size=4M"}),
            "buffer",
            "object_size",
        ),
        (
            json!({"buffer": 1 << 30, "size": 1_u64 << 30, "in_flight": 64}),
            "in_flight",
            "lower",
        ),
    ] {
        let text = refusal(&changes);
        let problem = text.strip_prefix("the job is not valid: ").unwrap_or(&text);
        assert!(
            text.contains(key) && problem.contains(remedy),
            "{changes}: {text}"
        );
    }
}

proptest! {
    #[test]
    fn no_value_makes_the_parser_panic(
        key in 0_usize..28, number in any::<u64>(), kind in 0_usize..6, text in ".{0,12}",
    ) {
        let mut job = example();
        let keys: Vec<String> = job.as_object().unwrap().keys().cloned().collect();
        let values = [
            json!(number), json!(-(number as i64 >> 1)), json!(text), json!([text]), json!(null), json!(number as f64),
        ];
        job[&keys[key % keys.len()]] = values[kind].clone();
        let _ = TransferJob::parse(&job.to_string());
    }
}

#[test]
fn every_request_is_acknowledged_once_and_the_file_is_whole() {
    for engine in [json!({}), json!({"engine": "psync", "in_flight": 1})] {
        let directory = tempfile::tempdir().unwrap();
        let mut changes = json!({"end_sync": true, "checksum": "crc32c"});
        changes
            .as_object_mut()
            .unwrap()
            .extend(engine.as_object().unwrap().clone());
        let summary = transferred(directory.path(), &changes);
        assert_eq!(summary["state"], "complete", "{}", summary["error"]);
        assert_eq!(
            (&summary["acks"], &summary["acks_lost"]),
            (&json!(10), &json!(0))
        );
        for stream in 0..2_u32 {
            let mut own = records(directory.path());
            own.retain(|record| record.0 == stream);
            assert!(own.windows(2).all(|pair| pair[0].5 <= pair[1].5));
            own.sort_by_key(|record| record.2);
            let places: Vec<_> = own
                .iter()
                .map(|record| (record.2, record.3, record.6))
                .collect();
            let part = |number: u64| (number * 65536, 65536, 65536);
            let last = (4 * 65536, SIZE - 4 * 65536, (SIZE - 4 * 65536) as i64);
            assert_eq!(places, [part(0), part(1), part(2), part(3), last]);
            assert!(
                own.iter()
                    .all(|record| record.1 == 1 && record.4 <= record.5)
            );
            let row = &summary["streams"][stream as usize];
            let time = |key: &str| row[key].as_u64().unwrap();
            let submitted = || own.iter().map(|record| record.4);
            assert_eq!(submitted().min(), Some(time("first_submitted_ns")));
            assert_eq!(submitted().max(), Some(time("last_submitted_ns")));
            assert_eq!(
                own.iter().map(|record| record.5).max(),
                Some(time("last_acked_ns"))
            );
            assert!(
                time("last_acked_ns") <= time("synced_ns") && time("synced_ns") <= time("ended_ns")
            );
            let content = std::fs::read(directory.path().join(format!("data.{stream}.0"))).unwrap();
            assert_eq!(content.len() as u64, SIZE);
            assert_eq!(row["checksum"], format!("{:08x}", crc32c::crc32c(&content)));
            assert_eq!((&row["bytes"], &row["requests"]), (&json!(SIZE), &json!(5)));
        }
    }
}

#[test]
fn what_is_read_has_the_checksum_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let changes = json!({"transfer": "duplex", "readers": 1, "checksum": "crc32c"});
    let summary = transferred(directory.path(), &changes);
    let content = std::fs::read(directory.path().join("data.1.0")).unwrap();
    let row = &summary["streams"][1];
    assert_eq!(
        (&row["direction"], &row["checksum_bytes"]),
        (&json!("read"), &json!(SIZE))
    );
    assert_eq!(row["checksum"], format!("{:08x}", crc32c::crc32c(&content)));
    assert_eq!(summary["streams"][0]["direction"], "write");
}

#[test]
fn the_users_files_are_sent_one_behind_the_other_and_over_again() {
    let directory = tempfile::tempdir().unwrap();
    let sources: Vec<_> = [(b'a', 100_000), (b'b', 70_000), (b'c', 20_001)]
        .map(|(letter, bytes)| {
            let path = directory.path().join(format!("source-{}", letter as char));
            std::fs::write(&path, vec![letter; bytes]).unwrap();
            path
        })
        .into();
    let summary = transferred(directory.path(), &json!({"sources": sources}));
    assert_eq!(summary["state"], "complete", "{}", summary["error"]);
    let content =
        |stream| std::fs::read(directory.path().join(format!("data.{stream}.0"))).unwrap();
    let repeated = |parts: &[(u8, usize)]| {
        let once: Vec<u8> = parts
            .iter()
            .flat_map(|(letter, bytes)| vec![*letter; *bytes])
            .collect();
        once.into_iter()
            .cycle()
            .take(SIZE as usize)
            .collect::<Vec<u8>>()
    };
    assert!(content(0) == repeated(&[(b'a', 100_000), (b'c', 20_001)]));
    assert!(content(1) == repeated(&[(b'b', 70_000)]));
    assert!(summary["streams"][0]["source_wait_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_source_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent");
    let summary = transferred(directory.path(), &json!({"sources": [absent]}));
    assert_eq!(summary["state"], "error");
    assert!(
        summary["error"]["message"]
            .as_str()
            .unwrap()
            .contains("absent")
    );
}

#[test]
fn acknowledgements_beyond_the_most_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let summary = transferred(directory.path(), &json!({"acks_max": 7}));
    assert_eq!(
        (&summary["acks"], &summary["acks_lost"]),
        (&json!(7), &json!(3))
    );
    assert_eq!(records(directory.path()).len(), 7);
}

#[test]
fn a_transfer_of_a_time_ends_after_its_last_submission_with_all_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let time = json!({
        "engine": "null", "time_based": true, "runtime_ns": 300_000_000, "streams": 3, "checksum": "adler32",
        "ramp_time_ns": 100_000_000,
    });
    let summary = transferred(directory.path(), &time);
    let found = records(directory.path());
    let last = found.iter().map(|record| record.4).max().unwrap();
    assert!(last < 400_000_000, "{last}");
    let rows = summary["streams"].as_array().unwrap();
    let requests: u64 = rows
        .iter()
        .map(|row| row["requests"].as_u64().unwrap())
        .sum();
    assert_eq!(requests, found.len() as u64);
    assert_eq!(summary["total"]["write"]["operations"], json!(requests));
    for row in rows {
        assert_eq!(row["checksum_bytes"], json!(SIZE));
    }
}

#[test]
fn a_stop_in_the_middle_keeps_what_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let changes = json!({"time_based": true, "runtime_ns": 50_000_000_000_u64, "rate_bytes_per_s": 20_000_000});
    let job = job_in(directory.path(), &changes);
    let looks = AtomicUsize::new(0);
    let signal = || (looks.fetch_add(1, Ordering::Relaxed) > 4).then_some(libc::SIGINT);
    let work = engines::loops(job.engine).stream;
    let summary = run(job, work, &directory.path().join("record"), None, &signal).unwrap();
    assert_eq!(summary["state"], "interrupted");
    let found = records(directory.path());
    assert!(!found.is_empty());
    assert_eq!(summary["total"]["write"]["operations"], json!(found.len()));
    assert_eq!(summary["acks"], json!(found.len()));
}

/// An engine on a real file whose requests end in the order opposite to that in which they were sent, and in two parts.
struct Backwards {
    file: std::fs::File,
    buffers: Vec<AlignedBuffer>,
    waiting: Vec<(u32, Operation)>,
}

impl Engine for Backwards {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffers = (0..setup.depth).map(|_| AlignedBuffer::new(setup.block_bytes).unwrap());
        Ok(Self {
            file: std::fs::File::open(&setup.files[0]).unwrap(),
            buffers: buffers.collect(),
            waiting: Vec::new(),
        })
    }

    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let flies = self.waiting.iter().any(|(waiting, _)| *waiting == slot);
        assert!(!flies, "a slot in flight is looked into");
        self.buffers[slot as usize].as_mut_slice()
    }
}

impl Queueing for Backwards {
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.waiting.push((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        Ok(())
    }

    fn reap(&mut self, minimum: u32, _: u64, completions: &mut Vec<Completion>) -> Result<(), i32> {
        if minimum == 0 {
            return Ok(());
        }
        let Some((slot, operation)) = self.waiting.pop() else {
            return Ok(());
        };
        let (start, length) = (operation.start as usize, operation.length as usize);
        let half = length.div_ceil(2).max(length.min(10_000));
        let part = &mut self.buffers[slot as usize].as_mut_slice()[start..start + half];
        let result = file::read_at(&self.file, part, operation.offset);
        completions.push(Completion { slot, result });
        Ok(())
    }
}

#[test]
fn requests_that_end_in_any_order_are_summed_up_in_that_of_the_file() {
    for checksum in ["adler32", "crc32c", "md5"] {
        let directory = tempfile::tempdir().unwrap();
        let changes = json!({
            "transfer": "read", "streams": 1, "readers": 1, "checksum": checksum, "interval_ns": 10_000_000_000_u64,
        });
        let job = job_in(directory.path(), &changes);
        lay_out(&job, &|| None).unwrap();
        let size = job.size;
        let content = std::fs::read(directory.path().join("data.0.0")).unwrap();
        let shared = Transfers::new(job);
        shared.context.start();
        stream::run::<Backwards>(&shared, 0);
        assert!(shared.context.alarm.failure().is_none());
        let row = lock(&shared.rows[0]).clone();
        let mut whole = super::flow::Checksums::new(shared.job.checksum.unwrap(), size);
        whole.add(&content);
        let (hex, bytes) = whole.found();
        assert_eq!((row.checksum, row.checksum_bytes), (Some(hex), bytes));
        assert_eq!((row.requests, row.bytes), (5, size));
    }
}
