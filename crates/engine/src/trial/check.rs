//! Reads every block of a job's files and holds it against what is known to have been written: outside any trial, and
//! past the caches of this host as far as the way to the files lets one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::layout::{all_files, volume_of};
use super::runner::Progress;
use crate::Interrupts;
use crate::blocks::ledger::Ledger;
use crate::blocks::verdict::{Finding, Inspector, Known, Wrong, Wrongs, known, note};
use crate::error::EngineError;
use crate::job::Job;
use crate::pattern::{BLOCK_BYTES, Pattern};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::OpenHow;
use crate::volume::{self, Handle, Volume, VolumeError};

const CHUNK_BYTES: usize = 1 << 20;
const MISMATCHES_MAX: usize = 100;
/// Blocks that are looked at again, as they may only be late.
const LATE_MAX: usize = 1 << 16;
/// How long what was acknowledged may be late: the longest that clients of NFS believe what they know of a file that
/// was just changed (nfs(5), acregmin).
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// A block that is not what was written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    pub file: String,
    pub offset: u64,
    pub kind: Wrong,
    pub reason: String,
}

/// What was found. Counts are blocks of 4 KiB.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    /// That were looked at.
    pub blocks: u64,
    pub good_blocks: u64,
    /// That nobody wrote, and that nobody seems to have written.
    pub unwritten_blocks: u64,
    /// By what is wrong; what an earlier look has counted is not counted again.
    pub wrong_blocks: Wrongs,
    /// Old at first, and right within seconds.
    pub stale_blocks: u64,
    /// Wrong when the trial read them, and right now: by what the trial took them for.
    pub recovered_blocks: Wrongs,
    pub mismatches: Vec<Mismatch>,
    pub mismatches_total: u64,
    /// How the caches of this host were passed by.
    pub past: &'static str,
    pub elapsed_ns: u64,
}

/// Verifies all files of `job`, by its ledger; without one as `layout` of this very job leaves them.
/// The null engine has none.
pub fn check(job: &Job, signal: Interrupts) -> Result<Checked, EngineError> {
    let mut checked = Checked::default();
    if !job.engine.moves_data {
        return Ok(checked);
    }
    let begun = Instant::now();
    let ledger = match &job.ledger {
        Some(path) => Ledger::load(path, job)?,
        None => Ledger::laid_out(job),
    };
    let look = Look {
        job,
        volume: volume_of(job)?,
        pattern: Pattern::of(job),
        ledger,
        signal,
        begun,
    };
    let late = look.all(&mut checked)?;
    look.again(late, &mut checked)?;
    if let Some(path) = &job.ledger {
        look.ledger.save(path)?;
    }
    checked.elapsed_ns = begun.elapsed().as_nanos() as u64;
    Ok(checked)
}

/// A block that may only be late.
struct Late {
    path: PathBuf,
    file: u32,
    finding: Finding,
    /// What the trial itself had taken it for.
    trial: Option<Wrong>,
}

struct Look<'a> {
    job: &'a Job,
    volume: Arc<dyn Volume>,
    pattern: Pattern,
    ledger: Ledger,
    signal: Interrupts<'a>,
    begun: Instant,
}

impl Look<'_> {
    /// Every block once; returns those that are to be looked at again.
    fn all(&self, checked: &mut Checked) -> Result<Vec<Late>, EngineError> {
        let mut buffer = self.buffer(self.chunk_bytes())?;
        let mut late = Vec::new();
        let mut progress = Progress::default();
        let files = u64::from(self.job.owners()) * u64::from(self.job.nrfiles);
        let whole = files * self.job.file_bytes();
        for (path, id) in all_files(self.job) {
            let (file, past) = self.open(&path)?;
            checked.past = past;
            let size = file.size();
            let size = u64::try_from(size).map_err(|_| failed(size, "stat", &path))?;
            let mut offset = 0;
            while offset < self.job.file_bytes() {
                if (self.signal)().is_some() {
                    return Err(EngineError::Interrupted);
                }
                let left = self.job.file_bytes() - offset;
                let length = left.min(self.chunk_bytes() as u64) as usize;
                let chunk = &mut buffer.as_mut_slice()[..length];
                // Whole blocks for direct I/O; nothing is asked for far beyond the end.
                let there = size.saturating_sub(offset).min(length as u64) as usize;
                let there = there.next_multiple_of(BLOCK_BYTES).min(length);
                let found = read_up_to(file.as_ref(), &mut chunk[..there], offset, &path)?;
                self.judge(
                    &chunk[..length],
                    found,
                    (&path, id, offset),
                    checked,
                    &mut late,
                );
                offset += length as u64;
                let bytes = checked.blocks * BLOCK_BYTES as u64;
                let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
                let share = bytes as f64 / whole as f64;
                progress.report("read-back", elapsed_ns, bytes, checked.blocks, share);
                self.keep_rate(bytes);
            }
        }
        Ok(late)
    }

    /// Waits until `bytes` are allowed: reading back is bounded as laying out is.
    fn keep_rate(&self, bytes: u64) {
        let Some(rate) = self.job.layout_rate_bytes_per_s else {
            return;
        };
        let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
        while let Some(left) = due.checked_sub(self.begun.elapsed())
            && !left.is_zero()
            && (self.signal)().is_none()
        {
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Whole operations, so that one that arrived in part is seen as such.
    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES.next_multiple_of(self.job.bs as usize)
    }

    fn buffer(&self, bytes: usize) -> Result<AlignedBuffer, EngineError> {
        AlignedBuffer::new(bytes).map_err(|error| {
            EngineError::system(&error, "allocate a buffer for", &self.job.directory)
        })
    }

    fn inspector(&self) -> Inspector<'_> {
        Inspector {
            pattern: &self.pattern,
            ledger: &self.ledger,
            unit_bytes: (self.job.bs as usize).next_multiple_of(BLOCK_BYTES),
        }
    }

    /// `data` has `found` bytes of the file; what is beyond its end was lost where it was written.
    fn judge(
        &self,
        data: &[u8],
        found: usize,
        (path, file, first): (&Path, u32, u64),
        checked: &mut Checked,
        late: &mut Vec<Late>,
    ) {
        let whole = if found < data.len() {
            found / BLOCK_BYTES * BLOCK_BYTES
        } else {
            found
        };
        let mut findings = self.inspector().findings(&data[..whole], file, first);
        let places = (first..first + data.len() as u64).step_by(BLOCK_BYTES);
        let missing = places.clone().skip(whole.div_ceil(BLOCK_BYTES));
        findings
            .extend(missing.filter_map(|offset| self.missing(file, offset, first + found as u64)));
        let mut findings = findings.into_iter().peekable();
        for offset in places {
            checked.blocks += 1;
            match findings.next_if(|finding| finding.offset == offset) {
                Some(finding) => self.wrong((path, file), finding, checked, late),
                None => self.right(file, offset, checked),
            }
        }
    }

    /// A block that the file, which ends at `end`, does not have.
    fn missing(&self, file: u32, offset: u64, end: u64) -> Option<Finding> {
        let expected = self.ledger.expected(file, offset);
        let may_be_absent = expected.either && expected.stamp.generation == 0;
        (expected.is_written && !may_be_absent).then(|| Finding {
            offset,
            wrong: Wrong::Lost,
            reason: format!("the file has {end} bytes, and this was written"),
        })
    }

    fn wrong(
        &self,
        (path, file): (&Path, u32),
        finding: Finding,
        checked: &mut Checked,
        late: &mut Vec<Late>,
    ) {
        let trial = match note(&self.ledger, file, &finding) {
            Known::Before => return,
            Known::ByTrial(wrong) => Some(wrong),
            Known::No => None,
        };
        if finding.wrong.may_arrive() && late.len() < LATE_MAX {
            let path = path.to_owned();
            late.push(Late {
                path,
                file,
                finding,
                trial,
            });
        } else if trial.is_none() {
            checked.count(path, finding);
        }
    }

    fn right(&self, file: u32, offset: u64, checked: &mut Checked) {
        if self.ledger.expected(file, offset).is_written {
            checked.good_blocks += 1;
        } else {
            checked.unwritten_blocks += 1;
        }
        if let Known::ByTrial(wrong) = known(&self.ledger, file, offset) {
            *checked.recovered_blocks.of(wrong) += 1;
        }
        self.ledger.forget_found(file, offset);
    }

    /// Looks at blocks again until they are right or the time is over.
    fn again(&self, mut late: Vec<Late>, checked: &mut Checked) -> Result<(), EngineError> {
        let end = Instant::now() + PATIENCE;
        let mut buffer = self.buffer(BLOCK_BYTES)?;
        while !late.is_empty() && Instant::now() < end {
            if (self.signal)().is_some() {
                return Err(EngineError::Interrupted);
            }
            std::thread::sleep(LOOK);
            let mut left = Vec::new();
            let mut open: Option<(PathBuf, Arc<dyn Handle>)> = None;
            for one in late {
                if open.as_ref().is_none_or(|(path, _)| *path != one.path) {
                    open = Some((one.path.clone(), self.open(&one.path)?.0));
                }
                let Some((_, file)) = &open else { continue };
                let offset = one.finding.offset;
                let block = buffer.as_mut_slice();
                let found = read_up_to(file.as_ref(), block, offset, &one.path)?;
                let expected = self.ledger.expected(one.file, offset);
                if found == block.len() && self.pattern.holds(block, expected.stamp) {
                    self.ledger.forget_found(one.file, offset);
                    checked.good_blocks += 1;
                    match one.trial {
                        Some(wrong) => *checked.recovered_blocks.of(wrong) += 1,
                        None => checked.stale_blocks += 1,
                    }
                } else {
                    left.push(one);
                }
            }
            late = left;
        }
        for one in late.into_iter().filter(|one| one.trial.is_none()) {
            checked.count(&one.path, one.finding);
        }
        Ok(())
    }

    /// Opens a file past this host's caches, and says how.
    fn open(&self, path: &Path) -> Result<(Arc<dyn Handle>, &'static str), EngineError> {
        let name = volume::name_of(path)?;
        let open = |direct| {
            let how = OpenHow {
                direct,
                ..OpenHow::default()
            };
            self.volume.open(name, how, self.job.file_bytes())
        };
        let file = open(false)?;
        if self.job.location.is_some() {
            return Ok((file, "by a connection of its own"));
        }
        // What is dirty goes to storage first: only clean pages can be dropped.
        let _ = file.sync(false);
        file.forget();
        match open(true) {
            Ok(direct) if self.can_read(direct.as_ref()) => Ok((direct, "by direct I/O")),
            Err(VolumeError { errno, .. }) if errno != libc::EINVAL => {
                Err(volume::system(&std::io::Error::from_raw_os_error(errno), "open", name).into())
            }
            _ => Ok((file, "after its pages were dropped from the page cache")),
        }
    }

    /// Some file systems refuse direct I/O only when it is done.
    fn can_read(&self, file: &dyn Handle) -> bool {
        let buffer = self.buffer(BLOCK_BYTES);
        buffer.is_ok_and(|mut buffer| {
            file.read_at(buffer.as_mut_slice(), 0) != -i64::from(libc::EINVAL)
        })
    }
}

impl Checked {
    fn count(&mut self, path: &Path, finding: Finding) {
        *self.wrong_blocks.of(finding.wrong) += 1;
        self.mismatches_total += 1;
        if self.mismatches.len() < MISMATCHES_MAX {
            self.mismatches.push(Mismatch {
                file: path.display().to_string(),
                offset: finding.offset,
                kind: finding.wrong,
                reason: finding.reason,
            });
        }
    }
}

/// Bytes read: fewer than asked for at the end of the file only.
fn read_up_to(
    file: &dyn Handle,
    data: &mut [u8],
    offset: u64,
    path: &Path,
) -> Result<usize, EngineError> {
    let mut done = 0;
    while done < data.len() {
        match file.read_at(&mut data[done..], offset + done as u64) {
            0 => break,
            count if count > 0 => done += count as usize,
            result => {
                return Err(failed(result, "read back", path));
            }
        }
    }
    Ok(done)
}

fn failed(result: i64, operation: &'static str, path: &Path) -> EngineError {
    EngineError::System {
        errno: -result as i32,
        operation,
        path: path.to_owned(),
    }
}
