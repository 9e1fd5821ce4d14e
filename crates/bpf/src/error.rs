//! Why the tracer in the kernel cannot be used, in words with what to do.

use std::fmt;

/// What happened, and what to do about it.
#[derive(Debug)]
pub struct BpfError {
    pub message: String,
    pub remedy: &'static str,
}

impl BpfError {
    pub fn new(message: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            message: message.into(),
            remedy,
        }
    }

    /// A call of the loader or of the system that failed, with the cause behind it.
    pub fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut words = format!("{what}: {error}");
        let mut cause = error.source();
        while let Some(inner) = cause {
            words = format!("{words}: {inner}");
            cause = inner.source();
        }
        Self::new(
            words,
            "trace with --via preload, which needs neither privileges nor BPF",
        )
    }
}

impl fmt::Display for BpfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.message, self.remedy)
    }
}

impl std::error::Error for BpfError {}
