//! Processes that the agent starts for the command, with pipes: what they print is kept until it is asked for.
//!
//! A child lives as long as the agent. A thread for each pipe keeps it empty, so that no child waits for the network,
//! up to a bound; one waits for the child's end.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::errors::{Outcome, Refusal};

const CHILDREN_MAX: usize = 64;
/// Of a child's output, before the child has to wait for its reader.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// Of what it says of errors, the last.
const ERRORS_BYTES_MAX: usize = 64 << 10;
/// In one answer.
pub const PART_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES: usize = 64 << 10;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct State {
    output: VecDeque<u8>,
    /// Nothing comes any more.
    silent: bool,
    errors: VecDeque<u8>,
    /// Its exit code, or minus the signal that ended it.
    code: Option<i32>,
    released: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// The state once `waits` does not hold of it, or after `longest`.
    fn wait(&self, longest: Duration, waits: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let until = Instant::now() + longest;
        let mut state = lock(&self.state);
        while waits(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state
    }
}

/// One of them.
pub struct Process {
    pid: Pid,
    input: Mutex<Option<ChildStdin>>,
    shared: Arc<Shared>,
}

impl Process {
    /// One that has just started; its end is waited for from here on.
    fn follow(mut child: Child) -> Outcome<Self> {
        let gone = || Refusal::new("a process has no number", "report this as a defect");
        let pid = Pid::from_raw(child.id() as i32).ok_or_else(gone)?;
        let shared = Arc::new(Shared::default());
        let input = Mutex::new(child.stdin.take());
        if let Some(output) = child.stdout.take() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || keep_output(output, &shared));
        }
        if let Some(errors) = child.stderr.take() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || keep_errors(errors, &shared));
        }
        let waiting = Arc::clone(&shared);
        std::thread::spawn(move || wait_for(child, pid, &waiting));
        Ok(Self { pid, input, shared })
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    pub fn write(&self, bytes: &[u8]) -> Outcome<()> {
        let mut input = lock(&self.input);
        let closed =
            || Refusal::system(&std::io::Error::from_raw_os_error(libc::EPIPE), "".as_ref());
        let pipe = input.as_mut().ok_or_else(closed)?;
        pipe.write_all(bytes)
            .and_then(|()| pipe.flush())
            .map_err(|error| Refusal::system(&error, "".as_ref()))
    }

    /// Closes its standard input, at which a worker ends.
    pub fn close(&self) {
        drop(lock(&self.input).take());
    }

    /// What it printed since the last call, waiting for the first of it: nothing at the deadline, `None` at its end.
    pub fn read(&self, longest: Duration) -> Option<Vec<u8>> {
        let mut state = self
            .shared
            .wait(longest, |state| state.output.is_empty() && !state.silent);
        if state.output.is_empty() {
            return if state.silent { None } else { Some(Vec::new()) };
        }
        let count = state.output.len().min(PART_BYTES_MAX);
        let bytes = state.output.drain(..count).collect();
        drop(state);
        self.shared.changed.notify_all();
        Some(bytes)
    }

    /// The last that it said of errors.
    pub fn errors(&self) -> Vec<u8> {
        lock(&self.shared.state).errors.iter().copied().collect()
    }

    /// Sends a signal, where it has not ended: its number is then nobody else's.
    pub fn signal(&self, number: i32) -> Outcome<()> {
        let known = Signal::from_named_raw(number);
        let Some(signal) = known else {
            return Err(Refusal::new(format!("{number} is no signal"), ""));
        };
        let state = lock(&self.shared.state);
        if state.code.is_none() {
            let sent = rustix::process::kill_process(self.pid, signal);
            sent.map_err(|error| Refusal::system(&error.into(), "".as_ref()))?;
        }
        Ok(())
    }

    /// Its exit code, or minus the signal that ended it; `None` where it has not ended.
    pub fn wait(&self, longest: Duration) -> Option<i32> {
        self.shared.wait(longest, |state| state.code.is_none()).code
    }

    fn release(&self) {
        self.close();
        let _ = self.signal(libc::SIGKILL);
        self.shared.change(|state| state.released = true);
    }
}

fn keep_output(mut output: impl Read, shared: &Shared) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let full = |state: &State| state.output.len() + count > KEPT_BYTES_MAX && !state.released;
        let mut state = lock(&shared.state);
        while full(&state) {
            state = shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.released {
            break;
        }
        state.output.extend(&chunk[..count]);
        drop(state);
        shared.changed.notify_all();
    }
    shared.change(|state| state.silent = true);
}

fn keep_errors(mut errors: impl Read, shared: &Shared) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = errors.read(&mut chunk) {
        shared.change(|state| {
            state.errors.extend(&chunk[..count]);
            let over = state.errors.len().saturating_sub(ERRORS_BYTES_MAX);
            state.errors.drain(..over);
        });
    }
}

/// Reaps it under the lock: until then its number is its own, and a signal reaches no other.
fn wait_for(mut child: Child, pid: Pid, shared: &Shared) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = rustix::process::waitid(WaitId::Pid(pid), ended) {
        if error != rustix::io::Errno::INTR {
            break;
        }
    }
    shared.change(|state| {
        let status = child.wait();
        let code = |status: std::process::ExitStatus| {
            status
                .code()
                .or(status.signal().map(|signal| -signal))
                .unwrap_or(-1)
        };
        state.code = Some(status.map_or(-1, code));
    });
}

type Start = (Command, Sender<std::io::Result<Child>>);

/// All of them, by number.
pub struct Children {
    known: Mutex<(u64, HashMap<u64, Arc<Process>>)>,
    starts: Mutex<Sender<Start>>,
}

/// The kernel ends a child with the thread that started it: this one lasts.
fn start_all(starts: &Receiver<Start>) {
    while let Ok((mut command, answer)) = starts.recv() {
        let _ = answer.send(command.spawn());
    }
}

impl Children {
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || start_all(&receiver));
        Self {
            known: Mutex::default(),
            starts: Mutex::new(sender),
        }
    }

    /// Starts one; its number and itself.
    pub fn start(&self, mut command: Command) -> Outcome<(u64, Arc<Process>)> {
        let mut known = lock(&self.known);
        if known.1.len() >= CHILDREN_MAX {
            return Err(Refusal::new(
                format!("{CHILDREN_MAX} processes are kept already"),
                "release some of them",
            ));
        }
        let program = command.get_program().to_owned();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let (sender, receiver) = channel();
        let gone = || {
            Refusal::new(
                "the thread that starts processes has ended",
                "report this as a defect",
            )
        };
        lock(&self.starts)
            .send((command, sender))
            .map_err(|_| gone())?;
        let child = receiver
            .recv()
            .map_err(|_| gone())?
            .map_err(|error| Refusal::system(&error, program.as_ref()))?;
        let process = Arc::new(Process::follow(child)?);
        known.0 += 1;
        let id = known.0;
        known.1.insert(id, Arc::clone(&process));
        Ok((id, process))
    }

    pub fn get(&self, id: u64) -> Outcome<Arc<Process>> {
        let unknown = || Refusal::new(format!("there is no process {id}"), "");
        lock(&self.known).1.get(&id).cloned().ok_or_else(unknown)
    }

    /// Ends one, where it has not ended, and forgets it.
    pub fn release(&self, id: u64) {
        let process = lock(&self.known).1.remove(&id);
        if let Some(process) = process {
            process.release();
        }
    }

    /// Ends all, and waits a moment for those that the kernel does not hold.
    pub fn end(&self, longest: Duration) {
        let all: Vec<_> = lock(&self.known)
            .1
            .drain()
            .map(|(_, process)| process)
            .collect();
        for process in &all {
            process.release();
        }
        let until = Instant::now() + longest;
        for process in &all {
            process.wait(until.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_child_is_written_to_read_from_and_waited_for() {
        let children = Children::new();
        let (id, child) = children
            .start(shell("read a; echo got $a; echo why >&2; exit 3"))
            .unwrap();
        assert_eq!(child.read(Duration::ZERO), Some(Vec::new()));
        assert_eq!(child.wait(Duration::ZERO), None);
        child.write(b"this\n").unwrap();
        assert_eq!(child.read(SOON).as_deref(), Some(&b"got this\n"[..]));
        assert_eq!(child.read(SOON), None);
        assert_eq!(child.wait(SOON), Some(3));
        let until = Instant::now() + SOON;
        while child.errors().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(child.errors(), b"why\n");
        child.signal(libc::SIGKILL).unwrap(); // to nobody
        children.release(id);
        assert!(children.get(id).is_err());
    }

    #[test]
    fn a_signal_ends_it_and_is_told() {
        let children = Children::new();
        let (_, child) = children.start(shell("exec sleep 100")).unwrap();
        assert!(child.signal(12345).is_err());
        child.signal(libc::SIGTERM).unwrap();
        assert_eq!(child.wait(SOON), Some(-libc::SIGTERM));
    }

    #[test]
    fn what_nobody_reads_holds_the_child_up_and_not_the_memory() {
        let children = Children::new();
        let (_, child) = children.start(shell("head -c 20000000 /dev/zero")).unwrap();
        assert_eq!(child.wait(Duration::from_millis(300)), None);
        assert!(lock(&child.shared.state).output.len() <= KEPT_BYTES_MAX);
        let mut total = 0;
        while let Some(bytes) = child.read(SOON) {
            assert!(bytes.len() <= PART_BYTES_MAX);
            total += bytes.len();
        }
        assert_eq!(total, 20_000_000);
    }

    #[test]
    fn all_end_with_the_agent() {
        let children = Children::new();
        let (_, one) = children.start(shell("exec sleep 100")).unwrap();
        let (_, two) = children.start(shell("exec sleep 100")).unwrap();
        children.end(SOON);
        assert_eq!((one.wait(SOON), two.wait(SOON)), (Some(-9), Some(-9)));
    }
}
