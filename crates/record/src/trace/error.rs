//! What can be wrong with a trace log, in words for the person who holds it.

use std::fmt;

/// Why a log could not be read.
#[derive(Debug)]
pub enum TraceError {
    /// The system refused.
    Io(std::io::Error),
    /// The first bytes are not those of a log.
    NotALog,
    /// Written by a later leadline.
    NewerVersion { found: u32, known: u32 },
    /// The bytes at this offset cannot be what the tracer wrote.
    Damaged { offset: u64, reason: &'static str },
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{error}"),
            Self::NotALog => write!(
                out,
                "this is no trace log of leadline (its first bytes differ)"
            ),
            Self::NewerVersion { found, known } => write!(
                out,
                "the trace log has version {found}; this leadline reads up to version {known}: use a newer leadline"
            ),
            Self::Damaged { offset, reason } => {
                write!(out, "the trace log is damaged at byte {offset}: {reason}")
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl From<std::io::Error> for TraceError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
