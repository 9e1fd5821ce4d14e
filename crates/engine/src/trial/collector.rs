//! Takes intervals from the threads, merges them exactly, and writes them to the record as they are complete.
//! Runs in the calling thread, beside the measured ones.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use leadline_record::{Histograms, Interval, RecordError, Writer};

use super::context::Context;
use crate::blocks::verdict::Wrongs;
use crate::histogram::{self, Counts};
use crate::io::Direction;
use crate::job::Job;
use crate::sync::lock;

/// Sums of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    pub bytes: u64,
    pub operations: u64,
    pub short: u64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.operations += other.operations;
        self.short += other.short;
    }
}

/// Sums of a trial or of a thread.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    pub measured: [Sums; 3],
    pub all: [Sums; 3],
    pub lateness: Lateness,
    pub verified_blocks: u64,
    pub unwritten_blocks: u64,
    pub wrong_blocks: Wrongs,
}

impl Totals {
    fn add(&mut self, set: &IntervalSet, measured: bool) {
        for (direction, counters) in set.directions.iter().enumerate() {
            let Some(counters) = counters else { continue };
            let sums = Sums {
                bytes: counters.bytes,
                operations: counters.operations,
                short: counters.short,
            };
            self.all[direction].add(sums);
            if measured {
                self.measured[direction].add(sums);
            }
        }
        if measured {
            self.lateness.add(&set.lateness);
        }
        self.verified_blocks += set.verified_blocks;
        self.unwritten_blocks += set.unwritten_blocks;
        self.wrong_blocks.add(set.wrong_blocks);
    }
}

/// One direction of an interval, all threads so far.
struct Merged {
    sums: Sums,
    in_flight_area: u64,
    late_sum_ns: u64,
    late_max_ns: u64,
    threads: Vec<u64>,
    submission: Histogram<u64>,
    completion: Option<Histogram<u64>>,
    total: Histogram<u64>,
    intended: Option<Histogram<u64>>,
}

/// Merges and writes intervals.
pub struct Collector<'a> {
    context: &'a Context,
    writer: Writer,
    pending: BTreeMap<u32, [Option<Merged>; 3]>,
    /// Intervals below this one were written; what comes later for them is written as a supplement.
    written: u32,
    totals: Totals,
    threads: Vec<Totals>,
}

impl<'a> Collector<'a> {
    pub fn new(context: &'a Context, writer: Writer) -> Self {
        let threads = vec![Totals::default(); context.hands.len()];
        let totals = Totals::default();
        Self {
            context,
            writer,
            pending: BTreeMap::new(),
            written: 0,
            totals,
            threads,
        }
    }

    /// Takes what lies ready; writes intervals that all threads have passed, and those that ended more
    /// than an interval ago (a thread stuck in a call must not hold back the others' data).
    pub fn collect(&mut self, now_ns: u64) -> Result<(), RecordError> {
        let mut passed = u32::MAX;
        for thread in 0..self.context.hands.len() {
            passed = passed.min(self.take(thread));
        }
        if passed == u32::MAX {
            // All threads have ended: `finish` knows when.
            return Ok(());
        }
        let patience_ns = self.context.job.interval_ns.max(1_000_000_000);
        let overdue = self
            .context
            .schedule
            .index_at(now_ns.saturating_sub(patience_ns));
        self.write_below(passed.max(overdue), 0)
    }

    /// Takes and writes everything; `done_ns` ends the last interval.
    pub fn finish(mut self, done_ns: u64) -> Result<(Writer, Totals, Vec<Totals>), RecordError> {
        for thread in 0..self.context.hands.len() {
            self.take(thread);
        }
        self.write_below(u32::MAX, done_ns)?;
        Ok((self.writer, self.totals, self.threads))
    }

    /// Takes a thread's set; returns the interval that it has not yet passed.
    fn take(&mut self, thread: usize) -> u32 {
        let hand = &self.context.hands[thread];
        let (full, passed, ended) = {
            let mut tray = lock(&hand.tray);
            (tray.full.take(), tray.passed, tray.end.is_some())
        };
        if let Some(mut set) = full {
            self.merge(thread, &mut set);
            lock(&hand.tray).empty = Some(set);
            hand.taken.notify_one();
        }
        if ended { u32::MAX } else { passed }
    }

    fn merge(&mut self, thread: usize, set: &mut IntervalSet) {
        let measured = self.context.schedule.is_measured(set.index);
        self.totals.add(set, measured);
        self.threads[thread].add(set, measured);
        let merged = self.pending.entry(set.index).or_default();
        for (merged, counters) in merged.iter_mut().zip(&mut set.directions) {
            let Some(counters) = counters else { continue };
            let merged = merged.get_or_insert_with(|| Merged::new(self.context));
            merged.sums.add(Sums {
                bytes: counters.bytes,
                operations: counters.operations,
                short: counters.short,
            });
            merged.in_flight_area += counters.in_flight_area;
            merged.late_sum_ns += counters.late_sum_ns;
            merged.late_max_ns = merged.late_max_ns.max(counters.late_max_ns);
            merged.threads[thread] += counters.bytes;
            counters.total.drain_into(&mut merged.total);
            if let Some(counts) = &mut counters.submission {
                counts.drain_into(&mut merged.submission);
            }
            if let (Some(counts), Some(into)) = (&mut counters.completion, &mut merged.completion) {
                counts.drain_into(into);
            }
            if let (Some(counts), Some(into)) = (&mut counters.intended, &mut merged.intended) {
                counts.drain_into(into);
            }
        }
        set.reset_counters();
    }

    fn write_below(&mut self, limit: u32, done_ns: u64) -> Result<(), RecordError> {
        let later = self.pending.split_off(&limit);
        let ready = std::mem::replace(&mut self.pending, later);
        let end = match limit {
            u32::MAX => ready
                .last_key_value()
                .map_or(self.written, |(index, _)| index + 1),
            limit => limit,
        };
        for (index, merged) in &ready {
            self.write_empty(self.written, *index)?;
            let is_last = limit == u32::MAX && index + 1 == end;
            self.write(*index, merged, is_last.then_some(done_ns))?;
            self.written = self.written.max(index + 1);
        }
        self.write_empty(self.written, end)?;
        self.written = self.written.max(end);
        Ok(())
    }

    /// An interval in which nothing ended is a fact too: throughput was zero.
    fn write_empty(&mut self, from: u32, to: u32) -> Result<(), RecordError> {
        for index in from..to {
            let nothing = [None, None, None];
            self.write(index, &nothing, None)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        index: u32,
        merged: &[Option<Merged>; 3],
        done_ns: Option<u64>,
    ) -> Result<(), RecordError> {
        for direction in Direction::ALL {
            if !uses(&self.context.job, direction) {
                continue;
            }
            let frame = match &merged[direction as usize] {
                Some(merged) => self.frame(index, direction, merged, done_ns),
                None => self.frame(index, direction, &Merged::new(self.context), done_ns),
            };
            self.writer.interval(&frame)?;
        }
        Ok(())
    }

    fn frame(
        &self,
        index: u32,
        direction: Direction,
        merged: &Merged,
        done_ns: Option<u64>,
    ) -> Interval {
        let schedule = &self.context.schedule;
        let start_ns = schedule.start_ns(index);
        // The last interval ends with the last operation, be it before or after its time.
        let end_ns = done_ns.unwrap_or(schedule.end_ns(index)).max(start_ns);
        let length_ns = (end_ns - start_ns).max(1);
        let total = histogram::encode(&merged.total);
        Interval {
            index,
            start_ns,
            end_ns,
            measured: schedule.is_measured(index),
            direction: direction.name().to_owned(),
            bytes: merged.sums.bytes,
            operations: merged.sums.operations,
            short: merged.sums.short,
            in_flight_mean: merged.in_flight_area as f64 / length_ns as f64,
            late_ns_max: merged.late_max_ns,
            late_ns_sum: merged.late_sum_ns,
            threads: merged.threads.clone(),
            histograms: Histograms {
                submission: histogram::encode(&merged.submission),
                // A blocking engine has no submission of its own: its completion latency is the total.
                completion: merged
                    .completion
                    .as_ref()
                    .map_or_else(|| total.clone(), histogram::encode),
                total,
                intended: merged.intended.as_ref().map(histogram::encode),
            },
        }
    }
}

impl Merged {
    fn new(context: &Context) -> Self {
        let job = &context.job;
        Self {
            sums: Sums::default(),
            in_flight_area: 0,
            late_sum_ns: 0,
            late_max_ns: 0,
            threads: vec![0; context.hands.len()],
            submission: histogram::empty(),
            completion: (!job.engine.blocking).then(histogram::empty),
            total: histogram::empty(),
            intended: job.is_open_loop().then(histogram::empty),
        }
    }
}

/// An operation that starts later than this after its intended start counts as late.
pub const LATE_NS: u64 = 1_000_000;

/// The intervals of a trial, the same for all its threads. Times are ns since the trial's start.
///
/// The ramp time is cut into whole intervals, the last of which takes the remainder; the measured time
/// begins with a new one, so that no interval is partly measured.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    interval_ns: u64,
    ramp_ns: u64,
    ramp_intervals: u64,
}

impl Schedule {
    pub fn new(job: &Job) -> Self {
        let ramp_ns = job.ramp_time_ns;
        let ramp_intervals = if ramp_ns == 0 {
            0
        } else {
            (ramp_ns / job.interval_ns).max(1)
        };
        Self {
            interval_ns: job.interval_ns,
            ramp_ns,
            ramp_intervals,
        }
    }

    /// The interval that contains `now_ns`.
    pub fn index_at(&self, now_ns: u64) -> u32 {
        let index = if now_ns < self.ramp_ns {
            (now_ns / self.interval_ns).min(self.ramp_intervals - 1)
        } else {
            self.ramp_intervals + (now_ns - self.ramp_ns) / self.interval_ns
        };
        index as u32
    }

    pub fn start_ns(&self, index: u32) -> u64 {
        let index = u64::from(index);
        if index < self.ramp_intervals {
            index * self.interval_ns
        } else {
            self.ramp_ns + (index - self.ramp_intervals) * self.interval_ns
        }
    }

    pub fn end_ns(&self, index: u32) -> u64 {
        self.start_ns(index + 1)
    }

    /// False within the ramp time.
    pub fn is_measured(&self, index: u32) -> bool {
        u64::from(index) >= self.ramp_intervals
    }
}

/// How late the pacer was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    pub operations: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// Later than `LATE_NS`.
    pub late: u64,
    /// The part that is not the target's: after the intended start, and after a slot was free.
    pub own_sum_ns: u64,
    pub own_max_ns: u64,
    /// Operations that waited for a slot: the target was slower than the rate.
    pub waited: u64,
}

impl Lateness {
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.late += other.late;
        self.own_sum_ns += other.own_sum_ns;
        self.own_max_ns = self.own_max_ns.max(other.own_max_ns);
        self.waited += other.waited;
    }
}

/// The counters of one direction.
#[derive(Debug)]
pub struct DirectionSet {
    pub bytes: u64,
    pub operations: u64,
    pub short: u64,
    /// Operations in flight times ns.
    pub in_flight_area: u64,
    pub late_sum_ns: u64,
    pub late_max_ns: u64,
    /// Absent for blocking engines, whose completion latency is the total.
    pub submission: Option<Counts>,
    pub completion: Option<Counts>,
    pub total: Counts,
    /// Only in open loop.
    pub intended: Option<Counts>,
}

/// What a thread counts in one interval; two per thread, one being filled and one on its way.
#[derive(Debug)]
pub struct IntervalSet {
    pub index: u32,
    pub directions: [Option<Box<DirectionSet>>; 3],
    pub lateness: Lateness,
    pub verified_blocks: u64,
    pub unwritten_blocks: u64,
    pub wrong_blocks: Wrongs,
}

impl IntervalSet {
    /// All memory that the job will need, touched.
    pub fn new(job: &Job, blocking: bool) -> Self {
        let counts = |wanted: bool| wanted.then(Counts::new);
        let directions = Direction::ALL.map(|direction| {
            uses(job, direction).then(|| {
                Box::new(DirectionSet {
                    bytes: 0,
                    operations: 0,
                    short: 0,
                    in_flight_area: 0,
                    late_sum_ns: 0,
                    late_max_ns: 0,
                    submission: counts(!blocking),
                    completion: counts(!blocking),
                    total: Counts::new(),
                    intended: counts(job.is_open_loop() && direction != Direction::Sync),
                })
            })
        });
        Self {
            index: 0,
            directions,
            lateness: Lateness::default(),
            verified_blocks: 0,
            unwritten_blocks: 0,
            wrong_blocks: Wrongs::default(),
        }
    }

    /// The counters of a direction that the job uses.
    #[inline(always)]
    pub fn of(&mut self, direction: Direction) -> &mut DirectionSet {
        match &mut self.directions[direction as usize] {
            Some(set) => set,
            None => unreachable!("a direction that the job does not use"),
        }
    }

    /// Zero again; histograms are cleared where they are drained.
    pub fn reset_counters(&mut self) {
        for set in self.directions.iter_mut().flatten() {
            (set.bytes, set.operations, set.short, set.in_flight_area) = (0, 0, 0, 0);
            (set.late_sum_ns, set.late_max_ns) = (0, 0);
        }
        self.lateness = Lateness::default();
        (self.verified_blocks, self.unwritten_blocks) = (0, 0);
        self.wrong_blocks = Wrongs::default();
    }
}

/// Whether a job has operations of this direction.
pub fn uses(job: &Job, direction: Direction) -> bool {
    match direction {
        Direction::Read => job.rw.reads(),
        Direction::Write => job.rw.writes(),
        Direction::Sync => job.fsync > 0 || job.fdatasync > 0 || job.end_fsync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::example;
    use proptest::prelude::*;
    use serde_json::json;

    fn schedule(ramp_ns: u64, interval_ns: u64) -> Schedule {
        let mut job = example();
        job["ramp_time_ns"] = json!(ramp_ns);
        job["interval_ns"] = json!(interval_ns);
        Schedule::new(&Job::parse(&job.to_string()).unwrap())
    }

    proptest! {
        #[test]
        fn every_moment_lies_in_its_interval(ramp in 0_u64..5_000_000_000, interval in 100_000_000_u64..2_000_000_000,
                                             now in 0_u64..20_000_000_000) {
            let schedule = schedule(ramp, interval);
            let index = schedule.index_at(now);
            prop_assert!(schedule.start_ns(index) <= now && now < schedule.end_ns(index));
            prop_assert_eq!(schedule.is_measured(index), now >= ramp);
        }
    }

    #[test]
    fn the_ramps_last_interval_takes_the_remainder() {
        let schedule = schedule(2_500_000_000, 1_000_000_000);
        let ends: Vec<u64> = (0..3)
            .map(|index| schedule.end_ns(index) / 100_000_000)
            .collect();
        assert_eq!(ends, [10, 25, 35]);
    }
}
