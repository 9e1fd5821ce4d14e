//! What happens to one operation: its data is made before, and counted, timed and looked at after.

use std::path::Path;

use super::{Slot, Worker};
use crate::blocks::ledger::Ledger;
use crate::blocks::verdict::{Inspector, Known, note};
use crate::error::{Failure, FailureKind};
use crate::io::{Completion, Direction, Engine, Operation};
use crate::pattern::{BLOCK_BYTES, Stamp, is_zero};
use crate::sync::lock;

impl<E: Engine> Worker<'_, E> {
    /// Judges and counts a completion. False when a short transfer has a remainder to do.
    #[inline(always)]
    pub(super) fn settle(&mut self, completion: Completion, done: u64) -> bool {
        let slot = self.slots[completion.slot as usize];
        if completion.result != i64::from(slot.operation.length) {
            return self.settle_unusual(completion);
        }
        self.count(completion.slot, &slot, done);
        true
    }

    /// Counts an operation that ended as it should.
    #[inline(always)]
    pub(super) fn count(&mut self, index: u32, slot: &Slot, done: u64) {
        let (direction, file) = (slot.operation.direction, slot.operation.file);
        if E::BLOCKING {
            self.meter.set.of(direction).in_flight_area += done.saturating_sub(slot.times.start_ns);
        }
        self.meter.count(direction, slot.length, slot.times, done);
        match direction {
            Direction::Read if E::MOVES_DATA => self.inspect(index, slot),
            Direction::Write => {
                self.source.wrote(file);
                self.acknowledge(slot);
            }
            _ => {}
        }
    }

    #[cold]
    pub(super) fn settle_unusual(&mut self, completion: Completion) -> bool {
        let slot = &mut self.slots[completion.slot as usize];
        let operation = slot.operation;
        if completion.result > 0 {
            let moved = completion.result as u32;
            slot.operation.start += moved;
            slot.operation.offset += u64::from(moved);
            slot.operation.length -= moved;
            self.meter.set.of(operation.direction).short += 1;
            return false;
        }
        let path = self.context.job.file_path(self.thread, operation.file);
        let failure = failure_of(operation, completion.result, &path);
        self.context.alarm.fail(failure);
        true
    }

    /// Looks at what was read: all of it when verifying, else the first line for a block never written.
    #[inline(always)]
    fn inspect(&mut self, index: u32, slot: &Slot) {
        let Slot {
            operation, length, ..
        } = *slot;
        if let Some(ledger) = &self.context.ledger {
            return self.verify(ledger, index, slot);
        }
        let offset = operation.offset - u64::from(operation.start);
        if length as usize >= BLOCK_BYTES && offset.is_multiple_of(BLOCK_BYTES as u64) {
            let first = &self.engine.buffer(index)[..BLOCK_BYTES];
            if is_zero(first) {
                self.meter.set.unwritten_blocks += 1;
            }
        }
    }

    fn verify(&mut self, ledger: &Ledger, index: u32, slot: &Slot) {
        let (file, first) = self.place(slot);
        let inspector = Inspector {
            pattern: &self.context.pattern,
            ledger,
            unit_bytes: self.context.job.bs as usize,
        };
        let data = &self.engine.buffer(index)[..slot.length as usize];
        let blocks = data.len() / BLOCK_BYTES;
        let mut good = inspector.count_good(data, file, first);
        if good < blocks {
            let found = inspector.findings(data, file, first);
            good = blocks - found.len();
            for finding in &found {
                if note(ledger, file, finding) != Known::No {
                    continue;
                }
                *self.meter.set.wrong_blocks.of(finding.wrong) += 1;
                let path = self.context.job.file_path(self.thread, slot.operation.file);
                let (kind, offset) = (FailureKind::Verify, finding.offset);
                lock(&self.context.first_wrong).get_or_insert_with(|| {
                    Failure::found(kind, "verify", &path, offset, &finding.reason)
                });
            }
        }
        self.meter.set.verified_blocks += good as u64;
        if E::BLOCKING || !self.context.job.rw.writes() {
            return;
        }
        for offset in blocks_of(first, slot.length) {
            ledger.end_read(file, offset);
        }
    }

    /// The number that patterns and ledger know a file by, and where the whole transfer began.
    #[inline(always)]
    fn place(&self, slot: &Slot) -> (u32, u64) {
        let operation = &slot.operation;
        let file = self.context.job.file_id(self.thread, operation.file);
        (file, operation.offset - u64::from(operation.start))
    }

    /// What was written is known to have been.
    #[inline(always)]
    fn acknowledge(&self, slot: &Slot) {
        if let Some(ledger) = &self.context.ledger {
            let (file, first) = self.place(slot);
            for offset in blocks_of(first, slot.length) {
                ledger.end_write(file, offset);
            }
        }
    }

    /// Whether a block of `operation` is in flight, so that nobody could say which of the two comes last.
    #[inline(always)]
    pub(super) fn must_wait(&self, operation: &Operation) -> bool {
        match &self.context.ledger {
            Some(ledger) if self.context.job.rw.writes() => {
                let file = self.context.job.file_id(self.thread, operation.file);
                ledger.is_busy(file, operation.offset, operation.length)
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn count_lateness(&mut self, direction: Direction, intended: u64, start: u64) {
        if self.pacer.is_some() {
            let freed = self.freed_ns;
            self.meter
                .count_lateness(direction, (intended, start), freed);
        }
    }

    /// Makes what is written, and notes that it is.
    #[inline(always)]
    pub(super) fn fill(&mut self, slot: u32, operation: Operation) {
        if operation.direction != Direction::Write || !E::MOVES_DATA {
            return;
        }
        let context = self.context;
        let (job, pattern) = (&context.job, &context.pattern);
        let (file, offset) = (job.file_id(self.thread, operation.file), operation.offset);
        let buffer = &mut self.engine.buffer(slot)[..operation.length as usize];
        if let Some(ledger) = &context.ledger {
            let places = blocks_of(offset, operation.length);
            for (block, offset) in buffer.chunks_mut(BLOCK_BYTES).zip(places) {
                pattern.fill(block, ledger.begin_write(file, offset));
            }
            return;
        }
        let stamp = Stamp {
            seed: job.seed,
            generation: job.generation,
            file,
            offset,
        };
        pattern.fill(buffer, stamp);
    }

    /// Notes that blocks are read, where the job could write them meanwhile.
    #[inline(always)]
    pub(super) fn begin_read(&self, operation: Operation) {
        if let Some(ledger) = &self.context.ledger
            && operation.direction == Direction::Read
            && self.context.job.rw.writes()
        {
            let file = self.context.job.file_id(self.thread, operation.file);
            for offset in blocks_of(operation.offset, operation.length) {
                ledger.begin_read(file, offset);
            }
        }
    }
}

/// What is wrong with an operation that did not end as it should: nothing was moved, or minus errno.
#[cold]
pub fn failure_of(operation: Operation, result: i64, path: &Path) -> Failure {
    let (name, offset) = (operation.direction.name(), operation.offset);
    if result < 0 {
        return Failure::system(-result as i32, name, path, offset);
    }
    let what = format!("nothing was transferred of {} bytes", operation.length);
    Failure::found(FailureKind::Short, name, path, offset, &what)
}

/// Where the blocks of a transfer are.
#[inline(always)]
fn blocks_of(first: u64, length: u32) -> impl Iterator<Item = u64> {
    (first..first + u64::from(length)).step_by(BLOCK_BYTES)
}
