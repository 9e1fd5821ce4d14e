//! Runs one trial, whatever it does: threads, deadline, signals, record, summary. A thread that the kernel does not
//! give back is named and left behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Value, json};

use super::meeting::Meeting;
use super::watch::{Alarm, Cause, Watch};
use crate::Interrupts;
use crate::error::{EngineError, Failure, FailureKind};
use crate::sys::clock::{Clock, unix_ns};
use crate::sys::process::{CpuTime, die_with_parent, offer_line, thread_id};

/// What a trial keeps to: whoever asked for it lives, it starts when the others do that it meets, and it ends in time.
#[derive(Debug)]
pub struct Terms<'a> {
    deadline: Instant,
    meeting: Option<&'a Meeting>,
}

impl<'a> Terms<'a> {
    /// Binds this process's life to its parent's, where the job names one; time runs from here.
    pub fn accept(
        parent_pid: Option<i32>,
        deadline_ns: u64,
        meeting: Option<&'a Meeting>,
    ) -> Result<Self, EngineError> {
        follow_parent(parent_pid)?;
        let deadline = Instant::now() + Duration::from_nanos(deadline_ns);
        Ok(Self { deadline, meeting })
    }
}

/// What the threads of a trial share.
pub trait Crew: Send + Sync + 'static {
    /// What threads get to end the calls they are in after the deadline.
    const DRAIN_AFTER_DEADLINE: Duration;
    /// What threads are called, with a dash and their number.
    const THREADS_ARE_CALLED: &'static str = "load";

    fn job(&self) -> &impl Serialize;
    fn clock(&self) -> &Clock;
    fn alarm(&self) -> &Alarm;
    fn threads(&self) -> usize;
    /// The number of threads in the words of an error, which names what was asked for.
    fn threads_in_words(&self) -> String;
    /// The whole life of a thread.
    fn work(&self, thread: usize);
    /// Lets go the threads that wait to begin: not all could be started.
    fn dismiss(&self);
    /// The runner's side.
    fn trial(&self, writer: Writer) -> impl Trial;
}

/// What a kind of trial makes of its threads' work, in the thread of the runner.
pub trait Trial {
    /// How a thread ended, or ended what is on.
    type End;

    /// Begins, and waits for the end of everything.
    fn work(&mut self, runner: &mut Runner) -> Result<(), RecordError>;
    /// How each thread ended what is on; `None` where it still works.
    fn ends(&self) -> Vec<Option<Self::End>>;
    /// Takes what threads handed over, and writes the intervals that are over.
    fn collect(&mut self) -> Result<(), RecordError>;
    fn tell(&self, progress: &mut Progress);
    /// Tells threads to wait for nothing any more; returns what they get to notice.
    fn abandon(&self) -> Duration {
        Duration::ZERO
    }
    /// Takes what is left when nobody is waited for any more.
    fn close(&mut self, runner: &Runner) -> Result<(), RecordError>;
    /// The record, and what the summary says beyond what every summary says.
    fn finish(
        self,
        ends: &[Option<Self::End>],
        ending: &Ending,
    ) -> Result<(Writer, Value), RecordError>;
}

/// Watches a trial.
pub struct Runner<'a> {
    pub watch: Watch<'a>,
    /// When threads that were told to wait for nothing are given up.
    given_up: Option<Instant>,
    progress: Progress,
    meeting: Option<&'a Meeting>,
    started_unix_ns: u64,
}

/// Runs the trial of `crew`, writing its record to `record_path` as it goes; returns the summary.
///
/// Errors: a record that cannot be written, threads that cannot be started.
pub fn run(
    crew: impl Crew,
    terms: Terms<'_>,
    record_path: &Path,
    signal: Interrupts,
) -> Result<Value, EngineError> {
    let crew = Arc::new(crew);
    let writer = create_record(record_path, crew.clock(), crew.job())?;
    let trial = crew.trial(writer);
    let ids = spawn(&crew)?;
    let watch = Watch::new(crew.alarm(), signal, terms.deadline, patience(&*crew));
    Runner::new(watch, terms.meeting)
        .conduct(&*crew, &ids, trial)
        .map_err(|error| record_error(error, record_path))
}

fn patience<C: Crew>(_crew: &C) -> Duration {
    C::DRAIN_AFTER_DEADLINE
}

/// Threads as the kernel knows them, once they run.
type ThreadIds = Arc<[AtomicI32]>;

fn spawn<C: Crew>(crew: &Arc<C>) -> Result<ThreadIds, EngineError> {
    let ids: ThreadIds = (0..crew.threads()).map(|_| AtomicI32::new(0)).collect();
    for thread in 0..crew.threads() {
        let (own, ids) = (Arc::clone(crew), Arc::clone(&ids));
        // The handle is dropped: a thread stuck in the kernel must not be joined.
        let spawned = std::thread::Builder::new()
            .name(format!("{}-{thread}", C::THREADS_ARE_CALLED))
            .spawn(move || {
                ids[thread].store(thread_id(), Ordering::Relaxed);
                own.work(thread);
            });
        if let Err(error) = spawned {
            crew.alarm().stop();
            crew.dismiss();
            let words = crew.threads_in_words();
            return Err(EngineError::Other(format!(
                "cannot start thread {thread} of {words}: {error}"
            )));
        }
    }
    Ok(ids)
}

impl<'a> Runner<'a> {
    fn new(watch: Watch<'a>, meeting: Option<&'a Meeting>) -> Self {
        Self {
            watch,
            given_up: None,
            progress: Progress::default(),
            meeting,
            started_unix_ns: unix_ns(),
        }
    }

    fn conduct(
        mut self,
        crew: &impl Crew,
        ids: &ThreadIds,
        mut trial: impl Trial,
    ) -> Result<Value, RecordError> {
        trial.work(&mut self)?;
        trial.close(&self)?;
        let ends = trial.ends();
        let missing = ends.iter().enumerate().filter(|(_, end)| end.is_none());
        let ending = Ending {
            state: self.watch.state(),
            error: self.watch.alarm.failure(),
            started_unix_ns: self.started_unix_ns,
            stuck_threads: missing
                .map(|(thread, _)| ids[thread].load(Ordering::Relaxed))
                .collect(),
            clock: crew.clock().name(),
        };
        let (mut writer, own) = trial.finish(&ends, &ending)?;
        let summary = ending.summary(own);
        writer.summary(&summary)?;
        Ok(summary)
    }

    /// The trial starts now, not when its threads were made; where it meets others, with them.
    pub fn starts(&mut self) {
        if let Some(meeting) = self.meeting {
            let watch = &mut self.watch;
            let comes = Instant::now();
            let starts = meeting.come(|| {
                watch.look();
                watch.has_stopped()
            });
            watch.put_off(comes.elapsed());
            if !starts {
                watch.halt(Cause::Signal);
            }
        }
        self.started_unix_ns = unix_ns();
    }

    /// Waits until `holds`, or until threads are given up.
    pub fn wait_until<T: Trial>(&mut self, trial: &T, holds: impl Fn(&T) -> bool) {
        while !holds(trial) && !self.has_given_up() {
            self.wait(trial);
        }
    }

    /// Waits until every thread has ended what is on, or is given up; returns how each did.
    ///
    /// What they hand over is taken meanwhile. A record that cannot be written ends the trial.
    pub fn wait_for_ends<T: Trial>(
        &mut self,
        trial: &mut T,
    ) -> Result<Vec<Option<T::End>>, RecordError> {
        let mut collected = Ok(());
        loop {
            let ends = trial.ends();
            if collected.is_ok() {
                collected = trial.collect();
            }
            if collected.is_err() {
                self.watch.halt(Cause::Failure);
            }
            if ends.iter().all(Option::is_some) || self.has_given_up() {
                return collected.map(|()| ends);
            }
            trial.tell(&mut self.progress);
            self.wait(trial);
        }
    }

    /// Waits for the bell, and looks; tells threads to give up that had their time.
    fn wait(&mut self, trial: &impl Trial) {
        self.watch.wait();
        if self.given_up.is_none() && self.watch.has_drained() {
            self.given_up = Some(Instant::now() + trial.abandon());
        }
    }

    fn has_given_up(&self) -> bool {
        self.given_up.is_some_and(|at| Instant::now() >= at)
    }
}

/// What `work` gives, or `None` where it panicked: then the trial has failed, by our own fault.
pub fn guarded<T>(alarm: &Alarm, work: impl FnOnce() -> T) -> Option<T> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    if outcome.is_err() {
        fail_engine(
            alarm,
            "the engine itself failed (a bug in leadline: please report it)",
        );
    }
    outcome.ok()
}

/// Ends the trial with what went wrong before any call was made.
pub fn fail_engine(alarm: &Alarm, what: &str) {
    alarm.fail(Failure::found(
        FailureKind::Io,
        "run",
        "engine".as_ref(),
        0,
        what,
    ));
}

/// Binds this process's life to its parent's, where the job names one.
pub fn follow_parent(parent_pid: Option<i32>) -> Result<(), EngineError> {
    let Some(parent) = parent_pid else {
        return Ok(());
    };
    die_with_parent(parent).map_err(|_| {
        EngineError::Other(format!(
            "the program that asked for this trial (pid {parent}) is gone"
        ))
    })
}

/// Makes the record of a trial that runs `job`.
pub fn create_record(
    path: &Path,
    clock: &Clock,
    job: &impl Serialize,
) -> Result<Writer, EngineError> {
    let header = json!({
        "format": "leadline.record/1",
        "version": env!("CARGO_PKG_VERSION"),
        "clock": clock.name(),
        "created_unix_ns": unix_ns(),
        "job": serde_json::to_value(job).unwrap_or(Value::Null),
    });
    Writer::create(path, &header).map_err(|error| record_error(error, path))
}

/// What a record that cannot be written means for the trial.
pub fn record_error(error: RecordError, path: &Path) -> EngineError {
    match error {
        RecordError::Io(error) => EngineError::system(&error, "write the trial record", path),
        other => EngineError::Other(other.to_string()),
    }
}

/// How a trial ended.
#[derive(Debug)]
pub struct Ending {
    pub state: &'static str,
    pub error: Option<Failure>,
    pub started_unix_ns: u64,
    pub stuck_threads: Vec<i32>,
    pub clock: &'static str,
}

impl Ending {
    /// The notes about threads that were left behind.
    pub fn notes_on_stuck(&self) -> impl Iterator<Item = String> {
        let words = |thread: &i32| format!("thread {thread} did not come back from the kernel");
        self.stuck_threads.iter().map(words)
    }

    /// The whole summary: `own` is what is said of this kind of trial alone.
    pub fn summary(self, mut own: Value) -> Value {
        let common = json!({
            "state": self.state,
            "error": self.error,
            "started_unix_ns": self.started_unix_ns,
            "stuck_threads": self.stuck_threads,
            "clock": self.clock,
        });
        if let (Some(own), Value::Object(common)) = (own.as_object_mut(), common) {
            own.extend(common);
        }
        own
    }
}

/// One thread in a summary. Times are ns since the trial's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRow {
    pub bytes: u64,
    pub operations: u64,
    pub done_ns: u64,
    pub cpu: CpuTime,
    /// Of the time `within_ns`, what the thread itself was at work.
    pub busy_ns: u64,
    pub within_ns: u64,
}

/// All threads, as a summary has them.
pub fn threads_json(rows: impl Iterator<Item = ThreadRow>) -> Value {
    let row = |(thread, row): (usize, ThreadRow)| {
        json!({
            "thread": thread,
            "bytes": row.bytes,
            "operations": row.operations,
            "done_ns": row.done_ns,
            "cpu_user_ns": row.cpu.user_ns,
            "cpu_system_ns": row.cpu.system_ns,
            "busy_share": (row.busy_ns as f64 / row.within_ns.max(1) as f64).min(1.0),
        })
    };
    rows.enumerate().map(row).collect()
}

const EVERY_NS: u64 = 250_000_000;

/// Says how far a phase is, not more often than every 250 ms.
#[derive(Debug, Default)]
pub struct Progress {
    next_ns: u64,
}

impl Progress {
    /// `share` is of the whole phase, 0 to 1.
    pub fn report(
        &mut self,
        phase: &str,
        elapsed_ns: u64,
        bytes: u64,
        operations: u64,
        share: f64,
    ) {
        if elapsed_ns < self.next_ns {
            return;
        }
        self.next_ns = elapsed_ns + EVERY_NS;
        let share = share.clamp(0.0, 1.0);
        offer_line(
            &json!({"event": "progress", "phase": phase, "elapsed_ns": elapsed_ns, "bytes": bytes,
                    "operations": operations, "share": share})
            .to_string(),
        );
    }
}
