//! One trial in a process of its own, without Python: what `bench/run.py` measures.
//!
//! Usage: `trial run|layout JOB.json RECORD`. Prints the summary as JSON.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use leadline_engine::AnyJob;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            let _ = writeln!(std::io::stderr(), "trial: {words}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, job, record] = words.as_slice() else {
        return Err("give run or layout, a file with a job, and where the record goes".to_owned());
    };
    let text = std::fs::read_to_string(job).map_err(|error| format!("{job}: {error}"))?;
    let job = AnyJob::parse(&text).map_err(|error| error.to_string())?;
    let never = || None;
    let answer = match what.as_str() {
        "layout" => job
            .lay_out(&never)
            .map(|laid_out| serde_json::json!({ "files": laid_out.files })),
        _ => job.run(Path::new(record), None, &never),
    };
    let answer = answer.map_err(|error| error.to_string())?;
    writeln!(std::io::stdout(), "{answer}").map_err(|error| error.to_string())
}
