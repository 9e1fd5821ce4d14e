//! `leadline._core`: the load engine for Python. Conversions only; every rule is in the engine.

mod bpf;
mod convert;
mod directory;
mod errors;
mod meeting;
mod special;
mod trace;
mod volume;

use std::path::PathBuf;
use std::sync::Arc;

use leadline_engine::replay::Script;
use leadline_engine::trial::check;
use leadline_engine::{AnyJob, Job, histogram, schemes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::Value;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::bpf::{BpfSession, bpf_calls, bpf_unavailable};
    #[pymodule_export]
    use super::directory::{open_beneath, why_not_ours};
    #[pymodule_export]
    use super::meeting::Meeting;
    #[pymodule_export]
    use super::special::{log_gamma, student_cdf, student_quantile, trigamma};
    #[pymodule_export]
    use super::trace::{counter_ticks_per_second, read_trace_logs, traced_calls, traced_counters};
    #[pymodule_export]
    use super::volume::{Volume, parse_location, schemes, without_password};
    #[pymodule_export]
    use super::{
        check_files, check_job, check_script, engines, histogram_buckets, histogram_merge,
        histogram_of, histogram_of_counts, histogram_percentiles, histogram_summary, job_formats,
        lay_out, read_record, run_trial, transfer_memory, version,
    };
}

/// The version of the compiled half, equal to the package's.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The I/O engines, and whether this host can run them.
#[pyfunction]
fn engines(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for engine in schemes::capabilities() {
        list.append(convert::json(py, &plain(&engine))?)?;
    }
    Ok(list)
}

/// Writes every block of a job's or a replay's files, syncs them, and drops them from the page cache.
#[pyfunction]
#[pyo3(name = "layout")]
fn lay_out<'py>(py: Python<'py>, job_json: &str) -> PyResult<Bound<'py, PyAny>> {
    let job = AnyJob::parse(job_json).map_err(errors::engine)?;
    let laid_out = errors::detached(py, |signal| job.lay_out(signal))?;
    convert::json(py, &plain(&laid_out))
}

/// Runs one trial of a job of any format, writing its record as it goes; returns the summary.
#[pyfunction]
#[pyo3(signature = (job_json, record_path, meeting = None))]
fn run_trial<'py>(
    py: Python<'py>,
    job_json: &str,
    record_path: PathBuf,
    meeting: Option<PyRef<'py, meeting::Meeting>>,
) -> PyResult<Bound<'py, PyAny>> {
    let job = AnyJob::parse(job_json).map_err(errors::engine)?;
    let place = meeting.map(|meeting| Arc::clone(&meeting.place));
    let summary = errors::detached(py, |signal| job.run(&record_path, place.as_deref(), signal))?;
    convert::json(py, &summary)
}

/// The formats of jobs that the engine takes.
#[pyfunction]
fn job_formats() -> Vec<&'static str> {
    AnyJob::FORMATS.to_vec()
}

/// Refuses what `run_trial` would refuse, without running or touching anything.
#[pyfunction]
fn check_job(job_json: &str) -> PyResult<()> {
    AnyJob::parse(job_json).map(drop).map_err(errors::engine)
}

/// Bytes of memory that a transfer takes at most: of so many streams that write and that read.
#[pyfunction]
fn transfer_memory(
    engine: &str,
    writers: u32,
    readers: u32,
    buffer: u64,
    in_flight: u32,
) -> PyResult<u64> {
    let memory = schemes::memory_of(engine).map_err(errors::engine)?;
    Ok(memory.bytes((writers, readers), buffer, in_flight))
}

/// Reads and verifies every block of a job's files.
#[pyfunction]
#[pyo3(name = "check")]
fn check_files<'py>(py: Python<'py>, job_json: &str) -> PyResult<Bound<'py, PyAny>> {
    let job = Job::parse(job_json).map_err(errors::engine)?;
    let checked = errors::detached(py, |signal| check::check(&job, signal))?;
    convert::json(py, &plain(&checked))
}

/// Reads a replay's script, and says how many threads, files and calls it has.
#[pyfunction]
fn check_script(py: Python<'_>, path: PathBuf) -> PyResult<(usize, usize, u64)> {
    let script = py.detach(|| Script::read(&path)).map_err(errors::engine)?;
    Ok((script.threads.len(), script.files.len(), script.calls))
}

/// A trial record, whole or truncated.
#[pyfunction]
fn read_record(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let record = leadline_record::read(&path).map_err(|error| errors::record(error, &path))?;
    let record = histogram::join_supplements(record).map_err(errors::engine)?;
    convert::record(py, &record)
}

/// The exact sum of histograms.
#[pyfunction]
fn histogram_merge(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    let merged = histogram::merge(&parts).map_err(errors::engine)?;
    Ok(PyBytes::new(py, &merged))
}

/// A histogram of latencies in ns that were measured elsewhere.
#[pyfunction]
fn histogram_of(py: Python<'_>, values_ns: Vec<u64>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &histogram::of_values(&values_ns))
}

/// A histogram of latencies that another program counted: (ns, how often).
#[pyfunction]
fn histogram_of_counts(py: Python<'_>, counts: Vec<(u64, u64)>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &histogram::of_counts(&counts))
}

/// Count, extremes and moments of a histogram, in ns.
#[pyfunction]
fn histogram_summary<'py>(py: Python<'py>, blob: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let moments = histogram::moments(blob).map_err(errors::engine)?;
    let dict = PyDict::new(py);
    dict.set_item("count", moments.count)?;
    dict.set_item("min", moments.min)?;
    dict.set_item("max", moments.max)?;
    dict.set_item("mean", moments.mean)?;
    dict.set_item("stdev", moments.stdev)?;
    Ok(dict)
}

/// Latencies in ns at percentiles from 0 to 100.
#[pyfunction]
fn histogram_percentiles(blob: &[u8], percentiles: Vec<f64>) -> PyResult<Vec<u64>> {
    histogram::percentiles(blob, &percentiles).map_err(errors::engine)
}

/// (highest equivalent latency in ns, count) of every bucket that is not empty.
#[pyfunction]
fn histogram_buckets(blob: &[u8]) -> PyResult<Vec<(u64, u64)>> {
    histogram::buckets(blob).map_err(errors::engine)
}

fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
