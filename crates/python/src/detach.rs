//! The one place that releases the GIL and honours Ctrl-C.
//!
//! While the engine works, SIGINT and SIGTERM are only noted, in Rust: nothing of Python runs in a trial.

use leadline_engine::sys::process::{SignalWatch, pass_on};
use leadline_engine::{EngineError, Interrupts};
use pyo3::prelude::*;

use crate::errors;

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
    result.map_err(errors::engine)
}
