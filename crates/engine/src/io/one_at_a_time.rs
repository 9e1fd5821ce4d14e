//! An engine that does one call at a time, for a loop that queues: the call is made when it is handed over.

use super::{Blocking, Completion, Engine, Operation, Queueing, Setup};
use crate::error::Failure;

/// One slot; its operation has ended when `submit` returns.
pub struct OneAtATime<B> {
    engine: B,
    queued: Option<(u32, Operation)>,
    ended: Option<Completion>,
}

impl<B: Blocking> Engine for OneAtATime<B> {
    const BLOCKING: bool = true;
    const MOVES_DATA: bool = B::MOVES_DATA;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        Ok(Self {
            engine: B::start(setup)?,
            queued: None,
            ended: None,
        })
    }

    fn notes(&self) -> Vec<String> {
        self.engine.notes()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.engine.buffer(slot)
    }

    fn vanished(&mut self) -> Option<usize> {
        self.engine.vanished()
    }

    fn forget(&mut self) {
        self.engine.forget();
    }
}

impl<B: Blocking> Queueing for OneAtATime<B> {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.queued = Some((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        if let Some((slot, operation)) = self.queued.take() {
            let result = self.engine.perform(operation);
            self.ended = Some(Completion { slot, result });
        }
        Ok(())
    }

    fn reap(&mut self, _: u32, _: u64, completions: &mut Vec<Completion>) -> Result<(), i32> {
        completions.extend(self.ended.take());
        Ok(())
    }
}
