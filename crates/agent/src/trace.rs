//! Runs a program under the LD_PRELOAD tracer: its processes write their logs into a directory, as under `leadline trace`.
//!
//! The library is in this program. It is written where programs may be loaded from, and removed after the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use leadline_engine::sys::clock::{Clock, unix_ns};
use leadline_engine::sys::process::SignalWatch;
use rustix::fs::StatVfsMountFlags;
use rustix::process::{Pid, Signal};
use serde_json::json;
use tempfile::TempDir;

use crate::errors::{Outcome, Refusal};

include!(concat!(env!("OUT_DIR"), "/library.rs"));

const NAME: &str = "libleadline_tracer.so";
const LOG_SUFFIX: &str = "lltrace";
/// Of what one process may record.
const MEMORY_BYTES: u64 = 64 << 20;
const LOOK: Duration = Duration::from_millis(20);
const NOT_FOUND: u8 = 127;
const FAILED: u8 = 125;

/// What is asked: where logs go, how many bytes of single calls a process may record, and the command.
struct Asked {
    out: PathBuf,
    segments_bytes: u64,
    command: Vec<OsString>,
}

fn asked(arguments: &[OsString]) -> Option<Asked> {
    let mut out = None;
    let mut segments_bytes = 0;
    let mut left = arguments.iter();
    while let Some(word) = left.next() {
        match word.to_str() {
            Some("--out") => out = Some(PathBuf::from(left.next()?)),
            Some("--segments") => segments_bytes = left.next()?.to_str()?.parse().ok()?,
            Some("--") => break,
            _ => return None,
        }
    }
    let command: Vec<OsString> = left.cloned().collect();
    (!command.is_empty()).then_some(())?;
    Some(Asked {
        out: out?,
        segments_bytes,
        command,
    })
}

/// Runs the command; its exit code. `None` where the arguments are none.
pub fn trace(arguments: &[OsString]) -> Option<ExitCode> {
    let asked = asked(arguments)?;
    Some(match run(&asked) {
        Ok(code) => code,
        Err(refusal) => {
            let remedy = if refusal.remedy.is_empty() { "" } else { "; " };
            say(&format!("{}{remedy}{}", refusal.message, refusal.remedy));
            ExitCode::from(if refusal.errno == Some(libc::ENOENT) {
                NOT_FOUND
            } else {
                FAILED
            })
        }
    })
}

fn say(words: &str) {
    let _ = writeln!(io::stderr(), "leadline-agent: {words}");
}

/// Whether this program has the library.
pub fn is_there() -> bool {
    LIBRARY.is_some()
}

fn run(asked: &Asked) -> Outcome<ExitCode> {
    let library = LIBRARY.ok_or_else(|| {
        Refusal::new(
            "this agent was built without the tracer",
            "trace by `leadline trace --via bpf` or strace on that host",
        )
    })?;
    let logs = asked.out.join("copy-0");
    make_private(&logs)?;
    let place = executable_place(&asked.out)?;
    let path = place.path().join(NAME);
    std::fs::write(&path, library).map_err(|error| Refusal::system(&error, &path))?;
    let started_unix_ns = unix_ns();
    let began = Instant::now();
    let (code, signal) = wait(start(asked, &logs, &path)?)?;
    let wall_s = began.elapsed().as_secs_f64();
    let found = count_logs(&logs);
    let command: Vec<_> = asked
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let facts = json!({
        "format": "leadline.tracelogs/1", "command": command, "started_unix_ns": started_unix_ns,
        "wall_s": wall_s, "code": code, "signal": signal, "logs": found,
    });
    let noted = asked.out.join("trace.json");
    std::fs::write(&noted, format!("{facts}\n"))
        .map_err(|error| Refusal::system(&error, &noted))?;
    if found == 0 {
        say(
            "no process wrote a log: nothing is known, which is not the same as no I/O; a program that is linked \
             statically, uses musl, or gains rights cannot be traced so",
        );
    }
    let number = code.unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(number).unwrap_or(FAILED)))
}

/// A new directory for this user alone.
fn make_private(logs: &Path) -> Outcome<()> {
    let refused = |error: io::Error| Refusal::system(&error, logs);
    if logs.exists() {
        let words = format!("{} is there already", logs.display());
        return Err(Refusal::new(words, "name another directory by --out"));
    }
    std::fs::create_dir_all(logs).map_err(refused)?;
    std::fs::set_permissions(logs, std::fs::Permissions::from_mode(0o700)).map_err(refused)
}

/// A new directory from which a library can be loaded: beside the logs, or where temporary files go.
fn executable_place(out: &Path) -> Outcome<TempDir> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let others = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let mut places = vec![out.to_owned()];
    places.extend(others);
    places.extend(home);
    for place in places.iter().filter_map(|place| place.canonicalize().ok()) {
        let flags = rustix::fs::statvfs(&place).map(|found| found.f_flag);
        if !flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOEXEC))
            && let Ok(made) = tempfile::Builder::new()
                .prefix("leadline-tracer-")
                .tempdir_in(&place)
        {
            return Ok(made);
        }
    }
    Err(Refusal::new(
        "the tracer's library can be loaded from none of the directories: they are mounted noexec or cannot be written",
        "name a directory on another file system by --out",
    ))
}

fn start(asked: &Asked, logs: &Path, library: &Path) -> Outcome<Child> {
    let (program, words) = asked.command.split_first().ok_or_else(Refusal::default)?;
    let logs = logs
        .canonicalize()
        .map_err(|error| Refusal::system(&error, logs))?;
    let mut preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if !preload.is_empty() {
        preload.push(":"); // what the program preloads already stays first
    }
    preload.push(library);
    let mut command = Command::new(program);
    command
        .args(words)
        .env("LD_PRELOAD", preload)
        .env("LEADLINE_TRACE_DIR", &logs)
        .env("LEADLINE_TRACE_MEMORY", MEMORY_BYTES.to_string())
        .env("LEADLINE_TRACE_SEGMENTS", asked.segments_bytes.to_string())
        .env(
            "LEADLINE_TRACE_TICKS",
            Clock::new().ticks_per_second().to_string(),
        );
    command
        .spawn()
        .map_err(|error| Refusal::system(&error, program.as_ref()))
}

/// Waits, and passes on a signal that asks this process to end; exit code and signal of the command.
fn wait(mut child: Child) -> Outcome<(Option<i32>, Option<i32>)> {
    let watch = SignalWatch::start();
    let mut passed = None;
    loop {
        let ended = child
            .try_wait()
            .map_err(|error| Refusal::system(&error, "".as_ref()))?;
        if let Some(status) = ended {
            return Ok((status.code(), status.signal()));
        }
        let noted = watch.noted();
        if noted != passed
            && let Some(signal) = noted.and_then(Signal::from_named_raw)
            && let Some(pid) = Pid::from_raw(child.id() as i32)
        {
            let _ = rustix::process::kill_process(pid, signal);
            passed = noted;
        }
        std::thread::sleep(LOOK);
    }
}

fn count_logs(logs: &Path) -> usize {
    let entries = std::fs::read_dir(logs).into_iter().flatten().flatten();
    let is_log = |name: &Path| name.extension() == Some(OsStr::new(LOG_SUFFIX));
    entries.filter(|entry| is_log(&entry.path())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_stands_behind_two_dashes_and_logs_need_a_place() {
        let found = asked(&words("--out d --segments 4096 -- cat --out x")).unwrap();
        assert_eq!(
            (found.out, found.segments_bytes),
            (PathBuf::from("d"), 4096)
        );
        assert_eq!(found.command, words("cat --out x"));
        for wrong in [
            "-- cat",
            "--out d",
            "--out d --",
            "cat",
            "--out",
            "--out d --segments x -- cat",
        ] {
            assert!(asked(&words(wrong)).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_command_is_waited_for_and_how_it_ended_is_told() {
        let shell = |script: &str| {
            Command::new("/bin/sh")
                .args(["-c", script])
                .spawn()
                .unwrap()
        };
        assert_eq!(wait(shell("exit 7")), Ok((Some(7), None)));
        assert_eq!(
            wait(shell("kill -TERM $$")),
            Ok((None, Some(libc::SIGTERM)))
        );
    }

    #[test]
    fn logs_are_for_this_user_alone_and_never_mixed_with_others() {
        let top = tempfile::tempdir().unwrap();
        let logs = top.path().join("out/copy-0");
        make_private(&logs).unwrap();
        assert_eq!(logs.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(
            make_private(&logs)
                .unwrap_err()
                .message
                .contains("is there already")
        );
        std::fs::write(logs.join("1-2.lltrace"), b"").unwrap();
        std::fs::write(logs.join("other"), b"").unwrap();
        assert_eq!(count_logs(&logs), 1);
        let place = executable_place(top.path()).unwrap();
        assert!(place.path().is_dir());
    }
}
