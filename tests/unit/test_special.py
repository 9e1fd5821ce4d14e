"""Student's t and the gamma function's logarithm, held against scipy's values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from leadline import _core
from leadline.analysis.statistics.special import log_gamma, student_cdf, student_quantile, trigamma

DEGREES = np.array([1, 1.5, 2, 2.37, 3, 4, 5, 7.9, 10, 17, 29, 50, 99.5, 200, 500])[:, None]
CLOSE = 1e-12


def test_the_t_distribution_is_that_of_scipy() -> None:
    away = np.logspace(-4, 1.5, 200)
    t = np.concatenate([-away, [0.0], away])
    np.testing.assert_allclose(student_cdf(DEGREES, t), special.stdtr(DEGREES, t), rtol=CLOSE)


def test_quantiles_are_those_of_scipy() -> None:
    tails = np.logspace(-9, np.log10(0.49), 200)
    p = np.concatenate([tails, 1 - tails])
    np.testing.assert_allclose(student_quantile(DEGREES, p), special.stdtrit(DEGREES, p), rtol=CLOSE)


def test_many_degrees_of_freedom_keep_eight_digits() -> None:
    degrees, t, p = (
        np.array([1e3, 1e4, 1e5, 1e6])[:, None],
        np.linspace(-6, 6, 101),
        np.linspace(0.001, 0.999, 100),
    )
    np.testing.assert_allclose(student_cdf(degrees, t), special.stdtr(degrees, t), rtol=1e-8)
    np.testing.assert_allclose(student_quantile(degrees, p), special.stdtrit(degrees, p), rtol=1e-8)


def test_the_gamma_function_is_that_of_scipy() -> None:
    x = np.concatenate([np.arange(1, 400) / 2, np.logspace(-2, 5, 300)])
    np.testing.assert_allclose(log_gamma(x), special.gammaln(x), rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(trigamma(x), special.polygamma(1, x), rtol=CLOSE)


def test_ends_and_what_is_no_distribution() -> None:
    assert student_cdf(3, [np.inf, -np.inf]).tolist() == [1.0, 0.0]
    assert student_quantile(3, [0.0, 0.5, 1.0]).tolist() == [-np.inf, 0.0, np.inf]
    assert np.isnan(student_cdf([0.0, -1.0, np.nan, 3.0], [1.0, 1.0, 1.0, np.nan])).all()
    assert np.isnan(student_quantile([0.0, 3.0, 3.0], [0.9, -0.1, np.nan])).all()


def test_numbers_and_arrays_of_any_shape_are_taken() -> None:
    assert float(student_cdf(7, 0)) == 0.5
    assert student_cdf(DEGREES, np.ones(4)).shape == (15, 4)
    assert log_gamma(np.ones((2, 3))).tolist() == [[0.0] * 3] * 2
    assert log_gamma(np.ones((4, 6))[::2, ::3]).shape == (2, 2)


def test_bytes_that_are_no_doubles_are_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        _core.log_gamma(b"1234567")
    with pytest.raises(ValueError, match="differ in length"):
        _core.student_cdf(bytes(8), bytes(16))
