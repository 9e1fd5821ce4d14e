//! `null`: operations that end when they are reaped. What a trial costs here is leadline's own cost.

use super::local::single_buffer;
use crate::error::Failure;
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::sys::buffer::AlignedBuffer;

/// No files; one buffer for all slots, as nothing reads it.
pub struct Null {
    buffer: AlignedBuffer,
    queued: Vec<Completion>,
}

impl Engine for Null {
    const MOVES_DATA: bool = false;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = single_buffer(setup)?;
        Ok(Self {
            buffer,
            queued: Vec::with_capacity(setup.depth as usize),
        })
    }

    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }
}

impl Queueing for Null {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        let result = match operation.direction {
            Direction::Sync => 0,
            Direction::Read | Direction::Write => i64::from(operation.length),
        };
        self.queued.push(Completion { slot, result });
    }

    #[inline]
    fn submit(&mut self) -> Result<(), i32> {
        Ok(())
    }

    #[inline]
    fn reap(&mut self, _: u32, _: u64, completions: &mut Vec<Completion>) -> Result<(), i32> {
        completions.append(&mut self.queued);
        Ok(())
    }
}
