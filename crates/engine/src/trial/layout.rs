//! Writes every block of a job's files before the trials that read them, so that no unwritten block is ever read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::runner::Progress;
use crate::Interrupts;
use crate::blocks::ledger::Ledger;
use crate::error::EngineError;
use crate::job::Job;
use crate::pattern::{Pattern, Stamp};
use crate::schemes::{self, Local};
use crate::sync::lock;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::OpenHow;
use crate::volume::{self, Handle, Outcome, Volume};

/// One write. Large enough for any file system to stream.
const CHUNK_BYTES: usize = 1 << 20;
/// Files written at once: one stream is slow on storage that is far away.
const STREAMS_MAX: usize = 4;
const LOOK: Duration = Duration::from_millis(50);

/// What a layout did.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LaidOut {
    pub bytes_written: u64,
    pub files: u64,
    pub elapsed_ns: u64,
}

struct Work<'a> {
    job: &'a Job,
    files: Vec<(PathBuf, u32)>,
    next: AtomicUsize,
    bytes: AtomicU64,
    stop: AtomicBool,
    left: AtomicUsize,
    error: Mutex<Option<EngineError>>,
    begun: Instant,
    pattern: Pattern,
    volume: Arc<dyn Volume>,
}

/// What a job's files lie on.
pub fn volume_of(job: &Job) -> Outcome<Arc<dyn Volume>> {
    match &job.location {
        Some(location) => schemes::connect(location),
        None => Ok(Arc::new(Local::at(volume::own_directory(&job.directory)?))),
    }
}

/// Writes all files of `job` with its pattern (generation 0), syncs them, and drops them from the page cache.
/// The null engine has no files.
pub fn lay_out(job: &Job, signal: Interrupts) -> Result<LaidOut, EngineError> {
    lay_out_some(job, 0..job.owners(), signal)
}

/// The same of the files of some threads.
pub fn lay_out_some(
    job: &Job,
    owners: Range<u32>,
    signal: Interrupts,
) -> Result<LaidOut, EngineError> {
    if job.descriptor.is_some() {
        return Err(EngineError::Job(
            "descriptor: what is open already is not laid out; run its trial".to_owned(),
        ));
    }
    let begun = Instant::now();
    if !job.engine.moves_data || owners.is_empty() {
        return Ok(LaidOut {
            bytes_written: 0,
            files: 0,
            elapsed_ns: 0,
        });
    }
    let files: Vec<_> = files_of(job, owners).collect();
    let streams = STREAMS_MAX.min(files.len());
    let work = Work {
        job,
        files,
        next: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        left: AtomicUsize::new(streams),
        error: Mutex::new(None),
        begun,
        pattern: Pattern::of(job),
        volume: volume_of(job)?,
    };
    let interrupted = std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| work.run_stream());
        }
        work.watch(signal)
    });
    if let Some(error) = lock(&work.error).take() {
        return Err(error);
    }
    if interrupted {
        return Err(EngineError::Interrupted);
    }
    if let Some(path) = &job.ledger {
        Ledger::laid_out(job).save(path)?;
    }
    Ok(LaidOut {
        bytes_written: work.bytes.load(Ordering::Relaxed),
        files: work.files.len() as u64,
        elapsed_ns: begun.elapsed().as_nanos() as u64,
    })
}

/// Every file of a job, with the number that patterns know it by.
pub fn all_files(job: &Job) -> impl Iterator<Item = (PathBuf, u32)> {
    files_of(job, 0..job.owners())
}

fn files_of(job: &Job, owners: Range<u32>) -> impl Iterator<Item = (PathBuf, u32)> {
    owners.flat_map(move |numjob| {
        (0..job.nrfiles).map(move |file| (job.file_path(numjob, file), job.file_id(numjob, file)))
    })
}

impl Work<'_> {
    fn watch(&self, signal: Interrupts) -> bool {
        let whole = self.job.file_bytes() * self.files.len() as u64;
        let mut progress = Progress::default();
        let mut interrupted = false;
        while self.left.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(LOOK);
            if signal().is_some() {
                interrupted = true;
                self.stop.store(true, Ordering::Relaxed);
            }
            let bytes = self.bytes.load(Ordering::Relaxed);
            let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
            let operations = bytes / CHUNK_BYTES as u64;
            progress.report(
                "layout",
                elapsed_ns,
                bytes,
                operations,
                bytes as f64 / whole as f64,
            );
        }
        interrupted
    }

    fn run_stream(&self) {
        let mut outcome = Ok(());
        while outcome.is_ok() && !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((path, id)) = self.files.get(index) else {
                break;
            };
            outcome = self.write_file(path, *id);
        }
        if let Err(error) = outcome {
            self.stop.store(true, Ordering::Relaxed);
            lock(&self.error).get_or_insert(error);
        }
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    fn write_file(&self, path: &Path, id: u32) -> Result<(), EngineError> {
        let how = OpenHow {
            write: true,
            fresh: true,
            direct: false,
        };
        let name = volume::name_of(path)?;
        let file = self.volume.open(name, how, self.job.file_bytes())?;
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES)
            .map_err(|error| EngineError::system(&error, "allocate a buffer for", path))?;
        let size = self.job.file_bytes();
        let mut offset = 0;
        while offset < size && !self.stop.load(Ordering::Relaxed) {
            let length = (size - offset).min(CHUNK_BYTES as u64) as usize;
            let chunk = &mut buffer.as_mut_slice()[..length];
            let stamp = Stamp {
                seed: self.job.seed,
                generation: 0,
                file: id,
                offset,
            };
            self.pattern.fill(chunk, stamp);
            write_whole(file.as_ref(), chunk, offset, path)?;
            offset += length as u64;
            let written = self.bytes.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
            self.keep_rate(written);
        }
        match file.sync(false) {
            0 => {}
            // A client without such a call; its jobs say so.
            none if none == -i64::from(libc::ENOTSUP) => {}
            result => return Err(failed(result, "sync", path)),
        }
        file.forget();
        Ok(())
    }

    /// Waits until `written` bytes are allowed.
    fn keep_rate(&self, written: u64) {
        let Some(rate) = self.job.layout_rate_bytes_per_s else {
            return;
        };
        let due = Duration::from_secs_f64(written as f64 / rate as f64);
        while !self.stop.load(Ordering::Relaxed) {
            match due.checked_sub(self.begun.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(LOOK)),
                _ => return,
            }
        }
    }
}

fn write_whole(
    file: &dyn Handle,
    data: &[u8],
    offset: u64,
    path: &Path,
) -> Result<(), EngineError> {
    let mut done = 0;
    while done < data.len() {
        match file.write_at(&data[done..], offset + done as u64) {
            count if count > 0 => done += count as usize,
            0 => return Err(failed(-i64::from(libc::ENOSPC), "write", path)),
            result => return Err(failed(result, "write", path)),
        }
    }
    Ok(())
}

fn failed(result: i64, operation: &'static str, path: &Path) -> EngineError {
    EngineError::System {
        errno: -result as i32,
        operation,
        path: path.to_owned(),
    }
}
