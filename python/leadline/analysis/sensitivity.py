"""How much longer a program runs when its calls take longer, and from it how long it would run elsewhere.

Runs come in blocks: in each, one run for every delay of every class of calls, and runs without delay. Each
block gives its own straight line, by least squares:

    run time = T0 + sum over classes of s * (what the calls of that class waited, all together)

A slope s of 1 says that the program waits for each call in turn; 0 that the wait is hidden behind other
work; 1/n that n threads wait side by side. Blocks are then judged as everywhere: the mean of their slopes,
with the interval of `statistics.intervals`, which lets blocks depend on the blocks before them. A
prediction is a sum of a block's own slopes, so that what they have in common is in its interval, too.

Source: delays in place of speed-ups that cannot be made, Curtsinger and Berger, "Coz: finding code that
counts with causal profiling", SOSP 2015 (there a delay of all other threads stands for a speed-up of one;
here the delay itself is what a slower mount does).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leadline.analysis.statistics.intervals import mean_of_blocks
from leadline.analysis.statistics.means import ALPHA, Estimate

_BEND_MIN = 0.1  # of slopes: smaller differences, however certain, change no prediction much


@dataclass(frozen=True)
class ObservedRun:
    """One run: how long it was, which class was delayed (None: none), by how much a call was asked to wait,
    and how long the calls of that class really waited, all together."""

    run_s: float
    delayed: str | None
    delay_s: float
    waited_s: float


@dataclass(frozen=True)
class Sensitivity:
    """Of one class: seconds of run time for each second that its calls wait. `by_delay` has the same by delay
    (asked, s) against the runs without; `bends` where these differ for certain, so that no line fits."""

    slope: Estimate
    by_delay: tuple[tuple[float, Estimate], ...]
    bends: bool


@dataclass(frozen=True)
class SensitivityFit:
    """All classes; the run time without delays as it was measured, and of each block the same by its line,
    one plain run's, and the slopes."""

    classes: Mapping[str, Sensitivity]
    run: Estimate
    without_s: tuple[float, ...]
    plain_s: tuple[float, ...]
    slopes: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class PredictedTime:
    """Seconds elsewhere: of the mean run, and of one run, which scatters as runs do here."""

    mean: Estimate
    one: Estimate


def fit_sensitivity(
    blocks: Sequence[Sequence[ObservedRun]], classes: Sequence[str], alpha: float = ALPHA
) -> SensitivityFit:
    """Judge whole blocks, at least two; in each every class of `classes` waited in at least one run."""
    lines = [_line(block, classes) for block in blocks]
    slopes = {name: tuple(line[1 + place] for line in lines) for place, name in enumerate(classes)}
    plain = [[run.run_s for run in block if run.delayed is None] for block in blocks]
    measured = estimated([math.fsum(runs) / len(runs) for runs in plain], alpha)
    return SensitivityFit(
        {name: _sensitivity(name, slopes[name], blocks, alpha) for name in classes},
        _around(measured, _margin(measured)),
        tuple(line[0] for line in lines),
        tuple(runs[0] for runs in plain),
        slopes,
    )


def predict(
    fit: SensitivityFit,
    calls: Mapping[str, float],
    own_s: Mapping[str, Sequence[float]],
    there: Mapping[str, Estimate],
    alpha: float = ALPHA,
) -> PredictedTime:
    """The run time where a call of each class takes as many seconds as `there`, and all else is as here.

    What is typed has no bounds and is taken as exact. `calls` is how many the program makes, `own_s` how
    long they took here, all together, block by block.
    """
    times = [
        without
        + sum(
            fit.slopes[name][block] * (calls[name] * latency.value - own_s[name][block])
            for name, latency in there.items()
        )
        for block, without in enumerate(fit.without_s)
    ]
    mean = estimated(times, alpha)
    plain = estimated(fit.plain_s, alpha)
    # Measured apart, so that squares of margins add up, as in `statistics.means`.
    far = [(fit.classes[name].slope.value * calls[name], latency) for name, latency in there.items()]
    margin = math.hypot(_margin(mean), *(weight * _margin(latency) for weight, latency in far))
    scatter = math.hypot(_of_one(plain), *(weight * _of_one(latency) for weight, latency in far))
    return PredictedTime(_around(mean, margin), _around(mean, math.hypot(margin, scatter)))


def estimated(values: Sequence[float], alpha: float = ALPHA) -> Estimate:
    """The plain mean of blocks in order, of either sign; no bounds below two."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Estimate(mean, None, None, len(values), 1 - alpha)
    margin = float(mean_of_blocks([list(values)]).half_width(alpha)[0])
    return Estimate(mean, mean - margin, mean + margin, len(values), 1 - alpha)


def _line(block: Sequence[ObservedRun], classes: Sequence[str]) -> tuple[float, ...]:
    """The run time without delays, and the slope of each class."""
    rows = [[1.0, *(run.waited_s if run.delayed == name else 0.0 for name in classes)] for run in block]
    found, _, rank, _ = np.linalg.lstsq(np.array(rows), np.array([run.run_s for run in block]), rcond=None)
    if rank <= len(classes):
        raise ValueError("a class never waited in a block")
    return tuple(float(value) for value in found)


def _sensitivity(
    name: str, slopes: Sequence[float], blocks: Sequence[Sequence[ObservedRun]], alpha: float
) -> Sensitivity:
    delays = sorted({run.delay_s for run in blocks[0] if run.delayed == name})
    by_delay = {delay_s: [_slope_at(block, name, delay_s) for block in blocks] for delay_s in delays}
    bends = False
    if len(delays) > 1:
        pairs = zip(by_delay[delays[0]], by_delay[delays[-1]], strict=True)
        apart = estimated([last - first for first, last in pairs], alpha)
        certain = apart.low is not None and apart.high is not None and not apart.low <= 0 <= apart.high
        bends = certain and abs(apart.value) > _BEND_MIN
    found = tuple((delay_s, estimated(values, alpha)) for delay_s, values in by_delay.items())
    return Sensitivity(estimated(slopes, alpha), found, bends)


def _slope_at(block: Sequence[ObservedRun], name: str, delay_s: float) -> float:
    plain = [run.run_s for run in block if run.delayed is None]
    with_delay = next(run for run in block if run.delayed == name and run.delay_s == delay_s)
    return (with_delay.run_s - math.fsum(plain) / len(plain)) / with_delay.waited_s


def _margin(mean: Estimate) -> float:
    """Half the interval; 0 of what is taken as exact."""
    return 0.0 if mean.high is None else mean.high - mean.value


def _of_one(mean: Estimate) -> float:
    """How far one value lies from the mean of all: that interval is narrower by the root of their number."""
    return _margin(mean) * math.sqrt(mean.count)


def _around(mean: Estimate, margin: float) -> Estimate:
    """No run takes less than nothing."""
    low = max(0.0, mean.value - margin)
    return Estimate(max(0.0, mean.value), low, mean.value + margin, mean.count, mean.confidence)
