//! `radosstriper`: files striped over the objects of a pool, by libradosstriper's asynchronous calls.
//!
//! The library waits for its lock on a file's first object inside the call that starts an operation: that wait is
//! submission latency, and it bounds how many operations one load thread has in flight.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Failure;
use crate::io::rados::{location_of, refused};
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::sys::libradosstriper::Striper;
use crate::sys::rados_queue::{Action, Queue};
use crate::volume::{self, StripedPool, striped_name};

/// One thread's striped files.
pub struct RadosStriper {
    queue: Queue,
    files: Vec<CString>,
    /// Bytes that a write in each slot moves: the library says 0 for all that ended well.
    moves: Vec<Option<u32>>,
    waiting: Vec<(u32, Operation)>,
    /// Ended without the cluster: syncs, and operations that were refused at once.
    ended: Vec<Completion>,
    notes: Vec<String>,
}

impl Engine for RadosStriper {
    const BLOCKING: bool = false;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let pool = StripedPool::connect(location).map_err(refused)?;
        let mut files = Vec::with_capacity(setup.files.len());
        for path in &setup.files {
            let name = volume::name_of(path).map_err(refused)?;
            volume::open_checked(&pool, name, setup).map_err(refused)?;
            files.push(striped_name(name));
        }
        let striper = Arc::<Striper>::clone(pool.striper());
        let queue = Queue::new(striper, setup.depth, setup.block_bytes, 1);
        let queue = queue.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
            Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
        })?;
        let depth = setup.depth as usize;
        let (version, options) = (pool.version(), location.options());
        let layout = ["stripe_unit", "stripe_count", "object_size"].map(|name| {
            let value = options.get(name).map_or("", String::as_str);
            format!("{name} {value}")
        });
        Ok(Self {
            queue,
            files,
            moves: vec![None; depth],
            waiting: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            notes: vec![format!(
                "radosstriper: librados {version}, {}; each operation first waits for a shared lock on its file's \
                 first object, within the call that starts it: that is its submission latency",
                layout.join(", ")
            )],
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.queue.buffer(slot)
    }
}

impl Queueing for RadosStriper {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.waiting.push((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (slot, operation) in waiting.drain(..) {
            self.begin(slot, operation);
        }
        self.waiting = waiting;
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        completions.append(&mut self.ended);
        let waits = completions.len() < minimum as usize;
        let span = Duration::from_nanos(if waits { timeout_ns } else { 0 });
        let moves = &self.moves;
        self.queue.reap(span, |slot, _, result| {
            let result = match moves[slot as usize] {
                Some(length) if result >= 0 => i64::from(length),
                _ => result,
            };
            completions.push(Completion { slot, result });
        });
        Ok(())
    }
}

impl RadosStriper {
    /// Starts an operation. Nothing is to be synced: a write ends when it is on the stores.
    fn begin(&mut self, slot: u32, operation: Operation) {
        let (action, moves) = match operation.direction {
            Direction::Read => (Action::Read, None),
            Direction::Write => (Action::Write, Some(operation.length)),
            Direction::Sync => {
                self.ended.push(Completion { slot, result: 0 });
                return;
            }
        };
        self.moves[slot as usize] = moves;
        let file = &self.files[operation.file as usize];
        let (start, length) = (operation.start as usize, operation.length as usize);
        let place = (operation.offset, start, length);
        let result = self.queue.start((slot, 0), action, file, place);
        if result < 0 {
            self.ended.push(Completion { slot, result });
        }
    }
}
