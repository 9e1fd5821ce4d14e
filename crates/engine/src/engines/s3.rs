//! `s3`: objects of a bucket, as many operations in flight as the job says, each on a connection of its own that is
//! kept open. One runtime in the load thread does them all: no thread waits for a request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::Failure;
use crate::io::pieces::{Cut, cut};
use crate::io::{
    Completion, Direction, Engine, Operation, Queueing, Setup, location_of, no_memory, open_each,
    refused,
};
use crate::schemes;
use crate::schemes::s3::{Connection, Problem, Store, connection, store};
use crate::sys::buffer::AlignedBuffer;
use crate::volume;

/// The runtime's clock is this coarse: shorter waits look again and again.
const TICK: Duration = Duration::from_millis(2);

/// What a slot is made of; it goes with its operation and comes back with its end.
struct SlotKit {
    buffer: AlignedBuffer,
    connection: Connection,
}

type Ended = (Completion, SlotKit);

/// One thread's files in a bucket.
pub struct S3 {
    // Before what its tasks hold, so that it ends them first.
    runtime: Runtime,
    store: Arc<Store>,
    files: Vec<Arc<str>>,
    file_bytes: u64,
    kits: Vec<Option<SlotKit>>,
    waiting: Vec<(u32, Operation)>,
    ended: Vec<Completion>,
    sender: UnboundedSender<Ended>,
    receiver: UnboundedReceiver<Ended>,
    notes: Vec<String>,
}

impl Engine for S3 {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let volume = schemes::connect(location).map_err(refused)?;
        let files = open_each(setup, |name| {
            volume::open_checked(volume.as_ref(), name, setup.how, setup.file_bytes)?;
            Ok(name.into())
        })?;
        let store = Arc::new(store(location).map_err(refused)?);
        let runtime = Builder::new_current_thread().enable_all().build();
        let mut kits = Vec::with_capacity(setup.depth as usize);
        for _ in 0..setup.depth {
            let buffer =
                AlignedBuffer::new(setup.block_bytes).map_err(|error| no_memory(&error))?;
            let connection = Connection::default();
            kits.push(Some(SlotKit { buffer, connection }));
        }
        let (sender, receiver) = unbounded_channel();
        Ok(Self {
            runtime: runtime.map_err(|error| no_memory(&error))?,
            notes: notes(&store),
            store,
            files,
            file_bytes: setup.file_bytes,
            kits,
            waiting: Vec::with_capacity(setup.depth as usize),
            ended: Vec::with_capacity(setup.depth as usize),
            sender,
            receiver,
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.kits[slot as usize]
            .as_mut()
            .expect("a slot in flight is not looked into")
            .buffer
            .as_mut_slice()
    }
}

fn notes(store: &Store) -> Vec<String> {
    let parts = if store.part_bytes < store.object_bytes {
        format!(
            ", in parts of {} bytes, one after another",
            store.part_bytes
        )
    } else {
        String::new()
    };
    vec![format!(
        "s3: objects of {} bytes{parts}; a connection for each outstanding operation; a write ends when the service \
         has the whole object",
        store.object_bytes
    )]
}

impl Queueing for S3 {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.waiting.push((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        for (slot, operation) in self.waiting.drain(..) {
            if operation.direction == Direction::Sync {
                self.ended.push(Completion { slot, result: 0 });
                continue;
            }
            let mut kit = self.kits[slot as usize]
                .take()
                .expect("a slot is queued once");
            let file = Arc::clone(&self.files[operation.file as usize]);
            let (store, sender) = (Arc::clone(&self.store), self.sender.clone());
            let file_bytes = self.file_bytes;
            self.runtime.spawn(async move {
                let done = perform(&store, &mut kit, (&file, file_bytes), operation).await;
                let result = done.unwrap_or_else(|problem| -i64::from(problem.errno));
                // Nobody listens once the engine is gone.
                let _ = sender.send((Completion { slot, result }, kit));
            });
        }
        // So that what was queued is on its way.
        self.runtime.block_on(tokio::task::yield_now());
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        completions.append(&mut self.ended);
        let end = Instant::now() + Duration::from_nanos(timeout_ns);
        let (receiver, kits) = (&mut self.receiver, &mut self.kits);
        let mut take = |(completion, kit): Ended| {
            kits[completion.slot as usize] = Some(kit);
            completions.push(completion);
            1_u32
        };
        self.runtime.block_on(async {
            tokio::task::yield_now().await;
            let mut found = 0;
            loop {
                while let Ok(ended) = receiver.try_recv() {
                    found += take(ended);
                }
                let left = end.saturating_duration_since(Instant::now());
                if found >= minimum || left.is_zero() {
                    break;
                }
                if left < TICK {
                    tokio::task::yield_now().await;
                } else if let Ok(Some(ended)) =
                    tokio::time::timeout(left - TICK, receiver.recv()).await
                {
                    found += take(ended);
                }
            }
        });
        Ok(())
    }
}

/// One operation, object after object: bytes moved.
async fn perform(
    store: &Store,
    kit: &mut SlotKit,
    (file, file_bytes): (&str, u64),
    operation: Operation,
) -> Result<i64, Problem> {
    let mut moved = 0;
    for piece in cut(operation, Cut::At(store.object_bytes)) {
        let (offset, start, length) = (piece.offset, piece.start, piece.length);
        let within = offset % store.object_bytes;
        let key = store.object_key(file, offset);
        let part = &mut kit.buffer.as_mut_slice()[start..start + length];
        let done = match operation.direction {
            Direction::Read => {
                connection::get(store, &mut kit.connection, &key, (within, part)).await?
            }
            _ => {
                let whole = store.object_bytes.min(file_bytes - (offset - within));
                if within != 0 || length as u64 != whole {
                    return Err(Problem::new(libc::EINVAL, "an object is written whole"));
                }
                let body = Bytes::copy_from_slice(part);
                connection::put_whole(store, &mut kit.connection, &key, body).await?;
                length
            }
        };
        moved += done as i64;
        if done < length {
            break;
        }
    }
    Ok(moved)
}
