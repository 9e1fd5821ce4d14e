"""Student's t distribution and the gamma function's logarithm, of numbers and of arrays, by the extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leadline import _core

Array = NDArray[np.float64]


def student_cdf(degrees: ArrayLike, t: ArrayLike) -> Array:
    """P(T <= t) with so many degrees of freedom."""
    return _of_pairs(_function("student_cdf"), degrees, t)


def student_quantile(degrees: ArrayLike, p: ArrayLike) -> Array:
    """The t of which P(T <= t) is `p`."""
    return _of_pairs(_function("student_quantile"), degrees, p)


def log_gamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function; `x` above 0."""
    return _of_each(_function("log_gamma"), x)


def trigamma(x: ArrayLike) -> Array:
    """Its second derivative; `x` above 0."""
    return _of_each(_function("trigamma"), x)


def _function(name: str) -> Callable[..., bytes]:
    """Of the extension; SciPy's where the extension was built before it had them."""
    if hasattr(_core, name):
        return cast(Callable[..., bytes], getattr(_core, name))
    from scipy import special

    of_scipy: dict[str, Callable[..., Array]] = {
        "student_cdf": special.stdtr,
        "student_quantile": special.stdtrit,
        "log_gamma": special.gammaln,
        "trigamma": lambda x: special.polygamma(1, x),
    }
    return lambda *raw: np.asarray(of_scipy[name](*map(np.frombuffer, raw))).tobytes()


def _of_pairs(function: Callable[[bytes, bytes], bytes], *pair: ArrayLike) -> Array:
    first, second = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in pair))
    return np.frombuffer(function(first.tobytes(), second.tobytes())).reshape(first.shape)


def _of_each(function: Callable[[bytes], bytes], x: Any) -> Array:
    values = np.asarray(x, np.float64)
    return np.frombuffer(function(values.tobytes())).reshape(values.shape)
