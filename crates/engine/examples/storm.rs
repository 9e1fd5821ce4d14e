//! Trials on storage whose library answers soon, far too late or never, as tests/fakes has them: `make sanitize` has
//! a sanitizer watch. Not measured.
//!
//! Usage: `storm DIRECTORY LATE_MS [URL]…`: trials on files of DIRECTORY and on each URL, then waits until what was
//! late is over.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use leadline_engine::AnyJob;
use leadline_engine::schemes;
use leadline_engine::schemes::Location;
use serde_json::{Value, json};

const DIRECTORY: &str = "/storm";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            let _ = writeln!(std::io::stderr(), "storm: {words}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, late_ms, urls @ ..] = words.as_slice() else {
        return Err("give a directory, milliseconds, and URLs".to_owned());
    };
    let directory = Path::new(directory);
    let late_ms: u64 = late_ms
        .parse()
        .map_err(|_| "milliseconds are a whole number")?;
    for engine in ["null", "psync", "io_uring"] {
        let moves = engine != "null";
        let own = json!({"engine": engine, "directory": directory, "verify": moves});
        trials(directory, &own, if engine == "psync" { 1 } else { 16 })?;
    }
    for url in urls {
        let location = Location::parse(url).map_err(|error| error.to_string())?;
        let volume = schemes::connect(&location).map_err(|error| error.words())?;
        volume
            .make_directory(DIRECTORY)
            .map_err(|error| error.words())?;
        drop(volume);
        let engine = if url.starts_with("root:") {
            "xrootd"
        } else {
            "rados"
        };
        let own =
            json!({"engine": engine, "directory": DIRECTORY, "location": url, "verify": true});
        trials(directory, &own, 16)?;
    }
    std::thread::sleep(Duration::from_millis(late_ms + late_ms / 2));
    Ok(())
}

/// Fresh files, then random reads of them by two threads; some reads may not be answered before the end.
fn trials(directory: &Path, own: &Value, depth: u32) -> Result<(), String> {
    // What never answers is waited for as long; the kernel's files answer, be it slowly under a sanitizer.
    let deadline_ns: u64 = if own["location"].is_null() {
        60_000_000_000
    } else {
        5_000_000_000
    };
    for (rw, runtime_ns) in [
        ("write", 0),
        ("randread", 300_000_000_u64),
        ("randrw", 300_000_000),
    ] {
        let mut job = json!({
            "format": "leadline.job/1", "trial": "t0001", "prefix": own["engine"], "rw": rw, "rwmixread": 50, "bs": 65536,
            "size": 4 << 20, "nrfiles": 2, "numjobs": 2, "iodepth": depth, "direct": false,
            "overwrite": rw == "randrw", "fsync": 0, "end_fsync": false, "time_based": runtime_ns > 0,
            "runtime_ns": runtime_ns, "ramp_time_ns": 0, "rate_bytes_per_s": null, "rate_iops": null,
            "arrival": "constant", "incompressible": true, "sqthread_poll": false, "seed": 1, "generation": 1,
            "interval_ns": 100_000_000, "deadline_ns": deadline_ns, "parent_pid": null
        });
        for (key, value) in own.as_object().into_iter().flatten() {
            job[key] = value.clone();
        }
        let words = |error: leadline_engine::EngineError| format!("{own} {rw}: {error}");
        if job["verify"] == true {
            job["ledger"] = json!(directory.join("ledger"));
        }
        let job = AnyJob::parse(&job.to_string()).map_err(words)?;
        let record = directory.join("record");
        let summary = job.run(&record, None, &|| None).map_err(words)?;
        std::fs::remove_file(record).map_err(|error| error.to_string())?;
        let (state, error) = (&summary["state"], &summary["error"]);
        let line = format!("{} {rw}: {state} {error}", own["engine"]);
        writeln!(std::io::stdout(), "{line}").map_err(|error| error.to_string())?;
        if !error.is_null() {
            return Err(line);
        }
    }
    Ok(())
}
