//! `libnfs`: files of an NFS export, as many operations in flight as the job says, by the library's asynchronous
//! calls on one connection of the thread: the thread itself sends and receives.

use std::time::Duration;

use crate::error::Failure;
use crate::io::pieces::{Cut, InPieces, Piece, Pieced, pieces_max};
use crate::io::{Direction, Operation, Setup, location_of, no_memory, open_each, refused};
use crate::schemes::nfs::{open_in, session};
use crate::sys::libnfs::{Action, OpenFile, Queue};
use crate::volume::{self, VolumeError};

pub type Nfs = InPieces<Requests>;

/// One thread's files on an export.
pub struct Requests {
    queue: Queue,
    files: Vec<OpenFile>,
    read_bytes_max: usize,
    write_bytes_max: usize,
    write: Action,
    notes: Vec<String>,
}

impl Pieced for Requests {
    fn start(setup: &Setup) -> Result<(Self, u32), Failure> {
        let location = location_of(setup)?;
        let mut session = session(location).map_err(refused)?;
        let (read_bytes_max, write_bytes_max) = (
            session.read_bytes_max as usize,
            session.write_bytes_max as usize,
        );
        let files = open_each(setup, |name| {
            let file = open_in(&mut session, name, setup.how)?;
            if !setup.how.fresh {
                let found = session.facts(file);
                let found = found.map_err(|errno| VolumeError::new(errno, "look at", name))?;
                volume::check_size(name, found.size_bytes, setup.file_bytes)?;
            }
            Ok(file)
        })?;
        let least = read_bytes_max.min(write_bytes_max) as u64;
        let pieces = pieces_max(setup.block_bytes, Cut::Every(least));
        let queue = Queue::new(session, setup.depth, setup.block_bytes, pieces);
        let limits = (read_bytes_max, write_bytes_max);
        let this = Self {
            queue: queue.map_err(|error| no_memory(&error))?,
            files,
            read_bytes_max,
            write_bytes_max,
            write: if setup.how.direct {
                Action::WriteThrough
            } else {
                Action::Write
            },
            notes: notes(location.text("version"), setup, limits),
        };
        Ok((this, pieces))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.queue.buffer(slot)
    }

    fn cut(&self, operation: &Operation) -> Option<Cut> {
        Some(match operation.direction {
            Direction::Read => Cut::Every(self.read_bytes_max as u64),
            Direction::Write => Cut::Every(self.write_bytes_max as u64),
            Direction::Sync => Cut::Whole,
        })
    }

    fn begin(&mut self, place: (u32, u32), operation: &Operation, piece: Piece) -> i64 {
        let action = match operation.direction {
            Direction::Read => Action::Read,
            Direction::Write => self.write,
            Direction::Sync => Action::Commit,
        };
        let file = self.files[operation.file as usize];
        let part = (piece.offset, piece.start, piece.length);
        self.queue.start(place, action, file, part)
    }

    fn push(&mut self) {
        self.queue.push();
    }

    fn reap(&mut self, timeout: Duration, settle: impl FnMut(u32, u32, i64)) {
        self.queue.reap(timeout, settle);
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

impl Drop for Requests {
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
