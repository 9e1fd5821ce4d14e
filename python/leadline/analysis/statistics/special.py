"""Student's t distribution and the gamma function's logarithm, of numbers and of arrays, by the extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leadline import _core

Array = NDArray[np.float64]


def student_cdf(degrees: ArrayLike, t: ArrayLike) -> Array:
    """P(T <= t) with so many degrees of freedom."""
    return _of_pairs(_core.student_cdf, degrees, t)


def student_quantile(degrees: ArrayLike, p: ArrayLike) -> Array:
    """The t of which P(T <= t) is `p`."""
    return _of_pairs(_core.student_quantile, degrees, p)


def log_gamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function; `x` above 0."""
    return _of_each(_core.log_gamma, x)


def trigamma(x: ArrayLike) -> Array:
    """Its second derivative; `x` above 0."""
    return _of_each(_core.trigamma, x)


def _of_pairs(function: Callable[[bytes, bytes], bytes], *pair: ArrayLike) -> Array:
    first, second = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in pair))
    return np.frombuffer(function(first.tobytes(), second.tobytes())).reshape(first.shape)


def _of_each(function: Callable[[bytes], bytes], x: Any) -> Array:
    values = np.asarray(x, np.float64)
    return np.frombuffer(function(values.tobytes())).reshape(values.shape)
