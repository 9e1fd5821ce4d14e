"""The host apart from the file system: the same study on several hosts, each with the same targets.

Two factors are crossed: what another target does on one host (paired by block within a result), what another
host does on one target (measured apart), and whether the first depends on the second (a ratio of ratios).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells, compare_cells_of_two_runs
from leadline.analysis.statistics.means import Ratio
from leadline.errors import ResultError
from leadline.plan.model import Plan, PlannedCell
from leadline.store.reader import Result, require_cells
from leadline.verdict.comparisons.comparisons import wanted_metrics, weight_of
from leadline.verdict.comparisons.conditions import (
    Conditions,
    Differences,
    conditions_of,
    differences_of,
    require_same_jobs,
)
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.findings import build_findings
from leadline.verdict.inputs import alpha_of, tables_of
from leadline.verdict.model import Comparison, State, worst

_APART = "hosts measured at different times: valid only if nothing else changed in between"


@dataclass(frozen=True)
class HostView:
    """One result as seen here: its host's name, its verdicts' level, its cells by (target, work), and what
    each was measured with, by its id.
    """

    name: str
    path: str
    alpha: float
    cells: dict[tuple[str, str], tuple[PlannedCell, CellTable, State]]
    conditions: dict[str, Conditions]


@dataclass(frozen=True)
class HostComparisons:
    """The three tables; `hosts` in the order given, the first is the base. `notes`: what else differs."""

    hosts: tuple[str, ...]
    file_system: tuple[Comparison, ...]
    host: tuple[Comparison, ...]
    interaction: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


def compare_hosts(
    views: Sequence[HostView], metrics: Sequence[str], margin: float, *, across_jobs: bool = False
) -> HostComparisons:
    """All comparisons of the works and targets that every result has: one table, which explores.

    Raises ResultError where results are of one host, or have no work on a common target; UsageError where
    cells of one name ran different jobs, unless that is asked for (`across_jobs`).
    """
    _require_several(views)
    shared = [key for key in views[0].cells if all(key in view.cells for view in views)]
    if not shared:
        paths = ", ".join(view.path for view in views)
        raise ResultError(f"{paths} have no cell in common", "run the same study with the same target names")
    notes = _notes(views, shared, across_jobs=across_jobs)
    targets = list(dict.fromkeys(target for target, _ in shared))
    groups = (
        _of_file_systems(views, shared, targets, metrics),
        _of_hosts(views, shared, metrics),
        _of_both(views, shared, targets, metrics),
    )
    alpha = min(view.alpha for view in views)
    decided = list(decide([pair for group in groups for pair in group], margin, alpha))
    file_system, host, interaction = (tuple(decided.pop(0) for _ in group) for group in groups)
    return HostComparisons(tuple(view.name for view in views), file_system, host, interaction, notes)


def _notes(
    views: Sequence[HostView], shared: Sequence[tuple[str, str]], *, across_jobs: bool
) -> tuple[str, ...]:
    """What differs from host to host besides the hosts: said, or of the jobs refused."""
    base, *others = views
    found = [(_differences(base, view, shared), view) for view in others]
    for one, view in found:
        require_same_jobs(one, (base.path, view.path), across=across_jobs)
    return tuple(dict.fromkeys(note for one, _ in found for note in one.notes(clients=False)))


def _differences(base: HostView, other: HostView, shared: Sequence[tuple[str, str]]) -> Differences:
    cells = [(base.cells[key][0], other.cells[key][0]) for key in shared]
    pairs = [(first.id, base.conditions[first.id], other.conditions[second.id]) for first, second in cells]
    return differences_of(pairs, (base.name, other.name))


def host_view(result: Result) -> HostView:
    """A result as `compare_hosts` needs it. Raises ResultError where it is damaged or no study's."""
    require_cells(result.path, result.manifest)
    states = {cell.id: cell.validity.state for cell in build_findings(result, with_charts=False).cells}
    plan = Plan.from_json(result.manifest["plan"])
    tables = tables_of(result, plan)
    cells = {
        (cell.target, cell.work): (cell, tables[cell.id], states[cell.id])
        for cell in plan.cells
        if cell.id in tables and cell.id in states
    }
    name = str((result.manifest.get("host") or {}).get("host") or result.path.name)
    return HostView(
        name, str(result.path), alpha_of(result.manifest), cells, conditions_of(result.manifest, plan)
    )


def _require_several(views: Sequence[HostView]) -> None:
    names = [view.name for view in views]
    if len(set(names)) != len(names):
        raise ResultError(
            f"two results are of one host: {', '.join(names)}", "name one result of each host; see `compare`"
        )


def _metrics(cell: PlannedCell, metrics: Sequence[str]) -> Sequence[str]:
    return metrics or wanted_metrics(cell)


def _of_file_systems(
    views: Sequence[HostView],
    shared: Sequence[tuple[str, str]],
    targets: Sequence[str],
    metrics: Sequence[str],
) -> list[Pair]:
    found = []
    for view in views:
        for target, work in shared:
            if target == targets[0] or (targets[0], work) not in view.cells:
                continue
            base, other = view.cells[targets[0], work], view.cells[target, work]
            for metric in _metrics(base[0], metrics):
                found.append(
                    Pair(
                        work=work,
                        base=f"{targets[0]} on {view.name}",
                        other=f"{target} on {view.name}",
                        metric=metric,
                        ratio=compare_cells(base[1], other[1], metric),
                        state=worst([base[2], other[2]]),
                        weight=weight_of(metric),
                    )
                )
    return found


def _of_hosts(
    views: Sequence[HostView], shared: Sequence[tuple[str, str]], metrics: Sequence[str]
) -> list[Pair]:
    found = []
    for view in views[1:]:
        for target, work in shared:
            base, other = views[0].cells[target, work], view.cells[target, work]
            for metric in _metrics(base[0], metrics):
                found.append(
                    Pair(
                        work=work,
                        base=f"{target} on {views[0].name}",
                        other=f"{target} on {view.name}",
                        metric=metric,
                        ratio=compare_cells_of_two_runs(base[1], other[1], metric),
                        state=worst([base[2], other[2]]),
                        weight=weight_of(metric),
                        basis=_APART,
                    )
                )
    return found


def _of_both(
    views: Sequence[HostView],
    shared: Sequence[tuple[str, str]],
    targets: Sequence[str],
    metrics: Sequence[str],
) -> list[Pair]:
    """Whether a target's ratio to the first one is another on another host."""
    found = []
    for view in views[1:]:
        for target, work in shared:
            if target == targets[0] or (targets[0], work) not in shared:
                continue
            corners = [(its.cells[targets[0], work], its.cells[target, work]) for its in (views[0], view)]
            for metric in _metrics(corners[0][0][0], metrics):
                ratios = [compare_cells(base[1], other[1], metric) for base, other in corners]
                found.append(
                    Pair(
                        work=work,
                        base=f"{target} against {targets[0]} on {views[0].name}",
                        other=f"the same on {view.name}",
                        metric=metric,
                        ratio=ratio_of_ratios(ratios[0], ratios[1]),
                        state=worst([cell[2] for pair in corners for cell in pair]),
                        weight=weight_of(metric),
                        basis=_APART,
                    )
                )
    return found


def ratio_of_ratios(base: Ratio | None, other: Ratio | None) -> Ratio | None:
    """other/base with the uncertainty of both (Zou and Donner's margins, see `Ratio`)."""
    if base is None or other is None:
        return None
    series = (*base.series, *other.series) if base.series and other.series else ()
    return Ratio(other.value / base.value, min(base.count, other.count), series)


def words(found: HostComparisons) -> tuple[str, ...]:
    """One sentence an interaction: whether what was seen of the file systems holds on each host."""
    sentences = []
    for item in found.interaction:
        if item.verdict == "same":
            said = "the file systems differ by the same factor on both hosts"
        elif item.verdict == "undecided":
            said = "whether the file systems differ alike on both hosts is inconclusive"
        else:
            said = "what the file system does depends on the host: neither factor alone describes it"
        sentences.append(f"{item.work}, {item.metric}, {item.base.partition(' on ')[0]}: {said}")
    return tuple(sentences)
