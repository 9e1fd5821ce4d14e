//! The one mapping from the engine's errors to Python's.

use leadline_engine::EngineError;
use leadline_engine::error::errno_words;
use leadline_record::RecordError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// A bad job is ValueError, the system's refusal OSError (errno, words, file name), the rest RuntimeError.
pub fn engine(error: EngineError) -> PyErr {
    match error {
        EngineError::Job(words) => PyValueError::new_err(words),
        EngineError::System {
            errno,
            operation,
            path,
        } => {
            let words = format!("{}, in: {operation}", errno_words(errno));
            PyOSError::new_err((errno, words, path))
        }
        EngineError::Interrupted => PyKeyboardInterrupt::new_err(()),
        EngineError::Other(words) => PyRuntimeError::new_err(words),
    }
}

/// A record that is none, is damaged or newer is RuntimeError; a file that cannot be read OSError.
pub fn record(error: RecordError, path: &std::path::Path) -> PyErr {
    match error {
        RecordError::Io(error) => {
            engine(EngineError::system(&error, "read the trial record", path))
        }
        other => PyRuntimeError::new_err(format!("{}: {other}", path.display())),
    }
}
