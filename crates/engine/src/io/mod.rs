//! The seam between the worker and what moves the data: the traits that an engine implements, and what several
//! engines are made of. The engines themselves are in `schemes`.
//!
//! An engine owns its files and its buffers. `queue`, `submit` and `reap` suit an asynchronous library with
//! completions of its own; a blocking engine has `perform` instead.

mod exchange;
pub mod pieces;
pub mod pooled;

use std::io;
use std::path::PathBuf;

use crate::error::Failure;
use crate::schemes::Location;
use crate::sys::file::OpenHow;
use crate::volume::{self, Outcome, VolumeError};

/// What an operation does. The order is that of every array indexed by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    Read = 0,
    Write = 1,
    Sync = 2,
}

impl Direction {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Sync];

    /// The word for it in records.
    pub fn name(self) -> &'static str {
        ["read", "write", "sync"][self as usize]
    }
}

/// One operation: `length` bytes at `offset` of file number `file`, to or from `start` in the slot's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub direction: Direction,
    pub file: u32,
    pub offset: u64,
    pub start: u32,
    pub length: u32,
    /// Of a sync: the file's data, and of its metadata only what reading the data needs.
    pub data_only: bool,
}

/// The end of the operation in `slot`: bytes moved, or minus errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub slot: u32,
    pub result: i64,
}

/// What an engine is given to start with.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Slots, each with a buffer of `block_bytes`.
    pub depth: u32,
    pub block_bytes: usize,
    pub files: Vec<PathBuf>,
    pub file_bytes: u64,
    pub how: OpenHow,
    pub random: bool,
    /// Of writes: each is handed over before the data of the next one are made. Where the library copies what it is
    /// handed, one buffer is enough.
    pub in_turn: bool,
    /// A thread of the kernel submits (io_uring only).
    pub sqthread_poll: bool,
    /// Where the files are, when no mount holds them.
    pub location: Option<Location>,
    /// What is open already, to be used in place of a file by name.
    pub descriptor: Option<i32>,
}

/// Moves data for one thread. Made, used and dropped in that thread. An engine is `Blocking` or `Queueing`.
pub trait Engine: Sized {
    /// True when an operation is done when its call returns; there is no submission latency then.
    const BLOCKING: bool = false;
    /// False when buffers never meet storage, so that looking into them says nothing.
    const MOVES_DATA: bool = true;

    /// Opens the files and makes the buffers, all memory touched.
    fn start(setup: &Setup) -> Result<Self, Failure>;

    /// What a reader of the result should know (a fallback that was taken, for instance).
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The buffer of a slot that is not in flight.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// The first file that was deleted while it was open, if the engine can tell.
    fn vanished(&mut self) -> Option<usize> {
        None
    }

    /// Drops what the page cache holds of the files, where these go through one: clean pages only.
    fn forget(&mut self) {}
}

/// One call at a time, in slot 0.
pub trait Blocking: Engine {
    /// Does one operation to its end: bytes moved, or minus errno.
    fn perform(&mut self, operation: Operation) -> i64;
}

/// Up to `depth` operations at a time.
pub trait Queueing: Engine {
    /// Takes an operation into a free slot; at most `depth` are queued or in flight.
    fn queue(&mut self, slot: u32, operation: Operation);

    /// Hands all queued operations over. An errno is a failure of the engine, not of an operation.
    fn submit(&mut self) -> Result<(), i32>;

    /// Appends finished operations, waiting for `minimum` of them (0 or 1) at most `timeout_ns`.
    /// `completions` has room for `depth`.
    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32>;
}

/// Opens each file of a job by its name.
pub fn open_each<T, C: FromIterator<T>>(
    setup: &Setup,
    mut open: impl FnMut(&str) -> Outcome<T>,
) -> Result<C, Failure> {
    let opened = setup.files.iter().map(|path| open(volume::name_of(path)?));
    opened.collect::<Outcome<_>>().map_err(refused)
}

/// The location that an engine on URLs is started with.
pub fn location_of(setup: &Setup) -> Result<&Location, Failure> {
    setup.location.as_ref().ok_or_else(|| {
        let what = "the engine without a location";
        refused(VolumeError::new(libc::EINVAL, "start", what))
    })
}

/// A volume's error as the failure of a trial.
pub fn refused(error: VolumeError) -> Failure {
    let subject = error.subject.as_str();
    let mut failure = Failure::system(error.errno, error.operation, subject.as_ref(), 0);
    failure.message = error.words();
    failure
}

/// Buffers that cannot be had.
pub fn no_memory(error: &io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
    Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
}

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
