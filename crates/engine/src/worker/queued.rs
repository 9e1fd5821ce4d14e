//! The loop of engines with a queue: batches of up to `iodepth`, three readings of the clock per batch.

use super::Think;
use super::{Phase, Slot, Times, WAIT_MAX_NS, Worker};
use crate::io::{Blocking, Completion, Direction, Operation, Queueing};
use crate::sys::buffer::prefetch;
use crate::trial::pacer::Pacer;

impl<E: Queueing> Worker<'_, E> {
    /// Up to `iodepth` operations in flight.
    pub fn run_queued(&mut self) {
        loop {
            let now = self.now();
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.pause(now);
            }
            self.queue_batch(now);
            if !self.queued.is_empty() && !self.submit_batch() {
                break;
            }
            if self.meter.total_in_flight() == 0 {
                if self.phase == Phase::Done {
                    break;
                }
                if self.phase == Phase::Running {
                    self.meter.wait_until(self.next_event_ns());
                }
                continue;
            }
            if self.context.is_abandoned() || !self.reap_batch() {
                break;
            }
            self.meter.publish();
        }
    }

    pub(super) fn queue_batch(&mut self, mut now: u64) {
        if self.phase != Phase::Running {
            self.held = None;
        }
        while !self.free.is_empty() && self.queued.len() < self.batch_max {
            if self.think.is_some() && self.is_thinking(now) {
                break;
            }
            let Some((operation, intended)) = self.next_arrived(now) else {
                break;
            };
            if self.must_wait(&operation) {
                self.held = Some((operation, intended));
                break;
            }
            let Some(slot) = self.free.pop() else { break };
            if operation.direction == Direction::Write {
                self.fill(slot, operation);
                now = self.now();
            } else {
                self.begin_read(operation);
            }
            self.meter.account(now);
            self.meter.in_flight[operation.direction as usize] += 1;
            self.count_lateness(operation.direction, intended, now);
            self.slots[slot as usize] = Slot {
                operation,
                length: operation.length,
                times: Times::at(now, intended),
            };
            self.engine.queue(slot, operation);
            self.queued.push(slot);
        }
    }

    /// The next operation that may start now, with its intended start: first one that had to wait.
    #[inline(always)]
    fn next_arrived(&mut self, now: u64) -> Option<(Operation, u64)> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let mut intended = 0;
        if self.awaits_arrival()
            && let Some(pacer) = &mut self.pacer
        {
            if pacer.peek_ns() > now {
                return None;
            }
            intended = pacer.take_ns();
        }
        self.next_operation().map(|operation| (operation, intended))
    }

    pub(super) fn submit_batch(&mut self) -> bool {
        if let Err(errno) = self.engine.submit() {
            self.fail_engine(errno);
            return false;
        }
        let now = self.now();
        for index in 0..self.queued.len() {
            let slot = &mut self.slots[self.queued[index] as usize];
            slot.times.submitted_ns = now;
            let (direction, waited) = (slot.operation.direction, now - slot.times.start_ns);
            if let Some(submission) = &mut self.meter.set.of(direction).submission {
                submission.record(waited);
            }
        }
        self.queued.clear();
        true
    }

    pub(super) fn reap_batch(&mut self) -> bool {
        let was_full = self.free.is_empty();
        let now = self.now();
        // With free slots and work to start, only look; else wait for a completion or the next event.
        let can_start = !was_full && self.phase == Phase::Running && self.can_start(now);
        let timeout = self.next_event_ns().saturating_sub(now).min(WAIT_MAX_NS);
        self.completions.clear();
        let minimum = u32::from(!can_start && timeout > 0);
        if let Err(errno) = self.engine.reap(minimum, timeout, &mut self.completions) {
            self.fail_engine(errno);
            return false;
        }
        let done = self.now();
        self.meter.account(done);
        if was_full && !self.completions.is_empty() {
            self.freed_ns = done;
        }
        if E::MOVES_DATA {
            // What the device wrote is in no cache: fetching one by one would cost more than all else here.
            for completion in &self.completions {
                prefetch(self.engine.buffer(completion.slot));
            }
        }
        for index in 0..self.completions.len() {
            let completion = self.completions[index];
            if self.settle(completion, done) {
                let direction = self.slots[completion.slot as usize].operation.direction;
                self.meter.in_flight[direction as usize] -= 1;
                self.free.push(completion.slot);
            } else {
                let operation = self.slots[completion.slot as usize].operation;
                self.engine.queue(completion.slot, operation);
                if let Err(errno) = self.engine.submit() {
                    self.fail_engine(errno);
                    return false;
                }
            }
        }
        true
    }

    pub(super) fn can_start(&self, now: u64) -> bool {
        let arrived = |pacer: &Pacer| pacer.peek_ns() <= now;
        if self.held.is_some() || self.think.as_ref().is_some_and(Think::is_due) {
            return false;
        }
        self.source.sync_is_due()
            || self.source.has_more() && self.pacer.as_ref().is_none_or(arrived)
    }

    /// When the loop must look up: the next arrival that a slot is free for, or the next boundary.
    pub(super) fn next_event_ns(&self) -> u64 {
        let resume = self.think.as_ref().and_then(Think::resume_ns);
        if let Some(resume) = resume {
            return resume.min(self.meter.wake_ns);
        }
        match &self.pacer {
            Some(pacer)
                if self.phase == Phase::Running
                    && !self.free.is_empty()
                    && self.source.has_more() =>
            {
                pacer.peek_ns().min(self.meter.wake_ns)
            }
            _ => self.meter.wake_ns,
        }
    }
}

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
            if now >= self.meter.wake_ns {
                // An operation belongs to the interval in which it ends: one that is longer than ramp and runtime
                // together is measured, and not the ramp's.
                self.pause(now);
            }
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
