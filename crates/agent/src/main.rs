#![forbid(unsafe_code)]
//! `leadline-agent`: what a leadline command runs on a host that has no leadline.
//!
//! One program without Python. `serve` answers the command's calls on standard streams and starts the others: `worker`
//! runs trials by the engine, `observe`
//! samples the host, `probe` looks at a target that may hang. All that thinks stays in the command.

mod calls;
mod children;
mod doctor;
mod errors;
mod frames;
mod host;
mod observe;
mod private;
mod probe;
mod removal;
mod serve;
mod storage;
mod trace;
mod worker;
mod workspace;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Of a wrong command line.
const USAGE: u8 = 2;
const HELP: &str = "\
leadline-agent measures on a host for a leadline command on another.

  leadline-agent serve [--below DIRECTORY]   answer calls on standard streams; keep files below DIRECTORY
  leadline-agent worker [--parent PID]       run trials: JSON lines on standard streams
  leadline-agent observe [--parent PID]      sample this host: JSON lines on standard streams
  leadline-agent probe [--write] PATH|URL    look at a target, step by step, as JSON lines (--space: statvfs alone)
  leadline-agent trace --out DIRECTORY [--segments BYTES] -- COMMAND
                                             run a program, and keep the logs of its I/O in DIRECTORY
  leadline-agent doctor [--json]             show what this host has for leadline, and what is in the way
  leadline-agent --version
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match (verb.to_str(), rest.as_slice()) {
        (Some("serve"), [option, below]) if option == "--below" => serve::serve(below.as_ref()),
        (Some("serve"), []) => serve::serve(&std::env::temp_dir()),
        (Some("worker"), rest) => match parent_of(rest) {
            Some(parent) => worker::work(parent),
            None => usage(),
        },
        (Some("observe"), rest) => match parent_of(rest) {
            Some(parent) => observe::observe(parent),
            None => usage(),
        },
        (Some("probe"), [option, target]) if option == "--write" => probe::probe(target, true),
        (Some("probe"), [option, target]) if option == "--space" => probe::space(target),
        (Some("probe"), [target]) => probe::probe(target, false),
        (Some("trace"), rest) => trace::trace(rest).unwrap_or_else(usage),
        (Some("doctor"), []) => doctor::doctor(false),
        (Some("doctor"), [option]) if option == "--json" => doctor::doctor(true),
        (Some("--version"), []) => print(&format!("leadline-agent {}\n", host::VERSION)),
        (Some("--help" | "-h"), []) => print(HELP),
        _ => usage(),
    }
}

/// The process that a child lives as long as: the one that `--parent` names, or whoever started it.
fn parent_of(arguments: &[OsString]) -> Option<i32> {
    match arguments {
        [] => Some(rustix::process::getppid().map_or(0, rustix::process::Pid::as_raw_pid)),
        [option, pid] if option == "--parent" => pid.to_str()?.parse().ok(),
        _ => None,
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn usage() -> ExitCode {
    let _ = std::io::stderr().write_all(HELP.as_bytes());
    ExitCode::from(USAGE)
}
