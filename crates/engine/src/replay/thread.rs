//! What each thread of a replay does: its pause, then its call, one after the other. Making data, which is not the
//! target's doing, falls into the pause before a write.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::files::{self, OpenFiles};
use super::runner::Shared;
use super::script::Pace;
use super::script::{Call, Class, Kind, ThreadEntry};
use crate::error::Failure;
use crate::histogram::Counts;
use crate::pattern::Stamp;
use crate::sync::lock;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::{read_at, sync, sync_data, write_at};
use crate::sys::metadata;
use crate::sys::process::{CpuTime, thread_cpu};
use crate::trial::parts::Part;
use crate::trial::runner::{fail_engine, guarded};

/// A call of more is made in pieces of this.
const PIECE_BYTES_MAX: u64 = 64 << 20;
/// The last part of a pause is not slept, as sleep ends late.
const SPIN_NS: u64 = 60_000;
/// What one call lists at most, as libc's readdir asks for.
const LISTING_BYTES: usize = 32 << 10;
const NAP: Duration = Duration::from_millis(50);

/// How a thread ended, and what did not go as in the trace. Times are ns since the trial's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lap {
    pub done_ns: u64,
    pub calls: u64,
    pub bytes: u64,
    pub cpu: CpuTime,
    /// Calls that failed where the trace's succeeded, or the reverse.
    pub differed: u64,
    /// Reads that gave less than in the trace.
    pub short: u64,
    /// Opened unasked, as the trace has no call for it.
    pub opened: u64,
    pub late_sum_ns: u64,
    pub late_max_ns: u64,
    pub io_ns: [u64; 4],
}

struct Tally {
    operations: u64,
    bytes: u64,
    busy_ns: u64,
    counts: Counts,
}

struct Thread<'a> {
    shared: &'a Shared,
    number: usize,
    entry: ThreadEntry,
    open: &'a OpenFiles,
    buffer: AlignedBuffer,
    tallies: [Option<Box<Tally>>; 4],
    index: u32,
    wake_ns: u64,
    lap: Lap,
}

/// A thread's whole life.
pub fn run(shared: &Shared, number: usize) {
    let hand = &shared.hands[number];
    let lap = match guarded(&shared.alarm, || {
        Thread::new(shared, number).map(Thread::run)
    }) {
        Some(Ok(lap)) => lap,
        Some(Err(what)) => {
            fail_engine(&shared.alarm, &what);
            Lap::default()
        }
        None => Lap::default(),
    };
    *lock(&hand.lap) = Some(lap);
    shared.alarm.ring();
}

impl<'a> Thread<'a> {
    fn new(shared: &'a Shared, number: usize) -> Result<Self, String> {
        let entry = shared.script.threads[number];
        let calls = || (0..entry.calls).map(|call| shared.script.call(&entry, call));
        let moves = |call: &Call| matches!(call.kind, Kind::Read | Kind::Write);
        let longest = calls().filter(moves).map(|call| call.length).max();
        let bytes = longest.unwrap_or(0).min(PIECE_BYTES_MAX) as usize;
        let buffer = AlignedBuffer::new(bytes)
            .map_err(|_| format!("no memory for a buffer of {bytes} bytes"))?;
        let tallies = Class::ALL.map(|class| {
            calls().any(|call| call.kind.class() == class).then(|| {
                Box::new(Tally {
                    operations: 0,
                    bytes: 0,
                    busy_ns: 0,
                    counts: Counts::new(),
                })
            })
        });
        Ok(Self {
            shared,
            number,
            entry,
            open: &shared.open[entry.process as usize],
            buffer,
            tallies,
            index: 0,
            wake_ns: 0,
            lap: Lap::default(),
        })
    }

    fn run(mut self) -> Lap {
        self.shared.wait_for_start();
        let cpu = thread_cpu();
        self.enter_interval(self.shared.now_ns());
        let mut last_ns = 0;
        for number in 0..self.entry.calls {
            let call = self.shared.script.call(&self.entry, number);
            if !self.pause(&call, last_ns) {
                break;
            }
            let path = files::path_of(&self.shared.job, call.file);
            let name = self.shared.place.name_of(&path).unwrap_or_default();
            let begun = self.shared.now_ns();
            let result = self.perform(&call, &name);
            last_ns = self.shared.now_ns();
            self.count(&call, &path, begun, last_ns, result);
        }
        self.hand_over();
        self.lap.done_ns = last_ns;
        self.lap.cpu = thread_cpu().since(cpu);
        self.lap
    }

    /// Makes data, waits until the call is due; false where the trial is over.
    fn pause(&mut self, call: &Call, last_ns: u64) -> bool {
        if call.kind == Kind::Write {
            self.fill(call, 0);
        }
        if self.shared.job.pace == Pace::Fast {
            return !self.shared.alarm.is_stopping();
        }
        let due_ns = last_ns.saturating_add(call.pause_ns);
        loop {
            let now = self.shared.now_ns();
            if self.shared.alarm.is_stopping() {
                return false;
            }
            if now >= due_ns {
                let late = now - due_ns;
                self.lap.late_sum_ns += late;
                self.lap.late_max_ns = self.lap.late_max_ns.max(late);
                return true;
            }
            let left = due_ns - now;
            if left <= SPIN_NS {
                std::hint::spin_loop();
                continue;
            }
            if left > NAP.as_nanos() as u64 {
                self.hand_over();
                self.enter_interval(now);
            }
            std::thread::sleep(NAP.min(Duration::from_nanos(left - SPIN_NS)));
        }
    }

    fn fill(&mut self, call: &Call, done: u64) {
        let length = (call.length - done).min(self.buffer.len() as u64) as usize;
        let stamp = Stamp {
            seed: self.shared.job.seed,
            generation: self.shared.job.generation,
            file: call.file,
            offset: (call.offset + done) & !4095,
        };
        self.shared
            .pattern
            .fill(&mut self.buffer.as_mut_slice()[..length], stamp);
    }

    /// Bytes moved, or minus errno.
    fn perform(&mut self, call: &Call, name: &CStr) -> i64 {
        let entry = self.shared.script.files[call.file as usize];
        let place = &self.shared.place;
        let at = place.as_raw_fd();
        match call.kind {
            Kind::Read | Kind::Write => self.with_file(call, name, Self::transfer),
            Kind::Fsync => self.with_file(call, name, |_, file, _| sync(file)),
            Kind::Fdatasync => self.with_file(call, name, |_, file, _| sync_data(file)),
            Kind::Truncate => self.with_file(call, name, |_, file, call| {
                outcome(file.set_len(call.length))
            }),
            Kind::Seek => self.with_file(call, name, |_, mut file, call| {
                outcome(file.seek(SeekFrom::Start(call.offset)).map(drop))
            }),
            Kind::Open if call.absent => {
                outcome(place.open_name(&missing(name), libc::O_RDONLY).map(drop))
            }
            Kind::Open => match files::open(place, name, entry) {
                Ok(file) => {
                    self.open.add(call.file, Arc::new(file));
                    0
                }
                Err(error) => refusal(&error),
            },
            Kind::Close => {
                drop(self.open.take(call.file));
                0
            }
            Kind::Stat if call.absent => metadata::stat(at, &missing(name)).into(),
            Kind::Stat => metadata::stat(at, name).into(),
            Kind::Unlink if call.absent => metadata::unlink(at, &missing(name)).into(),
            Kind::Unlink => metadata::unlink(at, name).into(),
            Kind::Rename => metadata::rename(at, name, &files::renamed(name)).into(),
            Kind::Mkdir => metadata::make_directory(at, name).into(),
            Kind::Rmdir => metadata::remove_directory(at, name).into(),
            Kind::List => metadata::list(at, name, &mut [0; LISTING_BYTES]).into(),
        }
    }

    /// Does something with the open file; a process that never opened it (it inherited it) opens it now.
    fn with_file(
        &mut self,
        call: &Call,
        name: &CStr,
        action: impl FnOnce(&mut Self, &File, &Call) -> i64,
    ) -> i64 {
        let found = match self.open.get(call.file) {
            Some(found) => found,
            None => {
                let entry = self.shared.script.files[call.file as usize];
                self.lap.opened += 1;
                match files::open(&self.shared.place, name, entry) {
                    Ok(file) => {
                        let file = Arc::new(file);
                        self.open.add(call.file, Arc::clone(&file));
                        file
                    }
                    Err(error) => return refusal(&error),
                }
            }
        };
        action(self, &found, call)
    }

    fn transfer(&mut self, file: &File, call: &Call) -> i64 {
        let mut done = 0;
        loop {
            let length = (call.length - done).min(self.buffer.len() as u64) as usize;
            let offset = call.offset + done;
            let result = if call.kind == Kind::Read {
                read_at(file, &mut self.buffer.as_mut_slice()[..length], offset)
            } else {
                if done > 0 {
                    self.fill(call, done);
                }
                write_at(file, &self.buffer.as_mut_slice()[..length], offset)
            };
            if result < 0 {
                return result;
            }
            done += result as u64;
            let whole = done >= call.length;
            if whole || result == 0 || (call.kind == Kind::Read && (result as usize) < length) {
                return done as i64;
            }
        }
    }

    fn count(&mut self, call: &Call, path: &Path, begun: u64, ended: u64, result: i64) {
        let class = call.kind.class();
        let moved = if class == Class::Read || class == Class::Write {
            result.max(0) as u64
        } else {
            0
        };
        if result < 0 && is_fatal(-result as i32) {
            let name = class.name();
            return self.shared.alarm.fail(Failure::system(
                -result as i32,
                name,
                path,
                call.offset,
            ));
        }
        self.lap.differed += u64::from((result < 0) != call.absent);
        self.lap.short += u64::from(call.kind == Kind::Read && moved < call.expected);
        self.lap.calls += 1;
        self.lap.bytes += moved;
        let latency = ended.saturating_sub(begun);
        self.lap.io_ns[class as usize] += latency;
        if let Some(tally) = &mut self.tallies[class as usize] {
            tally.operations += 1;
            tally.bytes += moved;
            tally.busy_ns += latency;
            tally.counts.record(latency);
        }
        let hand = &self.shared.hands[self.number];
        hand.operations.fetch_add(1, Ordering::Relaxed);
        hand.bytes.fetch_add(moved, Ordering::Relaxed);
        if ended >= self.wake_ns {
            self.hand_over();
            self.enter_interval(ended);
        }
    }

    fn enter_interval(&mut self, now: u64) {
        let interval_ns = self.shared.job.interval_ns;
        self.index = (now / interval_ns) as u32;
        self.wake_ns = (u64::from(self.index) + 1) * interval_ns;
    }

    #[cold]
    fn hand_over(&mut self) {
        for (class, tally) in Class::ALL.into_iter().zip(&mut self.tallies) {
            let Some(tally) = tally.as_mut().filter(|tally| tally.operations > 0) else {
                continue;
            };
            let mut parts = lock(&self.shared.hands[self.number].parts);
            parts
                .entry((self.index, class))
                .or_insert_with(Part::new)
                .add(
                    tally.operations,
                    tally.bytes,
                    tally.busy_ns,
                    &mut tally.counts,
                );
            (tally.operations, tally.bytes, tally.busy_ns) = (0, 0, 0);
        }
    }
}

/// A name that is never there.
fn missing(name: &CStr) -> CString {
    files::with_suffix(name, b".missing")
}

fn refusal(error: &io::Error) -> i64 {
    -i64::from(error.raw_os_error().unwrap_or(libc::EIO))
}

fn outcome(result: io::Result<()>) -> i64 {
    result.map_or_else(|error| refusal(&error), |()| 0)
}

/// What says that the target is in trouble, and not only that threads met in another order than in the trace.
fn is_fatal(errno: i32) -> bool {
    !matches!(
        errno,
        libc::ENOENT
            | libc::EEXIST
            | libc::ENOTDIR
            | libc::EISDIR
            | libc::ENOTEMPTY
            | libc::EINVAL
            | libc::EBADF
    )
}
