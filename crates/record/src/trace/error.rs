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
    /// The writer's list of calls is no beginning of this one: its numbers would be other calls' names.
    OtherCalls { found: u64, known: usize },
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
            Self::OtherCalls { found, known } => write!(
                out,
                "the trace log numbers its calls by another list ({found} calls; this leadline's has {known}), as the \
                 tracer's library and the extension are of different builds: install leadline anew and trace again, \
                 or read the log with the leadline that wrote it"
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
