//! `rados`: objects of a Ceph pool, as many operations in flight as the job says, by librados's own
//! asynchronous calls: no thread of ours waits for a request.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Failure;
use crate::io::pieces::{Cut, InPieces, Piece, Pieced, pieces_max};
use crate::io::{Direction, Operation, Setup, location_of, no_memory, open_each, refused};
use crate::schemes::rados::{Pool, object_name};
use crate::sys::ceph::librados::Context;
use crate::sys::ceph::queue::{Action, Queue};
use crate::volume;

pub type Rados = InPieces<Objects>;

/// One thread's files in a pool.
pub struct Objects {
    queue: Queue,
    files: Vec<String>,
    object_bytes: u64,
    note: String,
}

impl Pieced for Objects {
    fn start(setup: &Setup) -> Result<(Self, u32), Failure> {
        let location = location_of(setup)?;
        let pool = Pool::connect(location).map_err(refused)?;
        let object_bytes = location.size("object_size");
        let files = open_each(setup, |name| {
            volume::open_checked(&pool, name, setup.how, setup.file_bytes)?;
            Ok(name.to_owned())
        })?;
        let pieces = pieces_max(setup.block_bytes, Cut::At(object_bytes));
        let context = Arc::<Context>::clone(pool.context());
        let queue = match setup.in_turn {
            true => Queue::of_writes_in_turn,
            false => Queue::new,
        };
        let queue = queue(context, setup.depth, setup.block_bytes, pieces);
        let version = pool.context().cluster().version();
        let this = Self {
            queue: queue.map_err(|error| no_memory(&error))?,
            files,
            object_bytes,
            note: format!(
                "rados: librados {version}, objects of {object_bytes} bytes; a write ends when every OSD of its \
                 placement group has it"
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
        (operation.direction != Direction::Sync).then_some(Cut::At(self.object_bytes))
    }

    fn begin(&mut self, place: (u32, u32), operation: &Operation, piece: Piece) -> i64 {
        let action = match operation.direction {
            Direction::Read => Action::Read,
            _ => Action::Write,
        };
        let file = &self.files[operation.file as usize];
        let object = object_name(file, piece.offset, self.object_bytes);
        let within = piece.offset % self.object_bytes;
        let part = (within, piece.start, piece.length);
        self.queue.start(place, action, &object, part)
    }

    fn reap(&mut self, timeout: Duration, settle: impl FnMut(u32, u32, i64)) {
        self.queue.reap(timeout, settle);
    }
}
