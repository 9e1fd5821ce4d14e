"""Several results over each other: the cells of one name side by side, and each result against the first.

Each result takes the place of a target, so that every table and chart of a report shows them together. The
statistics are those of two results that are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from leadline.errors import UsageError
from leadline.plan.model import PlannedCell
from leadline.store.reader import Result, require_cells
from leadline.verdict.answers.compose import asked_figures
from leadline.verdict.answers.doubts import with_footnotes
from leadline.verdict.answers.messages import against_base
from leadline.verdict.certainty import named
from leadline.verdict.comparisons.conditions import Differences
from leadline.verdict.comparisons.two_results import compare_results, differences_between, in_common
from leadline.verdict.findings import build_findings
from leadline.verdict.inputs import needed_plan
from leadline.verdict.model import Cell, Comparison, Findings, TargetView, worst
from leadline.verdict.sections.section import Frame, Section, StudyAnswer, TextTable

MOST = 8  # as many as there are colours


def names_of(results: Sequence[Result]) -> tuple[str, ...]:
    """What each is called: its directory's name, with a number where several have one name."""
    plain = [one.path.resolve().name for one in results]
    return tuple(
        name if plain.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(plain, 1)
    )


def overlay_of(results: Sequence[Result], margin: float, *, across_jobs: bool = False) -> Findings:
    """The findings of all of them as one. Workloads that ran different jobs are shown, and are compared only
    where that is asked for (`across_jobs`).

    Raises UsageError where two have trials in common, or where there are too many; ResultError where one has
    no cells, or none in common with the first.
    """
    _require_apart(results)
    names = names_of(results)
    found = [build_findings(one) for one in results]
    planned = [needed_plan(one).cells for one in results]
    alone = all(len({cell.target for cell in cells}) == 1 for cells in planned)
    cells = [
        _placed(cell, name, alone=alone)
        for name, one in zip(names, found, strict=True)
        for cell in one.cells
        if cell.swept is None
    ]
    unlike = [
        differences_between((results[0], other), (names[0], name))
        for other, name in zip(results[1:], names[1:], strict=True)
    ]
    compared = tuple(
        _placed_comparison(one, (names[0], name), alone=alone)
        for other, name, apart in zip(results[1:], names[1:], unlike, strict=True)
        for one in compare_results(results[0], other, (), margin, across_jobs=True)
        if across_jobs or one.work not in _other_jobs(apart)
    )
    plain = [one for every in planned for one in every if one.swept is None]
    answer = _answer(names, cells, plain, compared, _job_notes(names, unlike, across_jobs=across_jobs))
    return Findings(
        id="",
        kind="comparison of results",
        title=" / ".join(names),
        about="",
        created=max(one.created for one in found),
        state=worst([cell.validity.state for cell in cells]),
        targets=tuple(
            _target(name, one, result) for name, one, result in zip(names, found, results, strict=True)
        ),
        cells=tuple(cells),
        comparisons=compared,
        statements=(),
        study={"baseline": names[0]},
        reproduce=(f"leadline report {' '.join(str(one.path) for one in results)}",),
        version=found[0].version,
        complete=all(one.complete for one in found),
        sections=_around(unlike),
        private={text: words for one in found for text, words in one.private.items()}
        | {str(one.path): name for one, name in zip(results, names, strict=True)},
        frame=Frame(incomplete="not every planned trial of each result was run"),
        answer=answer,
    )


def _require_apart(results: Sequence[Result]) -> None:
    if len(results) > MOST:
        raise UsageError(f"{len(results)} results are too many for one picture", f"name {MOST} at most")
    for place, other in enumerate(results):
        require_cells(other.path, other.manifest)
        for first in results[:place]:
            if shared := in_common(first, other):
                raise UsageError(
                    f"a result cannot be compared with itself: {shared}", "name each result once"
                )


def _work(work: str, target: str, *, alone: bool) -> str:
    """Where all results have one target each, targets of other names are the same place."""
    return work if alone else f"{work} on {target}"


def _placed(cell: Cell, name: str, *, alone: bool) -> Cell:
    """The cell of a result as that of a target which is called as the result is."""
    return replace(cell, id=f"{name}.{cell.id}", target=name, work=_work(cell.work, cell.target, alone=alone))


def _placed_comparison(found: Comparison, names: tuple[str, str], *, alone: bool) -> Comparison:
    target = found.other.removeprefix("B:")
    return replace(found, base=names[0], other=names[1], work=_work(found.work, target, alone=alone))


def _other_jobs(apart: Differences) -> frozenset[str]:
    """The workloads that ran different jobs."""
    return frozenset(work for one in apart.jobs for work in one.cells)


def _job_notes(names: Sequence[str], unlike: Sequence[Differences], *, across_jobs: bool) -> tuple[str, ...]:
    """A sentence for each result that ran other jobs than the first."""
    done = "They are compared all the same." if across_jobs else "They are shown, and not compared."
    return tuple(
        f"DIFFERENT JOBS: {name} and {names[0]} ran different jobs in {named(sorted(_other_jobs(apart)))}"
        f" ({'; '.join(apart.job_words())}). {done}"
        for name, apart in zip(names[1:], unlike, strict=True)
        if apart.jobs
    )


def _answer(
    names: Sequence[str],
    cells: Sequence[Cell],
    planned: Sequence[PlannedCell],
    compared: Iterable[Comparison],
    notes: tuple[str, ...],
) -> StudyAnswer:
    figures, footnotes = with_footnotes(asked_figures(planned, cells, compared, (), ()), cells)
    question = f"How do {named(names[1:])} differ from {names[0]}?"
    notes = (*notes, *_lacking(names, cells))
    if not any(one.comparison for one in figures):
        return StudyAnswer(question, "Nothing can be compared.", figures, said=notes, footnotes=footnotes)
    text = against_base(figures, names[0])
    return StudyAnswer(question, text, figures, names[0], said=(*notes, _APART), footnotes=footnotes)


_APART = "The results are from different times: a difference holds if nothing else changed in between."


def _lacking(names: Sequence[str], cells: Sequence[Cell]) -> tuple[str, ...]:
    """Workloads that a result has not, and some other has."""
    every = dict.fromkeys(cell.work for cell in cells)
    known = {name: {cell.work for cell in cells if cell.target == name} for name in names}
    missing = {name: [work for work in every if work not in known[name]] for name in names}
    return tuple(f"{name} lacks {named(works)}." for name, works in missing.items() if works)


def _target(name: str, found: Findings, result: Result) -> TargetView:
    words = ", ".join([found.title, *([found.created] if found.created else [])])
    return TargetView(name, str(result.path), "", words)


def _around(unlike: Sequence[Differences]) -> tuple[Section, ...]:
    """What else differs: access methods, clients, releases."""
    rows = tuple((one.sides[1], words) for one in unlike for words in replace(one, jobs=()).notes())
    if not rows:
        return ()
    title = f"What else differs from {unlike[0].sides[0]}"
    return (Section("differences", title, (TextTable(title, ("result", "difference"), rows),), in_csv=False),)
