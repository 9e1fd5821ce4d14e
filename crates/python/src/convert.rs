//! Engine values as Python's plain ones.

use leadline_record::{Interval, Record};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::Value;

/// A JSON value as dict, list, str, int, float, bool or None.
pub fn json<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::String(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => value.into_bound_py_any(py),
            (None, Some(value)) => value.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(json(py, value)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(values) => {
            let dict = PyDict::new(py);
            for (key, value) in values {
                dict.set_item(key, json(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// A whole record, histograms as bytes.
pub fn record<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let intervals = PyList::empty(py);
    for one in &record.intervals {
        intervals.append(interval(py, one)?)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("header", json(py, &record.header)?)?;
    dict.set_item("intervals", intervals)?;
    let summary = record
        .summary
        .as_ref()
        .map(|summary| json(py, summary))
        .transpose()?;
    dict.set_item("summary", summary)?;
    dict.set_item("truncated", record.truncated)?;
    Ok(dict)
}

fn interval<'py>(py: Python<'py>, interval: &Interval) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(interval).unwrap_or(Value::Null);
    let dict = json(py, &value)?;
    let blobs = &interval.histograms;
    let histograms = PyDict::new(py);
    histograms.set_item("submission", PyBytes::new(py, &blobs.submission))?;
    histograms.set_item("completion", PyBytes::new(py, &blobs.completion))?;
    histograms.set_item("total", PyBytes::new(py, &blobs.total))?;
    let intended = blobs.intended.as_ref().map(|bytes| PyBytes::new(py, bytes));
    histograms.set_item("intended", intended)?;
    dict.set_item("histograms", histograms)?;
    Ok(dict)
}
