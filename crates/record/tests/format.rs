//! The format as others rely on it: a golden file, cut tails, damage, newer versions, arbitrary bytes.

use std::path::PathBuf;

use leadline_record::{Histograms, Interval, MAGIC, RecordError, Writer, parse, read};
use proptest::prelude::*;
use serde_json::json;

fn golden_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/record-v1.llrec")
}

fn interval(index: u32) -> Interval {
    Interval {
        index,
        start_ns: u64::from(index) * 1_000_000_000,
        end_ns: u64::from(index + 1) * 1_000_000_000,
        measured: index > 0,
        direction: "read".to_owned(),
        bytes: 8192,
        operations: 2,
        short: 0,
        in_flight_mean: 1.5,
        late_ns_max: 7,
        late_ns_sum: 9,
        threads: vec![4096, 4096],
        histograms: Histograms {
            submission: b"submission".to_vec(),
            completion: b"completion".to_vec(),
            total: b"total".to_vec(),
            intended: (index > 0).then(|| b"intended".to_vec()),
        },
    }
}

fn example() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(
        &mut bytes,
        &json!({"format": "leadline.record/1", "job": {"rw": "read"}}),
    )
    .unwrap();
    writer.interval(&interval(0)).unwrap();
    writer.interval(&interval(1)).unwrap();
    writer.summary(&json!({"state": "complete"})).unwrap();
    bytes
}

#[test]
fn the_golden_file_of_version_1_is_read() {
    let record = read(&golden_path()).unwrap();
    assert_eq!(record.header["job"]["rw"], "read");
    assert_eq!(record.intervals, [interval(0), interval(1)]);
    assert_eq!(record.summary.unwrap()["state"], "complete");
    assert!(!record.truncated);
}

#[test]
fn the_writer_still_writes_the_golden_file() {
    assert_eq!(example(), std::fs::read(golden_path()).unwrap());
}

#[test]
#[ignore = "writes the golden file; only for a new version of the format"]
fn write_the_golden_file() {
    std::fs::write(golden_path(), example()).unwrap();
}

#[test]
fn every_cut_keeps_the_whole_frames_before_it_and_says_truncated() {
    let bytes = example();
    let whole = parse(&bytes).unwrap();
    for length in MAGIC.len() + 4..bytes.len() {
        let record = parse(&bytes[..length]).unwrap();
        assert!(record.truncated, "cut at {length}");
        assert!(whole.intervals.starts_with(&record.intervals));
    }
}

#[test]
fn a_tail_of_zeros_is_truncation() {
    let mut bytes = example();
    bytes.extend_from_slice(&[0; 100]);
    let record = parse(&bytes).unwrap();
    assert!(record.truncated);
    assert_eq!(record.intervals.len(), 2);
}

#[test]
fn a_flipped_byte_is_damage_never_other_values() {
    let bytes = example();
    let whole = parse(&bytes).unwrap();
    for position in MAGIC.len() + 4..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        if let Ok(record) = parse(&flipped) {
            // A length that grew past the end of the file cannot be told from a cut.
            assert!(record.truncated, "byte {position}");
            assert!(whole.intervals.starts_with(&record.intervals));
        }
    }
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let mut bytes = example();
    bytes[MAGIC.len()] = 2;
    let error = parse(&bytes).unwrap_err();
    assert!(matches!(
        error,
        RecordError::NewerVersion { found: 2, known: 1 }
    ));
    assert!(error.to_string().contains("newer leadline"));
}

#[test]
fn garbage_is_no_record() {
    assert!(matches!(
        parse(b"PAR1 something else"),
        Err(RecordError::NotARecord)
    ));
    assert!(matches!(parse(b""), Err(RecordError::NotARecord)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn arbitrary_frames_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&1u32.to_le_bytes());
        file.extend_from_slice(&bytes);
        let _ = parse(&file);
    }

    #[test]
    fn changed_records_never_panic(position in 0usize..10_000, value in any::<u8>()) {
        let mut bytes = example();
        let position = position % bytes.len();
        bytes[position] = value;
        let _ = parse(&bytes);
    }
}

/// A directory of this test's own, gone afterwards.
struct Top(PathBuf);

impl Drop for Top {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_record_replaces_a_plain_file_for_its_owner_alone_and_nothing_else() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let top = Top(std::env::temp_dir().join(format!("leadline-record-{}", std::process::id())));
    std::fs::create_dir(&top.0).unwrap();
    let (precious, path) = (top.0.join("precious"), top.0.join("t0001.llrec"));
    std::fs::write(&precious, b"precious").unwrap();
    symlink(&precious, &path).unwrap();
    assert!(Writer::create(&path, &json!({})).is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::hard_link(&precious, &path).unwrap();
    Writer::create(&path, &json!({})).unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(Writer::create(&path, &json!({})).is_err());
}

#[test]
fn a_record_goes_into_a_file_that_this_process_holds_open() {
    use std::os::fd::AsRawFd;
    let name = std::env::temp_dir().join(format!("leadline-held-{}", std::process::id()));
    let file = std::fs::File::create_new(&name).unwrap();
    std::fs::remove_file(&name).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut writer = Writer::create(&path, &json!({})).unwrap();
    writer.summary(&json!({})).unwrap();
    assert!(file.metadata().unwrap().len() > 0);
}
