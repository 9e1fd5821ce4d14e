//! `xrootd`: files of an XRootD server, as many requests in flight as the job says, by its client's own
//! asynchronous calls: no thread of ours waits for a request.

use std::time::Duration;

use crate::error::Failure;
use crate::io::{
    Completion, Direction, Engine, Operation, Queueing, Setup, location_of, no_memory, open_each,
    refused,
};
use crate::schemes::root::Server;
use crate::sys::xrootd::{Part, Queue};

/// What a server takes in one part of a vector read, less the part's head (XRootD's protocol, kXR_readv).
const VECTOR_PART_BYTES_MAX: u32 = (2 << 20) - 16;

/// One thread's files.
pub struct Xrootd {
    queue: Queue,
    /// Bytes that each slot asked for.
    lengths: Vec<u32>,
    waiting: Vec<(u32, Operation)>,
    /// Reads of one file that go as one request.
    vector: Vec<Part>,
    vector_max: usize,
    /// Refused at once.
    ended: Vec<Completion>,
    notes: Vec<String>,
}

impl Engine for Xrootd {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let location = location_of(setup)?;
        let server = Server::connect(location).map_err(refused)?;
        let files = open_each(setup, |name| {
            server.open_checked(name, setup.how, setup.file_bytes)
        })?;
        let queue =
            Queue::new(files, setup.depth, setup.block_bytes).map_err(|error| no_memory(&error))?;
        let depth = setup.depth as usize;
        let vector_max = location.number("readv").unwrap_or(1).max(1) as usize;
        let vectors = if vector_max > 1 {
            format!(
                "; up to {vector_max} reads that are handed over together go as one vector read"
            )
        } else {
            String::new()
        };
        Ok(Self {
            queue,
            lengths: vec![0; depth],
            waiting: Vec::with_capacity(depth),
            vector: Vec::with_capacity(vector_max),
            vector_max,
            ended: Vec::with_capacity(depth),
            notes: vec![format!(
                "xrootd: client {}, all threads share {} connection(s) to the server{vectors}",
                server.version(),
                location.number("streams").unwrap_or(1),
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

impl Queueing for Xrootd {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.waiting.push((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut vector_file = 0;
        for (slot, operation) in waiting.drain(..) {
            let part = Part {
                slot,
                offset: operation.offset,
                start: operation.start as usize,
                length: operation.length,
            };
            self.lengths[slot as usize] = operation.length;
            if operation.direction == Direction::Read && operation.length <= VECTOR_PART_BYTES_MAX {
                if self.vector.len() == self.vector_max || vector_file != operation.file {
                    self.send_vector(vector_file);
                }
                vector_file = operation.file;
                self.vector.push(part);
                continue;
            }
            let result = match operation.direction {
                Direction::Read => self.queue.read(operation.file, &[part]),
                Direction::Write => self.queue.write(operation.file, part),
                Direction::Sync => self.queue.sync(operation.file, slot),
            };
            if result < 0 {
                self.ended.push(Completion { slot, result });
            }
        }
        self.send_vector(vector_file);
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
        self.queue.reap(span, &self.lengths, |slot, result| {
            completions.push(Completion { slot, result });
        });
        Ok(())
    }
}

impl Xrootd {
    /// Sends the reads that were gathered.
    fn send_vector(&mut self, file: u32) {
        let result = self.queue.read(file, &self.vector);
        if result < 0 {
            let refused = self.vector.iter().map(|part| Completion {
                slot: part.slot,
                result,
            });
            self.ended.extend(refused);
        }
        self.vector.clear();
    }
}
