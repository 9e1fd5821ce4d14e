"""The kinds of work as verdicts ask them: by name, and what holds for several. The registry has the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from leadline.analysis.metrics import Measured, MetricKind, general_kind
from leadline.analysis.search import asked_rate
from leadline.errors import UsageError
from leadline.registry import offered

if TYPE_CHECKING:
    from leadline.analysis.cells import Measure
    from leadline.plan.model import PlannedCell
    from leadline.store.tables import LatencyRow, TrialRow
    from leadline.verdict.interface import JudgedWork


@cache
def kinds() -> tuple[JudgedWork[Any], ...]:
    """Every kind of work, in the order in which they say something."""
    found: tuple[JudgedWork[Any], ...] = offered("kinds judged")
    return found


@cache
def judged(kind: str) -> JudgedWork[Any]:
    """The kind of work of that name. Raises KeyError where there is none."""
    return {one.kind: one for one in kinds()}[kind]


@lru_cache(maxsize=1024)  # a result's names are anybody's
def metric_kind(name: str) -> MetricKind:
    """The kind of a metric, by its name with or without a direction or an operation in front."""
    found = (one.metric_kind(name) for one in kinds())
    return next((kind for kind in found if kind is not None), None) or general_kind(name, _directions())


@cache
def _directions() -> tuple[str, ...]:
    return tuple(dict.fromkeys(direction for one in kinds() for direction in one.directions))


@cache
def _parts() -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for one in kinds() for part in one.parts))


def known_metrics() -> tuple[str, ...]:
    """All names that a cell can have."""
    return tuple(dict.fromkeys(name for one in kinds() for name in one.known_metrics()))


def refuse_unknown(metrics: Iterable[str]) -> None:
    """Raises UsageError for the first name that no cell can have."""
    for name in metrics:
        if name not in known_metrics():
            raise UsageError(f"no metric is called {name!r}", f"use one of: {', '.join(known_metrics())}")


def metric_part(name: str) -> str | None:
    """The part of a work that a metric is of, as a metadata operation; None for a metric of the whole."""
    return next((part for part in _parts() if name.startswith(f"{part}_")), None)


def measure_of(cells: Sequence[PlannedCell], extras: Mapping[str, Any] | None = None) -> Measure:
    """What computes the metrics of these cells' trials. `extras` by kind: what `JudgedWork.read` gave."""
    planned = {cell.id: cell for cell in cells}

    def measure(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
        cell = planned[trial.cell]
        extra = (extras or {}).get(cell.kind)
        return judged(cell.kind).measured(trial, latency, open_loop=is_open_loop(cell, trial), extra=extra)

    return measure


def is_open_loop(cell: PlannedCell, trial: TrialRow) -> bool:
    """True where operations begin at planned times, not when the one before is done.

    Of a search each trial has a rate of its own, or none.
    """
    if cell.search is not None:
        return asked_rate(trial) is not None
    return cell.job.rate_bytes_per_s is not None or cell.job.rate_iops is not None
