//! The tracer in the kernel for Python: a session, and what it counted as columns of bytes.

use std::path::PathBuf;
use std::sync::Mutex;

use leadline_bpf::{BpfError, CALLS, COUNTERS, Image, Options, Session, TIMES, Table, Trace};
use leadline_engine::histogram;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

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
        let mut session = self.session.lock().map_err(|_| ended())?;
        session
            .as_mut()
            .ok_or_else(ended)?
            .follow(pid, copy)
            .map_err(failed)
    }

    /// Follow a process that runs already, and all that it starts; false where it has ended.
    fn attach(&self, pid: u32) -> PyResult<bool> {
        let mut session = self.session.lock().map_err(|_| ended())?;
        session
            .as_mut()
            .ok_or_else(ended)?
            .attach(pid)
            .map_err(failed)
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

fn image<'py>(py: Python<'py>, image: &Image) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("copy", image.copy)?;
    dict.set_item("process", image.process)?;
    dict.set_item("parent", image.parent)?;
    dict.set_item("pid", image.pid)?;
    dict.set_item("executable", &image.executable)?;
    dict.set_item("arguments", &image.arguments)?;
    dict.set_item("started_ns", image.started_ns)?;
    dict.set_item("ended_ns", image.ended_ns)?;
    dict.set_item("end", image.end)?;
    dict.set_item("status", image.status)?;
    dict.set_item("threads", image.threads)?;
    dict.set_item("bytes_read", image.bytes_read)?;
    dict.set_item("bytes_written", image.bytes_written)?;
    dict.set_item("calls", &image.calls)?;
    dict.set_item("errors", &image.errors)?;
    let seconds = PyDict::new(py);
    for (kind, time_ns) in KINDS.iter().zip(image.seconds_ns) {
        seconds.set_item(kind, time_ns as f64 / 1e9)?;
    }
    dict.set_item("seconds", seconds)?;
    dict.set_item("latencies", latencies(py, image)?)?;
    dict.set_item("cpu_user_ns", image.cpu_user_ns)?;
    dict.set_item("cpu_system_ns", image.cpu_system_ns)?;
    dict.set_item("mapped", image.mapped)?;
    dict.set_item("faults", image.faults)?;
    dict.set_item("unseen", image.unseen)?;
    dict.set_item("ring_used", image.ring_used)?;
    dict.set_item("asynchronous_used", image.asynchronous_used)?;
    dict.set_item("uncollected", image.uncollected)?;
    dict.set_item("foreign", image.foreign)?;
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
    dict.set_item(
        "copy",
        column(py, rows.iter().map(|row| row.copy.to_ne_bytes())),
    )?;
    dict.set_item(
        "process",
        column(py, rows.iter().map(|row| row.process.to_ne_bytes())),
    )?;
    dict.set_item(
        "file",
        column(py, rows.iter().map(|row| row.file.to_ne_bytes())),
    )?;
    dict.set_item(
        "path",
        rows.iter().map(|row| row.path.as_str()).collect::<Vec<_>>(),
    )?;
    for (index, name) in COUNTERS.iter().enumerate() {
        dict.set_item(
            name,
            column(py, rows.iter().map(|row| row.counters[index].to_ne_bytes())),
        )?;
    }
    for (index, name) in TIMES.iter().enumerate() {
        let seconds = |time: Option<i64>| time.map_or(f64::NAN, |time_ns| time_ns as f64 / 1e9);
        let values = rows
            .iter()
            .map(|row| seconds(row.times_ns[index]).to_ne_bytes());
        dict.set_item(name, column(py, values))?;
    }
    Ok(dict)
}

fn segments<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let calls = &trace.segments;
    let started = trace.started_ns as i64;
    dict.set_item(
        "copy",
        column(py, calls.iter().map(|call| call.copy.to_ne_bytes())),
    )?;
    dict.set_item(
        "process",
        column(py, calls.iter().map(|call| call.process.to_ne_bytes())),
    )?;
    dict.set_item(
        "thread",
        column(py, calls.iter().map(|call| call.segment.tid.to_ne_bytes())),
    )?;
    dict.set_item(
        "file",
        column(
            py,
            calls
                .iter()
                .map(|call| call.file.unwrap_or(-1).to_ne_bytes()),
        ),
    )?;
    let call_number = |slot: u32| (slot as i16 - 1).to_ne_bytes();
    dict.set_item(
        "call",
        column(py, calls.iter().map(|call| call_number(call.segment.slot))),
    )?;
    dict.set_item(
        "offset",
        column(
            py,
            calls.iter().map(|call| call.segment.offset.to_ne_bytes()),
        ),
    )?;
    dict.set_item(
        "length",
        column(
            py,
            calls.iter().map(|call| call.segment.length.to_ne_bytes()),
        ),
    )?;
    dict.set_item(
        "result",
        column(
            py,
            calls.iter().map(|call| call.segment.result.to_ne_bytes()),
        ),
    )?;
    let starts = calls
        .iter()
        .map(|call| (call.segment.start_ns as i64 - started).max(0));
    dict.set_item("start_ns", column(py, starts.map(i64::to_ne_bytes)))?;
    dict.set_item(
        "duration_ns",
        column(
            py,
            calls
                .iter()
                .map(|call| call.segment.duration_ns.to_ne_bytes()),
        ),
    )?;
    dict.set_item(
        "names",
        CALLS.iter().map(|call| call.name).collect::<Vec<_>>(),
    )?;
    Ok(dict)
}

/// Values one after another, as the machine holds them.
fn column<'py, const N: usize>(
    py: Python<'py>,
    values: impl Iterator<Item = [u8; N]>,
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &values.flatten().collect::<Vec<u8>>())
}
