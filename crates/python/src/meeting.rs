//! Where a trial waits for others: told from Python, waited at by the engine or by a kind of work in Python.

use std::sync::Arc;

use leadline_engine::EngineError;
use leadline_engine::trial::meeting::Meeting as Place;
use pyo3::prelude::*;

use crate::errors;

#[pyclass(frozen, module = "leadline._core")]
pub struct Meeting {
    pub place: Arc<Place>,
}

#[pymethods]
impl Meeting {
    #[new]
    fn new() -> Self {
        Self {
            place: Arc::default(),
        }
    }

    /// Says that all is open, and sleeps until the instant that is told then.
    fn come(&self, py: Python<'_>) -> PyResult<()> {
        let place = Arc::clone(&self.place);
        errors::detached(py, move |signal| {
            if place.come(|| signal().is_some()) {
                Ok(())
            } else {
                Err(EngineError::Interrupted)
            }
        })
    }

    fn wait_until_open(&self, py: Python<'_>) -> bool {
        py.detach(|| self.place.wait_until_open())
    }

    #[pyo3(signature = (start_ns))]
    fn tell(&self, start_ns: Option<u64>) {
        self.place.tell(start_ns);
    }

    fn end(&self) {
        self.place.end();
    }
}
