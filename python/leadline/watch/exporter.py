"""A watched mount as metrics for Prometheus: figures, findings, and the programs that do most there.

Names end in their unit, as Prometheus has it. A figure that could not be seen is left out. Every value is of
the last look, whose end is `leadline_watch_last_look_timestamp_seconds`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from leadline.watch.view import by_program, is_below, together

if TYPE_CHECKING:
    from prometheus_client import Metric

    from leadline.watch.causes import Judgement
    from leadline.watch.figures import WatchFacts
    from leadline.watch.store import Seen

PROGRAMS_MAX = 20
_UNITS = {"_per_s": "_per_second", "_s": "_seconds", "_ms": "_milliseconds", "_share": "_ratio"}
_OWN = frozenset({"elapsed_s", "traced"})  # of the look itself
_PROGRAM = {
    "read_bytes_per_second": ("bytes_read", "Bytes that a program read below the path."),
    "written_bytes_per_second": ("bytes_written", "Bytes that a program wrote below the path."),
    "metadata_per_second": ("metadata", "Metadata calls of a program below the path."),
    "in_calls_seconds_per_second": (
        "spent_s",
        "Time that threads of a program spent in calls below the path.",
    ),
}


def metric_name(figure: str) -> str:
    """`mean_read_s` is `leadline_watch_mean_read_seconds`."""
    ending = next((one for one in _UNITS if figure.endswith(one)), "")
    return f"leadline_watch_{figure.removesuffix(ending)}{_UNITS.get(ending, '')}"


class WatchCollector:
    """What Prometheus is given: the last look, or that there was none."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last: tuple[Seen, WatchFacts, Judgement, float] | None = None
        self._problem = "no look has ended yet"

    def update(self, seen: Seen, facts: WatchFacts, judged: Judgement) -> None:
        """Take over a look."""
        self._last, self._problem = (seen, facts, judged, time.time()), ""

    def fail(self, problem: str) -> None:
        """A look was not possible: its figures are gone, and `up` is 0."""
        self._last, self._problem = None, problem

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client's collectors."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        last, problem = self._last, self._problem
        up = GaugeMetricFamily("leadline_watch_up", "1 where the last look saw the mount.", labels=("path",))
        up.add_metric((self._path,), 0.0 if last is None else 1.0)
        yield up
        if last is None:
            why = InfoMetricFamily("leadline_watch_problem", "Why there was no look.", labels=("path",))
            why.add_metric((self._path,), {"problem": problem})
            yield why
            return
        seen, facts, judged, ended_s = last
        for name, value, words in (
            ("leadline_watch_last_look_timestamp_seconds", ended_s, "When the last look ended."),
            ("leadline_watch_look_seconds", seen.elapsed_s, "How long the last look was."),
        ):
            yield self._gauge(name, words, value)
        for figure, found in facts.values.items():
            if isinstance(found, float) and figure not in _OWN:
                yield self._gauge(metric_name(figure), f"{figure} (docs/watch.md).", found)
        yield self._findings(judged)
        yield from self._programs(facts)

    def _gauge(self, name: str, words: str, value: float) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(name, words, labels=("path",))
        family.add_metric((self._path,), value)
        return family

    def _findings(self, judged: Judgement) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            "leadline_watch_finding",
            "What goes on (load) and what it waits for (limit): its share, 1 where that is not known.",
            labels=("path", "part", "rule", "title"),
        )
        for part, findings in (("load", judged.load), ("limit", judged.limit)):
            for one in findings:
                share = 1.0 if one.share is None else one.share
                family.add_metric((self._path, part, one.name, one.title), share)
        return family

    def _programs(self, facts: WatchFacts) -> Iterable[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        groups = by_program([row for row in facts.processes if is_below(row)])[:PROGRAMS_MAX]
        for name, (field, words) in _PROGRAM.items():
            family = GaugeMetricFamily(
                f"leadline_watch_program_{name}", words, labels=("path", "program", "account")
            )
            for group in groups:
                labels = (self._path, group[0].seen.name, group[0].seen.account or "")
                family.add_metric(labels, float(getattr(together(group).per_s, field)))
            yield family
