//! Intervals: where they begin and end, and what a thread counts in one.

use crate::blocks::verdict::Wrongs;
use crate::histogram::Counts;
use crate::io::Direction;
use crate::job::Job;

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
