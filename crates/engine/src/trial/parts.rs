//! What threads did in each interval, handed over and put together: of metadata by operation, of replays by class
//! of calls.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hdrhistogram::Histogram;
use leadline_record::{Histograms, Interval};

use crate::histogram::{self, Counts};
use crate::sync::lock;

/// A thread that hands over later than this has its part written as a supplement.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What one thread did of one kind in one interval.
pub struct Part {
    pub operations: u64,
    pub bytes: u64,
    /// Nanoseconds spent in operations.
    pub busy_ns: u64,
    pub latencies: Histogram<u64>,
}

/// What one thread hands over: by interval and kind.
pub type Parts<K> = BTreeMap<(u32, K), Part>;

impl Part {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            operations: 0,
            bytes: 0,
            busy_ns: 0,
            latencies: histogram::empty(),
        }
    }

    /// Adds counters, and drains the counts.
    pub fn add(&mut self, operations: u64, bytes: u64, busy_ns: u64, counts: &mut Counts) {
        self.operations += operations;
        self.bytes += bytes;
        self.busy_ns += busy_ns;
        counts.drain_into(&mut self.latencies);
    }

    fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.busy_ns += other.busy_ns;
        // Bounds are the same for all, so this cannot fail.
        let _ = self.latencies.add(&other.latencies);
    }
}

/// All threads' share of one kind in one interval.
pub struct Whole<K> {
    pub index: u32,
    pub kind: K,
    pub part: Part,
    /// Bytes of each thread.
    threads: Vec<u64>,
    start_ns: u64,
    end_ns: u64,
}

impl<K> Whole<K> {
    /// As the record has it.
    pub fn interval(self, direction: &str) -> Interval {
        let part = self.part;
        let total = histogram::encode(&part.latencies);
        Interval {
            index: self.index,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            measured: true,
            direction: direction.to_owned(),
            bytes: part.bytes,
            operations: part.operations,
            short: 0,
            in_flight_mean: part.busy_ns as f64 / (self.end_ns - self.start_ns) as f64,
            late_ns_max: 0,
            late_ns_sum: 0,
            threads: self.threads,
            histograms: Histograms {
                submission: histogram::encode(&histogram::empty()),
                completion: total.clone(),
                total,
                intended: None,
            },
        }
    }
}

/// How far a collection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upto {
    /// The intervals that are over, and every thread had time to hand over.
    Over,
    /// Everything: the last interval ends now.
    End,
}

/// What was handed over of intervals that are not over yet.
pub struct Pending<K> {
    interval_ns: u64,
    /// Intervals below this one were given out.
    given: u32,
    rows: BTreeMap<u32, BTreeMap<K, (Part, Vec<u64>)>>,
}

impl<K: Ord + Copy> Pending<K> {
    pub fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            given: 0,
            rows: BTreeMap::new(),
        }
    }

    /// Takes what `hands` hold, and gives out what is over at `now_ns`, in order.
    pub fn collect<'a>(
        &mut self,
        hands: impl ExactSizeIterator<Item = &'a Mutex<Parts<K>>>,
        now_ns: u64,
        upto: Upto,
    ) -> Vec<Whole<K>>
    where
        K: 'a,
    {
        let over_ns = now_ns.saturating_sub(PATIENCE_NS.max(self.interval_ns));
        let limit = match upto {
            Upto::End => u32::MAX,
            Upto::Over => (over_ns / self.interval_ns) as u32,
        };
        if limit <= self.given {
            return Vec::new();
        }
        self.given = limit;
        let threads = hands.len();
        for (number, hand) in hands.enumerate() {
            for ((index, kind), part) in std::mem::take(&mut *lock(hand)) {
                let row = self.rows.entry(index).or_default();
                let new = || (Part::new(), vec![0; threads]);
                let (sum, bytes) = row.entry(kind).or_insert_with(new);
                sum.merge(&part);
                bytes[number] += part.bytes;
            }
        }
        self.give_out(limit, (upto == Upto::End).then_some(now_ns))
    }

    fn give_out(&mut self, limit: u32, last_ends_ns: Option<u64>) -> Vec<Whole<K>> {
        let later = self.rows.split_off(&limit);
        let ready = std::mem::replace(&mut self.rows, later);
        let last = ready.last_key_value().map(|(index, _)| *index);
        let mut found = Vec::new();
        for (index, row) in ready {
            let start_ns = u64::from(index) * self.interval_ns;
            let whole_ns = start_ns + self.interval_ns;
            let end_ns = last_ends_ns
                .filter(|_| Some(index) == last)
                .map_or(whole_ns, |end| end.clamp(start_ns + 1, whole_ns));
            found.extend(row.into_iter().map(|(kind, (part, threads))| Whole {
                index,
                kind,
                part,
                threads,
                start_ns,
                end_ns,
            }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn hand(parts: &[(u32, char, u64)]) -> Mutex<Parts<char>> {
        let part = |bytes| Part {
            operations: 1,
            bytes,
            ..Part::new()
        };
        let parts = parts.iter();
        Mutex::new(
            parts
                .map(|(index, kind, bytes)| ((*index, *kind), part(*bytes)))
                .collect(),
        )
    }

    fn seen(found: Vec<Whole<char>>) -> Vec<(u32, char, u64, Vec<u64>, u64)> {
        found
            .into_iter()
            .map(|whole| {
                let kind = whole.kind;
                let row = whole.interval("x");
                (row.index, kind, row.operations, row.threads, row.end_ns)
            })
            .collect()
    }

    #[test]
    fn threads_are_put_together_and_the_last_interval_ends_with_the_trial() {
        let hands = [hand(&[(0, 'a', 5), (2, 'b', 1)]), hand(&[(0, 'a', 7)])];
        let mut pending = Pending::new(SECOND);
        let found = seen(pending.collect(hands.iter(), 2 * SECOND + 5, Upto::End));
        let first = (0, 'a', 2, vec![5, 7], SECOND);
        assert_eq!(found, [first, (2, 'b', 1, vec![1, 0], 2 * SECOND + 5)]);
    }

    #[test]
    fn an_interval_waits_until_every_thread_had_time_to_hand_over() {
        let hands = [hand(&[(0, 'a', 5)])];
        let mut pending = Pending::new(SECOND);
        let mut at = |now_ns| seen(pending.collect(hands.iter(), now_ns, Upto::Over)).len();
        assert_eq!(at(2 * SECOND - 1), 0);
        assert_eq!(at(2 * SECOND), 1);
    }
}
