//! Takes intervals from the threads, merges them exactly, and writes them to the record as they are complete.
//! Runs in the calling thread, beside the measured ones.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use leadline_record::{Histograms, Interval, RecordError, Writer};

use super::context::{Context, lock};
use super::interval::{IntervalSet, Lateness, uses};
use crate::blocks::verdict::Wrongs;
use crate::histogram;
use crate::io::Direction;

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
