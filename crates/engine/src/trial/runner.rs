//! Runs one trial, whatever it does: threads, deadline, signals, record, summary. A thread that the kernel does not
//! give back is named and left behind.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::Value;

use super::ending::Ending;
use super::meeting::Meeting;
use super::opening::{create_record, follow_parent, record_error};
use super::progress::Progress;
use super::watch::{Alarm, Cause, Watch};
use crate::Interrupts;
use crate::error::{EngineError, Failure, FailureKind};
use crate::sys::clock::{Clock, unix_ns};

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
    const THREADS_ARE_CALLED: &'static str;

    fn job(&self) -> &impl Serialize;
    fn clock(&self) -> &Clock;
    fn alarm(&self) -> &Alarm;
    fn threads(&self) -> usize;
    /// The number of threads in the words of an error, which names what was asked for.
    fn threads_in_words(&self) -> String;
    /// The whole life of a thread.
    fn work(&self, thread: usize);
    /// Of a thread, as the kernel knows it.
    fn thread_id(&self, thread: usize) -> i32;
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
    spawn(&crew)?;
    let watch = Watch::new(crew.alarm(), signal, terms.deadline, patience(&*crew));
    Runner::new(watch, terms.meeting)
        .conduct(&*crew, trial)
        .map_err(|error| record_error(error, record_path))
}

fn patience<C: Crew>(_crew: &C) -> Duration {
    C::DRAIN_AFTER_DEADLINE
}

fn spawn<C: Crew>(crew: &Arc<C>) -> Result<(), EngineError> {
    for thread in 0..crew.threads() {
        let own = Arc::clone(crew);
        // The handle is dropped: a thread stuck in the kernel must not be joined.
        let spawned = std::thread::Builder::new()
            .name(format!("{}-{thread}", C::THREADS_ARE_CALLED))
            .spawn(move || own.work(thread));
        if let Err(error) = spawned {
            crew.alarm().stop();
            crew.dismiss();
            let words = crew.threads_in_words();
            return Err(EngineError::Other(format!(
                "cannot start thread {thread} of {words}: {error}"
            )));
        }
    }
    Ok(())
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

    fn conduct(mut self, crew: &impl Crew, mut trial: impl Trial) -> Result<Value, RecordError> {
        trial.work(&mut self)?;
        trial.close(&self)?;
        let ends = trial.ends();
        let missing = ends.iter().enumerate().filter(|(_, end)| end.is_none());
        let ending = Ending {
            state: self.watch.state(),
            error: self.watch.alarm.failure(),
            started_unix_ns: self.started_unix_ns,
            stuck_threads: missing.map(|(thread, _)| crew.thread_id(thread)).collect(),
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
