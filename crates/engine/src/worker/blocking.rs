//! The loop of engines that do one call at a time: two readings of the clock per operation.

use super::{Phase, Slot, Times, Worker};
use crate::io::{Blocking, Completion};
use crate::trial::pacer::Pacer;

impl<E: Blocking> Worker<'_, E> {
    /// One operation at a time: two readings of the clock for each.
    pub fn run_blocking(&mut self) {
        let mut now = self.now();
        loop {
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.pause(now);
            }
            let mut intended = 0;
            if self.awaits_arrival() {
                match self.wait_for_arrival() {
                    Some(arrival) => intended = arrival,
                    None => self.phase = Phase::Draining,
                }
            }
            if self.think.is_some() {
                self.think_blocking();
            }
            let Some(operation) = self.next_operation() else {
                break;
            };
            self.fill(0, operation);
            let start = self.now();
            self.count_lateness(operation.direction, intended, start);
            let slot = Slot {
                operation,
                length: operation.length,
                times: Times::at(start, intended),
            };
            let result = self.engine.perform(operation);
            now = self.now();
            if result == i64::from(operation.length) {
                self.count(0, &slot, now);
            } else {
                self.slots[0] = slot;
                now = self.do_rest(result, now);
            }
            self.freed_ns = now;
            self.meter.publish();
        }
    }

    /// After a transfer in slot 0 that was not whole: fails, or does the remainder; returns when it ended.
    #[cold]
    fn do_rest(&mut self, mut result: i64, mut done: u64) -> u64 {
        loop {
            let completion = Completion { slot: 0, result };
            if self.settle(completion, done) || self.context.alarm.is_stopping() {
                return done;
            }
            result = self.engine.perform(self.slots[0].operation);
            done = self.now();
        }
    }

    /// The next intended start, once it has come; `None` when the trial ends before.
    pub(super) fn wait_for_arrival(&mut self) -> Option<u64> {
        loop {
            let intended = self.pacer.as_ref()?.peek_ns();
            let now = self.now();
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.pause(now);
            }
            if self.phase != Phase::Running || !self.source.has_more() {
                return None;
            }
            if intended <= now {
                return self.pacer.as_mut().map(Pacer::take_ns);
            }
            self.meter.wait_until(intended.min(self.meter.wake_ns));
        }
    }
}
