//! Whether a trial goes on: what ends it before its end, and when threads that do not come back are given up. One
//! for data, metadata and replays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Interrupts;
use crate::error::Failure;
use crate::sync::lock;

/// How often signals, the deadline and what threads handed over are looked at.
pub const LOOK: Duration = Duration::from_millis(50);
/// What calls and operations in flight get to end after a signal or a failure.
pub const DRAIN_AFTER_SIGNAL: Duration = Duration::from_secs(5);

/// What the threads of a trial and its runner tell each other about its end.
#[derive(Debug, Default)]
pub struct Alarm {
    /// Begin nothing new.
    stop: AtomicBool,
    failure: Mutex<Option<Failure>>,
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Alarm {
    /// Ends the trial with `failure`; the first one counts.
    pub fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        self.stop();
        self.ring();
    }

    pub fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    /// Nobody begins anything new.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    #[inline(always)]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Wakes the runner.
    pub fn ring(&self) {
        *lock(&self.rung) = true;
        self.bell.notify_one();
    }

    /// Waits until someone rings, at most as long as the runner may look away.
    pub fn wait_for_bell(&self) {
        let (mut rung, _) = self
            .bell
            .wait_timeout_while(lock(&self.rung), LOOK, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

/// Why a trial was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Signal,
    Deadline,
    Failure,
}

/// The runner's side: it looks at signals, failures and the deadline; the first cause counts.
pub struct Watch<'a> {
    pub alarm: &'a Alarm,
    signal: Interrupts<'a>,
    deadline: Instant,
    drain_after_deadline: Duration,
    stopped: Option<(Cause, Instant)>,
}

impl<'a> Watch<'a> {
    pub fn new(
        alarm: &'a Alarm,
        signal: Interrupts<'a>,
        deadline: Instant,
        drain_after_deadline: Duration,
    ) -> Self {
        Self {
            alarm,
            signal,
            deadline,
            drain_after_deadline,
            stopped: None,
        }
    }

    pub fn look(&mut self) {
        if self.alarm.failure().is_some() {
            self.halt(Cause::Failure);
        } else if (self.signal)().is_some() {
            self.halt(Cause::Signal);
        } else if Instant::now() >= self.deadline {
            self.halt(Cause::Deadline);
        }
    }

    /// Waits for the bell, then looks.
    pub fn wait(&mut self) {
        self.alarm.wait_for_bell();
        self.look();
    }

    pub fn halt(&mut self, cause: Cause) {
        self.alarm.stop();
        self.stopped.get_or_insert((cause, Instant::now()));
    }

    /// Waiting for others is none of the trial's own time.
    pub fn put_off(&mut self, by: Duration) {
        self.deadline += by;
    }

    pub fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// True when what was going on at the stop had its time to end.
    pub fn has_drained(&self) -> bool {
        self.stopped.is_some_and(|(cause, at)| {
            at.elapsed()
                >= match cause {
                    Cause::Deadline => self.drain_after_deadline,
                    Cause::Signal | Cause::Failure => DRAIN_AFTER_SIGNAL,
                }
        })
    }

    /// How the trial ended, in the summary's word.
    pub fn state(&self) -> &'static str {
        match (self.stopped, self.alarm.failure()) {
            (_, Some(_)) => "error",
            (None | Some((Cause::Failure, _)), None) => "complete",
            (Some((Cause::Signal, _)), None) => "interrupted",
            (Some((Cause::Deadline, _)), None) => "deadline",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    const LATER: Duration = Duration::from_secs(3600);

    fn failure() -> Failure {
        Failure::found(FailureKind::Io, "read", "f".as_ref(), 0, "a test")
    }

    #[test]
    fn the_first_cause_counts_and_a_failure_is_always_told() {
        let alarm = Alarm::default();
        let signal = || Some(libc::SIGINT);
        let mut watch = Watch::new(&alarm, &signal, Instant::now() + LATER, LATER);
        assert_eq!(watch.state(), "complete");
        watch.look();
        assert!(alarm.is_stopping());
        assert_eq!(watch.state(), "interrupted");
        watch.halt(Cause::Deadline);
        assert_eq!(watch.state(), "interrupted");
        alarm.fail(failure());
        assert_eq!(watch.state(), "error");
    }

    #[test]
    fn a_deadline_that_is_over_stops_and_its_own_patience_is_kept() {
        let alarm = Alarm::default();
        for (patience, drained) in [(Duration::ZERO, true), (LATER, false)] {
            let mut watch = Watch::new(&alarm, &|| None, Instant::now(), patience);
            assert!(!watch.has_drained());
            watch.look();
            assert_eq!((watch.state(), watch.has_drained()), ("deadline", drained));
        }
    }

    #[test]
    fn a_bell_that_rang_before_is_heard_and_ends_nothing() {
        let alarm = Alarm::default();
        alarm.ring();
        alarm.wait_for_bell();
        assert!(!alarm.is_stopping());
    }
}
