//! What happens to one operation: its data is made before, and counted, timed and looked at after.

use super::{Slot, Worker};
use crate::error::{Failure, FailureKind};
use crate::io::{Completion, Direction, Engine, Operation};
use crate::pattern::{BLOCK_BYTES, Stamp, Verdict, is_zero};
use crate::trial::interval::LATE_NS;

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
        let set = self.set.of(direction);
        set.bytes += u64::from(slot.length);
        set.operations += 1;
        set.total.record(done.saturating_sub(slot.start_ns));
        if E::BLOCKING {
            set.in_flight_area += done.saturating_sub(slot.start_ns);
        } else if let Some(completion) = &mut set.completion {
            completion.record(done.saturating_sub(slot.submitted_ns));
        }
        if let Some(intended) = &mut set.intended {
            intended.record(done.saturating_sub(slot.intended_ns));
        }
        self.bytes += u64::from(slot.length);
        self.operations += 1;
        self.last_done_ns = done;
        match direction {
            Direction::Read if E::MOVES_DATA => self.inspect(index, slot),
            Direction::Write => self.source.wrote(file),
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
            self.set.of(operation.direction).short += 1;
            return false;
        }
        let path = self.context.job.file_path(self.thread, operation.file);
        let (name, offset) = (operation.direction.name(), operation.offset);
        self.context.alarm.fail(if completion.result < 0 {
            Failure::system(-completion.result as i32, name, &path, offset)
        } else {
            let what = format!("nothing was transferred of {} bytes", operation.length);
            Failure::found(FailureKind::Short, name, &path, offset, &what)
        });
        true
    }

    /// Looks at what was read: all of it when verifying, else the first line for a block never written.
    #[inline(always)]
    fn inspect(&mut self, index: u32, slot: &Slot) {
        let Slot {
            operation, length, ..
        } = *slot;
        if self.context.job.verify {
            return self.verify(index, slot);
        }
        let offset = operation.offset - u64::from(operation.start);
        if length as usize >= BLOCK_BYTES && offset.is_multiple_of(BLOCK_BYTES as u64) {
            let first = &self.engine.buffer(index)[..BLOCK_BYTES];
            if is_zero(first) {
                self.set.unwritten_blocks += 1;
            }
        }
    }

    fn verify(&mut self, index: u32, slot: &Slot) {
        let Slot {
            operation, length, ..
        } = *slot;
        let job = &self.context.job;
        let file = job.file_id(self.thread, operation.file);
        let first = operation.offset - u64::from(operation.start);
        let data = &self.engine.buffer(index)[..length as usize];
        for (index, block) in data.chunks(BLOCK_BYTES).enumerate() {
            let offset = first + (index * BLOCK_BYTES) as u64;
            match self.context.pattern.verify(block, file, offset) {
                Verdict::Good(_) => self.set.verified_blocks += 1,
                Verdict::Unwritten => self.set.unwritten_blocks += 1,
                Verdict::Wrong(reason) => {
                    let path = job.file_path(self.thread, operation.file);
                    let kind = FailureKind::Verify;
                    self.context
                        .alarm
                        .fail(Failure::found(kind, "verify", &path, offset, &reason));
                    return;
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn count_lateness(&mut self, direction: Direction, intended: u64, start: u64) {
        if self.pacer.is_none() || direction == Direction::Sync {
            return;
        }
        let late = start.saturating_sub(intended);
        let own = start.saturating_sub(intended.max(self.freed_ns));
        let set = self.set.of(direction);
        set.late_sum_ns += late;
        set.late_max_ns = set.late_max_ns.max(late);
        let lateness = &mut self.set.lateness;
        lateness.operations += 1;
        lateness.sum_ns += late;
        lateness.max_ns = lateness.max_ns.max(late);
        lateness.late += u64::from(late > LATE_NS);
        lateness.own_sum_ns += own;
        lateness.own_max_ns = lateness.own_max_ns.max(own);
        lateness.waited += u64::from(self.freed_ns > intended);
    }

    #[inline(always)]
    pub(super) fn fill(&mut self, slot: u32, operation: Operation) {
        if operation.direction != Direction::Write || !E::MOVES_DATA {
            return;
        }
        let job = &self.context.job;
        let stamp = Stamp {
            seed: job.seed,
            generation: job.generation,
            file: job.file_id(self.thread, operation.file),
            offset: operation.offset,
        };
        let buffer = &mut self.engine.buffer(slot)[..operation.length as usize];
        self.context.pattern.fill(buffer, stamp);
    }
}
