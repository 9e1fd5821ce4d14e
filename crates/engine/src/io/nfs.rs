//! `libnfs`: files of an NFS export, as many operations in flight as the job says, by the library's asynchronous
//! calls on one connection of the thread: the thread itself sends and receives.

use std::time::Duration;

use crate::error::Failure;
use crate::io::rados::{location_of, refused};
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::sys::libnfs::{Action, OpenFile, Queue};
use crate::volume::{self, VolumeError};

/// An operation in pieces, one for each request that it takes.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Pieces that have not ended.
    left: u32,
    pieces: u32,
    /// The first error.
    error: i64,
}

/// One thread's files on an export.
pub struct Nfs {
    queue: Queue,
    files: Vec<OpenFile>,
    read_bytes_max: usize,
    write_bytes_max: usize,
    pieces_max: u32,
    write: Action,
    progress: Vec<Progress>,
    /// Of each piece of each slot: bytes asked for, and moved.
    moved: Vec<(u32, u32)>,
    waiting: Vec<(u32, Operation)>,
    /// Refused at once.
    ended: Vec<Completion>,
    notes: Vec<String>,
}

fn no_memory(error: &std::io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
    Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
}

impl Engine for Nfs {
    const BLOCKING: bool = false;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let mut session = volume::nfs_session(location).map_err(refused)?;
        let (read_bytes_max, write_bytes_max) = (
            session.read_bytes_max as usize,
            session.write_bytes_max as usize,
        );
        let mut files = Vec::with_capacity(setup.files.len());
        for path in &setup.files {
            let name = volume::name_of(path).map_err(refused)?;
            let file = volume::nfs_open(&mut session, name, setup.how).map_err(refused)?;
            if !setup.how.fresh {
                let found = session.facts(file).map(|facts| facts.size_bytes);
                let found =
                    found.map_err(|errno| refused(VolumeError::new(errno, "look at", name)))?;
                volume::check_size(name, found, setup.file_bytes).map_err(refused)?;
            }
            files.push(file);
        }
        let pieces_max = setup
            .block_bytes
            .div_ceil(read_bytes_max.min(write_bytes_max)) as u32;
        let queue = Queue::new(session, setup.depth, setup.block_bytes, pieces_max);
        let depth = setup.depth as usize;
        Ok(Self {
            queue: queue.map_err(|error| no_memory(&error))?,
            files,
            read_bytes_max,
            write_bytes_max,
            pieces_max,
            write: if setup.how.direct {
                Action::WriteThrough
            } else {
                Action::Write
            },
            progress: vec![Progress::default(); depth],
            moved: vec![(0, 0); depth * pieces_max as usize],
            waiting: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            notes: notes(
                location.text("version"),
                setup,
                (read_bytes_max, write_bytes_max),
            ),
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

fn notes(version: &str, setup: &Setup, (read, write): (usize, usize)) -> Vec<String> {
    let ends = if setup.how.direct {
        "a write ends when the server has it on its store"
    } else {
        "a write ends when the server has it, a sync (COMMIT) when it is on its store"
    };
    let mut notes = vec![format!(
        "nfs: version {version} through libnfs, one connection a thread; {ends}"
    )];
    let pieces = setup.block_bytes.div_ceil(read.min(write));
    if pieces > 1 {
        notes.push(format!(
            "nfs: a read request holds {read} bytes and a write request {write}: an operation of {} bytes goes out \
             as up to {pieces} requests at once",
            setup.block_bytes
        ));
    }
    notes
}

impl Queueing for Nfs {
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
        self.queue.push();
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        completions.append(&mut self.ended);
        let wanted = completions.len() < minimum as usize;
        let span = Duration::from_nanos(if wanted { timeout_ns } else { 0 });
        let (progress, moved, pieces_max) = (&mut self.progress, &mut self.moved, self.pieces_max);
        self.queue.reap(span, |slot, piece, result| {
            let state = &mut progress[slot as usize];
            let first = (slot * pieces_max) as usize;
            state.left -= 1;
            if result < 0 {
                state.error = state.error.min(result);
            } else {
                moved[first + piece as usize].1 = result as u32;
            }
            if state.left == 0 {
                let result = state.outcome(&moved[first..first + state.pieces as usize]);
                completions.push(Completion { slot, result });
            }
        });
        Ok(())
    }
}

impl Progress {
    /// Bytes from the beginning without a gap, or the error.
    fn outcome(&self, moved: &[(u32, u32)]) -> i64 {
        if self.error < 0 {
            return self.error;
        }
        let mut whole = 0;
        for (asked, found) in moved {
            whole += i64::from(*found);
            if found < asked {
                break;
            }
        }
        whole
    }
}

impl Nfs {
    /// Starts all pieces of an operation.
    fn begin(&mut self, slot: u32, operation: Operation) {
        let file = self.files[operation.file as usize];
        let (action, piece_bytes) = match operation.direction {
            Direction::Read => (Action::Read, self.read_bytes_max),
            Direction::Write => (self.write, self.write_bytes_max),
            Direction::Sync => (Action::Commit, usize::MAX),
        };
        let mut state = Progress::default();
        let (mut offset, mut start) = (operation.offset, operation.start as usize);
        let end = start
            + if action == Action::Commit {
                0
            } else {
                operation.length as usize
            };
        loop {
            let length = piece_bytes.min(end - start);
            let place = (offset, start, length);
            let result = self.queue.start((slot, state.left), action, file, place);
            if result < 0 {
                state.error = result;
                break;
            }
            let number = (slot * self.pieces_max + state.left) as usize;
            self.moved[number] = (length as u32, 0);
            state.left += 1;
            offset += length as u64;
            start += length;
            if start >= end {
                break;
            }
        }
        state.pieces = state.left;
        self.progress[slot as usize] = state;
        if state.left == 0 {
            let result = state.error;
            self.ended.push(Completion { slot, result });
        }
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        // A server that leaves operations unanswered would leave these as well.
        let files = if self.queue.is_idle() {
            self.files.as_slice()
        } else {
            &[]
        };
        for file in files {
            // A server that is gone has closed them already.
            let _ = self.queue.session().close(*file);
        }
    }
}
