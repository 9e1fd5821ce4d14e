//! Engines of libraries whose calls block: as many threads as operations in flight, each with one of them.
//!
//! A buffer goes with its operation and comes back with its end, so that a thread that the library never gives
//! back keeps only what is its own.

use std::time::Duration;

use crate::error::Failure;
use crate::io::exchange::Exchange;
use crate::io::{
    Completion, Direction, Engine, Operation, Queueing, Setup, location_of, no_memory, open_each,
    refused,
};
use crate::schemes;
use crate::sync::Arc;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::OpenHow;
use crate::volume::{self, Handle, Volume};

/// How long a client may take to say goodbye: libcephfs writes back what it keeps when it is unmounted.
const GOODBYE: Duration = Duration::from_secs(30);

struct Task {
    slot: u32,
    operation: Operation,
    buffer: AlignedBuffer,
}

type Shared = Exchange<Task, (Completion, AlignedBuffer)>;

/// One load thread's files, and the threads that do its calls.
pub struct Pooled {
    shared: Arc<Shared>,
    buffers: Vec<Option<AlignedBuffer>>,
    queued: Vec<Task>,
    notes: Vec<String>,
}

impl Engine for Pooled {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let volume = schemes::connect(location).map_err(refused)?;
        let files = open_all(volume.as_ref(), setup)?;
        let shared = Arc::new(Shared::default());
        let mut buffers = Vec::with_capacity(setup.depth as usize);
        for number in 0..setup.depth {
            let buffer =
                AlignedBuffer::new(setup.block_bytes).map_err(|error| no_memory(&error))?;
            buffers.push(Some(buffer));
            match volume.lane().map_err(refused)? {
                Some(own) => start_thread(number, &shared, &open_again(own.as_ref(), setup)?)?,
                None => start_thread(number, &shared, &files)?,
            }
        }
        let (name, depth) = (location.scheme(), setup.depth);
        let calls = format!(
            "{name}: its calls block, so {depth} thread(s) keep {depth} operation(s) in flight"
        );
        Ok(Self {
            shared,
            buffers,
            queued: Vec::with_capacity(setup.depth as usize),
            notes: std::iter::once(calls).chain(volume.notes()).collect(),
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers[slot as usize]
            .as_mut()
            .expect("a slot in flight is not looked into")
            .as_mut_slice()
    }
}

type Files = Arc<[Arc<dyn Handle>]>;

fn open_all(volume: &dyn Volume, setup: &Setup) -> Result<Files, Failure> {
    open_each(setup, |name| {
        volume::open_checked(volume, name, setup.how, setup.file_bytes)
    })
}

/// Files that `open_all` has made already.
fn open_again(volume: &dyn Volume, setup: &Setup) -> Result<Files, Failure> {
    let how = OpenHow {
        fresh: false,
        ..setup.how
    };
    open_each(setup, |name| volume.open(name, how, setup.file_bytes))
}

fn start_thread(number: u32, shared: &Arc<Shared>, files: &Files) -> Result<(), Failure> {
    let (shared, files) = (Arc::clone(shared), Arc::clone(files));
    // The handle is dropped: a thread stuck in the library must not be joined.
    std::thread::Builder::new()
        .name(format!("call-{number}"))
        .spawn(move || serve(&shared, files))
        .map(|_| ())
        .map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
            Failure::system(errno, "start of a thread", "iodepth".as_ref(), 0)
        })
}

fn serve(shared: &Shared, files: Files) {
    while let Some(mut task) = shared.take() {
        let result = perform(&files, &task.operation, task.buffer.as_mut_slice());
        let completion = Completion {
            slot: task.slot,
            result,
        };
        shared.give((completion, task.buffer));
    }
    drop(files);
    shared.leave();
}

fn perform(files: &[Arc<dyn Handle>], operation: &Operation, buffer: &mut [u8]) -> i64 {
    let file = &files[operation.file as usize];
    let start = operation.start as usize;
    let part = &mut buffer[start..start + operation.length as usize];
    match operation.direction {
        Direction::Read => file.read_at(part, operation.offset),
        Direction::Write => file.write_at(part, operation.offset),
        Direction::Sync => file.sync(operation.data_only),
    }
}

impl Queueing for Pooled {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        let buffer = self.buffers[slot as usize]
            .take()
            .expect("a slot is queued once");
        self.queued.push(Task {
            slot,
            operation,
            buffer,
        });
    }

    fn submit(&mut self) -> Result<(), i32> {
        self.shared.post(self.queued.drain(..));
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        let timeout = Duration::from_nanos(timeout_ns);
        let buffers = &mut self.buffers;
        self.shared
            .collect(minimum as usize, timeout, |(completion, buffer)| {
                buffers[completion.slot as usize] = Some(buffer);
                completions.push(completion);
            });
        Ok(())
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.shared.close();
        // A process that ends while a thread still disconnects takes the library's tables from below it: it
        // crashes. Where an operation never came back, its thread never leaves either.
        if self.buffers.iter().all(Option::is_some) {
            self.shared.wait_left(self.buffers.len(), GOODBYE);
        }
    }
}
