//! One interval of one direction: counters as JSON, histograms as they were serialised.

use serde::{Deserialize, Serialize};

/// What happened in one direction between `start_ns` and `end_ns` (since the trial's start).
///
/// A thread that was stuck in a call delivers late: several intervals may then carry the same index
/// and direction, and their sum is the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub index: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// False during the ramp time.
    pub measured: bool,
    /// `read`, `write` or `sync`.
    pub direction: String,
    pub bytes: u64,
    pub operations: u64,
    /// Transfers that moved fewer bytes than asked and were continued.
    pub short: u64,
    /// Operations in flight, averaged over the interval's time.
    pub in_flight_mean: f64,
    pub late_ns_max: u64,
    pub late_ns_sum: u64,
    /// Bytes per thread, by thread number.
    pub threads: Vec<u64>,
    #[serde(skip)]
    pub histograms: Histograms,
}

/// Latency histograms, serialised in the HdrHistogram V2 format (ns).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histograms {
    pub submission: Vec<u8>,
    pub completion: Vec<u8>,
    pub total: Vec<u8>,
    /// From the intended start; only in open loop.
    pub intended: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    #[serde(flatten)]
    interval: Interval,
    /// Lengths of the histograms that follow: submission, completion, total, intended.
    histogram_bytes: [Option<u32>; 4],
}

impl Interval {
    /// `length of the JSON (u32) | JSON | histograms one after the other`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let parts = [
            Some(&self.histograms.submission),
            Some(&self.histograms.completion),
            Some(&self.histograms.total),
            self.histograms.intended.as_ref(),
        ];
        let meta = Meta {
            interval: Self {
                histograms: Histograms::default(),
                ..self.clone()
            },
            histogram_bytes: parts.map(|part| part.map(|bytes| bytes.len() as u32)),
        };
        let json = serde_json::to_vec(&meta).expect("an interval is plain data");
        let mut payload = Vec::with_capacity(4 + json.len() + 4096);
        payload.extend_from_slice(&(json.len() as u32).to_le_bytes());
        payload.extend_from_slice(&json);
        for part in parts.into_iter().flatten() {
            payload.extend_from_slice(part);
        }
        payload
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, String> {
        let (length, rest) = payload
            .split_first_chunk::<4>()
            .ok_or("an interval without its length")?;
        let json = rest
            .get(..u32::from_le_bytes(*length) as usize)
            .ok_or("an interval's JSON is cut")?;
        let meta: Meta = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut rest = &rest[json.len()..];
        let mut take = |length: u32| -> Result<Vec<u8>, String> {
            let (part, after) = rest
                .split_at_checked(length as usize)
                .ok_or("a histogram is cut")?;
            rest = after;
            Ok(part.to_vec())
        };
        let [submission, completion, total, intended] = meta.histogram_bytes;
        let mut interval = meta.interval;
        interval.histograms = Histograms {
            submission: take(submission.unwrap_or(0))?,
            completion: take(completion.unwrap_or(0))?,
            total: take(total.unwrap_or(0))?,
            intended: intended.map(take).transpose()?,
        };
        Ok(interval)
    }
}
