//! Reads every block of a job's files and verifies it, outside any trial.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::layout::all_files;
use crate::Interrupts;
use crate::error::EngineError;
use crate::job::Job;
use crate::pattern::{BLOCK_BYTES, Pattern, Verdict};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::OpenHow;
use crate::volume::{self, Handle};

const CHUNK_BYTES: usize = 1 << 20;
const MISMATCHES_MAX: usize = 100;
const GENERATIONS_MAX: usize = 100;

/// A block that is not what was written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    pub file: String,
    pub offset: u64,
    pub reason: String,
}

/// What was found. `generations` counts good blocks by the writing that they are of.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    pub blocks: u64,
    pub mismatches: Vec<Mismatch>,
    pub mismatches_total: u64,
    pub unwritten_blocks: u64,
    pub generations: BTreeMap<u32, u64>,
}

/// Verifies all files of `job`. The null engine has none.
pub fn check(job: &Job, signal: Interrupts) -> Result<Checked, EngineError> {
    let mut checked = Checked::default();
    if !job.engine.moves_data {
        return Ok(checked);
    }
    let pattern = Pattern::of(job);
    let volume = volume::of(job)?;
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES)
        .map_err(|error| EngineError::system(&error, "allocate a buffer for", &job.directory))?;
    for (path, id) in all_files(job) {
        let name = volume::name_of(&path)?;
        let file = volume.open(name, OpenHow::default(), job.file_bytes())?;
        let file = file.as_ref();
        checked.check_file(
            job,
            (file, &path, id),
            &pattern,
            buffer.as_mut_slice(),
            signal,
        )?;
    }
    Ok(checked)
}

impl Checked {
    fn check_file(
        &mut self,
        job: &Job,
        (file, path, id): (&dyn Handle, &Path, u32),
        pattern: &Pattern,
        buffer: &mut [u8],
        signal: Interrupts,
    ) -> Result<(), EngineError> {
        let found = u64::try_from(file.size()).map_err(|_| failed(file.size(), "stat", path))?;
        // A trial that writes fresh files for a time ends where it ends.
        if found < job.file_bytes() && !job.writes_fresh_files() {
            let reason = format!("the file has {found} bytes of {}", job.file_bytes());
            self.mismatch(path, found, reason);
        }
        let size = found.min(job.file_bytes());
        let mut offset = 0;
        while offset < size {
            if signal().is_some() {
                return Err(EngineError::Interrupted);
            }
            let length = (size - offset).min(CHUNK_BYTES as u64) as usize;
            let chunk = &mut buffer[..length];
            read_whole(file, chunk, offset, path)?;
            for (index, block) in chunk.chunks(BLOCK_BYTES).enumerate() {
                let at = offset + (index * BLOCK_BYTES) as u64;
                self.judge(pattern.verify(block, id, at), path, at);
            }
            offset += length as u64;
        }
        Ok(())
    }

    fn judge(&mut self, verdict: Verdict, path: &Path, offset: u64) {
        self.blocks += 1;
        match verdict {
            Verdict::Good(stamp) => {
                let room = self.generations.len() < GENERATIONS_MAX;
                if room || self.generations.contains_key(&stamp.generation) {
                    *self.generations.entry(stamp.generation).or_default() += 1;
                }
            }
            Verdict::Unwritten => self.unwritten_blocks += 1,
            Verdict::Wrong(reason) => self.mismatch(path, offset, reason),
        }
    }

    fn mismatch(&mut self, path: &Path, offset: u64, reason: String) {
        self.mismatches_total += 1;
        if self.mismatches.len() < MISMATCHES_MAX {
            self.mismatches.push(Mismatch {
                file: path.display().to_string(),
                offset,
                reason,
            });
        }
    }
}

fn read_whole(
    file: &dyn Handle,
    data: &mut [u8],
    offset: u64,
    path: &Path,
) -> Result<(), EngineError> {
    let mut done = 0;
    while done < data.len() {
        match file.read_at(&mut data[done..], offset + done as u64) {
            count if count > 0 => done += count as usize,
            result => {
                let result = if result == 0 {
                    -i64::from(libc::EIO)
                } else {
                    result
                };
                return Err(failed(result, "read", path));
            }
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
