//! What can be wrong with a record file, in words for the person who holds it.

use std::fmt;

/// Why a record could not be written or read.
#[derive(Debug)]
pub enum RecordError {
    /// The system refused; carries what was done to which file.
    Io(std::io::Error),
    /// The first bytes are not those of a record.
    NotARecord,
    /// Written by a later leadline.
    NewerVersion { found: u32, known: u32 },
    /// The bytes at this offset cannot be what a writer wrote.
    Damaged { offset: usize, reason: String },
    /// A frame would exceed the format's limit.
    TooLarge { bytes: usize },
}

impl fmt::Display for RecordError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{error}"),
            Self::NotARecord => write!(
                out,
                "this is no trial record of leadline (its first bytes differ)"
            ),
            Self::NewerVersion { found, known } => write!(
                out,
                "the trial record has version {found}; this leadline reads up to version {known}: use a newer leadline"
            ),
            Self::Damaged { offset, reason } => {
                write!(
                    out,
                    "the trial record is damaged at byte {offset}: {reason}"
                )
            }
            Self::TooLarge { bytes } => {
                write!(
                    out,
                    "a frame of {bytes} bytes is beyond the trial record's limit"
                )
            }
        }
    }
}

impl std::error::Error for RecordError {}

impl From<std::io::Error> for RecordError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
