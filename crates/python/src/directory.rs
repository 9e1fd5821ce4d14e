//! Directories of ours, for what Python makes, reads and removes in them: the engine's own way, one for both.

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;

use leadline_engine::EngineError;
use leadline_engine::sys::directory;
use pyo3::prelude::*;

use crate::errors;

/// A descriptor that is the caller's.
struct Borrowed(RawFd);

impl AsRawFd for Borrowed {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

fn refused(error: &std::io::Error, name: &OsString) -> PyErr {
    errors::engine(EngineError::system(error, "open", name.as_ref()))
}

/// Opens what lies below a directory: EXDEV where a name leads out of it or onto another mount, ELOOP at a link.
#[pyfunction]
#[pyo3(signature = (directory, name, flags, mode = 0))]
pub fn open_beneath(
    py: Python<'_>,
    directory: RawFd,
    name: OsString,
    flags: i32,
    mode: u32,
) -> PyResult<RawFd> {
    let path = CString::new(name.clone().into_vec())?;
    py.detach(|| directory::open_beneath(&Borrowed(directory), &path, flags, mode))
        .map(IntoRawFd::into_raw_fd)
        .map_err(|error| refused(&error, &name))
}

/// Why another user may change what is in a directory; None where it is ours alone.
#[pyfunction]
pub fn why_not_ours(py: Python<'_>, directory: RawFd) -> PyResult<Option<String>> {
    py.detach(|| directory::why_not_ours(&Borrowed(directory)))
        .map_err(|error| refused(&error, &OsString::new()))
}
