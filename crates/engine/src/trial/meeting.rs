//! Where a trial waits, with all that it needs open, for the instant at which it is to start.
//!
//! Who starts several trials at once tells the instant only when all of them are here: opening takes each another time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sync::lock;
use crate::sys::clock::monotonic_ns;

/// How often a trial that waits is asked whether it is to start at all.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Opening,
    Open,
    /// CLOCK_MONOTONIC, ns; `None`: it was called off.
    Told(Option<u64>),
    Over,
}

/// Of one trial: shared by what runs it and by who says when.
#[derive(Debug, Default)]
pub struct Meeting {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl Meeting {
    /// Says that all is open, and sleeps until the instant that is told then; false where `ends` holds before it, or
    /// where it is called off.
    pub fn come(&self, mut ends: impl FnMut() -> bool) -> bool {
        self.set(Stage::Open, |stage| stage == Stage::Opening);
        while !ends() {
            match self.wait(|stage| stage == Stage::Open, Some(LOOK_UP_EVERY)) {
                Stage::Told(Some(start_ns)) => {
                    let left = Duration::from_nanos(start_ns.saturating_sub(monotonic_ns()));
                    if left.is_zero() {
                        return true;
                    }
                    std::thread::sleep(left.min(LOOK_UP_EVERY));
                }
                Stage::Told(None) | Stage::Over => return false,
                Stage::Opening | Stage::Open => {}
            }
        }
        false
    }

    /// Waits until the trial is open; false where it ended before.
    pub fn wait_until_open(&self) -> bool {
        self.wait(|stage| stage == Stage::Opening, None) != Stage::Over
    }

    /// Says when it starts, once; `None` calls it off.
    pub fn tell(&self, start_ns: Option<u64>) {
        self.set(Stage::Told(start_ns), |stage| {
            matches!(stage, Stage::Opening | Stage::Open)
        });
    }

    /// The trial has ended, wherever it was.
    pub fn end(&self) {
        self.set(Stage::Over, |_| true);
    }

    fn set(&self, next: Stage, applies: impl FnOnce(Stage) -> bool) {
        let mut stage = lock(&self.stage);
        if applies(*stage) {
            *stage = next;
            self.changed.notify_all();
        }
    }

    /// The stage once `waits` does not hold of it, or after `longest`.
    fn wait(&self, waits: impl Fn(Stage) -> bool, longest: Option<Duration>) -> Stage {
        let mut stage = lock(&self.stage);
        while waits(*stage) {
            let Some(longest) = longest else {
                stage = self
                    .changed
                    .wait(stage)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            stage = self
                .changed
                .wait_timeout(stage, longest)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            break;
        }
        *stage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_waits_for_the_instant_that_is_told_once_it_is_open() {
        let meeting = Meeting::default();
        std::thread::scope(|scope| {
            let trial = scope.spawn(|| meeting.come(|| false));
            assert!(meeting.wait_until_open());
            let start_ns = monotonic_ns() + 20_000_000;
            meeting.tell(Some(start_ns));
            assert!(trial.join().expect("it comes"));
            assert!(monotonic_ns() >= start_ns);
        });
    }

    #[test]
    fn it_does_not_start_where_it_is_called_off_or_stopped() {
        let meeting = Meeting::default();
        meeting.tell(None);
        assert!(!meeting.come(|| false));
        assert!(!Meeting::default().come(|| true));
    }

    #[test]
    fn who_waits_for_a_trial_that_ends_before_hears_of_it() {
        let meeting = Meeting::default();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| meeting.wait_until_open());
            meeting.end();
            assert!(!other.join().expect("it waits"));
        });
    }
}
