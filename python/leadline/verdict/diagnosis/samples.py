"""Figures, and the samples of a trial's measured interval, asked by source, subject and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, median_low

from leadline.store.parquet import SampleKey, SampleLine
from leadline.store.tables import SeriesRow, TrialRow

Figure = float | str | None
Figures = dict[str, Figure]
ONE_EACH = 1.5  # operations for each request, or the inverse: beyond it their times are not one request's


def ratio(part: Figure, whole: Figure) -> float | None:
    """A part of a whole; None where either is not known, or the whole is 0."""
    return part / whole if isinstance(part, float) and isinstance(whole, float) and whole > 0 else None


def seconds(milliseconds: float | None) -> float | None:
    """Series have times in ms."""
    return None if milliseconds is None else milliseconds / 1e3


def one_each(operations: Figure) -> bool:
    """Whether each request is about one operation, so that the time of these is one of the request's."""
    return isinstance(operations, float) and 1 / ONE_EACH <= operations <= ONE_EACH


_BEGUN_NS = 1_000_000_000  # by then a trial has connected and opened what it uses


class Samples:
    """What was sampled while a trial was measured; of one too short for that, while it ran.

    A report asks this of hundreds of trials with thousands of lines each: what nobody asks for is not looked
    at, and what a source has is found by its metric.
    """

    def __init__(self, trial: TrialRow, lines: Mapping[SampleKey, SampleLine]) -> None:
        self._begin_ns, self._end_ns = trial.ramp_ns, trial.ramp_ns + trial.measured_ns
        self._lines = lines
        self._read: dict[SampleKey, dict[int, float]] = {}
        self._parts: dict[SampleKey, dict[int, int]] = {}
        self._by_source: dict[str, dict[str, None]] = {}
        self._by_metric: dict[tuple[str, str], list[str]] = {}
        for source, subject, metric in sorted(lines):
            self._by_source.setdefault(source, {})[subject] = None
            self._by_metric.setdefault((source, metric), []).append(subject)

    @classmethod
    def of_rows(cls, trial: TrialRow, rows: Iterable[SeriesRow]) -> Samples:
        """The same from rows, as of a mount that was looked at a moment ago."""
        lines: dict[SampleKey, tuple[list[int], list[float]]] = {}
        for row in rows:
            if row.value is not None and row.t_ns > 0:
                times, values = lines.setdefault((row.source, row.subject, row.metric), ([], []))
                times.append(row.t_ns)
                values.append(row.value)
        return cls(trial, lines)

    @property
    def count(self) -> int:
        """How many there are, within the interval or not."""
        return sum(len(times) for times, _ in self._lines.values())

    def _known(self, key: SampleKey) -> dict[int, float]:
        """Those of the interval, by time; of what is sampled more seldom than that, all.

        A sample is of the time since the one before: of the interval is what lies in it by half or more.
        """
        found = self._read.get(key)
        if found is None:
            times, values = self._lines.get(key, ((), ()))
            known = dict(sorted(zip(times, values, strict=True)))
            parts = {at: self._part_ns(since, at) for since, at in _spans(tuple(known))}
            found = {at: value for at, value in known.items() if parts[at]} or known
            self._read[key], self._parts[key] = found, parts
        return found

    def _part_ns(self, since_ns: int, at_ns: int) -> int:
        within = min(at_ns, self._end_ns) - max(since_ns, self._begin_ns)
        return within if 2 * within >= at_ns - since_ns else 0

    def steady(self, source: str, subject: str, metric: str) -> tuple[tuple[float, float], ...]:
        """Each sample once the trial has begun, with the seconds that it is of.

        What a trial does when it begins, such as to connect and to open files, is in the samples before. A
        trial too short for that has none.
        """
        times, values = self._lines.get((source, subject, metric), ((), ()))
        known = dict(sorted(zip(times, values, strict=True)))
        return tuple(
            (known[at], (at - since) / 1e9)
            for since, at in _spans(tuple(known))
            if since >= _BEGUN_NS and at > since and self._part_ns(since, at)
        )

    def usual(self, source: str, subject: str, metric: str) -> float | None:
        """The median of these samples, of two the smaller one; None where there is none."""
        values = [value for value, _ in self.steady(source, subject, metric)]
        return median_low(values) if values else None

    def subjects(self, source: str, prefix: str = "") -> tuple[str, ...]:
        """Everything of a source whose name begins so, in the order of names."""
        return tuple(one for one in self._by_source.get(source, ()) if one.startswith(prefix))

    def values(self, source: str, subject: str, metric: str) -> tuple[float, ...]:
        """All samples of one figure, in order of time."""
        return tuple(self._known((source, subject, metric)).values())

    def mean(self, source: str, subject: str, metric: str) -> float | None:
        """Their mean by the time that each is of, None where there is none."""
        return self._mean((source, subject, metric))

    def _mean(self, key: SampleKey) -> float | None:
        return self._mean_of(key, self._known(key))

    def _mean_of(self, key: SampleKey, found: Mapping[int, float]) -> float | None:
        """By the time that each sample is of; None where there is none."""
        if not found:
            return None
        parts = [self._parts[key][at] for at in found]
        return fmean(found.values(), parts) if sum(parts) > 0 else fmean(found.values())

    def middle(self, source: str, subject: str, metric: str) -> float | None:
        """Their median, which a ramp or a drain does not move."""
        values = self._known((source, subject, metric)).values()
        return median(values) if values else None

    def part(self, source: str, subject: str, metric: str, held: Callable[[float], bool]) -> float | None:
        """The part of the time in which samples saw this; None where there is no sample."""
        key = (source, subject, metric)
        return self._mean_of(key, {at: float(held(value)) for at, value in self._known(key).items()})

    def most(self, source: str, subject: str, metric: str) -> float | None:
        """The largest of them."""
        return max(self._known((source, subject, metric)).values(), default=None)

    def total(self, source: str, prefix: str, metric: str) -> float | None:
        """The sum of the means of all subjects that begin so, such as of all OSDs."""
        means = self.by_subject(source, prefix, metric).values()
        return sum(means) if means else None

    def weighted(self, source: str, subject: str, metric: str, by: tuple[str, ...]) -> float | None:
        """The mean of a figure of single operations, by how many there were at each moment."""
        found = self._known((source, subject, metric))
        if not found:
            return None
        weights = [self._known((source, subject, name)) for name in by]
        parts = self._parts[source, subject, metric]
        counts = {at: parts[at] * sum(one.get(at, 0.0) for one in weights) for at in found}
        total = sum(counts.values())
        if total <= 0:
            return fmean(found.values())
        return sum(value * counts[at] for at, value in found.items()) / total

    def by_subject(self, source: str, prefix: str, metric: str) -> dict[str, float]:
        """The mean of each subject that has the figure."""
        return {
            subject: value
            for subject in self._by_metric.get((source, metric), ())
            if subject.startswith(prefix) and (value := self._mean((source, subject, metric))) is not None
        }

    def moments(self, source: str, metric: str) -> Iterator[tuple[str, int, float]]:
        """Subject, time and value of all samples of a metric."""
        for subject in self._by_metric.get((source, metric), ()):
            for at, value in self._known((source, subject, metric)).items():
                yield subject, at, value


def _spans(times: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Since when each is: the first as long as the others usually are, also where that is before the trial.

    What happened there, such as the layout of files, is no part of the trial. One alone is since its start.
    """
    usual = median(after - at for at, after in pairwise(times)) if len(times) > 1 else 0
    for number, at in enumerate(times):
        yield (times[number - 1] if number else int(at - usual) if usual else 0), at


def outlier(values: dict[str, float]) -> tuple[str, float] | None:
    """The largest of three or more, and how many times the median of the others it is."""
    if len(values) < 3:
        return None
    name = max(values, key=lambda one: values[one])
    others = median(value for own, value in values.items() if own != name)
    return (name, values[name] / others) if others > 0 else None
