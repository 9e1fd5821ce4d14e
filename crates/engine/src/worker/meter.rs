//! What a thread that does I/O counts, and how that goes to the collector: the interval that is being filled, what is
//! in flight, and the next moment at which the thread must look up.

use std::sync::atomic::Ordering;

use super::WAIT_MAX_NS;
use crate::io::Direction;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::process::CpuTime;
use crate::trial::collector::{IntervalSet, LATE_NS};
use crate::trial::context::{Context, Hand, ThreadEnd};

/// A wait shorter than this is spent looking at the clock: a sleep would oversleep it.
const SPIN_NS: u64 = 50_000;
/// How soon a hand-over is tried again after the collector was late.
const RETRY_NS: u64 = 1_000_000;

/// When an operation began, was handed over, and was meant to begin. ns since the trial's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub start_ns: u64,
    pub submitted_ns: u64,
    /// Only in open loop.
    pub intended_ns: u64,
}

impl Times {
    /// Of one that begins at `start_ns`.
    #[inline(always)]
    pub fn at(start_ns: u64, intended_ns: u64) -> Self {
        Self {
            start_ns,
            submitted_ns: start_ns,
            intended_ns,
        }
    }
}

/// One thread's counters. Times are ns since the trial's start.
pub struct Meter<'a> {
    context: &'a Context,
    hand: &'a Hand,
    /// Counts from the trial's start.
    clock: Clock,
    pub set: Box<IntervalSet>,
    pub in_flight: [u64; 3],
    /// When `in_flight` was last accounted for.
    accounted_ns: u64,
    /// The next moment at which the loop has something else to do.
    pub wake_ns: u64,
    pub last_done_ns: u64,
    pub bytes: u64,
    pub operations: u64,
}

impl<'a> Meter<'a> {
    /// With all memory that the trial will need, touched.
    pub fn new(context: &'a Context, thread: u32, blocking: bool) -> Self {
        let hand = &context.hands[thread as usize];
        let set = || Box::new(IntervalSet::new(&context.job, blocking));
        lock(&hand.tray).empty = Some(set());
        Self {
            context,
            hand,
            clock: context.clock,
            set: set(),
            in_flight: [0; 3],
            accounted_ns: 0,
            wake_ns: 0,
            last_done_ns: 0,
            bytes: 0,
            operations: 0,
        }
    }

    /// All threads begin at once; from here on time counts from that moment.
    pub fn wait_for_start(&mut self) {
        let origin = self.context.wait_for_start();
        self.clock = self.context.clock.from_origin(origin);
    }

    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.now_ns()
    }

    #[inline(always)]
    pub fn total_in_flight(&self) -> u64 {
        self.in_flight[0] + self.in_flight[1] + self.in_flight[2]
    }

    /// Adds the operations in flight since the last account, per direction.
    #[inline(always)]
    pub fn account(&mut self, now: u64) {
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

    /// Counts an operation of `length` bytes that ended as it should.
    #[inline(always)]
    pub fn count(&mut self, direction: Direction, length: u32, times: Times, done: u64) {
        let set = self.set.of(direction);
        set.bytes += u64::from(length);
        set.operations += 1;
        set.total.record(done.saturating_sub(times.start_ns));
        if let Some(completion) = &mut set.completion {
            completion.record(done.saturating_sub(times.submitted_ns));
        }
        if let Some(intended) = &mut set.intended {
            intended.record(done.saturating_sub(times.intended_ns));
        }
        self.bytes += u64::from(length);
        self.operations += 1;
        self.last_done_ns = done;
    }

    /// Counts how late an operation of an open loop began, and how much of that was not the target's: after a slot was
    /// free for it, at `freed`.
    #[inline(always)]
    pub fn count_lateness(
        &mut self,
        direction: Direction,
        (intended, start): (u64, u64),
        freed: u64,
    ) {
        if direction == Direction::Sync {
            return;
        }
        let late = start.saturating_sub(intended);
        let own = start.saturating_sub(intended.max(freed));
        let set = self.set.of(direction);
        set.late_sum_ns += late;
        set.late_max_ns = set.late_max_ns.max(late);
        let lateness = &mut self.set.lateness;
        lateness.operations += 1;
        lateness.sum_ns += late;
        lateness.max_ns = lateness.max_ns.max(late);
        lateness.late += u64::from(late > LATE_NS);
        lateness.own_sum_ns += own;
        lateness.own_max_ns = lateness.own_max_ns.max(own);
        lateness.waited += u64::from(freed > intended);
    }

    /// Hands over an interval that is past, and sets when to look up next. `end_ns` is when a thread that still begins
    /// operations stops doing so; `None`: it begins no more.
    #[cold]
    pub fn pass(&mut self, now: u64, end_ns: Option<u64>) {
        let schedule = &self.context.schedule;
        let index = schedule.index_at(now);
        // The last operations of a trial belong to its last interval, not to a sliver after it.
        let tail_ns = match end_ns {
            Some(_) => 0,
            None => self.context.job.interval_ns / 2,
        };
        if index > self.set.index && now >= schedule.end_ns(self.set.index) + tail_ns {
            self.rotate(now, index);
        }
        let boundary = self.context.schedule.end_ns(self.set.index);
        // Draining looks up often: it may be told to give up.
        let soon = end_ns.unwrap_or(now + WAIT_MAX_NS);
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

    /// Hands over what the last interval has.
    pub fn hand_over_rest(&mut self) {
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

    /// How the thread ended.
    pub fn end(&self, cpu: CpuTime) -> ThreadEnd {
        ThreadEnd {
            done_ns: self.last_done_ns,
            cpu,
            abandoned: self.total_in_flight() as u32,
        }
    }

    /// For progress.
    #[inline(always)]
    pub fn publish(&self) {
        self.hand.bytes.store(self.bytes, Ordering::Relaxed);
        self.hand
            .operations
            .store(self.operations, Ordering::Relaxed);
    }

    /// Waits until `moment_ns`, or at most as long as a stop may go unseen.
    pub fn wait_until(&self, moment_ns: u64) {
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
}
