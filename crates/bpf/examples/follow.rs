//! Runs a command under the tracer in the kernel and prints what was counted: to try the crate by itself.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

use leadline_bpf::{Options, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut session = Session::start(&Options::new(None, 64 << 20))?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    // SAFETY: raising a signal is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            if libc::raise(libc::SIGSTOP) == 0 {
                Ok(())
            } else {
                Err(Error::last_os_error())
            }
        })
    };
    let spawned = std::thread::spawn(move || command.spawn());
    // The child stops itself before its exec; only then does it have a number to follow.
    let mine = std::process::id();
    let pid = loop {
        let children = std::fs::read_to_string(format!("/proc/{mine}/task/{mine}/children"))?;
        let others = std::fs::read_dir("/proc/self/task")?
            .filter_map(Result::ok)
            .find_map(|task| {
                std::fs::read_to_string(task.path().join("children"))
                    .ok()
                    .filter(|text| !text.trim().is_empty())
            });
        let found = others.unwrap_or(children);
        if let Some(pid) = found
            .split_whitespace()
            .next()
            .and_then(|word| word.parse::<u32>().ok())
        {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
            if stat.contains(") T ") {
                break pid;
            }
        }
    };
    session.follow(pid, 0)?;
    // SAFETY: the process is our child, which waits for this.
    unsafe { libc::kill(pid as i32, libc::SIGCONT) };
    let mut child = spawned.join().expect("the spawning thread ends")?;
    child.wait()?;
    let trace = session.finish(0)?;
    println!("{:#?}", trace.images);
    for file in &trace.files {
        println!(
            "{} {} {} {:?}",
            file.process, file.file, file.path, file.counters
        );
    }
    println!("lost {:?} rings {}", trace.lost, trace.rings);
    Ok(())
}
