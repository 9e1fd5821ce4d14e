//! Storage behind a URL, for what Python does there outside trials: workspaces, marks, space.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leadline_engine::schemes::{Location, SCHEMES};
use leadline_engine::volume::names::Names;
use leadline_engine::volume::{self, Outcome, VolumeError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::{convert, errors, plain};

/// The table of schemes with their engines: what is always the same. `engines` says what this host can use.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for scheme in SCHEMES {
        let value = convert::json(py, &plain(scheme))?;
        value.set_item("engines", convert::json(py, &plain(&scheme.engines))?)?;
        value.set_item("url", scheme.has_locations())?;
        list.append(value)?;
    }
    Ok(list)
}

/// A text with the passwords of URLs in it left out.
#[pyfunction]
pub fn without_password(text: &str) -> String {
    leadline_engine::schemes::without_password(text)
}

/// A URL, read and checked: url, scheme, engine, container, path, options.
#[pyfunction]
pub fn parse_location<'py>(py: Python<'py>, url: &str) -> PyResult<Bound<'py, PyDict>> {
    let location = Location::parse(url).map_err(errors::engine)?;
    let found = PyDict::new(py);
    found.set_item("url", &location.url)?;
    found.set_item("scheme", location.scheme())?;
    found.set_item("engine", location.engine().name())?;
    found.set_item("container", &location.container)?;
    found.set_item("path", &location.path)?;
    found.set_item("server", (location.described().server)(&location))?;
    found.set_item("options", location.options())?;
    let words = (location.described().describe)(&location);
    found.set_item("words", convert::json(py, &plain(&words))?)?;
    found.set_item("object_bytes", location.size("object_size"))?;
    Ok(found)
}

/// A connection. Calls may wait for the storage: they belong into a process that may be killed.
#[pyclass(frozen)]
pub struct Volume {
    inner: Arc<dyn volume::Volume>,
}

fn refused(error: VolumeError) -> PyErr {
    let remedy = if error.remedy.is_empty() {
        String::new()
    } else {
        format!("; {}", error.remedy)
    };
    let why = std::io::Error::from_raw_os_error(error.errno).to_string();
    let words = format!("{}: {why}{remedy}", error.operation);
    PyOSError::new_err((error.errno, words, error.subject))
}

fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(refused)
}

fn file_name(name: &str) -> PyResult<CString> {
    CString::new(name).map_err(|_| PyValueError::new_err("a name holds a zero byte"))
}

impl Volume {
    /// One operation on a name in a directory, by a hold on names that ends with it.
    fn named(
        &self,
        py: Python<'_>,
        operation: &'static str,
        directory: &str,
        name: &str,
        act: impl FnOnce(&mut dyn Names, &CStr) -> i32 + Send,
    ) -> PyResult<()> {
        let file = file_name(name)?;
        detached(py, || {
            let mut names = self.inner.names()?;
            let mut code = names.enter(Path::new(directory));
            if code >= 0 {
                code = act(&mut *names, &file);
                names.leave();
            }
            if code < 0 {
                return Err(VolumeError::new(-code, operation, name));
            }
            Ok(())
        })
    }
}

#[pymethods]
impl Volume {
    #[new]
    fn new(py: Python<'_>, url: &str) -> PyResult<Self> {
        let location = Location::parse(url).map_err(errors::engine)?;
        let inner = detached(py, || leadline_engine::schemes::connect(&location))?;
        Ok(Self { inner })
    }

    fn make_directory(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        detached(py, || self.inner.make_directory(path))
    }

    fn put(&self, py: Python<'_>, path: &str, data: &[u8]) -> PyResult<()> {
        detached(py, || self.inner.put(path, data))
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        limit: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = detached(py, || self.inner.get(path, limit))?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// At most about `limit` of them.
    fn names_in(&self, py: Python<'_>, directory: &str, limit: usize) -> PyResult<Vec<String>> {
        detached(py, || self.inner.names_in(directory, limit))
    }

    /// (total, free) bytes.
    fn space(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let found = detached(py, || self.inner.space())?;
        Ok((found.total_bytes, found.free_bytes))
    }

    /// The pool behind it, of a scheme whose URLs do not name one.
    fn pool(&self, py: Python<'_>) -> PyResult<Option<String>> {
        detached(py, || Ok(self.inner.pool()))
    }

    fn remove_files(
        &self,
        py: Python<'_>,
        directory: &str,
        prefix: &str,
        slice_s: f64,
    ) -> PyResult<bool> {
        let until = Instant::now() + Duration::from_secs_f64(slice_s.clamp(0.0, 86_400.0));
        detached(py, || self.inner.remove_files(directory, prefix, until))
    }

    /// Both names lie in `directory`.
    fn rename(&self, py: Python<'_>, directory: &str, name: &str, new: &str) -> PyResult<()> {
        let new = file_name(new)?;
        self.named(py, "rename", directory, name, |names, name| {
            names.rename(name, &new)
        })
    }

    fn unlink(&self, py: Python<'_>, directory: &str, name: &str) -> PyResult<()> {
        self.named(py, "unlink", directory, name, |names, name| {
            names.unlink(name)
        })
    }

    fn remove_directory(&self, py: Python<'_>, directory: &str, mark: &str) -> PyResult<()> {
        detached(py, || self.inner.remove_directory(directory, mark))
    }
}
