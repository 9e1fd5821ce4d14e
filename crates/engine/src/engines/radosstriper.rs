//! `radosstriper`: files striped over the objects of a pool, by libradosstriper's asynchronous calls or, where the
//! URL says `calls=threads`, by its blocking ones.
//!
//! Before the data of an operation the library waits for several round trips to the file's first object (a lock, the
//! layout, of a write also its creation and size) within the call that starts it. That wait is submission latency
//! and bounds what one load thread has in flight; threads that block do not wait for each other.
//!
//! `rados_striper_aio_read` puts no more than one piece of each object into the caller's memory (Objecter copies into
//! memory that is one buffer, and the striper hands it a list). So a read is cut where a stripe unit ends.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Failure;
use crate::io::pieces::{Cut, InPieces, Piece, Pieced, pieces_max};
use crate::io::pooled::Pooled;
use crate::io::{
    Completion, Direction, Engine, Operation, Queueing, Setup, location_of, no_memory, open_each,
    refused,
};
use crate::schemes::radosstriper::{StripedPool, layout_words, striped_name};
use crate::sys::ceph::libradosstriper::Striper;
use crate::sys::ceph::queue::{Action, Queue};
use crate::volume;

/// One load thread's striped files, by either kind of calls.
pub enum RadosStriper {
    Asynchronous(Box<InPieces<Stripes>>),
    Threads(Pooled),
}

/// Operations in flight without a thread for each.
pub struct Stripes {
    queue: Queue,
    files: Vec<CString>,
    unit_bytes: u64,
    note: String,
}

impl Engine for RadosStriper {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        if location_of(setup)?.text("calls") == "threads" {
            Pooled::start(setup).map(Self::Threads)
        } else {
            InPieces::start(setup).map(|engine| Self::Asynchronous(Box::new(engine)))
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Self::Asynchronous(engine) => engine.notes(),
            Self::Threads(engine) => engine.notes(),
        }
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        match self {
            Self::Asynchronous(engine) => engine.buffer(slot),
            Self::Threads(engine) => engine.buffer(slot),
        }
    }
}

impl Queueing for RadosStriper {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        match self {
            Self::Asynchronous(engine) => engine.queue(slot, operation),
            Self::Threads(engine) => engine.queue(slot, operation),
        }
    }

    fn submit(&mut self) -> Result<(), i32> {
        match self {
            Self::Asynchronous(engine) => engine.submit(),
            Self::Threads(engine) => engine.submit(),
        }
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        match self {
            Self::Asynchronous(engine) => engine.reap(minimum, timeout_ns, completions),
            Self::Threads(engine) => engine.reap(minimum, timeout_ns, completions),
        }
    }
}

impl Pieced for Stripes {
    fn start(setup: &Setup) -> Result<(Self, u32), Failure> {
        let location = location_of(setup)?;
        let pool = StripedPool::connect(location).map_err(refused)?;
        let files = open_each(setup, |name| {
            volume::open_checked(&pool, name, setup.how, setup.file_bytes)?;
            Ok(striped_name(name))
        })?;
        let unit_bytes = location.size("stripe_unit");
        let pieces = pieces_max(setup.block_bytes, Cut::At(unit_bytes));
        let striper = Arc::<Striper>::clone(pool.striper());
        let queue = match setup.in_turn {
            true => Queue::of_writes_in_turn,
            false => Queue::new,
        };
        let queue = queue(striper, setup.depth, setup.block_bytes, pieces);
        let this = Self {
            queue: queue.map_err(|error| no_memory(&error))?,
            files,
            unit_bytes,
            note: format!(
                "radosstriper: librados {}, {}; the library waits for locks and layout within the call that starts an \
                 operation: that is its submission latency, and calls=threads does not wait so",
                pool.version(),
                layout_words(location)
            ),
        };
        Ok((this, pieces))
    }

    fn notes(&self) -> Vec<String> {
        vec![self.note.clone()]
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.queue.buffer(slot)
    }

    /// Nothing is to be synced: a write ends when it is on the stores.
    fn cut(&self, operation: &Operation) -> Option<Cut> {
        match operation.direction {
            Direction::Read => Some(Cut::At(self.unit_bytes)),
            Direction::Write => Some(Cut::Whole),
            Direction::Sync => None,
        }
    }

    fn begin(&mut self, place: (u32, u32), operation: &Operation, piece: Piece) -> i64 {
        let action = match operation.direction {
            Direction::Read => Action::Read,
            _ => Action::Write,
        };
        let file = &self.files[operation.file as usize];
        let part = (piece.offset, piece.start, piece.length);
        self.queue.start(place, action, file, part)
    }

    fn reap(&mut self, timeout: Duration, settle: impl FnMut(u32, u32, i64)) {
        self.queue.reap(timeout, settle);
    }
}
