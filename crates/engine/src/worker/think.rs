//! Pauses between operations (fio's `thinktime`): after so many of them, once all in flight have ended.

use super::{Phase, Worker};
use crate::io::Engine;
use crate::job::Job;

/// Where a thread is between two pauses.
#[derive(Debug, Clone, Copy)]
pub struct Think {
    pause_ns: u64,
    blocks: u32,
    begun: u32,
    /// The end of the pause; set when the last operation before it has ended.
    resume_ns: Option<u64>,
}

impl Think {
    /// `None` for a job that never pauses.
    pub fn of(job: &Job) -> Option<Self> {
        (job.thinktime_ns > 0).then_some(Self {
            pause_ns: job.thinktime_ns,
            blocks: job.thinktime_blocks,
            begun: 0,
            resume_ns: None,
        })
    }

    /// True from the last operation before a pause until its end.
    pub fn is_due(&self) -> bool {
        self.begun >= self.blocks
    }

    /// When the pause that has begun ends.
    pub fn resume_ns(&self) -> Option<u64> {
        self.resume_ns
    }

    /// Whether a pause goes on at `now`; counts the operation that may begin otherwise.
    fn goes_on(&mut self, now: u64, idle: bool) -> bool {
        if self.is_due() {
            if !idle {
                return true;
            }
            let resume = *self.resume_ns.get_or_insert(now + self.pause_ns);
            if now < resume {
                return true;
            }
            (self.begun, self.resume_ns) = (0, None);
        }
        self.begun += 1;
        false
    }
}

impl<E: Engine> Worker<'_, E> {
    /// Whether nothing may begin at `now`. Syncs and the end of a trial do not wait.
    pub(super) fn is_thinking(&mut self, now: u64) -> bool {
        let idle = self.queued.is_empty() && self.meter.total_in_flight() == 0;
        if self.phase != Phase::Running || self.source.sync_is_due() || !self.source.has_more() {
            return false;
        }
        self.think
            .as_mut()
            .is_some_and(|think| think.goes_on(now, idle))
    }

    /// Waits the pause out, or until the trial ends.
    pub(super) fn think_blocking(&mut self) {
        loop {
            let now = self.now();
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.pause(now);
            }
            if !self.is_thinking(now) {
                return;
            }
            let resume = self.think.as_ref().and_then(Think::resume_ns);
            self.meter
                .wait_until(resume.unwrap_or(now).min(self.meter.wake_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_when_the_last_operation_has_ended_and_lasts_its_time() {
        let mut think = Think {
            pause_ns: 100,
            blocks: 2,
            begun: 0,
            resume_ns: None,
        };
        assert!(!think.goes_on(0, true) && !think.goes_on(10, false));
        assert!(think.is_due() && think.goes_on(20, false) && think.resume_ns().is_none());
        assert!(think.goes_on(50, true));
        assert_eq!(think.resume_ns(), Some(150));
        assert!(think.goes_on(149, true) && !think.goes_on(150, true));
        assert!(!think.is_due());
    }
}
