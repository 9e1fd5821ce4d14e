//! What can go wrong, split by who can act on it: the author of a job, or whoever runs the storage.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A failure outside a trial's I/O: nothing was measured.
#[derive(Debug)]
pub enum EngineError {
    /// The job contradicts itself or cannot be understood; the text names the key and the remedy.
    Job(String),
    /// The system refused an operation on `path`.
    System {
        errno: i32,
        operation: &'static str,
        path: PathBuf,
    },
    /// The caller asked to stop (SIGINT or SIGTERM).
    Interrupted,
    /// Anything else, in words.
    Other(String),
}

impl EngineError {
    /// An I/O error with what was done to which file.
    pub fn system(error: &io::Error, operation: &'static str, path: &Path) -> Self {
        Self::System {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            operation,
            path: path.to_owned(),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(text) | Self::Other(text) => out.write_str(text),
            Self::System {
                errno,
                operation,
                path,
            } => {
                write!(
                    out,
                    "{operation} {}: {}",
                    path.display(),
                    errno_words(*errno)
                )
            }
            Self::Interrupted => out.write_str("interrupted"),
        }
    }
}

impl std::error::Error for EngineError {}

/// What kind of failure ended a trial; verdicts and remedies hang on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Io,
    Verify,
    Short,
    Vanished,
    NoSpace,
    Stale,
}

impl FailureKind {
    /// The kind that an errno stands for.
    pub fn of_errno(errno: i32) -> Self {
        match errno {
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::NoSpace,
            libc::ESTALE => Self::Stale,
            libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTCONN | libc::ESHUTDOWN => {
                Self::Vanished
            }
            _ => Self::Io,
        }
    }
}

/// The I/O failure that ended a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub operation: String,
    pub file: String,
    pub offset: u64,
    pub errno: Option<i32>,
    pub message: String,
}

impl Failure {
    /// A failed system call.
    pub fn system(errno: i32, operation: &str, file: &Path, offset: u64) -> Self {
        let file = file.display().to_string();
        let message = format!(
            "{operation} of {file} at offset {offset}: {}",
            errno_words(errno)
        );
        let kind = FailureKind::of_errno(errno);
        Self {
            kind,
            operation: operation.to_owned(),
            file,
            offset,
            errno: Some(errno),
            message,
        }
    }

    /// A failure that is no errno: a mismatch, a short file, a vanished one.
    pub fn found(kind: FailureKind, operation: &str, file: &Path, offset: u64, what: &str) -> Self {
        let file = file.display().to_string();
        let message = format!("{operation} of {file} at offset {offset}: {what}");
        Self {
            kind,
            operation: operation.to_owned(),
            file,
            offset,
            errno: None,
            message,
        }
    }
}

/// The system's words for an errno, with the number.
pub fn errno_words(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}
