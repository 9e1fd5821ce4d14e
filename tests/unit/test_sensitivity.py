"""The slopes of a causal profile and what is predicted from them: right, and within their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from leadline.analysis.sensitivity import ObservedRun, SensitivityFit, fit_sensitivity, predict
from leadline.analysis.statistics.means import Estimate

CALLS = {"metadata": 1000.0, "write": 400.0}
DELAYS_S = (0.0002, 0.001)
TRUE = {"metadata": 1.0, "write": 0.25}
RUN_S = 2.0


def block(
    random: np.random.Generator, noise_s: float, slopes: dict[str, float] = TRUE, bend: float = 0.0
) -> list[ObservedRun]:
    """A block of a program of these slopes; with `bend` the longer delay costs so much more a second."""

    def run(name: str | None, delay_s: float) -> ObservedRun:
        waited_s = delay_s * 1.1 * CALLS[name] if name else 0.0
        slope = 0.0 if name is None else slopes[name] + (bend if delay_s == DELAYS_S[1] else 0.0)
        return ObservedRun(RUN_S + slope * waited_s + noise_s * random.normal(), name, delay_s, waited_s)

    return [run(None, 0.0), run(None, 0.0), *(run(name, delay) for name in slopes for delay in DELAYS_S)]


def fitted(blocks: Sequence[Sequence[ObservedRun]]) -> SensitivityFit:
    return fit_sensitivity(blocks, tuple(TRUE))


def exact(seconds: float) -> Estimate:
    return Estimate(seconds, None, None, 1)


def holds(found: Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_without_noise_slopes_and_run_time_are_what_they_are() -> None:
    found = fitted([block(np.random.default_rng(1), 0.0) for _ in range(3)])
    assert found.run.value == pytest.approx(RUN_S)
    assert {name: one.slope.value for name, one in found.classes.items()} == pytest.approx(TRUE)
    assert not any(one.bends for one in found.classes.values())


def test_a_delay_that_is_hidden_at_first_is_said_to_bend() -> None:
    random = np.random.default_rng(2)
    found = fitted([block(random, 0.001, bend=0.8) for _ in range(5)]).classes["metadata"]
    assert found.bends
    assert found.by_delay[0][1].value == pytest.approx(1.0, abs=0.05)
    assert found.by_delay[1][1].value == pytest.approx(1.8, abs=0.05)


def test_a_slope_is_within_its_interval_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    found = [fitted([block(random, 0.05) for _ in range(5)]) for _ in range(200)]
    for name, slope in TRUE.items():
        share = np.mean([holds(one.classes[name].slope, slope) for one in found])
        assert 0.93 <= share <= 1.0, name


def test_one_run_elsewhere_is_within_its_interval_as_often_as_it_says() -> None:
    random, hits = np.random.default_rng(4), 0
    there_s = {"metadata": 0.003, "write": 0.002}
    truth = RUN_S + sum(TRUE[name] * (CALLS[name] * there_s[name] - 0.01) for name in TRUE)
    for _ in range(200):
        found = fitted([block(random, 0.05) for _ in range(5)])
        own_s = {name: [0.01] * 5 for name in TRUE}
        predicted = predict(found, CALLS, own_s, {name: exact(there_s[name]) for name in there_s})
        hits += holds(predicted.one, truth + 0.05 * random.normal())
    assert 0.93 <= hits / 200 <= 1.0


def test_the_mean_run_elsewhere_is_within_its_interval_as_often_as_it_says() -> None:
    random, hits = np.random.default_rng(5), 0
    truth = RUN_S + TRUE["metadata"] * CALLS["metadata"] * 0.003
    for _ in range(200):
        found = fitted([block(random, 0.05) for _ in range(5)])
        predicted = predict(found, CALLS, {"metadata": [0.0] * 5}, {"metadata": exact(0.003)})
        hits += holds(predicted.mean, truth)
    assert 0.93 <= hits / 200 <= 1.0


def test_what_is_not_known_of_a_latency_there_widens_the_prediction() -> None:
    found = fitted([block(np.random.default_rng(6), 0.001) for _ in range(5)])
    own_s = {"metadata": [0.0] * 5}
    sure = predict(found, CALLS, own_s, {"metadata": exact(0.003)}).mean
    unsure = predict(found, CALLS, own_s, {"metadata": Estimate(0.003, 0.002, 0.004, 5)}).mean
    assert sure.high is not None
    assert unsure.high is not None
    assert unsure.high - unsure.value > 0.9  # a thousand calls by a millisecond each
    assert sure.high - sure.value < 0.1


def test_a_class_that_never_waited_is_refused() -> None:
    runs = [ObservedRun(1.0, None, 0.0, 0.0), ObservedRun(1.0, "write", 0.001, 0.0)]
    with pytest.raises(ValueError, match="never waited"):
        fit_sensitivity([runs, runs, runs], ("write",))


def test_a_run_elsewhere_never_takes_less_than_nothing() -> None:
    found = fitted([block(np.random.default_rng(7), 0.001) for _ in range(3)])
    own_s = {"metadata": [3.0] * 3}
    predicted = predict(found, CALLS, own_s, {"metadata": exact(0.0)}).mean
    assert (predicted.value, predicted.low) == (0.0, 0.0)


def test_one_run_scatters_as_runs_do_and_the_mean_of_many_does_not() -> None:
    random = np.random.default_rng(8)
    found = fitted([block(random, 0.05) for _ in range(40)])
    predicted = predict(found, CALLS, {"metadata": [0.1] * 40}, {"metadata": exact(1e-4)})
    assert predicted.mean.high is not None
    assert predicted.one.high is not None
    assert predicted.mean.high - predicted.mean.value < 0.04
    assert 0.08 < predicted.one.high - predicted.one.value < 0.16  # twice the scatter of a run
