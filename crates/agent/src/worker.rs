//! A worker process: does what touches a target, one command after another, while the command keeps the time.
//!
//! Commands come as JSON lines on standard input, answers and the engine's progress go out as JSON lines: those of
//! `run/worker.py`, as far as the engine does the work.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use leadline_engine::schemes::{self, Storage as Place};
use leadline_engine::sys::process::{SignalWatch, die_with_parent, pass_on};
use leadline_engine::trial::check;
use leadline_engine::trial::meeting::Meeting;
use leadline_engine::{AnyJob, EngineError, Interrupts, Job};
use serde_json::{Map, Value, json};

use crate::errors::{Outcome, Refusal};
use crate::storage::Storage;
use crate::workspace::{self, MountPlace, Workspace};

/// Of one command; a job is far less.
const LINE_BYTES_MAX: u64 = 64 << 20;
const SLICE_S: f64 = 600.0;
const FIO: &str = "fio";
const COPY: &str = "copy";
const TRANSFER_FORMAT: &str = "leadline.transfer/1";
const DATA_FORMAT: &str = "leadline.job/1";

/// Obeys until standard input ends, or the process `parent`.
pub fn work(parent: i32) -> ExitCode {
    if die_with_parent(parent).is_err() {
        return ExitCode::FAILURE; // it was gone before
    }
    say(&json!({"event": "ready", "pid": std::process::id()}));
    while let Some(line) = next_line() {
        say(&obey(&line));
    }
    ExitCode::SUCCESS
}

/// The next command; `None` at the end of input, and of a line without an end.
fn next_line() -> Option<String> {
    let mut line = Vec::new();
    let mut input = std::io::Read::take(std::io::stdin().lock(), LINE_BYTES_MAX);
    let count = input.read_until(b'\n', &mut line).ok()?;
    if count == 0 || line.last() != Some(&b'\n') {
        return None;
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn say(message: &Value) {
    let mut output = std::io::stdout().lock();
    // Who does not listen any more has ended, and this process with it.
    let _ = output.write_all(format!("{message}\n").as_bytes());
    let _ = output.flush();
}

/// What becomes of one line.
fn obey(line: &str) -> Value {
    let done = serde_json::from_str(line)
        .map_err(|error| Refusal::new(format!("no command: {error}"), "report this as a defect"))
        .and_then(|command| act(&command));
    match done {
        Ok(answer) => json!({"event": "done", "answer": answer}),
        Err(refusal) => failed(&refusal),
    }
}

fn failed(refusal: &Refusal) -> Value {
    let mut said = json!({
        "event": "failed", "message": refusal.message, "remedy": refusal.remedy, "errno": refusal.errno,
    });
    if let Some(file) = &refusal.file {
        said["file"] = json!(file);
    }
    if refusal.interrupted {
        said["interrupted"] = json!(true);
    }
    said
}

fn act(command: &Value) -> Outcome<Value> {
    let name = text(command, "command")?;
    match name {
        "layout" => lay_out(job(command)?),
        "trial" => trial(command),
        "forget_cached" => forget(job(command)?).map(|()| json!({})),
        "io_read_back" => read_back(job(command)?),
        "make_workspace" => {
            let pool = command.get("pool").and_then(Value::as_str);
            workspace::make_workspace(&place(command)?, text(command, "id")?, pool)?;
            Ok(json!({}))
        }
        "remove_workspace" => remove_workspace(command),
        "remove_files" => {
            let slice_s = command
                .get("slice_s")
                .and_then(Value::as_f64)
                .unwrap_or(SLICE_S);
            let more =
                workspace::remove_files(&place(command)?, text(command, "prefix")?, slice_s)?;
            Ok(json!({"more": more}))
        }
        "space" => {
            let location = command.get("location").and_then(Value::as_str);
            let found = Storage::open(location)?.space(text(command, "directory")?)?;
            let (total, free) = found.unzip();
            Ok(json!({"free_bytes": free, "total_bytes": total}))
        }
        "drop_caches" => {
            rustix::fs::sync();
            let path = Path::new("/proc/sys/vm/drop_caches");
            std::fs::write(path, "3\n").map_err(|error| Refusal::system(&error, path))?;
            Ok(json!({}))
        }
        other => Err(Refusal::new(
            format!("the agent does not know the command {other}"),
            "this kind of workload needs leadline on that host: install it there, or let the command copy it",
        )),
    }
}

fn text<'a>(command: &'a Value, key: &str) -> Outcome<&'a str> {
    let missing = || {
        Refusal::new(
            format!("the command lacks {key}"),
            "report this as a defect",
        )
    };
    command.get(key).and_then(Value::as_str).ok_or_else(missing)
}

fn place(command: &Value) -> Outcome<Workspace> {
    let location = command.get("location").and_then(Value::as_str);
    Workspace::new(text(command, "directory")?, location)
}

fn remove_workspace(command: &Value) -> Outcome<Value> {
    let texts = |key: &str| -> Option<Vec<String>> {
        let list = command.get(key)?.as_array()?;
        list.iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect()
    };
    let lacking = |key: &str| {
        Refusal::new(
            format!("the command lacks {key}"),
            "report this as a defect",
        )
    };
    let begins = texts("begins").ok_or_else(|| lacking("begins"))?;
    let was = match command.get("was") {
        None | Some(Value::Null) => None,
        Some(_) => {
            let parts: Option<[String; 3]> = texts("was").and_then(|parts| parts.try_into().ok());
            let [mount_point, file_system, source] = parts.ok_or_else(|| lacking("was"))?;
            Some(MountPlace {
                mount_point,
                file_system,
                source,
            })
        }
    };
    let slice_s = command
        .get("slice_s")
        .and_then(Value::as_f64)
        .unwrap_or(SLICE_S);
    let late = command
        .get("late")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let id = text(command, "id")?;
    let more =
        workspace::remove_workspace(&place(command)?, id, &begins, was.as_ref(), slice_s, late)?;
    Ok(json!({"more": more}))
}

/// The job of a command, where the engine does it.
fn job(command: &Value) -> Outcome<Map<String, Value>> {
    let lacking = || Refusal::new("the command lacks job", "report this as a defect");
    let job = command
        .get("job")
        .and_then(Value::as_object)
        .ok_or_else(lacking)?
        .clone();
    let format = job
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let install =
        "install leadline on that host, or let the command copy it there: it needs Python's half";
    if !AnyJob::FORMATS.contains(&format) {
        let kind = format
            .strip_prefix("leadline.")
            .and_then(|rest| rest.split('/').next());
        let words = format!("the agent cannot run {} workloads", kind.unwrap_or("such"));
        return Err(Refusal::new(words, install));
    }
    if is(&job, "generator", FIO) {
        return Err(Refusal::new("the agent cannot run fio", install));
    }
    if is(&job, "transfer", COPY) {
        return Err(Refusal::new(
            "the agent cannot copy between servers",
            install,
        ));
    }
    Ok(job)
}

fn is(job: &Map<String, Value>, key: &str, value: &str) -> bool {
    job.get(key).and_then(Value::as_str) == Some(value)
}

/// Long work of the engine, which ends at a signal. SIGINT is told, any other ends this process.
fn engine<T>(work: impl FnOnce(Interrupts) -> Result<T, EngineError>) -> Outcome<T> {
    let (result, signal) = {
        let watch = SignalWatch::start();
        let result = work(&|| watch.noted());
        (result, watch.noted())
    };
    if let (Err(EngineError::Interrupted), Some(signal)) = (&result, signal)
        && signal != libc::SIGINT
    {
        pass_on(signal);
    }
    Ok(result?)
}

fn lay_out(job: Map<String, Value>) -> Outcome<Value> {
    let job = AnyJob::parse(&Value::Object(job).to_string())?;
    let laid_out = engine(|signal| job.lay_out(signal))?;
    serde_json::to_value(laid_out).map_err(|error| Refusal::new(error.to_string(), ""))
}

/// Reads every block of a job's files past the caches, one at a time whatever the job does.
fn read_back(mut job: Map<String, Value>) -> Outcome<Value> {
    job.insert("iodepth".to_owned(), json!(1));
    job.insert("direct".to_owned(), json!(false));
    job.insert("sqthread_poll".to_owned(), json!(false));
    if job.get("location").is_some_and(Value::is_null) {
        job.remove("location");
    }
    let job = Job::parse(&Value::Object(job).to_string())?;
    let checked = engine(|signal| check::check(&job, signal))?;
    serde_json::to_value(checked).map_err(|error| Refusal::new(error.to_string(), ""))
}

/// Drops what this host's caches hold of a job's files, where the trial is to begin without it.
fn forget(job: Map<String, Value>) -> Outcome<()> {
    let format = job.get("format").and_then(Value::as_str);
    let kept = [Some(DATA_FORMAT), Some(TRANSFER_FORMAT)].contains(&format);
    let flag = |key: &str| job.get(key).and_then(Value::as_bool).unwrap_or(false);
    let text = |key: &str| job.get(key).and_then(Value::as_str);
    let storage = text("engine").and_then(schemes::storage_of);
    let stores = storage.is_some_and(|storage| storage != Place::None);
    if !kept || flag("direct") || !stores || text("location").is_some() {
        return Ok(());
    }
    match (text("directory"), text("prefix")) {
        (Some(directory), Some(prefix)) => workspace::forget_cached(directory.as_ref(), prefix),
        _ => Err(Refusal::new(
            "the job lacks directory or prefix",
            "report this as a defect",
        )),
    }
}

/// Runs a job. One that `meets` others says that it is open, is told then when to start, and its files were forgotten
/// beforehand.
fn trial(command: &Value) -> Outcome<Value> {
    let mut job = job(command)?;
    let record = text(command, "record")?.to_owned();
    let meets = command
        .get("meets")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    // Where the log of acknowledgements becomes a table is the command's affair: here it stays a file.
    job.remove("result");
    if let Some(above) = job
        .get("acks")
        .and_then(Value::as_str)
        .and_then(|log| Path::new(log).parent())
    {
        std::fs::create_dir_all(above).map_err(|error| Refusal::system(&error, above))?;
    }
    if !meets {
        forget(job.clone())?;
        return run(job, &record, None);
    }
    let meeting = Arc::new(Meeting::default());
    let met = Arc::clone(&meeting);
    let told = std::thread::spawn(move || meet(&met));
    let summary = run(job, &record, Some(&meeting));
    meeting.end();
    let _ = told.join(); // what it was to be told is no command
    summary
}

fn meet(meeting: &Meeting) {
    if meeting.wait_until_open() {
        say(&json!({"event": "open"}));
        let told = next_line().and_then(|line| serde_json::from_str::<Value>(&line).ok());
        meeting.tell(told.and_then(|told| told.get("start_ns").and_then(Value::as_u64)));
    }
}

fn run(job: Map<String, Value>, record: &str, meeting: Option<&Meeting>) -> Outcome<Value> {
    let job = AnyJob::parse(&Value::Object(job).to_string())?;
    let before = own_io();
    let mut summary = engine(|signal| job.run(record.as_ref(), meeting, signal))?;
    if let (Some(before), Some(after)) = (before, own_io()) {
        summary["process_read_bytes"] = json!(after.0.saturating_sub(before.0));
        summary["process_written_bytes"] = json!(after.1.saturating_sub(before.1));
    }
    Ok(summary)
}

/// What this process fetched from and sent to storage so far, bytes (proc(5), /proc/PID/io).
fn own_io() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.strip_prefix(':')?.trim().parse().ok()
    };
    Some((of("read_bytes")?, of("write_bytes")?))
}
