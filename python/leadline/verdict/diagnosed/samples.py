"""Samples of a trial's measured interval, asked by source, subject and metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean, median

from leadline.store.tables import SeriesRow, TrialRow


class Samples:
    """What was sampled while a trial was measured; of one too short for that, while it ran."""

    def __init__(self, trial: TrialRow, rows: Iterable[SeriesRow]) -> None:
        known = [row for row in rows if row.value is not None and row.t_ns > 0]
        end_ns = trial.ramp_ns + trial.measured_ns
        within = [row for row in known if trial.ramp_ns < row.t_ns <= end_ns]
        self._values: dict[tuple[str, str, str], dict[int, float]] = {}
        for row in _enough(within, known):
            self._values.setdefault((row.source, row.subject, row.metric), {})[row.t_ns] = row.value or 0.0

    def subjects(self, source: str, prefix: str = "") -> tuple[str, ...]:
        """Everything of a source whose name begins so, in the order in which it was seen."""
        return tuple(
            dict.fromkeys(
                subject for own, subject, _ in self._values if own == source and subject.startswith(prefix)
            )
        )

    def values(self, source: str, subject: str, metric: str) -> tuple[float, ...]:
        """All samples of one figure, in order of time."""
        found = self._values.get((source, subject, metric), {})
        return tuple(found[at] for at in sorted(found))

    def mean(self, source: str, subject: str, metric: str) -> float | None:
        """Their mean, None where there is none."""
        values = self.values(source, subject, metric)
        return fmean(values) if values else None

    def middle(self, source: str, subject: str, metric: str) -> float | None:
        """Their median, which a ramp or a drain does not move."""
        values = self.values(source, subject, metric)
        return median(values) if values else None

    def most(self, source: str, subject: str, metric: str) -> float | None:
        """The largest of them."""
        return max(self.values(source, subject, metric), default=None)

    def total(self, source: str, prefix: str, metric: str) -> float | None:
        """The sum of the means of all subjects that begin so, such as of all OSDs."""
        means = [
            value
            for subject in self.subjects(source, prefix)
            if (value := self.mean(source, subject, metric)) is not None
        ]
        return sum(means) if means else None

    def weighted(self, source: str, subject: str, metric: str, by: tuple[str, ...]) -> float | None:
        """The mean of a figure of single operations, by how many there were at each moment."""
        found = self._values.get((source, subject, metric), {})
        if not found:
            return None
        counts = {
            at: sum(self._values.get((source, subject, name), {}).get(at, 0.0) for name in by) for at in found
        }
        total = sum(counts.values())
        if total <= 0:
            return fmean(found.values())
        return sum(value * counts[at] for at, value in found.items()) / total

    def by_subject(self, source: str, prefix: str, metric: str) -> dict[str, float]:
        """The mean of each subject that has the figure."""
        return {
            subject: value
            for subject in self.subjects(source, prefix)
            if (value := self.mean(source, subject, metric)) is not None
        }

    def moments(self, source: str, metric: str) -> Iterator[tuple[str, int, float]]:
        """Subject, time and value of all samples of a metric."""
        for (own, subject, name), found in self._values.items():
            if own == source and name == metric:
                for at, value in found.items():
                    yield subject, at, value


def _enough(within: list[SeriesRow], known: list[SeriesRow]) -> Iterator[SeriesRow]:
    """Those within the interval; of what is sampled more seldom than that, all."""
    seen = {(row.source, row.subject, row.metric) for row in within}
    yield from within
    yield from (row for row in known if (row.source, row.subject, row.metric) not in seen)


def outlier(values: dict[str, float]) -> tuple[str, float] | None:
    """The largest of three or more, and how many times the median of the others it is."""
    if len(values) < 3:
        return None
    name = max(values, key=lambda one: values[one])
    others = median(value for own, value in values.items() if own != name)
    return (name, values[name] / others) if others > 0 else None
