//! In the measured interval no thread that does I/O allocates: an allocation there would be measured too.
//! An allocator that notes when each was made, and in which thread, shows it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use leadline_engine::AnyJob;
use leadline_engine::sys::clock::unix_ns;
use serde_json::{Value, json};

/// More than the set-up of a trial's threads needs.
const NOTED_MAX: usize = 1 << 16;
/// How the runner names the threads that do I/O.
const LOAD_THREAD: &[u8] = b"load-";

static NOTED_NS: [AtomicU64; NOTED_MAX] = [const { AtomicU64::new(0) }; NOTED_MAX];
static NOTED: AtomicUsize = AtomicUsize::new(0);

struct Noting;

/// Notes the moment when the calling thread is one that does I/O. Must not allocate itself.
fn note() {
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, which `name` has.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    if name.starts_with(LOAD_THREAD) {
        let index = NOTED.fetch_add(1, Ordering::Relaxed);
        NOTED_NS[index % NOTED_MAX].store(unix_ns(), Ordering::Relaxed);
    }
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

fn job(directory: &Path, changes: &Value) -> AnyJob {
    let mut value = json!({
        "format": "leadline.job/1", "trial": "t0001", "directory": directory, "prefix": "data",
        "rw": "randrw", "rwmixread": 50, "bs": 4096, "size": 1 << 20, "nrfiles": 2, "numjobs": 2, "iodepth": 1,
        "engine": "psync", "direct": false, "overwrite": true, "fsync": 50, "end_fsync": false,
        "time_based": true, "runtime_ns": 500_000_000_u64, "ramp_time_ns": 100_000_000,
        "rate_bytes_per_s": null, "rate_iops": null, "arrival": "poisson", "verify": true,
        "incompressible": true, "sqthread_poll": false, "seed": 1, "generation": 1,
        "interval_ns": 100_000_000, "deadline_ns": 30_000_000_000_u64, "parent_pid": null
    });
    for (key, change) in changes.as_object().expect("changes are an object") {
        value[key] = change.clone();
    }
    AnyJob::parse(&value.to_string()).expect("the job is valid")
}

/// A transfer, both ways at once, with a checksum.
fn transfer(directory: &Path, changes: &Value) -> AnyJob {
    let mut value = json!({
        "format": "leadline.transfer/1", "trial": "t0001", "directory": directory, "prefix": "data",
        "transfer": "duplex", "streams": 2, "readers": 1, "buffer": 65536, "in_flight": 4, "size": 1 << 20,
        "engine": "io_uring", "direct": false, "checksum": "md5", "sources": [], "time_based": true,
        "runtime_ns": 500_000_000_u64, "ramp_time_ns": 100_000_000, "end_sync": false,
        "rate_bytes_per_s": 200_000_000, "incompressible": true, "seed": 1, "generation": 1,
        "interval_ns": 100_000_000, "deadline_ns": 30_000_000_000_u64, "parent_pid": null,
        "acks": directory.join("acks"), "acks_max": 1 << 20
    });
    for (key, change) in changes.as_object().expect("changes are an object") {
        value[key] = change.clone();
    }
    AnyJob::parse(&value.to_string()).expect("the transfer is valid")
}

type MakeJob = fn(&Path, &Value) -> AnyJob;

/// Operations done, and allocations by threads that do I/O from the start to the first thread's last operation.
fn allocations(make: MakeJob, changes: &Value) -> (u64, usize) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let job = make(directory.path(), changes);
    job.lay_out(&|| None).expect("the layout succeeds");
    NOTED.store(0, Ordering::Relaxed);
    let record = directory.path().join("record");
    let summary = job.run(&record, None, &|| None).expect("the trial runs");
    assert_eq!(summary["state"], "complete", "{}", summary["error"]);
    let noted = NOTED.load(Ordering::Relaxed);
    assert!((1..NOTED_MAX).contains(&noted), "set-up allocates: {noted}");
    let number = |value: &Value| value.as_u64().expect("a whole number");
    let start = number(&summary["started_unix_ns"]);
    let end = start + number(&summary["first_done_ns"]);
    let within = NOTED_NS[..noted]
        .iter()
        .filter(|moment| (start..end).contains(&moment.load(Ordering::Relaxed)))
        .count();
    (number(&summary["total"]["read"]["operations"]), within)
}

/// One test, because the counter is one for the process.
#[test]
fn threads_that_do_io_allocate_nothing_while_they_are_measured() {
    let ring = json!({"engine": "io_uring", "iodepth": 16});
    let paced = json!({"engine": "io_uring", "iodepth": 16, "rate_iops": 2000.0});
    let null = json!({"engine": "null", "iodepth": 32, "verify": false});
    let data = [json!({}), json!({"engine": "mmap"}), ring, paced, null];
    let one =
        json!({"engine": "psync", "in_flight": 1, "checksum": "adler32", "rate_bytes_per_s": null});
    let transfers = [json!({}), one];
    let cases = data.map(|changes| (job as MakeJob, changes)).into_iter();
    for (make, changes) in cases.chain(transfers.map(|changes| (transfer as MakeJob, changes))) {
        let (operations, within) = allocations(make, &changes);
        assert!(operations > 0);
        assert_eq!(within, 0, "{within} allocations with {changes}");
    }
}
