//! The loop of engines that do one call at a time: two readings of the clock per operation.

use super::{Phase, Slot, Worker};
use crate::io::{Blocking, Completion, Operation};
use crate::pacer::Pacer;

impl<E: Blocking> Worker<'_, E> {
    /// One operation at a time: two readings of the clock for each.
    pub fn run_blocking(&mut self) {
        let mut now = self.now();
        loop {
            if now >= self.wake_ns || self.context.is_stopping() {
                self.pause(now);
            }
            let mut intended = 0;
            if self.awaits_arrival() {
                match self.wait_for_arrival() {
                    Some(arrival) => intended = arrival,
                    None => self.phase = Phase::Draining,
                }
            }
            let Some(operation) = self.next_operation() else {
                break;
            };
            self.fill(0, operation);
            let start = self.now();
            self.count_lateness(operation.direction, intended, start);
            self.slots[0] = Slot {
                operation,
                length: operation.length,
                start_ns: start,
                submitted_ns: start,
                intended_ns: intended,
            };
            now = self.do_blocking(start, operation);
            self.publish();
        }
    }

    /// Does the operation of slot 0, its remainder after a short transfer included; returns when it ended.
    #[inline]
    pub(super) fn do_blocking(&mut self, start: u64, operation: Operation) -> u64 {
        let direction = operation.direction;
        let mut operation = operation;
        loop {
            let result = self.engine.perform(operation);
            let done = self.now();
            let completion = Completion { slot: 0, result };
            if self.settle(completion, done) {
                self.set.of(direction).in_flight_area += done - start;
                self.freed_ns = done;
                return done;
            }
            operation = self.slots[0].operation;
            if self.context.is_stopping() {
                return done;
            }
        }
    }

    /// The next intended start, once it has come; `None` when the trial ends before.
    pub(super) fn wait_for_arrival(&mut self) -> Option<u64> {
        loop {
            let intended = self.pacer.as_ref()?.peek_ns();
            let now = self.now();
            if now >= self.wake_ns || self.context.is_stopping() {
                self.pause(now);
            }
            if self.phase != Phase::Running || !self.source.has_more() {
                return None;
            }
            if intended <= now {
                return self.pacer.as_mut().map(Pacer::take_ns);
            }
            self.wait_until(intended.min(self.wake_ns));
        }
    }
}
