//! What the thread of one stream does: it walks through its file, so many requests in flight.
//!
//! Data are made, read and summed up a chunk at a time, and acknowledgements looked for in between: a buffer of a
//! gibibyte takes longer than many a request. A checksum follows the order of the file: a buffer that was read is
//! not used again before all that lie in front of it were summed up.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::acks::Ack;
use super::flow::Checksums;
use super::flow::Flow;
use super::runner::{StreamRow, Transfers};
use crate::blocks::source::sync_of;
use crate::error::Failure;
use crate::io::{Completion, Direction, Operation, Queueing, Setup};
use crate::job::Arrival;
use crate::pattern::{BLOCK_BYTES, is_zero};
use crate::random::Random;
use crate::sync::lock;
use crate::sys::file::OpenHow;
use crate::sys::process::thread_cpu;
use crate::trial::context::{Context, ThreadEnd};
use crate::trial::pacer::Pacer;
use crate::worker::{Meter, Times, WAIT_MAX_NS, fail_submission, failure_of, live, note_vanished};

/// What is made or summed up at once, some 100 us.
const CHUNK_BYTES: usize = 256 << 10;

/// The whole life of a stream's thread.
pub fn run<E: Queueing>(shared: &Transfers, stream: u32) {
    let prepare = || {
        let stream = Stream::<E>::prepare(shared, stream)?;
        let notes = stream.engine.notes();
        Ok((stream, notes))
    };
    live(&shared.context, stream, prepare, Stream::run);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Nothing new; what is in flight ends.
    Draining,
    Syncing,
    Done,
}

#[derive(Clone, Copy)]
struct Slot {
    /// What is left to do: less than the whole after a short transfer.
    operation: Operation,
    length: u32,
    times: Times,
}

/// A request whose data are being made.
struct Preparing {
    slot: u32,
    offset: u64,
    length: u32,
    made: u32,
    /// As it was without it, in case it is never sent.
    before: Option<Checksums>,
}

/// A buffer that was read, or is to be, and waits for its turn in the checksum.
struct Turn {
    slot: u32,
    length: u32,
    summed: u32,
    is_here: bool,
}

struct Stream<'a, E: Queueing> {
    shared: &'a Transfers,
    context: &'a Context,
    number: u32,
    direction: Direction,
    engine: E,
    meter: Meter<'a>,
    flow: Flow<'a>,
    pacer: Option<Pacer>,
    phase: Phase,
    /// Where the next request begins; `None` once the file is done.
    next: Option<u64>,
    preparing: Option<Preparing>,
    turns: VecDeque<Turn>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    completions: Vec<Completion>,
    end_ns: u64,
    /// When a slot became free after all were taken.
    freed_ns: u64,
    row: StreamRow,
}

impl<'a, E: Queueing> Stream<'a, E> {
    fn prepare(shared: &'a Transfers, number: u32) -> Result<Self, Failure> {
        let (job, context) = (&shared.job, &shared.context);
        let direction = job.direction(number);
        let writes = direction == Direction::Write;
        let depth = job.in_flight;
        let flow = Flow::open(shared, number)?;
        let engine = E::start(&Setup {
            depth,
            block_bytes: job.buffer as usize,
            files: vec![context.job.file_path(number, 0)],
            file_bytes: job.size,
            how: OpenHow {
                write: writes,
                fresh: writes,
                direct: job.direct,
            },
            random: false,
            in_turn: writes,
            location: job.location.clone(),
            ..Setup::default()
        })?;
        let idle = Slot {
            operation: sync_of(0),
            length: 0,
            times: Times::default(),
        };
        let phase = f64::from(number) / f64::from(job.streams);
        let pacer = |rate| Pacer::new(Arrival::Constant, rate, phase, Random::new(job.seed, 0));
        Ok(Self {
            shared,
            context,
            number,
            direction,
            engine,
            meter: Meter::new(context, number, E::BLOCKING),
            flow,
            pacer: job.stream_rate().map(pacer),
            phase: Phase::Running,
            next: Some(0),
            preparing: None,
            turns: VecDeque::with_capacity(depth as usize),
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            completions: Vec::with_capacity(depth as usize),
            end_ns: match job.runtime_ns {
                0 => u64::MAX,
                runtime => job.ramp_time_ns + runtime,
            },
            freed_ns: 0,
            row: lock(&shared.rows[number as usize]).clone(),
        })
    }

    fn run(&mut self) -> ThreadEnd {
        self.meter.wait_for_start();
        let cpu = thread_cpu();
        self.stream();
        let cpu = thread_cpu().since(cpu);
        note_vanished(self.context, self.number, &mut self.engine);
        self.tell();
        self.meter.hand_over_rest();
        self.meter.end(cpu)
    }

    /// What the summary says of this stream.
    fn tell(&mut self) {
        self.row.ended_ns = Some(self.meter.now());
        self.flow.tell(&mut self.row);
        *lock(&self.shared.rows[self.number as usize]) = std::mem::take(&mut self.row);
    }

    fn stream(&mut self) {
        loop {
            let now = self.meter.now();
            if now >= self.meter.wake_ns || self.context.alarm.is_stopping() {
                self.look(now);
            }
            let Ok(mut is_busy) = self.advance(now) else {
                break;
            };
            is_busy |= self.sum_up();
            if self.meter.total_in_flight() == 0 {
                match self.phase {
                    Phase::Done => break,
                    Phase::Running if !is_busy => self.meter.wait_until(self.next_event_ns()),
                    _ => {}
                }
                continue;
            }
            if self.context.is_abandoned() || !self.reap(is_busy) {
                break;
            }
            self.meter.publish();
        }
    }

    /// The end of an interval, of the runtime, or of the trial.
    #[cold]
    fn look(&mut self, now: u64) {
        let alarm = &self.context.alarm;
        if self.phase == Phase::Running && (now >= self.end_ns || alarm.is_stopping()) {
            self.drain();
        }
        let running = self.phase == Phase::Running;
        self.meter.pass(now, running.then_some(self.end_ns));
    }

    /// Sends nothing more; what was made and not sent is no part of the checksum.
    fn drain(&mut self) {
        self.phase = Phase::Draining;
        self.next = None;
        if let Some(preparing) = self.preparing.take() {
            if self.direction == Direction::Write {
                self.flow.go_back(preparing.before);
            }
            self.free.push(preparing.slot);
        }
    }

    /// Does the next thing that need not be waited for: true when there was one.
    fn advance(&mut self, now: u64) -> Result<bool, ()> {
        match self.phase {
            Phase::Running => self.advance_running(now),
            Phase::Draining if self.meter.total_in_flight() == 0 && !self.has_turns() => {
                let writes = self.direction == Direction::Write;
                let failed = self.context.alarm.failure().is_some();
                if !(self.shared.job.end_sync && writes) || failed {
                    self.phase = Phase::Done;
                    return Ok(true);
                }
                self.phase = Phase::Syncing;
                let slot = self.free.pop().ok_or(())?;
                self.begin(slot, sync_of(0), 0).map(|()| true)
            }
            Phase::Syncing if self.meter.total_in_flight() == 0 => {
                self.phase = Phase::Done;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn has_turns(&self) -> bool {
        self.turns.iter().any(|turn| turn.is_here)
    }

    fn advance_running(&mut self, now: u64) -> Result<bool, ()> {
        if self.preparing.is_none() {
            let Some(offset) = self.next else {
                self.drain();
                return Ok(true);
            };
            let Some(slot) = self.free.pop() else {
                return Ok(false);
            };
            self.preparing = Some(self.next_request(slot, offset));
        }
        let Some(mut preparing) = self.preparing.take() else {
            return Ok(false);
        };
        if preparing.made < preparing.length {
            let made = self.make(&mut preparing);
            self.preparing = Some(preparing);
            if let Err(failure) = made {
                self.context.alarm.fail(failure);
                self.drain();
            }
            return Ok(true);
        }
        let intended = match &mut self.pacer {
            Some(pacer) if pacer.peek_ns() > now => {
                self.preparing = Some(preparing);
                return Ok(false);
            }
            Some(pacer) => pacer.take_ns(),
            None => 0,
        };
        let operation = Operation {
            direction: self.direction,
            offset: preparing.offset,
            length: preparing.length,
            ..sync_of(0)
        };
        if self.direction == Direction::Read && self.flow.has_checksum() {
            self.turns.push_back(Turn {
                slot: preparing.slot,
                length: preparing.length,
                summed: 0,
                is_here: false,
            });
        }
        self.begin(preparing.slot, operation, intended)
            .map(|()| true)
    }

    /// The request that begins at `offset`; of a read nothing is to be made.
    fn next_request(&mut self, slot: u32, offset: u64) -> Preparing {
        let job = &self.shared.job;
        let length = job.buffer.min(job.size - offset);
        let end = offset + length;
        self.next = match job.time_based {
            true => Some(end % job.size),
            false => (end < job.size).then_some(end),
        };
        let writes = self.direction == Direction::Write;
        // Nobody looks into buffers that never meet storage, unless they are summed up.
        let is_made = writes && (E::MOVES_DATA || self.flow.is_looked_at());
        Preparing {
            slot,
            offset,
            length: length as u32,
            made: if is_made { 0 } else { length as u32 },
            before: if writes { self.flow.mark() } else { None },
        }
    }

    /// Makes the next chunk of what is written, and adds it to the checksum.
    fn make(&mut self, preparing: &mut Preparing) -> Result<(), Failure> {
        let first = preparing.made as usize;
        let end = (first + CHUNK_BYTES).min(preparing.length as usize);
        let offset = preparing.offset + first as u64;
        let (meter, part) = (
            &self.meter,
            &mut self.engine.buffer(preparing.slot)[first..end],
        );
        self.flow.make(part, offset, || meter.now())?;
        preparing.made = end as u32;
        Ok(())
    }

    /// Adds the next chunk of what was read to the checksum, if it is here.
    fn sum_up(&mut self) -> bool {
        let Some(turn) = self.turns.front_mut().filter(|turn| turn.is_here) else {
            return false;
        };
        let first = turn.summed as usize;
        let end = (first + CHUNK_BYTES).min(turn.length as usize);
        let (meter, part) = (&self.meter, &self.engine.buffer(turn.slot)[first..end]);
        self.flow.sum_up(part, || meter.now());
        turn.summed = end as u32;
        if turn.summed == turn.length {
            self.free.push(turn.slot);
            self.turns.pop_front();
        }
        true
    }

    /// Hands one request over.
    fn begin(&mut self, slot: u32, operation: Operation, intended: u64) -> Result<(), ()> {
        let now = self.meter.now();
        let direction = operation.direction;
        if self.pacer.is_some() {
            let freed = self.freed_ns;
            self.meter.count_lateness(direction, (intended, now), freed);
        }
        self.meter.account(now);
        self.meter.in_flight[direction as usize] += 1;
        self.slots[slot as usize] = Slot {
            operation,
            length: operation.length,
            times: Times::at(now, intended),
        };
        if direction != Direction::Sync {
            self.row.first_submitted_ns.get_or_insert(now);
            self.row.last_submitted_ns = Some(now);
        }
        self.engine.queue(slot, operation);
        self.submit()?;
        let submitted = self.meter.now();
        self.slots[slot as usize].times.submitted_ns = submitted;
        if let Some(submission) = &mut self.meter.set.of(direction).submission {
            submission.record(submitted - now);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<(), ()> {
        self.engine
            .submit()
            .map_err(|errno| fail_submission(self.context, self.number, errno))
    }

    /// Takes what was acknowledged, after waiting for it unless there is something else to do.
    fn reap(&mut self, is_busy: bool) -> bool {
        let was_full = self.free.is_empty();
        let now = self.meter.now();
        let timeout = self.next_event_ns().saturating_sub(now).min(WAIT_MAX_NS);
        let minimum = u32::from(!is_busy && timeout > 0);
        self.completions.clear();
        let reaped = self.engine.reap(minimum, timeout, &mut self.completions);
        if let Err(errno) = reaped {
            fail_submission(self.context, self.number, errno);
            return false;
        }
        if self.completions.is_empty() {
            return true;
        }
        let done = self.meter.now();
        self.meter.account(done);
        for index in 0..self.completions.len() {
            if self.settle(self.completions[index], done).is_err() {
                return false;
            }
        }
        if was_full && !self.free.is_empty() {
            self.freed_ns = done;
        }
        true
    }

    /// When the loop must look up: the next arrival that data are ready for, or the next boundary.
    fn next_event_ns(&self) -> u64 {
        let ready = self.pacer.as_ref().filter(|_| self.preparing.is_some());
        ready.map_or(self.meter.wake_ns, |pacer| {
            pacer.peek_ns().min(self.meter.wake_ns)
        })
    }

    /// One completion: the request has ended, or the rest of it goes on.
    fn settle(&mut self, completion: Completion, done: u64) -> Result<(), ()> {
        let slot = self.slots[completion.slot as usize];
        let (operation, result) = (slot.operation, completion.result);
        let is_whole = result == i64::from(operation.length);
        if result > 0 && !is_whole {
            let moved = result as u32;
            let rest = &mut self.slots[completion.slot as usize].operation;
            rest.start += moved;
            rest.offset += u64::from(moved);
            rest.length -= moved;
            let rest = *rest;
            self.meter.set.of(operation.direction).short += 1;
            self.engine.queue(completion.slot, rest);
            return self.submit();
        }
        self.meter.in_flight[operation.direction as usize] -= 1;
        if is_whole {
            let (direction, length) = (operation.direction, slot.length);
            self.meter.count(direction, length, slot.times, done);
        } else {
            self.fail(operation, result);
        }
        if operation.direction == Direction::Sync {
            self.row.synced_ns = is_whole.then_some(done);
            self.free.push(completion.slot);
            return Ok(());
        }
        self.acknowledge(&slot, result, done);
        self.release(completion.slot, is_whole);
        Ok(())
    }

    fn acknowledge(&mut self, slot: &Slot, result: i64, done: u64) {
        let moved = u64::from(slot.operation.start) + result.max(0) as u64;
        self.row.bytes += moved;
        self.row.requests += 1;
        self.row.last_acked_ns = Some(done);
        let ack = Ack {
            stream: self.number,
            direction: self.direction,
            offset: slot.operation.offset - u64::from(slot.operation.start),
            length: u64::from(slot.length),
            submitted_ns: slot.times.start_ns,
            acked_ns: done,
            result: if result < 0 { result } else { moved as i64 },
        };
        let context = self.context;
        let ring = &self.shared.rings[self.number as usize];
        if ring.put(ack, &context.alarm, || context.is_abandoned()) {
            self.shared.acks_waited.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Frees the slot, now or when what was read is summed up.
    fn release(&mut self, slot: u32, is_whole: bool) {
        if self.direction == Direction::Read {
            if is_whole {
                self.inspect(slot);
            }
            if let Some(turn) = self.turns.iter_mut().find(|turn| turn.slot == slot) {
                turn.is_here = is_whole;
                return;
            }
        }
        self.free.push(slot);
    }

    /// Counts a first block that was never written.
    fn inspect(&mut self, slot: u32) {
        if !E::MOVES_DATA || (self.slots[slot as usize].length as usize) < BLOCK_BYTES {
            return;
        }
        if is_zero(&self.engine.buffer(slot)[..BLOCK_BYTES]) {
            self.meter.set.unwritten_blocks += 1;
        }
    }

    #[cold]
    fn fail(&self, operation: Operation, result: i64) {
        let path = self.context.job.file_path(self.number, 0);
        let failure = failure_of(operation, result, &path);
        self.context.alarm.fail(failure);
    }
}
