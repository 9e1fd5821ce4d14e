"""One-factor experiments that decide between causes: what each cause predicts of them, and which tells most.

An experiment changes one option of a cell's work and runs it in turns with what it was. What is compared is
the rate; a cause says by how much it would change (`predicts` in its table).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.verdict.diagnosis.causes import CauseEntry, causes
from leadline.verdict.diagnosis.judge import Diagnosed

_RIVAL = "latency_bound"  # what else it is where nothing else is
_LIKELY = 6  # causes that are weighed
_TELLS = 1.3  # predictions that are nearer together than that are not told apart
_TOLERANCE = 1.15  # of a prediction: models are no better than that
_UNSHARED_MIN = 0.05
_BLOCK_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class Experiment:
    """`changes` are options of the work as a study writes them; `words` say it, as in "with …".

    `metric` is what is compared. `url`: the same work by another way, where the user has named one.
    """

    name: str
    words: str
    changes: Mapping[str, Any]
    metric: str
    url: str | None = None


@dataclass(frozen=True)
class Prediction:
    """By how much the rate changes where this cause bounds it."""

    cause: CauseEntry
    ratio: float


@dataclass(frozen=True)
class ChosenExperiment:
    """The experiment that separates the likely causes best, and what each says of it."""

    experiment: Experiment
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class Decided:
    """What came of it: the ratio with its interval, the causes that it speaks for and against."""

    ratio: float
    low: float
    high: float
    for_it: tuple[Prediction, ...]
    against: tuple[Prediction, ...]

    @property
    def tells(self) -> bool:
        """False where it agrees with predictions that differ: it scattered too much to tell them apart."""
        ratios = [one.ratio for one in self.for_it]
        return not ratios or max(ratios) < _TELLS * min(ratios)


def possible(job: Mapping[str, Any], kind: str, beside: str | None = None) -> Iterator[Experiment]:
    """The experiments that a job allows. An open loop's rate is given: nothing can be told by it."""
    if job.get("rate_iops") or job.get("rate_bytes_per_s"):
        return
    metric = "iops"
    jobs = int(job.get("numjobs") or 1)
    if kind == "metadata":
        yield Experiment("depth", f"{2 * jobs} jobs instead of {jobs}", {"numjobs": 2 * jobs}, metric)
    elif kind == "io":
        yield from _of_io(job, jobs)
        metric = "bandwidth"
    else:
        return
    if beside is not None:
        yield Experiment("way", f"the same by {beside}", {}, metric, beside)


def _of_io(job: Mapping[str, Any], jobs: int) -> Iterator[Experiment]:
    depth, block = int(job["iodepth"]), int(job["bs"])
    rate = "bandwidth"
    if depth == 1 and job["engine"] in ("psync", "mmap"):
        words = f"{2 * jobs} jobs instead of {jobs}"
        yield Experiment("depth", words, {"numjobs": 2 * jobs}, rate)
    else:
        words = f"iodepth {2 * depth} instead of {depth}"
        yield Experiment("depth", words, {"iodepth": 2 * depth}, rate)
    if depth > 1:
        words = f"{2 * jobs} jobs of iodepth {depth // 2} instead of {jobs} of {depth}"
        yield Experiment("jobs", words, {"numjobs": 2 * jobs, "iodepth": depth // 2}, rate)
    if job.get("bssplit") is None and 2 * block <= min(_BLOCK_BYTES_MAX, int(job["size"])):
        yield Experiment("block", f"bs {2 * block} instead of {block}", {"bs": 2 * block}, rate)
    if job.get("fsync") or job.get("fdatasync"):
        yield Experiment("syncs", "no sync until the end", {"fsync": 0, "fdatasync": 0}, rate)


def choose(
    found: Diagnosed, experiments: Sequence[Experiment], table: Sequence[CauseEntry] | None = None
) -> ChosenExperiment | None:
    """The one that separates the likely causes most; None where none tells them apart.

    First those that hold and too little in flight, then all that nobody could rule out; where nothing speaks
    against the named ones, what moves them.
    """
    likely = [(one.entry, one.share) for one in (*found.named, *found.behind)][:_LIKELY]
    holding = {entry.name for entry, _ in likely} | {_RIVAL}
    unseen = [one.entry for one in found.open if one.entry.predicts and one.entry.told != "direct"]
    likely += [(entry, None) for entry in unseen[: _LIKELY - len(likely)]]
    entries = causes() if table is None else table
    if _RIVAL not in {entry.name for entry, _ in likely}:
        likely += [(entry, None) for entry in entries if entry.name == _RIVAL]
    best, most = None, (0.0, 0.0, 0.0)
    named = {one.entry.name for one in found.named}
    for experiment in experiments:
        said = tuple(
            Prediction(entry, ratio)
            for entry, share in likely
            if (ratio := _predicted(entry, experiment.name, share)) is not None
        )
        told = (
            _told([one for one in said if one.cause.name in holding]),
            _told(said),
            _moves([one for one in said if one.cause.name in named]),
        )
        if told > most:
            best, most = ChosenExperiment(experiment, said), told
    return best


def _predicted(entry: CauseEntry, experiment: str, share: float | None) -> float | None:
    """A number, or `rest`: the time that is left without the part that the cause takes; None if unknown."""
    value = entry.predicts.get(experiment)
    if value == "rest":
        return None if share is None else 1 / max(1 - share, _UNSHARED_MIN)
    return None if value is None else float(value)


def _told(said: Sequence[Prediction]) -> float:
    total = 0.0
    for at, one in enumerate(said):
        for other in said[at + 1 :]:
            apart = abs(math.log(one.ratio / other.ratio))
            if apart >= math.log(_TELLS):
                total += apart
    return total


def _moves(said: Sequence[Prediction]) -> float:
    """Of a cause that nothing speaks against: what it predicts, against no change at all."""
    apart = max((abs(math.log(one.ratio)) for one in said), default=0.0)
    return apart if apart >= math.log(_TELLS) else 0.0


def decide(chosen: ChosenExperiment, ratio: float, low: float, high: float) -> Decided:
    """Which predictions the measured ratio agrees with."""
    agrees = [low / _TOLERANCE <= one.ratio <= high * _TOLERANCE for one in chosen.predictions]
    return Decided(
        ratio,
        low,
        high,
        tuple(one for one, held in zip(chosen.predictions, agrees, strict=True) if held),
        tuple(one for one, held in zip(chosen.predictions, agrees, strict=True) if not held),
    )
