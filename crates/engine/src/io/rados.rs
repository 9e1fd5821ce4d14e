//! `rados`: objects of a Ceph pool, as many operations in flight as the job says, by librados's own
//! asynchronous calls: no thread of ours waits for a request.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Failure;
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::location::Location;
use crate::sys::librados::Context;
use crate::sys::rados_queue::{Action, Queue};
use crate::volume::{self, Pool, VolumeError, object_name};

/// An operation in pieces, one for each object that it meets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Pieces that have not ended.
    pub left: u32,
    /// Bytes moved, or the first error.
    pub result: i64,
    direction: Option<Direction>,
    length: u32,
}

/// One thread's files in a pool.
pub struct Rados {
    queue: Queue,
    files: Vec<String>,
    object_bytes: u64,
    progress: Vec<Progress>,
    waiting: Vec<(u32, Operation)>,
    /// Ended without the cluster: syncs, and operations that were refused at once.
    ended: Vec<Completion>,
    notes: Vec<String>,
}

fn failure(error: &VolumeError) -> Failure {
    let subject = error.subject.as_str();
    let mut failure = Failure::system(error.errno, error.operation, subject.as_ref(), 0);
    failure.message = error.words();
    failure
}

/// The location that an engine on URLs is started with.
pub fn location_of(setup: &Setup) -> Result<&Location, Failure> {
    setup.location.as_ref().ok_or_else(|| {
        let what = VolumeError::new(libc::EINVAL, "start", "the engine without a location");
        failure(&what)
    })
}

/// A volume's error as the failure of a trial.
pub fn refused(error: VolumeError) -> Failure {
    failure(&error)
}

impl Engine for Rados {
    const BLOCKING: bool = false;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let pool = Pool::connect(location).map_err(refused)?;
        let object_bytes = location.size("object_size");
        let mut files = Vec::with_capacity(setup.files.len());
        for path in &setup.files {
            let name = volume::name_of(path).map_err(refused)?;
            volume::open_checked(&pool, name, setup).map_err(refused)?;
            files.push(name.to_owned());
        }
        let pieces = (setup.block_bytes as u64).div_ceil(object_bytes) as u32 + 1;
        let queue = Queue::new(
            Arc::<Context>::clone(pool.context()),
            setup.depth,
            setup.block_bytes,
            pieces,
        );
        let queue = queue.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
            Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
        })?;
        let version = pool.context().cluster().version();
        let depth = setup.depth as usize;
        Ok(Self {
            queue,
            files,
            object_bytes,
            progress: vec![Progress::default(); depth],
            waiting: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            notes: vec![format!(
                "rados: librados {version}, objects of {object_bytes} bytes; a write ends when every OSD of its \
                 placement group has it"
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

impl Queueing for Rados {
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
        let wanted = minimum as usize;
        let span = Duration::from_nanos(if completions.len() < wanted {
            timeout_ns
        } else {
            0
        });
        let progress = &mut self.progress;
        self.queue.reap(span, |slot, _, result| {
            if let Some(result) = progress[slot as usize].settle(result) {
                completions.push(Completion { slot, result });
            }
        });
        Ok(())
    }
}

impl Progress {
    /// Of an operation without a piece yet.
    pub fn of(operation: Operation) -> Self {
        Self {
            direction: Some(operation.direction),
            length: operation.length,
            ..Self::default()
        }
    }

    /// Takes a piece's result; the operation's, when this was its last piece.
    pub fn settle(&mut self, result: i64) -> Option<i64> {
        self.left -= 1;
        if result < 0 {
            self.result = self.result.min(result);
        } else if self.result >= 0 && self.direction == Some(Direction::Read) {
            self.result += result;
        }
        (self.left == 0).then(|| self.outcome())
    }

    /// A write that ended well moved all; reads add up what they found.
    pub fn outcome(&self) -> i64 {
        match self.direction {
            Some(Direction::Write) if self.result >= 0 => i64::from(self.length),
            _ => self.result,
        }
    }
}

impl Rados {
    /// Starts all pieces of an operation. Nothing is to be synced: a write ends when it is on the stores.
    fn begin(&mut self, slot: u32, operation: Operation) {
        let action = match operation.direction {
            Direction::Read => Action::Read,
            Direction::Write => Action::Write,
            Direction::Sync => {
                self.ended.push(Completion { slot, result: 0 });
                return;
            }
        };
        let file = &self.files[operation.file as usize];
        let mut state = Progress::of(operation);
        let (mut offset, mut start) = (operation.offset, operation.start as usize);
        let end = start + operation.length as usize;
        while start < end {
            let within = offset % self.object_bytes;
            let room = usize::try_from(self.object_bytes - within).unwrap_or(usize::MAX);
            let length = room.min(end - start);
            let object = object_name(file, offset, self.object_bytes);
            let place = (within, start, length);
            let result = self.queue.start((slot, state.left), action, &object, place);
            if result < 0 {
                state.result = state.result.min(result);
                break;
            }
            state.left += 1;
            offset += length as u64;
            start += length;
        }
        self.progress[slot as usize] = state;
        if state.left == 0 {
            let result = state.outcome();
            self.ended.push(Completion { slot, result });
        }
    }
}
