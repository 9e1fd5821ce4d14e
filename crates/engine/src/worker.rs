//! What each thread of a trial does: the hot loop. In the measured interval it allocates nothing, takes no
//! lock (but at the end of an interval), and reads the clock once per batch.

mod blocking;
mod queued;
mod settle;
mod think;

use std::sync::atomic::Ordering;

use crate::blocks::source::{PURPOSE_ARRIVALS, Source, sync_of};
use crate::error::{Failure, FailureKind};
use crate::io::{Completion, Engine, Operation, Setup};
use crate::job::Arrival;
use crate::random::Random;
use crate::sys::clock::{Clock, set_timer_slack_minimal};
use crate::sys::file::OpenHow;
use crate::sys::process::{own_file_table, thread_cpu, thread_id};
use crate::trial::context::{Context, Hand, ThreadEnd, lock};
use crate::trial::interval::IntervalSet;
use crate::trial::pacer::Pacer;
use crate::trial::runner::guarded;
use think::Think;

/// A wait shorter than this is spent looking at the clock: a sleep would oversleep it.
const SPIN_NS: u64 = 50_000;
/// No wait is longer, so that a stop is seen.
const WAIT_MAX_NS: u64 = 100_000_000;
/// How soon a hand-over is tried again after the collector was late.
const RETRY_NS: u64 = 1_000_000;
/// Writes are handed over before filling more than this many bytes: a batch must not wait for its data.
const FILL_MAX_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy)]
struct Slot {
    operation: Operation,
    /// Of the whole transfer; `operation` shrinks when a transfer was short.
    length: u32,
    start_ns: u64,
    submitted_ns: u64,
    intended_ns: u64,
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
    hand: &'a Hand,
    engine: E,
    thread: u32,
    /// Counts from the trial's start.
    clock: Clock,
    source: Source,
    pacer: Option<Pacer>,
    think: Option<Think>,
    phase: Phase,
    set: Box<IntervalSet>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queued: Vec<u32>,
    /// An operation that waits for one in flight on the same block, with its intended start.
    held: Option<(Operation, u64)>,
    completions: Vec<Completion>,
    in_flight: [u64; 3],
    /// When `in_flight` was last accounted for.
    accounted_ns: u64,
    /// The next moment at which the loop has something else to do.
    wake_ns: u64,
    end_ns: u64,
    /// When a slot became free after all were taken.
    freed_ns: u64,
    last_done_ns: u64,
    bytes: u64,
    operations: u64,
    batch_max: usize,
}

/// The whole life of a thread: prepare, wait for the start, run (`body` is one of the two loops), hand over
/// the rest.
pub fn run<'a, E: Engine>(context: &'a Context, thread: u32, body: fn(&mut Worker<'a, E>)) {
    let hand = &context.hands[thread as usize];
    hand.thread_id.store(thread_id(), Ordering::Relaxed);
    let end = guarded(&context.alarm, || run_guarded(context, hand, thread, body));
    lock(&hand.tray).end = Some(end.unwrap_or_default());
    context.alarm.ring();
}

fn run_guarded<'a, E: Engine>(
    context: &'a Context,
    hand: &'a Hand,
    thread: u32,
    body: fn(&mut Worker<'a, E>),
) -> ThreadEnd {
    set_timer_slack_minimal();
    own_file_table();
    let prepared = Worker::<E>::prepare(context, hand, thread);
    {
        let mut tray = lock(&hand.tray);
        tray.ready = true;
        if let Ok(worker) = &prepared {
            tray.notes = worker.engine.notes();
        }
    }
    context.alarm.ring();
    match prepared {
        Ok(mut worker) => worker.run(body),
        Err(failure) => {
            context.alarm.fail(failure);
            ThreadEnd::default()
        }
    }
}

impl<'a, E: Engine> Worker<'a, E> {
    fn prepare(context: &'a Context, hand: &'a Hand, thread: u32) -> Result<Self, Failure> {
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
            sqthread_poll: job.sqthread_poll,
            location: job.location.clone(),
        })?;
        lock(&hand.tray).empty = Some(Box::new(IntervalSet::new(job, E::BLOCKING)));
        let idle = Slot {
            operation: sync_of(0),
            length: 0,
            start_ns: 0,
            submitted_ns: 0,
            intended_ns: 0,
        };
        let batch_max = if job.rw.writes() {
            (FILL_MAX_BYTES / job.largest_block()).max(1)
        } else {
            u64::MAX
        };
        Ok(Self {
            context,
            hand,
            engine,
            thread,
            clock: context.clock,
            source: Source::new(job, thread),
            pacer: pacer(context, thread),
            think: Think::of(job),
            phase: Phase::Running,
            set: Box::new(IntervalSet::new(job, E::BLOCKING)),
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            queued: Vec::with_capacity(depth as usize),
            held: None,
            completions: Vec::with_capacity(depth as usize),
            in_flight: [0; 3],
            accounted_ns: 0,
            wake_ns: 0,
            end_ns: match job.runtime_ns {
                0 => u64::MAX,
                runtime => job.ramp_time_ns + runtime,
            },
            freed_ns: 0,
            last_done_ns: 0,
            bytes: 0,
            operations: 0,
            batch_max: usize::try_from(batch_max).unwrap_or(usize::MAX),
        })
    }

    fn run(&mut self, body: fn(&mut Self)) -> ThreadEnd {
        self.clock = self
            .context
            .clock
            .from_origin(self.context.wait_for_start());
        let cpu = thread_cpu();
        body(self);
        let cpu = thread_cpu().since(cpu);
        if let Some(file) = self.engine.vanished() {
            let path = self.context.job.file_path(self.thread, file as u32);
            let what = "the file was deleted while the trial used it";
            self.context.alarm.fail(Failure::found(
                FailureKind::Vanished,
                "close",
                &path,
                0,
                what,
            ));
        }
        self.hand_over_rest();
        let abandoned = self.in_flight.iter().sum::<u64>() as u32;
        ThreadEnd {
            done_ns: self.last_done_ns,
            cpu,
            abandoned,
        }
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Whether the next operation has an intended start: syncs follow writes, not the clock.
    #[inline(always)]
    fn awaits_arrival(&self) -> bool {
        self.pacer.is_some()
            && self.phase == Phase::Running
            && self.source.has_more()
            && !self.source.sync_is_due()
    }

    fn total_in_flight(&self) -> u64 {
        self.in_flight[0] + self.in_flight[1] + self.in_flight[2]
    }

    /// Adds the operations in flight since the last account, per direction.
    #[inline(always)]
    fn account(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.accounted_ns);
        if elapsed == 0 {
            return;
        }
        self.accounted_ns = now;
        for (count, set) in self.in_flight.iter().zip(&mut self.set.directions) {
            if let Some(set) = set {
                set.in_flight_area += count * elapsed;
            }
        }
    }

    /// The next operation of the phase; moves on to the next phase where one is used up.
    #[inline(always)]
    fn next_operation(&mut self) -> Option<Operation> {
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
        if self.phase == Phase::Draining && self.total_in_flight() == 0 {
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
        let index = self.context.schedule.index_at(now);
        // The last operations of a trial belong to its last interval, not to a sliver after it.
        let tail_ns = if self.phase == Phase::Running {
            0
        } else {
            self.context.job.interval_ns / 2
        };
        if index > self.set.index && now >= self.context.schedule.end_ns(self.set.index) + tail_ns {
            self.rotate(now, index);
        }
        let boundary = self.context.schedule.end_ns(self.set.index);
        // Draining looks up often: it may be told to give up.
        let soon = if self.phase == Phase::Running {
            self.end_ns
        } else {
            now + WAIT_MAX_NS
        };
        let boundary = if boundary > now {
            boundary
        } else {
            now + RETRY_NS
        };
        self.wake_ns = boundary.min(soon);
    }

    /// Hands the interval over. When the collector is late it goes on in the same set, but never from the
    /// ramp time into the measured time.
    fn rotate(&mut self, now: u64, index: u32) {
        self.account(now);
        let schedule = &self.context.schedule;
        if schedule.is_measured(self.set.index) != schedule.is_measured(index) {
            self.hand.wait_until_taken();
        }
        let Some(mut empty) = lock(&self.hand.tray).empty.take() else {
            return;
        };
        empty.index = index;
        let full = std::mem::replace(&mut self.set, empty);
        {
            let mut tray = lock(&self.hand.tray);
            tray.full = Some(full);
            tray.passed = index;
        }
        self.context.alarm.ring();
    }

    fn hand_over_rest(&mut self) {
        if self.context.is_abandoned() {
            return;
        }
        let index = self.set.index + 1;
        self.hand.wait_until_taken();
        let Some(empty) = lock(&self.hand.tray).empty.take() else {
            return;
        };
        let full = std::mem::replace(&mut self.set, empty);
        let mut tray = lock(&self.hand.tray);
        tray.full = Some(full);
        tray.passed = index;
    }

    #[inline(always)]
    fn publish(&self) {
        self.hand.bytes.store(self.bytes, Ordering::Relaxed);
        self.hand
            .operations
            .store(self.operations, Ordering::Relaxed);
    }

    fn wait_until(&self, moment_ns: u64) {
        let now = self.now();
        let left = moment_ns.saturating_sub(now).min(WAIT_MAX_NS);
        if left > SPIN_NS {
            std::thread::sleep(std::time::Duration::from_nanos(left));
        } else {
            while self.now() < moment_ns {
                std::hint::spin_loop();
            }
        }
    }

    #[cold]
    fn fail_engine(&self, errno: i32) {
        let path = self.context.job.file_path(self.thread, 0);
        self.context
            .alarm
            .fail(Failure::system(errno, "submission", &path, 0));
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
