//! The script: all calls of a replay in one file of fixed records, little-endian, made from a trace.
//!
//! ```text
//! header      magic "LLREPLAY", version u32, threads u32, files u32, 0 u32, calls u64
//! files       each: bytes to lay out u64 (all ones: none), flags u32, 0 u32
//! threads     each: calls u64, process u32, 0 u32
//! calls       thread after thread, each: pause ns u64, offset u64, length u64, expected u64, file u32,
//!             kind u8, absent u8, 0 u16
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::job::{self, require_common};

const MAGIC: &[u8; 8] = b"LLREPLAY";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;
pub const CALL_BYTES: usize = 40;
/// No file is laid out.
const NOT_LAID_OUT: u64 = u64::MAX;
const THREADS_MAX: usize = 1024;
/// A hundred million calls.
const SCRIPT_BYTES_MAX: u64 = 4 << 30;

/// What a call does. The numbers are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Open,
    Close,
    Read,
    Write,
    Fsync,
    Fdatasync,
    Stat,
    Unlink,
    Rename,
    Mkdir,
    Rmdir,
    Truncate,
    Seek,
    List,
}

const KINDS: [Kind; 14] = [
    Kind::Open,
    Kind::Close,
    Kind::Read,
    Kind::Write,
    Kind::Fsync,
    Kind::Fdatasync,
    Kind::Stat,
    Kind::Unlink,
    Kind::Rename,
    Kind::Mkdir,
    Kind::Rmdir,
    Kind::Truncate,
    Kind::Seek,
    Kind::List,
];

/// What calls are counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Read,
    Write,
    Sync,
    Meta,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::Meta];

    /// The direction in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Meta => "meta",
        }
    }
}

impl Kind {
    pub fn class(self) -> Class {
        match self {
            Self::Read => Class::Read,
            Self::Write => Class::Write,
            Self::Fsync | Self::Fdatasync => Class::Sync,
            _ => Class::Meta,
        }
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Since the end of the thread's call before, or since the start.
    pub pause_ns: u64,
    pub offset: u64,
    pub length: u64,
    /// Bytes that it moved in the trace.
    pub expected: u64,
    pub file: u32,
    pub kind: Kind,
    /// In the trace there was no such file, so that the call failed.
    pub absent: bool,
}

/// A file or directory that calls act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry {
    /// What must be in it beforehand; `None`: it must not be there.
    pub bytes: Option<u64>,
    pub directory: bool,
    pub written: bool,
    /// It comes into being, or goes and comes again, in the replay.
    pub created: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ThreadEntry {
    pub process: u32,
    first: usize,
    pub calls: usize,
}

/// A script that was read and found sound.
#[derive(Debug)]
pub struct Script {
    bytes: Vec<u8>,
    pub files: Vec<FileEntry>,
    pub threads: Vec<ThreadEntry>,
    calls_at: usize,
    pub calls: u64,
}

impl Script {
    /// Reads and checks a whole script, so that nothing in it can surprise a trial.
    pub fn read(path: &Path) -> Result<Self, EngineError> {
        let bytes = leadline_record::read_plain(path, SCRIPT_BYTES_MAX)
            .map_err(|error| EngineError::system(&error, "read the script", path))?;
        Self::parse(bytes).map_err(|why| {
            EngineError::Job(format!("script: {} is damaged: {why}", path.display()))
        })
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
            return Err("it is no script".to_owned());
        }
        if word(&bytes, 8) != VERSION {
            return Err(format!("version {} is not {VERSION}", word(&bytes, 8)));
        }
        let (threads, files) = (word(&bytes, 12) as usize, word(&bytes, 16) as usize);
        let calls = long(&bytes, 24);
        let calls_at = HEADER_BYTES + (threads + files) * ENTRY_BYTES;
        let whole = calls
            .checked_mul(CALL_BYTES as u64)
            .and_then(|size| size.checked_add(calls_at as u64));
        if whole != Some(bytes.len() as u64) {
            return Err(format!(
                "it has {} bytes, and not what it says",
                bytes.len()
            ));
        }
        if threads == 0 || threads > THREADS_MAX {
            return Err(format!("{threads} threads are not from 1 to {THREADS_MAX}"));
        }
        let files: Vec<_> = (0..files)
            .map(|number| file_at(&bytes, HEADER_BYTES + number * ENTRY_BYTES))
            .collect();
        let threads_at = HEADER_BYTES + files.len() * ENTRY_BYTES;
        let mut first = 0_usize;
        let mut found = Vec::with_capacity(threads);
        for number in 0..threads {
            let at = threads_at + number * ENTRY_BYTES;
            let own = long(&bytes, at) as usize;
            found.push(ThreadEntry {
                process: word(&bytes, at + 8),
                first,
                calls: own,
            });
            first = first.saturating_add(own);
        }
        if first as u64 != calls {
            return Err(format!("its threads have {first} calls, it says {calls}"));
        }
        let script = Self {
            bytes,
            files,
            threads: found,
            calls_at,
            calls,
        };
        (0..calls as usize).try_for_each(|number| script.check(number))?;
        Ok(script)
    }

    fn check(&self, number: usize) -> Result<(), String> {
        let at = self.calls_at + number * CALL_BYTES;
        let (file, kind) = (word(&self.bytes, at + 32), self.bytes[at + 36]);
        if file as usize >= self.files.len() || kind as usize >= KINDS.len() {
            return Err(format!("call {number} is of kind {kind} on file {file}"));
        }
        let end = long(&self.bytes, at + 8).checked_add(long(&self.bytes, at + 16));
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err(format!("call {number} ends beyond any file"));
        }
        Ok(())
    }

    /// Call `number` of a thread; the caller keeps below its `calls`.
    #[inline]
    pub fn call(&self, thread: &ThreadEntry, number: usize) -> Call {
        let at = self.calls_at + (thread.first + number) * CALL_BYTES;
        let bytes = &self.bytes[at..at + CALL_BYTES];
        Call {
            pause_ns: long(bytes, 0),
            offset: long(bytes, 8),
            length: long(bytes, 16),
            expected: long(bytes, 24),
            file: word(bytes, 32),
            kind: KINDS[bytes[36] as usize],
            absent: bytes[37] != 0,
        }
    }
}

fn file_at(bytes: &[u8], at: usize) -> FileEntry {
    let (size, flags) = (long(bytes, at), word(bytes, at + 8));
    FileEntry {
        bytes: (size != NOT_LAID_OUT).then_some(size),
        directory: flags & 1 != 0,
        written: flags & 2 != 0,
        created: flags & 4 != 0,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

/// The format of the JSON that `ReplayJob::parse` reads.
pub const FORMAT: &str = "leadline.replay/1";

/// When the calls of a thread begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As long after the thread's call before as in the trace, so that a slower target stretches the replay.
    Recorded,
    /// At once.
    Fast,
}

/// One trial's replay. What only reports use of a job (`calls`, `numjobs` and so on) is passed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayJob {
    pub format: String,
    pub trial: String,
    pub directory: PathBuf,
    pub prefix: String,
    /// The calls: a file of the format in `script`.
    pub script: PathBuf,
    pub pace: Pace,
    /// Whether files are laid out past the caches of this host, which would answer the first reads.
    #[serde(default)]
    pub layout_direct: bool,
    pub seed: u64,
    pub generation: u32,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    pub parent_pid: Option<i32>,
}

impl ReplayJob {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = job::read(json)?;
        require_common(
            (&job.format, FORMAT),
            &job.prefix,
            &job.directory,
            job.interval_ns,
        )?;
        Ok(job)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (bytes to lay out, flags) of each file, and (process, calls) of each thread as a script's bytes.
    pub fn script(files: &[(Option<u64>, u32)], threads: &[(u32, Vec<Call>)]) -> Vec<u8> {
        let calls: usize = threads.iter().map(|(_, calls)| calls.len()).sum();
        let mut bytes = MAGIC.to_vec();
        for value in [VERSION, threads.len() as u32, files.len() as u32, 0] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend((calls as u64).to_le_bytes());
        for (size, flags) in files {
            bytes.extend(size.unwrap_or(NOT_LAID_OUT).to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(0_u32.to_le_bytes());
        }
        for (process, calls) in threads {
            bytes.extend((calls.len() as u64).to_le_bytes());
            bytes.extend(process.to_le_bytes());
            bytes.extend(0_u32.to_le_bytes());
        }
        for call in threads.iter().flat_map(|(_, calls)| calls) {
            for value in [call.pause_ns, call.offset, call.length, call.expected] {
                bytes.extend(value.to_le_bytes());
            }
            bytes.extend(call.file.to_le_bytes());
            let kind = KINDS.iter().position(|kind| *kind == call.kind);
            bytes.extend([kind.unwrap() as u8, u8::from(call.absent), 0, 0]);
        }
        bytes
    }

    pub fn call(kind: Kind, file: u32, offset: u64, length: u64) -> Call {
        Call {
            pause_ns: 0,
            offset,
            length,
            expected: length,
            file,
            kind,
            absent: false,
        }
    }

    #[test]
    fn a_script_is_read_as_it_was_written() {
        let calls = vec![call(Kind::Open, 0, 0, 0), call(Kind::Read, 0, 8192, 4096)];
        let script = Script::parse(script(&[(Some(9), 2), (None, 4)], &[(7, calls)])).unwrap();
        assert_eq!(
            (script.files[0].bytes, script.files[1].bytes),
            (Some(9), None)
        );
        assert!(script.files[0].written && script.files[1].created);
        let last = script.call(&script.threads[0], 1);
        assert_eq!(
            (last.kind, last.offset, last.length),
            (Kind::Read, 8192, 4096)
        );
    }

    #[test]
    fn a_call_on_a_file_that_is_not_there_is_refused() {
        let bytes = script(&[], &[(0, vec![call(Kind::Read, 0, 0, 1)])]);
        assert!(Script::parse(bytes).unwrap_err().contains("on file 0"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), magic: bool) {
            if magic && bytes.len() >= 12 {
                bytes[..8].copy_from_slice(MAGIC);
                bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
            }
            let _ = Script::parse(bytes);
        }
    }
}
