//! Latency histograms: a plain array of counts in the hot loop, HdrHistogram (V2) everywhere else.
//!
//! The array has HdrHistogram's own buckets (3 significant digits, 1 ns to 1 h), so that nothing is lost
//! between the two, and recording is an index and an increment.

use std::collections::HashMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use leadline_record::{Interval, Record};

use crate::error::EngineError;

/// The largest latency told apart, 1 h; longer ones count as 1 h.
pub const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// HdrHistogram's sub-buckets for 3 digits: 2 x 10^3 rounded up to a power of two.
const SUB_BUCKETS: u64 = 2048;
const SUB_BUCKET_BITS: u32 = SUB_BUCKETS.trailing_zeros();
const COUNTS: usize = index_of(LATENCY_MAX_NS) + 1;

/// Counts per bucket, allocated and touched before the trial.
#[derive(Debug, Clone)]
pub struct Counts {
    counts: Box<[u32]>,
}

#[inline(always)]
const fn index_of(value: u64) -> usize {
    let shift = 64 - SUB_BUCKET_BITS - (value | (SUB_BUCKETS - 1)).leading_zeros();
    ((shift as usize) << (SUB_BUCKET_BITS - 1)) + (value >> shift) as usize
}

const fn value_at(index: usize) -> u64 {
    let half = (SUB_BUCKETS / 2) as usize;
    if index < SUB_BUCKETS as usize {
        return index as u64;
    }
    let shift = index / half - 1;
    ((index - shift * half) as u64) << shift
}

impl Counts {
    /// All zero, and resident in memory.
    pub fn new() -> Self {
        let mut counts = vec![1_u32; COUNTS].into_boxed_slice();
        counts.fill(0);
        Self { counts }
    }

    /// Counts one latency.
    #[inline(always)]
    pub fn record(&mut self, value_ns: u64) {
        let count = &mut self.counts[index_of(value_ns.min(LATENCY_MAX_NS))];
        *count = count.wrapping_add(1);
    }

    /// Adds all counts to `histogram` and clears them.
    pub fn drain_into(&mut self, histogram: &mut Histogram<u64>) {
        for (index, count) in self.counts.iter_mut().enumerate() {
            if *count > 0 {
                histogram.saturating_record_n(value_at(index), u64::from(*count));
                *count = 0;
            }
        }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::new()
    }
}

/// An empty histogram with the bounds of all of ours.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, SIGNIFICANT_DIGITS)
        .expect("the bounds are constants that hold")
}

/// HdrHistogram V2 bytes of latencies that were counted elsewhere: (ns, how often).
pub fn of_counts(counts: &[(u64, u64)]) -> Vec<u8> {
    let mut histogram = empty();
    for (latency_ns, count) in counts {
        histogram.saturating_record_n((*latency_ns).max(1), *count);
    }
    encode(&histogram)
}

/// HdrHistogram V2 bytes.
pub fn encode(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory with these bounds cannot fail");
    bytes
}

/// HdrHistogram V2 bytes of latencies in ns with how often each was seen.
pub fn encode_counts(counts: &[(u64, u64)]) -> Vec<u8> {
    // No larger than it needs to be: there may be thousands of processes.
    let largest = counts
        .iter()
        .map(|(value_ns, _)| *value_ns)
        .max()
        .unwrap_or(0);
    let mut histogram =
        Histogram::new_with_bounds(1, largest.clamp(2, LATENCY_MAX_NS), SIGNIFICANT_DIGITS)
            .expect("the bounds are in order");
    for (value_ns, count) in counts {
        histogram.saturating_record_n((*value_ns).clamp(1, LATENCY_MAX_NS), *count);
    }
    encode(&histogram)
}

/// A histogram of latencies that were measured elsewhere; longer ones than an hour count as an hour.
pub fn of_values(values_ns: &[u64]) -> Vec<u8> {
    let mut histogram = empty();
    for value in values_ns {
        histogram.saturating_record(*value);
    }
    encode(&histogram)
}

/// Reads V2 bytes, plain or deflated.
pub fn decode(bytes: &[u8]) -> Result<Histogram<u64>, EngineError> {
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| EngineError::Other(format!("not an HdrHistogram (V2): {error:?}")))
}

/// The exact sum of histograms.
pub fn merge(parts: &[Vec<u8>]) -> Result<Vec<u8>, EngineError> {
    let mut sum = empty();
    for part in parts {
        sum.add(&decode(part)?)
            .map_err(|error| EngineError::Other(format!("cannot merge: {error:?}")))?;
    }
    Ok(encode(&sum))
}

/// Count and moments, in ns. All zero for an empty histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub count: u64,
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stdev: f64,
}

/// Moments of a serialised histogram, to its 3 digits.
pub fn moments(bytes: &[u8]) -> Result<Moments, EngineError> {
    let histogram = decode(bytes)?;
    Ok(Moments {
        count: histogram.len(),
        min: if histogram.is_empty() {
            0
        } else {
            histogram.min()
        },
        max: histogram.max(),
        mean: histogram.mean(),
        stdev: histogram.stdev(),
    })
}

/// Latencies at `percentiles` (0 to 100), in ns.
pub fn percentiles(bytes: &[u8], percentiles: &[f64]) -> Result<Vec<u64>, EngineError> {
    let histogram = decode(bytes)?;
    percentiles
        .iter()
        .map(|percentile| {
            if (0.0..=100.0).contains(percentile) {
                Ok(histogram.value_at_percentile(*percentile))
            } else {
                Err(EngineError::Job(format!(
                    "percentile {percentile} must be from 0 to 100"
                )))
            }
        })
        .collect()
}

/// Buckets that are not empty: (highest equivalent value in ns, count).
pub fn buckets(bytes: &[u8]) -> Result<Vec<(u64, u64)>, EngineError> {
    let histogram = decode(bytes)?;
    Ok(histogram
        .iter_recorded()
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
        .collect())
}

/// One interval per index and direction: what a slow thread delivered late is added to its interval.
pub fn join_supplements(mut record: Record) -> Result<Record, EngineError> {
    let mut joined: Vec<Interval> = Vec::with_capacity(record.intervals.len());
    let mut places: HashMap<(u32, String), usize> = HashMap::new();
    for interval in record.intervals {
        let key = (interval.index, interval.direction.clone());
        match places.get(&key) {
            Some(place) => add_supplement(&mut joined[*place], &interval)?,
            None => {
                places.insert(key, joined.len());
                joined.push(interval);
            }
        }
    }
    record.intervals = joined;
    Ok(record)
}

fn add_supplement(whole: &mut Interval, part: &Interval) -> Result<(), EngineError> {
    whole.bytes += part.bytes;
    whole.operations += part.operations;
    whole.short += part.short;
    whole.in_flight_mean += part.in_flight_mean;
    whole.late_ns_max = whole.late_ns_max.max(part.late_ns_max);
    whole.late_ns_sum += part.late_ns_sum;
    for (sum, bytes) in whole.threads.iter_mut().zip(&part.threads) {
        *sum += bytes;
    }
    let (into, from) = (&mut whole.histograms, &part.histograms);
    for (sum, blob) in [
        (&mut into.submission, &from.submission),
        (&mut into.completion, &from.completion),
        (&mut into.total, &from.total),
    ] {
        *sum = merge(&[std::mem::take(sum), blob.clone()])?;
    }
    if let (Some(sum), Some(blob)) = (&mut into.intended, &from.intended) {
        *sum = merge(&[std::mem::take(sum), blob.clone()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(values: &[u64]) -> Histogram<u64> {
        let mut counts = Counts::new();
        values.iter().for_each(|value| counts.record(*value));
        let mut histogram = empty();
        counts.drain_into(&mut histogram);
        histogram
    }

    proptest! {
        #[test]
        fn the_array_has_the_buckets_of_hdrhistogram(values in proptest::collection::vec(0..LATENCY_MAX_NS, 1..50)) {
            let mut direct = empty();
            values.iter().for_each(|value| direct.record(*value).unwrap());
            let ours = recorded(&values);
            let list = |h: &Histogram<u64>| h.iter_recorded().map(|b| (b.value_iterated_to(), b.count_at_value())).collect::<Vec<_>>();
            prop_assert_eq!(list(&ours), list(&direct));
        }

        #[test]
        fn merging_parts_equals_the_whole(left in proptest::collection::vec(0..LATENCY_MAX_NS, 0..50),
                                          right in proptest::collection::vec(0..LATENCY_MAX_NS, 0..50)) {
            let merged = merge(&[encode(&recorded(&left)), encode(&recorded(&right))]).unwrap();
            let whole = encode(&recorded(&[left, right].concat()));
            prop_assert_eq!(buckets(&merged).unwrap(), buckets(&whole).unwrap());
        }

        #[test]
        fn arbitrary_bytes_are_an_error_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_latency_beyond_an_hour_counts_as_an_hour() {
        let histogram = recorded(&[u64::MAX]);
        assert_eq!(histogram.len(), 1);
        assert!(histogram.max() >= LATENCY_MAX_NS);
    }

    #[test]
    fn a_percentile_is_within_three_digits() {
        let values: Vec<u64> = (1..=100_000).collect();
        let at = percentiles(&encode(&recorded(&values)), &[50.0, 99.0, 100.0]).unwrap();
        for (found, expected) in at.iter().zip([50_000.0, 99_000.0, 100_000.0]) {
            assert!(
                (*found as f64 / expected - 1.0_f64).abs() < 0.001,
                "{found}"
            );
        }
    }

    #[test]
    fn values_measured_elsewhere_are_all_counted() {
        let bytes = of_values(&[0, 5, 5, u64::MAX]);
        let found = moments(&bytes).unwrap();
        assert_eq!((found.count, found.min), (4, 0));
        assert!(found.max >= LATENCY_MAX_NS);
    }

    #[test]
    fn draining_clears() {
        let mut counts = Counts::new();
        counts.record(5);
        counts.drain_into(&mut empty());
        let mut again = empty();
        counts.drain_into(&mut again);
        assert!(again.is_empty());
    }
}
