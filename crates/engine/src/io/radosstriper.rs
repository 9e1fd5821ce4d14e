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
use crate::io::pooled::Pooled;
use crate::io::rados::{Progress, location_of, refused};
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::location::Location;
use crate::sys::libradosstriper::Striper;
use crate::sys::rados_queue::{Action, Queue};
use crate::volume::{self, StripedPool, striped_name};

/// One load thread's striped files, by either kind of calls.
pub enum RadosStriper {
    Asynchronous(Asynchronous),
    Threads(Pooled),
}

/// Operations in flight without a thread for each.
pub struct Asynchronous {
    queue: Queue,
    files: Vec<CString>,
    unit_bytes: u64,
    progress: Vec<Progress>,
    waiting: Vec<(u32, Operation)>,
    /// Ended without the cluster: syncs, and operations that were refused at once.
    ended: Vec<Completion>,
    notes: Vec<String>,
}

impl Engine for RadosStriper {
    const BLOCKING: bool = false;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        if location_of(setup)?.text("calls") == "threads" {
            Pooled::start(setup).map(Self::Threads)
        } else {
            Asynchronous::start(setup).map(Self::Asynchronous)
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Self::Asynchronous(engine) => engine.notes.clone(),
            Self::Threads(engine) => engine.notes(),
        }
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        match self {
            Self::Asynchronous(engine) => engine.queue.buffer(slot),
            Self::Threads(engine) => engine.buffer(slot),
        }
    }
}

impl Queueing for RadosStriper {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        match self {
            Self::Asynchronous(engine) => engine.waiting.push((slot, operation)),
            Self::Threads(engine) => engine.queue(slot, operation),
        }
    }

    fn submit(&mut self) -> Result<(), i32> {
        match self {
            Self::Asynchronous(engine) => engine.submit(),
            Self::Threads(engine) => return engine.submit(),
        }
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        match self {
            Self::Asynchronous(engine) => engine.reap(minimum, timeout_ns, completions),
            Self::Threads(engine) => return engine.reap(minimum, timeout_ns, completions),
        }
        Ok(())
    }
}

/// The layout in the URL's words.
fn layout_words(location: &Location) -> String {
    let word = |name: &str| format!("{name} {}", location.text(name));
    ["stripe_unit", "stripe_count", "object_size"]
        .map(word)
        .join(", ")
}

impl Asynchronous {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let pool = StripedPool::connect(location).map_err(refused)?;
        let mut files = Vec::with_capacity(setup.files.len());
        for path in &setup.files {
            let name = volume::name_of(path).map_err(refused)?;
            volume::open_checked(&pool, name, setup).map_err(refused)?;
            files.push(striped_name(name));
        }
        let unit_bytes = location.size("stripe_unit");
        let pieces = (setup.block_bytes as u64).div_ceil(unit_bytes) as u32 + 1;
        let striper = Arc::<Striper>::clone(pool.striper());
        let queue = Queue::new(striper, setup.depth, setup.block_bytes, pieces);
        let queue = queue.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
            Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
        })?;
        let depth = setup.depth as usize;
        Ok(Self {
            queue,
            files,
            unit_bytes,
            progress: vec![Progress::default(); depth],
            waiting: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            notes: vec![format!(
                "radosstriper: librados {}, {}; the library waits for locks and layout within the call that starts an \
                 operation: that is its submission latency, and calls=threads does not wait so",
                pool.version(),
                layout_words(location)
            )],
        })
    }

    fn submit(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (slot, operation) in waiting.drain(..) {
            self.begin(slot, operation);
        }
        self.waiting = waiting;
    }

    fn reap(&mut self, minimum: u32, timeout_ns: u64, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
        let waits = completions.len() < minimum as usize;
        let span = Duration::from_nanos(if waits { timeout_ns } else { 0 });
        let progress = &mut self.progress;
        self.queue.reap(span, |slot, _, result| {
            if let Some(result) = progress[slot as usize].settle(result) {
                completions.push(Completion { slot, result });
            }
        });
    }

    /// Starts all pieces of an operation. Nothing is to be synced: a write ends when it is on the stores.
    fn begin(&mut self, slot: u32, operation: Operation) {
        let (action, piece_bytes) = match operation.direction {
            Direction::Read => (Action::Read, self.unit_bytes),
            Direction::Write => (Action::Write, u64::MAX),
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
            let room = piece_bytes - offset % piece_bytes;
            let length = usize::try_from(room).unwrap_or(usize::MAX).min(end - start);
            let place = (offset, start, length);
            let result = self.queue.start((slot, state.left), action, file, place);
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
