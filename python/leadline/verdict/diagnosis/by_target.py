"""A result's cells taken together: what bounds most of each target's, which is what was asked first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from leadline.verdict.diagnosis.judge import CauseNamed
from leadline.verdict.diagnosis.of_result import CellDiagnosed

_CAUSES_MAX = 2
_PART = 0.3  # of a target's cells: less often is for the lines of single cells


def by_target(cells: Sequence[CellDiagnosed]) -> Iterator[str]:
    """A line for targets that are bound alike, in the order of the cells, and what to do below it.

    A cause counts for a cell where it is the first that is named.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for target in dict.fromkeys(one.cell.target for one in cells):
        alike.setdefault(_often(_first(cells, (target,))), []).append(target)
    for causes, targets in alike.items():
        first = _first(cells, targets)
        found = [[one for one in first if one and one.entry.name == name] for name in causes]
        parts = [f"{_title(of_cause)} in {len(of_cause)}" for of_cause in found]
        unknown = first.count(None)
        parts += [f"not known in {unknown}"] if unknown else []
        count = "1 cell" if len(first) == 1 else f"{len(first)} cells"
        yield f"{' and '.join(targets)}, {count}, bound by: {', '.join(parts) or 'each something else'}."
        for of_cause in found:
            yield f"  {of_cause[0].entry.means} Remedy: {of_cause[0].entry.remedy}"


def _first(cells: Sequence[CellDiagnosed], targets: Sequence[str]) -> list[CauseNamed | None]:
    """Of each cell of these targets the first cause that is named."""
    return [next(iter(one.found.named), None) for one in cells if one.cell.target in targets]


def _often(first: Sequence[CauseNamed | None]) -> tuple[str, ...]:
    names = Counter(one.entry.name for one in first if one is not None)
    return tuple(name for name, count in names.most_common(_CAUSES_MAX) if count >= _PART * len(first))


def _title(found: Sequence[CauseNamed]) -> str:
    """As most of the cells have it: the name of a link is in its title."""
    ((title, _),) = Counter(one.title for one in found).most_common(1)
    return title
