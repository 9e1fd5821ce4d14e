//! Special functions of statistics, by Cephes (the crate spec_math), over arrays of doubles as bytes.

use std::f64::consts::PI;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spec_math::cephes64::{incbet, incbi, lgam, zeta};

const NEWTON_STEPS: usize = 2; // the inverse of Cephes has seven digits or more, and each step doubles them

/// P(T <= t) of Student's t, for each pair of degrees of freedom and t.
#[pyfunction]
pub fn student_cdf<'py>(
    py: Python<'py>,
    degrees: &[u8],
    t: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    by_pairs(py, degrees, t, below)
}

/// The t of which P(T <= t) is p, for each pair of degrees of freedom and p.
#[pyfunction]
pub fn student_quantile<'py>(
    py: Python<'py>,
    degrees: &[u8],
    p: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    by_pairs(py, degrees, p, quantile)
}

/// The logarithm of the gamma function of each x above 0.
#[pyfunction]
pub fn log_gamma<'py>(py: Python<'py>, x: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let values = doubles(x)?;
    Ok(bytes(py, values.into_iter().map(lgam)))
}

/// The second derivative of the logarithm of the gamma function at each x above 0.
#[pyfunction]
pub fn trigamma<'py>(py: Python<'py>, x: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let values = doubles(x)?;
    Ok(bytes(py, values.into_iter().map(|x| zeta(2.0, x))))
}

/// Near the middle by the part within t of it, else by the part beyond: neither loses digits there.
fn below(degrees: f64, t: f64) -> f64 {
    let square = t * t;
    if square < 2.0 {
        let within = incbet(0.5, 0.5 * degrees, square / (degrees + square));
        return 0.5 + 0.5 * within.copysign(t);
    }
    let beyond = 0.5 * incbet(0.5 * degrees, 0.5, degrees / (degrees + square));
    if t < 0.0 { beyond } else { 1.0 - beyond }
}

/// As Cephes' own stdtri, whose degrees are whole numbers, and by Newton's steps to the digits of `below`.
fn quantile(degrees: f64, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    let mut t = if tail > 0.25 {
        let share = incbi(0.5, 0.5 * degrees, 1.0 - 2.0 * tail);
        -(degrees * share / (1.0 - share)).sqrt()
    } else {
        let share = incbi(0.5 * degrees, 0.5, 2.0 * tail);
        -(degrees / share - degrees).sqrt()
    };
    if t.is_finite() && t < 0.0 {
        for _ in 0..NEWTON_STEPS {
            t -= (below(degrees, t) - tail) / density(degrees, t);
        }
    }
    if p > 0.5 { -t } else { t }
}

fn density(degrees: f64, t: f64) -> f64 {
    let more = 0.5 * (degrees + 1.0);
    let height = lgam(more) - lgam(0.5 * degrees) - 0.5 * (degrees * PI).ln();
    (height - more * (t * t / degrees).ln_1p()).exp()
}

fn by_pairs<'py>(
    py: Python<'py>,
    first: &[u8],
    second: &[u8],
    function: fn(f64, f64) -> f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (first, second) = (doubles(first)?, doubles(second)?);
    if first.len() != second.len() {
        return Err(PyValueError::new_err("the arrays differ in length"));
    }
    let pairs = first.into_iter().zip(second);
    Ok(bytes(py, pairs.map(|(one, other)| function(one, other))))
}

fn doubles(raw: &[u8]) -> PyResult<Vec<f64>> {
    let (parts, rest) = raw.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(
            "an array of doubles has 8 bytes each",
        ));
    }
    Ok(parts.iter().map(|part| f64::from_ne_bytes(*part)).collect())
}

fn bytes<'py>(py: Python<'py>, values: impl Iterator<Item = f64>) -> Bound<'py, PyBytes> {
    let raw: Vec<u8> = values.flat_map(f64::to_ne_bytes).collect();
    PyBytes::new(py, &raw)
}
