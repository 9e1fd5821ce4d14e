//! The tracer in the kernel for Python: a session, and what it counted as columns of bytes.

use std::path::PathBuf;
use std::sync::Mutex;

use leadline_bpf::{BpfError, CALLS, COUNTERS, Image, Options, Session, TIMES, Table, Trace};
use leadline_engine::histogram;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList};

use crate::{convert, plain};

const KINDS: [&str; 4] = ["read", "write", "meta", "sync"];

/// Why tracing in the kernel is impossible here and what to do, or None.
#[pyfunction]
#[pyo3(signature = (kernel_types=None))]
pub fn bpf_unavailable(kernel_types: Option<PathBuf>) -> Option<(String, &'static str)> {
    let options = options(None, 0, kernel_types);
    leadline_bpf::unavailable(&options.kernel_types).map(|why| (why.message, why.remedy))
}

/// The system calls that the tracer in the kernel counts, by name.
#[pyfunction]
pub fn bpf_calls() -> Vec<&'static str> {
    let calls = CALLS.iter().filter(|call| call.table == Table::System);
    calls.map(|call| call.name).collect()
}

/// The tracer in the kernel, attached until `finish` or `close`.
#[pyclass]
pub struct BpfSession {
    session: Mutex<Option<Session>>,
}

impl BpfSession {
    fn with<T>(&self, act: impl FnOnce(&mut Session) -> Result<T, BpfError>) -> PyResult<T> {
        let mut session = self.session.lock().map_err(|_| ended())?;
        act(session.as_mut().ok_or_else(ended)?).map_err(failed)
    }
}

#[pymethods]
impl BpfSession {
    #[new]
    #[pyo3(signature = (segments_bytes, memory_bytes, kernel_types=None))]
    fn new(
        py: Python<'_>,
        segments_bytes: Option<u64>,
        memory_bytes: u64,
        kernel_types: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = options(segments_bytes, memory_bytes, kernel_types);
        let session = py.detach(|| Session::start(&options)).map_err(failed)?;
        Ok(Self {
            session: Mutex::new(Some(session)),
        })
    }

    /// Follow a process that waits before its exec, and all its descendants.
    fn follow(&self, pid: u32, copy: i32) -> PyResult<()> {
        self.with(|session| session.follow(pid, copy))
    }

    /// Follow a process that runs already, and all that it starts; false where it has ended.
    fn attach(&self, pid: u32) -> PyResult<bool> {
        self.with(|session| session.attach(pid))
    }

    /// Detach, and give what was counted.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        started_monotonic_ns: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let session = self
            .session
            .lock()
            .map_err(|_| ended())?
            .take()
            .ok_or_else(ended)?;
        let trace = py
            .detach(|| session.finish(started_monotonic_ns))
            .map_err(failed)?;
        let found = PyDict::new(py);
        let images = PyList::empty(py);
        for one in &trace.images {
            images.append(image(py, one)?)?;
        }
        found.set_item("images", images)?;
        found.set_item("files", files(py, &trace)?)?;
        found.set_item("segments", segments(py, &trace)?)?;
        found.set_item("lost", &trace.lost)?;
        found.set_item("rings", trace.rings)?;
        Ok(found)
    }

    /// Detach and forget what was counted.
    fn close(&self, py: Python<'_>) {
        let session = self
            .session
            .lock()
            .ok()
            .and_then(|mut session| session.take());
        py.detach(|| drop(session));
    }
}

fn options(
    segments_bytes: Option<u64>,
    memory_bytes: u64,
    kernel_types: Option<PathBuf>,
) -> Options {
    let mut options = Options::new(segments_bytes, memory_bytes);
    options.kernel_types = kernel_types.unwrap_or(options.kernel_types);
    options
}

fn failed(error: BpfError) -> PyErr {
    PyRuntimeError::new_err((error.message, error.remedy))
}

fn ended() -> PyErr {
    PyRuntimeError::new_err(("the session has ended", "begin another"))
}

fn image<'py>(py: Python<'py>, image: &Image) -> PyResult<Bound<'py, PyAny>> {
    let dict = convert::json(py, &plain(image))?;
    let seconds = KINDS.iter().zip(image.seconds_ns);
    let seconds = seconds.map(|(kind, time_ns)| (*kind, time_ns as f64 / 1e9));
    dict.set_item("seconds", seconds.into_py_dict(py)?)?;
    dict.set_item("latencies", latencies(py, image)?)?;
    Ok(dict)
}

/// kind -> (operations, histogram).
fn latencies<'py>(py: Python<'py>, image: &Image) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for one in &image.latencies {
        let operations: u64 = one.counts.iter().map(|(_, count)| count).sum();
        let blob = PyBytes::new(py, &histogram::of_counts(&one.counts));
        dict.set_item(KINDS[one.kind], (operations, blob))?;
    }
    Ok(dict)
}

fn files<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let rows = &trace.files;
    column(&dict, "copy", rows, |row| row.copy.to_ne_bytes())?;
    column(&dict, "process", rows, |row| row.process.to_ne_bytes())?;
    column(&dict, "file", rows, |row| row.file.to_ne_bytes())?;
    let paths: Vec<_> = rows.iter().map(|row| row.path.as_str()).collect();
    dict.set_item("path", paths)?;
    for (index, name) in COUNTERS.iter().enumerate() {
        column(&dict, name, rows, |row| row.counters[index].to_ne_bytes())?;
    }
    let seconds = |time: Option<i64>| time.map_or(f64::NAN, |time_ns| time_ns as f64 / 1e9);
    for (index, name) in TIMES.iter().enumerate() {
        column(&dict, name, rows, |row| {
            seconds(row.times_ns[index]).to_ne_bytes()
        })?;
    }
    Ok(dict)
}

fn segments<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (rows, started) = (&trace.segments, trace.started_ns as i64);
    column(&dict, "copy", rows, |row| row.copy.to_ne_bytes())?;
    column(&dict, "process", rows, |row| row.process.to_ne_bytes())?;
    column(&dict, "thread", rows, |row| row.segment.tid.to_ne_bytes())?;
    column(&dict, "file", rows, |row| {
        row.file.unwrap_or(-1).to_ne_bytes()
    })?;
    column(&dict, "call", rows, |row| {
        (row.segment.slot as i16 - 1).to_ne_bytes()
    })?;
    column(&dict, "offset", rows, |row| {
        row.segment.offset.to_ne_bytes()
    })?;
    column(&dict, "length", rows, |row| {
        row.segment.length.to_ne_bytes()
    })?;
    column(&dict, "result", rows, |row| {
        row.segment.result.to_ne_bytes()
    })?;
    let since = |start_ns: u64| (start_ns as i64 - started).max(0);
    column(&dict, "start_ns", rows, |row| {
        since(row.segment.start_ns).to_ne_bytes()
    })?;
    column(&dict, "duration_ns", rows, |row| {
        row.segment.duration_ns.to_ne_bytes()
    })?;
    let names: Vec<_> = CALLS.iter().map(|call| call.name).collect();
    dict.set_item("names", names)?;
    Ok(dict)
}

/// Adds a column: values one after another, as the machine holds them.
fn column<R, const N: usize>(
    dict: &Bound<'_, PyDict>,
    name: &str,
    rows: &[R],
    value: impl Fn(&R) -> [u8; N],
) -> PyResult<()> {
    let values: Vec<u8> = rows.iter().flat_map(value).collect();
    dict.set_item(name, PyBytes::new(dict.py(), &values))
}
