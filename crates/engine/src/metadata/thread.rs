//! What each thread does in a step: one call (or two) of its storage after the other, one reading of the clock for
//! each, nothing allocated in between.

use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::runner::{Lap, Shared};
use super::steps::Tree;
use super::steps::{NOTHING, RENAMED, Step, TREE};
use crate::error::Failure;
use crate::histogram::Counts;
use crate::io::refused;
use crate::pattern::Stamp;
use crate::schemes::{self, LocalNames};
use crate::sync::lock;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::metadata::Name;
use crate::sys::process::{own_file_table, thread_cpu};
use crate::trial::parts::Part;
use crate::trial::runner::guarded;
use crate::volume::names::{Names, Operation};
use crate::volume::{self, VolumeError};

const CHUNK_BYTES: u64 = 1 << 20;
/// What one call lists at most, as libc's readdir asks for.
const LISTING_BYTES: usize = 32 << 10;
/// Progress is told every so many operations.
const TOLD_EVERY: u64 = 256;

/// One thread's trial. What is mounted is called directly, without the step through a table.
struct Thread<'a, N: Names + ?Sized> {
    shared: &'a Shared,
    names: &'a mut N,
    number: u32,
    tree: Tree,
    buffer: AlignedBuffer,
    /// What is used of it.
    buffer_bytes: usize,
    counts: Counts,
    step: Step,
    /// Of the interval that is on: its end, and what was done in it.
    index: u32,
    wake_ns: u64,
    in_interval: u64,
    bytes_in_interval: u64,
    busy_ns: u64,
    lap: Lap,
    /// When the operation that is on began.
    last_ns: u64,
}

/// The whole life of a thread: step after step, until there is none.
pub fn run(shared: &Shared, number: u32) {
    let hand = &shared.hands[number as usize];
    work(shared, number);
    hand.gone.store(true, Ordering::Relaxed);
    shared.alarm.ring();
}

/// When it returns, this thread's hold on the storage is given up.
fn work(shared: &Shared, number: u32) {
    let Some(location) = &shared.job.location else {
        own_file_table();
        let names = volume::own_directory(&shared.job.directory).map(LocalNames::below);
        return match names {
            Ok(mut names) => serve(shared, number, Some(&mut names)),
            Err(error) => fail(shared, number, error),
        };
    };
    // Held beside the names, so that all threads use one connection.
    let volume = schemes::connect(location);
    let names = volume
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|volume| volume.names());
    match names {
        Ok(mut names) => serve(shared, number, Some(names.as_mut())),
        Err(error) => fail(shared, number, error),
    }
}

fn fail(shared: &Shared, number: u32, error: VolumeError) {
    shared.alarm.fail(refused(error));
    serve::<dyn Names>(shared, number, None);
}

/// Without names, steps are only acknowledged: the trial has failed already.
fn serve<N: Names + ?Sized>(shared: &Shared, number: u32, mut names: Option<&mut N>) {
    let hand = &shared.hands[number as usize];
    let mut done = 0;
    loop {
        let (next, Some(step)) = shared.wait_for_step(done) else {
            return;
        };
        done = next;
        let lap = guarded(&shared.alarm, || {
            let names = names.as_deref_mut();
            names.map_or_else(Lap::default, |names| {
                Thread::new(shared, number, step, names).run()
            })
        });
        let lap = lap.unwrap_or_default();
        *lock(&hand.lap) = Some((done, lap));
        shared.alarm.ring();
    }
}

impl<'a, N: Names + ?Sized> Thread<'a, N> {
    fn new(shared: &'a Shared, number: u32, step: Step, names: &'a mut N) -> Self {
        let job = &shared.job;
        let buffer_bytes = match step.operation {
            Operation::Create => job.file_size.min(CHUNK_BYTES) as usize,
            Operation::Readdir => LISTING_BYTES,
            Operation::FirstByte => job.bs as usize,
            _ => 0,
        };
        Self {
            shared,
            names,
            number,
            tree: Tree::of(job, number),
            buffer: AlignedBuffer::new(buffer_bytes).expect("memory for one buffer"),
            buffer_bytes,
            counts: Counts::new(),
            step,
            index: 0,
            wake_ns: 0,
            in_interval: 0,
            bytes_in_interval: 0,
            busy_ns: 0,
            lap: Lap::default(),
            last_ns: 0,
        }
    }

    fn run(mut self) -> Lap {
        let cpu = thread_cpu();
        let begun = self.shared.now_ns();
        self.enter_interval(begun);
        (self.lap.begun_ns, self.last_ns) = (begun, begun);
        match self.step.operation {
            _ if self.step.letter == TREE => self.make_tree(),
            _ if self.step.letter == NOTHING => {}
            Operation::Readdir => self.list_directories(),
            Operation::FirstByte => self.read_first_bytes(),
            _ => self.work_on_items(),
        }
        self.lap.ended_ns = self.last_ns;
        self.lap.cpu = thread_cpu().since(cpu);
        self.hand_over();
        self.tell(self.lap.operations % TOLD_EVERY);
        self.lap
    }

    /// The directories that items will lie in; one tree of all is made by the first thread.
    fn make_tree(&mut self) {
        if !self.shared.job.private && self.number > 0 {
            return;
        }
        for place in 0..self.tree.directories() {
            let path = self.tree.path(place);
            let made = self.names.make_tree_directory(&path);
            if made < 0 {
                return self.fail(made, &path);
            }
            if self.shared.alarm.is_stopping() {
                return;
            }
        }
    }

    /// Every item of this thread, directory by directory.
    fn work_on_items(&mut self) {
        for place in 0..self.tree.directories() {
            let items = self.tree.items(place);
            if items.is_empty() {
                continue;
            }
            let path = self.tree.path(place);
            let entered = self.names.enter(&path);
            if entered < 0 {
                return self.fail(entered, &path);
            }
            let mut name = Name::new(self.step.letter, self.number, items.start);
            self.last_ns = self.shared.now_ns();
            for item in items {
                let result = self.call(&name, item);
                if result < 0 || self.shared.alarm.is_stopping() {
                    if result < 0 {
                        let file = path.join(name.as_c_str().to_string_lossy().as_ref());
                        self.fail(result, &file);
                    }
                    self.names.leave();
                    return;
                }
                self.count(self.shared.now_ns(), result as u64);
                name.advance();
            }
            self.names.leave();
        }
    }

    /// One operation on one item: bytes written, or minus errno.
    #[inline(always)]
    fn call(&mut self, name: &Name, item: u64) -> i32 {
        let text = name.as_c_str();
        let names = &mut *self.names;
        match self.step.operation {
            Operation::Stat => names.stat(text),
            Operation::Unlink => names.unlink(text),
            Operation::Open => match names.open(text, false) {
                0 => names.close(),
                refused => refused,
            },
            Operation::Rename => names.rename(text, name.with_letter(RENAMED).as_c_str()),
            Operation::Mkdir => names.make_directory(text),
            Operation::Rmdir => names.remove_directory(text),
            _ => match names.create(text) {
                0 => self.write_and_close(item),
                refused => refused,
            },
        }
    }

    #[inline(always)]
    fn write_and_close(&mut self, item: u64) -> i32 {
        let written = if self.buffer_bytes == 0 {
            0
        } else {
            self.write_file(item)
        };
        match self.names.close() {
            0 => written,
            refused => refused.min(written),
        }
    }

    fn write_file(&mut self, item: u64) -> i32 {
        let job = &self.shared.job;
        let mut offset = 0;
        while offset < job.file_size {
            let length = (job.file_size - offset).min(CHUNK_BYTES) as usize;
            let stamp = Stamp {
                seed: job.seed,
                generation: job.generation,
                file: (u64::from(self.number) * job.files + item) as u32,
                offset,
            };
            let chunk = &mut self.buffer.as_mut_slice()[..length];
            let before = self.shared.now_ns();
            self.shared.pattern.fill(chunk, stamp);
            // Making the data is not the target's doing.
            self.last_ns += self.shared.now_ns() - before;
            let result = self.names.write(chunk, offset);
            if result < 0 {
                return result;
            }
            offset += length as u64;
        }
        job.file_size as i32
    }

    /// Lists whole directories: each open, listed to its end, closed. One tree of all is divided.
    fn list_directories(&mut self) {
        let job = &self.shared.job;
        let (first, step) = if job.private {
            (0, 1)
        } else {
            (u64::from(self.number), job.numjobs as usize)
        };
        for place in (first..self.tree.directories()).step_by(step) {
            let path = self.tree.path(place);
            self.last_ns = self.shared.now_ns();
            let result = self.names.list(&path, self.buffer.as_mut_slice());
            if result < 0 {
                return self.fail(result, &path);
            }
            if self.shared.alarm.is_stopping() {
                return;
            }
            self.count(self.shared.now_ns(), 0);
        }
    }

    /// Opens each file of this thread and reads its first block; then its pages are dropped, off the clock, so
    /// that the next trial finds it as cold.
    fn read_first_bytes(&mut self) {
        let job = &self.shared.job;
        let entered = self.names.enter(&job.directory);
        if entered < 0 {
            return self.fail(entered, &job.directory);
        }
        for item in 0..job.files {
            let text = format!("{}.{}.{item}", job.prefix, self.number);
            let name = CString::new(text.as_str()).unwrap_or_default();
            self.last_ns = self.shared.now_ns();
            let opened = self.names.open(&name, job.direct);
            let result = if opened < 0 {
                opened
            } else {
                let block = &mut self.buffer.as_mut_slice()[..self.buffer_bytes];
                self.names.read(block)
            };
            let now = self.shared.now_ns();
            if opened >= 0 {
                self.names.forget();
                self.names.close();
            }
            if result <= 0 {
                self.fail(
                    if result == 0 { -libc::EIO } else { result },
                    &job.directory.join(text),
                );
                break;
            }
            if self.shared.alarm.is_stopping() {
                break;
            }
            self.count(now, result as u64);
        }
        self.names.leave();
    }

    /// Counts the operation that began at `last_ns` and ended at `now`.
    #[inline(always)]
    fn count(&mut self, now: u64, bytes: u64) {
        if self.step.measured {
            let latency = now.saturating_sub(self.last_ns);
            self.counts.record(latency);
            self.busy_ns += latency;
        }
        self.last_ns = now;
        self.in_interval += 1;
        self.bytes_in_interval += bytes;
        self.lap.operations += 1;
        if self.lap.operations.is_multiple_of(TOLD_EVERY) {
            self.tell(TOLD_EVERY);
        }
        if now >= self.wake_ns {
            self.hand_over();
            self.enter_interval(now);
            self.last_ns = self.shared.now_ns();
        }
    }

    fn tell(&self, operations: u64) {
        if self.step.measured {
            let told = &self.shared.hands[self.number as usize].operations;
            told.fetch_add(operations, Ordering::Relaxed);
        }
    }

    fn enter_interval(&mut self, now: u64) {
        let interval_ns = self.shared.job.interval_ns;
        self.index = (now / interval_ns) as u32;
        self.wake_ns = (u64::from(self.index) + 1) * interval_ns;
    }

    #[cold]
    fn hand_over(&mut self) {
        let (operations, bytes) = (self.in_interval, self.bytes_in_interval);
        let busy_ns = self.busy_ns;
        (self.in_interval, self.bytes_in_interval, self.busy_ns) = (0, 0, 0);
        self.lap.bytes += bytes;
        if operations == 0 || !self.step.measured {
            return;
        }
        let mut parts = lock(&self.shared.hands[self.number as usize].parts);
        parts
            .entry((self.index, self.step.operation))
            .or_insert_with(Part::new)
            .add(operations, bytes, busy_ns, &mut self.counts);
    }

    #[cold]
    fn fail(&self, result: i32, path: &Path) {
        let name = self.step.operation.name();
        self.shared
            .alarm
            .fail(Failure::system(-result, name, path, 0));
    }
}
