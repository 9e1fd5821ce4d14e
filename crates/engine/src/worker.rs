//! What each thread of a trial does: the hot loop. In the measured interval it allocates nothing, takes no
//! lock (but at the end of an interval), and reads the clock once per batch.

mod meter;
mod queued;
mod settle;

use crate::blocks::source::{PURPOSE_ARRIVALS, Source, sync_of};
use crate::error::{Failure, FailureKind};
use crate::io::{Completion, Engine, Operation, Setup};
use crate::job::{Arrival, Job};
use crate::random::Random;
use crate::sync::lock;
use crate::sys::clock::set_timer_slack_minimal;
use crate::sys::file::OpenHow;
use crate::sys::process::{own_file_table, thread_cpu};
use crate::trial::context::{Context, ThreadEnd};
use crate::trial::pacer::Pacer;
use crate::trial::runner::guarded;
pub use meter::{Meter, Times};
pub use settle::failure_of;

/// No wait is longer, so that a stop is seen.
pub const WAIT_MAX_NS: u64 = 100_000_000;
/// Writes are handed over before filling more than this many bytes: a batch must not wait for its data.
const FILL_MAX_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy)]
struct Slot {
    operation: Operation,
    /// Of the whole transfer; `operation` shrinks when a transfer was short.
    length: u32,
    times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Nothing new; what is in flight ends.
    Draining,
    /// The final syncs, from this file on.
    Syncing(u32),
    Done,
}

/// One thread's trial.
pub struct Worker<'a, E: Engine> {
    context: &'a Context,
    meter: Meter<'a>,
    engine: E,
    thread: u32,
    source: Source,
    pacer: Option<Pacer>,
    think: Option<Think>,
    phase: Phase,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queued: Vec<u32>,
    /// An operation that waits for one in flight on the same block, with its intended start.
    held: Option<(Operation, u64)>,
    completions: Vec<Completion>,
    end_ns: u64,
    /// When a slot became free after all were taken.
    freed_ns: u64,
    batch_max: usize,
}

/// The whole life of a thread (`body` is one of the two loops).
pub fn run<'a, E: Engine>(context: &'a Context, thread: u32, body: fn(&mut Worker<'a, E>)) {
    let prepare = || {
        let worker = Worker::<E>::prepare(context, thread)?;
        let notes = worker.engine.notes();
        Ok((worker, notes))
    };
    live(context, thread, prepare, |worker| worker.run(body));
}

/// The whole life of a thread: prepare, wait for the start, work, hand over the rest, all of which `work` does once
/// all threads are ready.
pub fn live<W>(
    context: &Context,
    thread: u32,
    prepare: impl FnOnce() -> Result<(W, Vec<String>), Failure>,
    work: impl FnOnce(&mut W) -> ThreadEnd,
) {
    let hand = &context.hands[thread as usize];
    let end = guarded(&context.alarm, || {
        set_timer_slack_minimal();
        if !context.job.engine.needs_location() {
            own_file_table();
        }
        let prepared = prepare();
        {
            let mut tray = lock(&hand.tray);
            tray.ready = true;
            if let Ok((_, notes)) = &prepared {
                tray.notes.clone_from(notes);
            }
        }
        context.alarm.ring();
        match prepared {
            Ok((mut worker, _)) => work(&mut worker),
            Err(failure) => {
                context.alarm.fail(failure);
                ThreadEnd::default()
            }
        }
    });
    lock(&hand.tray).end = Some(end.unwrap_or_default());
    context.alarm.ring();
}

impl<'a, E: Engine> Worker<'a, E> {
    fn prepare(context: &'a Context, thread: u32) -> Result<Self, Failure> {
        let job = &context.job;
        let depth = job.iodepth;
        let fresh = job.writes_fresh_files();
        let engine = E::start(&Setup {
            depth,
            block_bytes: job.largest_block() as usize,
            files: (0..job.nrfiles)
                .map(|file| job.file_path(thread, file))
                .collect(),
            file_bytes: job.file_bytes(),
            how: OpenHow {
                write: job.rw.writes(),
                fresh,
                direct: job.direct,
            },
            random: job.rw.is_random(),
            in_turn: false,
            sqthread_poll: job.sqthread_poll,
            location: job.location.clone(),
            descriptor: job.descriptor,
        })?;
        let idle = Slot {
            operation: sync_of(0),
            length: 0,
            times: Times::default(),
        };
        let mut batch_max = u64::from(if job.iodepth_batch == 0 {
            u32::MAX
        } else {
            job.iodepth_batch
        });
        if job.rw.writes() {
            batch_max = batch_max.min((FILL_MAX_BYTES / job.largest_block()).max(1));
        }
        Ok(Self {
            context,
            meter: Meter::new(context, thread, E::BLOCKING),
            engine,
            thread,
            source: Source::new(job, thread),
            pacer: pacer(context, thread),
            think: Think::of(job),
            phase: Phase::Running,
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            queued: Vec::with_capacity(depth as usize),
            held: None,
            completions: Vec::with_capacity(depth as usize),
            end_ns: match job.runtime_ns {
                0 => u64::MAX,
                runtime => job.ramp_time_ns + runtime,
            },
            freed_ns: 0,
            batch_max: usize::try_from(batch_max).unwrap_or(usize::MAX),
        })
    }

    fn run(&mut self, body: fn(&mut Self)) -> ThreadEnd {
        self.meter.wait_for_start();
        let cpu = thread_cpu();
        body(self);
        let cpu = thread_cpu().since(cpu);
        note_vanished(self.context, self.thread, &mut self.engine);
        self.meter.hand_over_rest();
        self.meter.end(cpu)
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.meter.now()
    }

    /// Whether the next operation has an intended start: syncs follow writes, not the clock.
    #[inline(always)]
    fn awaits_arrival(&self) -> bool {
        self.pacer.is_some()
            && self.phase == Phase::Running
            && self.source.has_more()
            && !self.source.sync_is_due()
    }

    /// The next operation of the phase; moves on to the next phase where one is used up.
    #[inline(always)]
    fn next_operation(&mut self) -> Option<Operation> {
        if self.source.begins_anew() {
            self.engine.forget();
        }
        if self.phase == Phase::Running
            && let Some(operation) = self.source.next_operation()
        {
            return Some(operation);
        }
        self.next_closing_operation()
    }

    #[cold]
    fn next_closing_operation(&mut self) -> Option<Operation> {
        let job = &self.context.job;
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
        // A sync covers only writes that have ended.
        if self.phase == Phase::Draining && self.meter.total_in_flight() == 0 {
            let wanted = job.end_fsync && self.context.alarm.failure().is_none();
            self.phase = if wanted {
                Phase::Syncing(0)
            } else {
                Phase::Done
            };
        }
        match self.phase {
            Phase::Syncing(file) if file < job.nrfiles => {
                self.phase = Phase::Syncing(file + 1);
                Some(sync_of(file))
            }
            Phase::Syncing(_) => {
                self.phase = Phase::Done;
                None
            }
            _ => None,
        }
    }

    /// The end of an interval, of the runtime, or of the trial.
    #[cold]
    fn pause(&mut self, now: u64) {
        if self.phase == Phase::Running && (now >= self.end_ns || self.context.alarm.is_stopping())
        {
            self.phase = Phase::Draining;
        }
        if self.context.alarm.failure().is_some() && self.phase != Phase::Done {
            self.phase = Phase::Draining;
        }
        let running = self.phase == Phase::Running;
        self.meter.pass(now, running.then_some(self.end_ns));
    }

    #[cold]
    fn fail_engine(&self, errno: i32) {
        fail_submission(self.context, self.thread, errno);
    }
}

/// The trial ends: an engine does not take operations any more.
#[cold]
pub fn fail_submission(context: &Context, thread: u32, errno: i32) {
    let path = context.job.file_path(thread, 0);
    let failure = Failure::system(errno, "submission", &path, 0);
    context.alarm.fail(failure);
}

/// A file that was deleted while it was open has failed the trial. What was handed over open may have no name.
pub fn note_vanished(context: &Context, thread: u32, engine: &mut impl Engine) {
    if context.job.descriptor.is_some() {
        return;
    }
    if let Some(file) = engine.vanished() {
        let path = context.job.file_path(thread, file as u32);
        let what = "the file was deleted while the trial used it";
        let failure = Failure::found(FailureKind::Vanished, "close", &path, 0, what);
        context.alarm.fail(failure);
    }
}

fn pacer(context: &Context, thread: u32) -> Option<Pacer> {
    let job = &context.job;
    let rate = job.thread_rate()?;
    let phase = match job.arrival {
        Arrival::Constant => f64::from(thread) / f64::from(job.numjobs),
        Arrival::Poisson => 0.0,
    };
    let random = Random::new(job.seed, PURPOSE_ARRIVALS << 32 | u64::from(thread));
    Some(Pacer::new(job.arrival, rate, phase, random))
}

/// Where a thread is between two pauses.
#[derive(Debug, Clone, Copy)]
pub struct Think {
    pause_ns: u64,
    blocks: u32,
    begun: u32,
    /// The end of the pause; set when the last operation before it has ended.
    resume_ns: Option<u64>,
}

impl Think {
    /// `None` for a job that never pauses.
    pub fn of(job: &Job) -> Option<Self> {
        (job.thinktime_ns > 0).then_some(Self {
            pause_ns: job.thinktime_ns,
            blocks: job.thinktime_blocks,
            begun: 0,
            resume_ns: None,
        })
    }

    /// True from the last operation before a pause until its end.
    pub fn is_due(&self) -> bool {
        self.begun >= self.blocks
    }

    /// When the pause that has begun ends.
    pub fn resume_ns(&self) -> Option<u64> {
        self.resume_ns
    }

    /// Whether a pause goes on at `now`; counts the operation that may begin otherwise.
    fn goes_on(&mut self, now: u64, idle: bool) -> bool {
        if self.is_due() {
            if !idle {
                return true;
            }
            let resume = *self.resume_ns.get_or_insert(now + self.pause_ns);
            if now < resume {
                return true;
            }
            (self.begun, self.resume_ns) = (0, None);
        }
        self.begun += 1;
        false
    }
}

impl<E: Engine> Worker<'_, E> {
    /// Whether nothing may begin at `now`. Syncs and the end of a trial do not wait.
    pub(super) fn is_thinking(&mut self, now: u64) -> bool {
        let idle = self.queued.is_empty() && self.meter.total_in_flight() == 0;
        if self.phase != Phase::Running || self.source.sync_is_due() || !self.source.has_more() {
            return false;
        }
        self.think
            .as_mut()
            .is_some_and(|think| think.goes_on(now, idle))
    }

    /// Waits the pause out, or until the trial ends.
    pub(super) fn think_blocking(&mut self) {
        loop {
            let now = self.now();
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.pause(now);
            }
            if !self.is_thinking(now) {
                return;
            }
            let resume = self.think.as_ref().and_then(Think::resume_ns);
            self.meter
                .wait_until(resume.unwrap_or(now).min(self.meter.wake_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_when_the_last_operation_has_ended_and_lasts_its_time() {
        let mut think = Think {
            pause_ns: 100,
            blocks: 2,
            begun: 0,
            resume_ns: None,
        };
        assert!(!think.goes_on(0, true) && !think.goes_on(10, false));
        assert!(think.is_due() && think.goes_on(20, false) && think.resume_ns().is_none());
        assert!(think.goes_on(50, true));
        assert_eq!(think.resume_ns(), Some(150));
        assert!(think.goes_on(149, true) && !think.goes_on(150, true));
        assert!(!think.is_due());
    }
}
