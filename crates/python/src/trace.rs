//! Trace logs for Python: columns as bytes that Arrow takes as they are.

use std::path::PathBuf;

use leadline_engine::sys::clock::Clock;
use leadline_engine::{EngineError, histogram};
use leadline_record::trace::layout::{LOST, NOTES};
use leadline_record::trace::{
    CALLS, CLASS_CALLS, CLASS_TICKS, CLASS_WAITED_NS, COUNTERS, Class, Columns, Kind, Process,
    ProcessEntry, TIMES, TraceError,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList};

use crate::errors;

/// Ticks per second of a steady time-stamp counter, 0 where there is none.
#[pyfunction]
pub fn counter_ticks_per_second(py: Python<'_>) -> u64 {
    py.detach(|| Clock::new().ticks_per_second())
}

/// The names of all functions that the tracer follows.
#[pyfunction]
pub fn traced_calls() -> Vec<&'static str> {
    CALLS.iter().map(|(name, _, _)| *name).collect()
}

/// The names of what is counted of a file, and of its times, in seconds.
#[pyfunction]
pub fn traced_counters() -> (Vec<&'static str>, Vec<&'static str>) {
    (COUNTERS.to_vec(), TIMES.to_vec())
}

/// All logs of one trial as columns; a log that cannot be read is named in `unreadable`.
#[pyfunction]
pub fn read_trace_logs<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    started_unix_ns: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let (columns, unreadable) = py
        .detach(|| read_all(&paths, started_unix_ns))
        .map_err(errors::engine)?;
    let dict = PyDict::new(py);
    dict.set_item("unreadable", unreadable)?;
    let processes = PyList::empty(py);
    for entry in &columns.processes {
        processes.append(process(py, entry)?)?;
    }
    dict.set_item("processes", processes)?;
    dict.set_item("files", files(py, &columns)?)?;
    dict.set_item("segments", segments(py, columns)?)?;
    Ok(dict)
}

type Unreadable = Vec<(PathBuf, String)>;

fn read_all(paths: &[PathBuf], started_unix_ns: i64) -> Result<(Columns, Unreadable), EngineError> {
    let mut columns = Columns::new(started_unix_ns);
    let mut unreadable = Vec::new();
    for path in paths {
        match leadline_record::open_plain(path)
            .map_err(TraceError::Io)
            .and_then(|file| columns.add(&file))
        {
            Ok(()) => {}
            Err(TraceError::Io(error)) => {
                return Err(EngineError::system(&error, "read a trace log", path));
            }
            Err(error) => unreadable.push((path.clone(), error.to_string())),
        }
    }
    Ok((columns, unreadable))
}

fn process<'py>(py: Python<'py>, entry: &ProcessEntry) -> PyResult<Bound<'py, PyDict>> {
    let of = &entry.process;
    let dict = PyDict::new(py);
    dict.set_item("pid", of.pid)?;
    dict.set_item("parent_pid", of.parent_pid)?;
    dict.set_item("kernel_start", of.kernel_start)?;
    dict.set_item("started_unix_ns", of.start_unix_ns)?;
    dict.set_item("end_kind", of.end_kind)?;
    dict.set_item("end_status", of.end_status)?;
    dict.set_item(
        "ended_unix_ns",
        (of.end_ticks > 0).then(|| of.unix_ns(of.end_ticks)),
    )?;
    dict.set_item("threads", of.threads)?;
    dict.set_item("executable", String::from_utf8_lossy(&of.executable))?;
    let arguments: Vec<_> = of.command.split(|byte| *byte == 0).map(escaped).collect();
    dict.set_item("arguments", arguments)?;
    dict.set_item("calls", entry.calls.iter().copied().into_py_dict(py)?)?;
    let seconds = PyDict::new(py);
    let latencies = PyDict::new(py);
    for (kind, word) in Kind::ALL.iter().map(|kind| kind.word()).enumerate() {
        seconds.set_item(word, entry.seconds[kind])?;
        if !entry.latencies[kind].is_empty() {
            let blob = histogram::encode_counts(&entry.latencies[kind]);
            let operations: u64 = entry.latencies[kind].iter().map(|(_, count)| count).sum();
            latencies.set_item(word, (operations, PyBytes::new(py, &blob)))?;
        }
    }
    dict.set_item("seconds", seconds)?;
    dict.set_item("latencies", latencies)?;
    dict.set_item("unseen", of.unseen)?;
    dict.set_item("classes", classes(py, of)?)?;
    dict.set_item("own_ns", entry.own_ns)?;
    dict.set_item("bytes_read", entry.bytes_read)?;
    dict.set_item("bytes_written", entry.bytes_written)?;
    dict.set_item("lost", lost(py, entry)?)?;
    dict.set_item("notes", notes(entry))?;
    Ok(dict)
}

/// By class calls, ns that they took, and ns that they were made to wait; classes without calls are not in it.
fn classes<'py>(py: Python<'py>, of: &Process) -> PyResult<Bound<'py, PyDict>> {
    let rows = Class::ALL.iter().zip(of.classes);
    let called = rows.filter(|(_, sums)| sums[CLASS_CALLS] > 0);
    let row = |(class, sums): (&Class, [u64; _])| {
        let (count, ticks) = (sums[CLASS_CALLS], sums[CLASS_TICKS]);
        (class.word(), (count, of.ns(ticks), sums[CLASS_WAITED_NS]))
    };
    called.map(row).into_py_dict(py)
}

fn lost<'py>(py: Python<'py>, entry: &ProcessEntry) -> PyResult<Bound<'py, PyDict>> {
    let kinds = LOST.iter().zip(entry.process.lost);
    kinds.filter(|(_, count)| *count > 0).into_py_dict(py)
}

fn notes(entry: &ProcessEntry) -> Vec<String> {
    let flagged = NOTES
        .iter()
        .filter(|(bit, _)| entry.process.flags & bit != 0);
    let mut notes: Vec<String> = flagged.map(|(_, word)| (*word).to_owned()).collect();
    let lines = entry.process.note.split(|byte| *byte == b'\n');
    notes.extend(lines.filter(|line| !line.is_empty()).map(escaped));
    if entry.truncated {
        notes.push("record truncated".to_owned());
    }
    notes
}

fn files<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("rows", columns.file.len())?;
    dict.set_item("process", integers(py, &columns.process, i32::to_le_bytes)?)?;
    dict.set_item("file", integers(py, &columns.file, i32::to_le_bytes)?)?;
    dict.set_item("module", PyBytes::new(py, &columns.module))?;
    let paths: Vec<String> = columns.paths.iter().map(|path| escaped(path)).collect();
    dict.set_item("paths", paths)?;
    for (name, column) in COUNTERS.iter().zip(&columns.counters) {
        dict.set_item(name, integers(py, column, i64::to_le_bytes)?)?;
    }
    for (name, column) in TIMES.iter().zip(&columns.times) {
        dict.set_item(name, integers(py, column, f64::to_le_bytes)?)?;
    }
    Ok(dict)
}

fn segments<'py>(py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyDict>> {
    // Each column is freed before the next is copied: there may be tens of millions of rows.
    let from = columns.segments;
    let dict = PyDict::new(py);
    dict.set_item("rows", from.process.len())?;
    for (name, column) in [
        ("process", from.process),
        ("thread", from.thread),
        ("file", from.file),
    ] {
        dict.set_item(name, integers(py, &column, i32::to_le_bytes)?)?;
    }
    dict.set_item("call", integers(py, &from.call, i16::to_le_bytes)?)?;
    drop(from.call);
    for (name, column) in [
        ("offset", from.offset),
        ("length", from.length),
        ("result", from.result),
        ("start_ns", from.start_ns),
        ("duration_ns", from.duration_ns),
    ] {
        dict.set_item(name, integers(py, &column, i64::to_le_bytes)?)?;
    }
    Ok(dict)
}

fn integers<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |into| {
        for (slot, value) in into.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *slot = bytes(*value);
        }
        Ok(())
    })
}

/// Text; bytes that are no UTF-8 as backslash escapes.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
