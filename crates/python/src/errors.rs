//! Errors as Python's, and calls that let go of the interpreter.

use leadline_engine::error::errno_words;
use leadline_engine::sys::process::{SignalWatch, pass_on};
use leadline_engine::{EngineError, Interrupts};
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

/// Runs `work` without the GIL. When it gives up because of a signal, Python's own handler gets that signal
/// (Ctrl-C is then KeyboardInterrupt, SIGTERM ends the process unless the program handles it).
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Interrupts) -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    let (result, signal) = py.detach(|| {
        let watch = SignalWatch::start();
        let result = work(&|| watch.noted());
        (result, watch.noted())
    });
    if let (Err(EngineError::Interrupted), Some(signal)) = (&result, signal) {
        pass_on(signal);
        py.check_signals()?;
    }
    result.map_err(engine)
}
