//! What went wrong, as the command is told: what failed, what to do, and the system's number where it has one.

use std::io;
use std::path::Path;

use leadline_engine::EngineError;
use leadline_engine::error::errno_words;
use leadline_engine::volume::VolumeError;

/// A command that could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    pub message: String,
    pub remedy: String,
    pub errno: Option<i32>,
    pub file: Option<String>,
    pub interrupted: bool,
}

pub type Outcome<T> = Result<T, Refusal>;

impl Refusal {
    /// Not the system refused it, but this program.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
            ..Self::default()
        }
    }

    /// The system's refusal of something done to `path`.
    pub fn system(error: &io::Error, path: &Path) -> Self {
        let shown = path.display().to_string();
        let words = plain_words(error);
        Self {
            message: if shown.is_empty() {
                words
            } else {
                format!("{words} ({shown})")
            },
            errno: error.raw_os_error(),
            file: Some(shown),
            ..Self::default()
        }
    }
}

/// The system's words without their number.
pub fn plain_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.rsplit_once(" (os error ") {
        Some((plain, _)) => plain.to_owned(),
        None => words,
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::System {
                errno,
                operation,
                path,
            } => Self {
                message: format!(
                    "{}, in: {operation} ({})",
                    errno_words(errno),
                    path.display()
                ),
                errno: Some(errno),
                file: Some(path.display().to_string()),
                ..Self::default()
            },
            EngineError::Interrupted => Self {
                message: "interrupted".to_owned(),
                interrupted: true,
                ..Self::default()
            },
            EngineError::Job(words) | EngineError::Other(words) => Self::new(words, ""),
        }
    }
}

impl From<VolumeError> for Refusal {
    fn from(error: VolumeError) -> Self {
        let why = errno_words(error.errno);
        let remedy = if error.remedy.is_empty() {
            String::new()
        } else {
            format!("; {}", error.remedy)
        };
        Self {
            message: format!("{}: {why}{remedy} ({})", error.operation, error.subject),
            errno: Some(error.errno),
            file: Some(error.subject),
            ..Self::default()
        }
    }
}
