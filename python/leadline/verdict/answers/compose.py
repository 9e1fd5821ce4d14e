"""From a judged study to its answer: the shape of its question, the figures behind it, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable
from leadline.plan.model import Plan, PlannedCell
from leadline.study.schemes import access
from leadline.study.study import QUESTION_MAX, Study
from leadline.study.target import LeftOut
from leadline.verdict.answers import messages
from leadline.verdict.answers.doubts import with_footnotes
from leadline.verdict.answers.messages import find_leaders, together
from leadline.verdict.certainty import named, usable
from leadline.verdict.comparisons.comparisons import asked_metrics
from leadline.verdict.comparisons.deciding import FEW_BLOCKS, LARGEST, MOST_BLOCKS, difference_words
from leadline.verdict.interface import KindAnswer
from leadline.verdict.kinds import judged, metric_kind, metric_part
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Quantity, TargetView, part_label, severity
from leadline.verdict.sections.section import AskedFigure, NextStep, StudyAnswer


def wider(undecided: Sequence[Comparison], seconds: float | None) -> NextStep | None:
    """What would decide most of it; None where nothing is undecided. `seconds` is the time of a block."""
    if not undecided:
        return None
    blocks = max(one.blocks for one in undecided)
    if blocks < 2:
        text = f"one block has no confidence interval: run it with --blocks {FEW_BLOCKS}"
        return NextStep(text, None if seconds is None else seconds * FEW_BLOCKS)
    ranked = sorted((one.more for one in undecided if one.more), key=lambda more: (more.tells, more.blocks))
    half = (len(undecided) - 1) // 2
    if half >= len(ranked):
        factor = difference_words(LARGEST)
        text = f"even {MOST_BLOCKS} more blocks would not detect {factor} in most inconclusive comparisons"
        return NextStep(f"{text}: first find what makes it vary, for example with leadline check")
    wanted = max(one.blocks for one in ranked[: half + 1]) + blocks
    text = f"to detect {difference_words(ranked[half].tells)} in most inconclusive comparisons"
    return NextStep(f"{text}: run it with --blocks {wanted}", None if seconds is None else seconds * wanted)


def asked_figures(
    planned: Sequence[PlannedCell],
    cells: Sequence[Cell],
    comparisons: Iterable[Comparison],
    metrics: Sequence[str],
    left_out: Sequence[LeftOut],
) -> tuple[AskedFigure, ...]:
    """A figure for each work, or operation of it, on each target; `metrics` are those that the study names.

    `comparisons` are of targets by name, or of cells by id. What a target could not do has its reason.
    """
    several = len({cell.work for cell in cells}) > 1
    known = {(one.other, one.work, one.metric): one for one in comparisons}
    found = []
    for plan, cell in zip(planned, cells, strict=True):
        asked = asked_metrics(plan, metrics)
        leading = [name for name in asked if metric_kind(name).leads] or asked[:1]
        for name in asked:
            compared = known.get((cell.target, cell.work, name))
            if compared is None:
                compared = next(
                    (one for key, one in known.items() if (key[0], key[2]) == (cell.id, name)), None
                )
            quantity = cell.metrics.get(name) or Quantity(None, "", reason="not measured")
            label = _label(cell.work, name, leading, several=several)
            found.append(
                AskedFigure(
                    label,
                    cell.target,
                    cell.id,
                    name,
                    quantity,
                    cell.validity.state,
                    compared,
                    name in leading,
                    metric_kind(name).higher_is_better,
                )
            )
    return (*found, *_left_out(found, planned, left_out))


def _label(work: str, metric: str, leading: Sequence[str], *, several: bool) -> str:
    part = metric_part(metric)
    if part:
        return part_label(work, part)
    words = metric_kind(metric).words
    return work if metric in leading[:1] else f"{work}: {words}" if several else words


def _left_out(
    found: Sequence[AskedFigure], planned: Sequence[PlannedCell], left_out: Sequence[LeftOut]
) -> Iterator[AskedFigure]:
    """A work that a target cannot do, wherever another could."""
    works = {cell.id: cell.work for cell in planned}
    for one in left_out:
        rows = {figure.work: figure for figure in found if works[figure.cell] == one.work}
        for figure in rows.values():
            reason = Quantity(None, figure.quantity.unit, reason=one.reason)
            yield replace(
                figure, target=one.target, cell="", quantity=reason, state="NOT_RUN", comparison=None
            )


_QUESTION = re.compile(r"[^.?!]*\?")


@dataclass(frozen=True)
class JudgedStudy:
    """What an answer is made from: `block_s` is the time of a block, `done` counts trials that ended.

    `beside` are jobs with others against the same jobs alone, `within` cells against others of their target,
    `within_what` says which these are. `said` are sentences that stand below the answer.
    """

    study: Study
    plan: Plan
    block_s: float | None
    done: int
    targets: Sequence[TargetView]
    cells: Sequence[Cell]
    tables: Mapping[str, CellTable]
    comparisons: Sequence[Comparison]
    beside: Sequence[Comparison]
    within: Sequence[Comparison]
    within_what: str
    anchor: str
    alpha: float
    left_out: Sequence[LeftOut]
    own: Sequence[KindAnswer]
    complete: bool
    said: tuple[str, ...] = ()


def answer_of(found: JudgedStudy) -> StudyAnswer:
    """The answer to what the study asks."""
    compared, against = _compared(found)
    metrics = found.study.compare.metrics
    pairs = [(p, c) for p, c in zip(found.plan.cells, found.cells, strict=True) if p.swept is None]
    plain = asked_figures([p for p, _ in pairs], [c for _, c in pairs], compared, metrics, found.left_out)
    figures, footnotes = with_footnotes(plain, found.cells)
    text, undecided = _text(found, figures, against)
    matrix = next((one.matrix for one in found.own if one.matrix), None)
    replaced = any(one.matrix and not one.adds for one in found.own)
    if any(one.instead for one in found.own):
        text = ""
    first = [one.text for one in found.own if one.leads]
    said = [*first, text, *(one.text for one in found.own if not one.leads)]
    return StudyAnswer(
        question_of(found.study),
        _as_sure(" ".join(filter(None, said)), found, figures),
        () if replaced else figures,
        against if any(one.comparison for one in figures) else "",
        matrix,
        tuple(_steps(found, undecided)),
        None if found.block_s is None else found.block_s * _blocks(found),
        found.said,
        footnotes=footnotes,
    )


def _blocks(found: JudgedStudy) -> float:
    """How many blocks it has, those that were added to the planned ones among them."""
    return max(found.plan.blocks, found.done * found.plan.blocks / max(len(found.plan.trials), 1))


def question_of(study: Study) -> str:
    """The study's question; of one that has none the first that it asks in `about`, else its title."""
    asked = _QUESTION.search(" ".join(study.about.split()))
    first = asked[0].strip() if asked else ""
    return study.question or (first if len(first) <= QUESTION_MAX else "") or study.title or study.name


def _compared(found: JudgedStudy) -> tuple[Sequence[Comparison], str]:
    """The comparisons that the question is about, and what they are to."""
    if found.beside:
        return found.beside, "the same job alone"
    return (found.within, found.within_what) if found.within else (found.comparisons, found.anchor)


def _text(found: JudgedStudy, figures: Sequence[AskedFigure], against: str) -> tuple[str, list[Comparison]]:
    """The sentences, and the comparisons that they leave undecided."""
    if any(one.matrix and not one.adds for one in found.own):
        return "", []
    shown = [one.comparison for one in figures if one.comparison and one.leads]
    undecided = [one for one in usable(shown) if one.verdict == "undecided"]
    if found.beside:
        return messages.beside_others(figures), undecided
    if shown and against != found.anchor:
        return messages.within_target(figures, against), undecided
    if found.study.compare.table:
        local = frozenset(v.name for v in found.targets if access(v.access).storage in ("mount", "none"))
        leaders = find_leaders(figures, local, found.tables, found.study.compare.margin, found.alpha)
        if leaders:
            open_ = [one for leader in leaders for one in leader.compared if one.verdict == "undecided"]
            return messages.leaders_of(leaders), usable(open_)
    if shown:
        of_all = together(figures, found.anchor, found.tables, found.alpha)
        return messages.against_base(figures, found.anchor, of_all), undecided
    alone = [[one for one in figures if one.target == view.name] for view in found.targets]
    return " ".join(filter(None, map(messages.figures_alone, alone))), []


def _as_sure(text: str, found: JudgedStudy, figures: Sequence[AskedFigure]) -> str:
    """The text with how far its cells can be relied on; doubts that cannot change it are footnotes."""
    states = [cell.validity.state for cell in found.cells]
    bad = sum(state in UNUSABLE for state in states)
    sure = {one.cell for one in figures} - {one.cell for one in figures if not one.footnoted}
    doubtful = sum(one.validity.state == "DOUBTFUL" and one.id not in sure for one in found.cells)
    if not text:
        return _no_answer(found, figures)
    absent = [one.target for one in found.left_out if one.work is None]
    text += f" Not measured: {named(absent)}." if absent else ""
    if any((view.facts.get("ceph") or {}).get("lab") for view in found.targets):
        text += " Lab cluster: use the ratios, not the absolute numbers."
    if bad == len(states):
        return f"{text} No cell can be relied on: see below."
    if doubtful + bad == 0:
        return text
    parts = [f"Doubts could change {doubtful} of {len(states)} cells"] if doubtful else []
    parts += [f"{bad} of {len(states)} INVALID or not run"] if bad else []
    return f"{text} ({', '.join(parts)}.)"


def _no_answer(found: JudgedStudy, figures: Sequence[AskedFigure]) -> str:
    """Why nothing can be answered: the code that takes a value away, else why there is none."""
    if not found.cells:
        return "No answer: nothing was measured."
    codes = [(cell.id, code) for cell in found.cells for code in cell.validity.codes]
    lost = [pair for pair in codes if pair[1].state in UNUSABLE]
    cell, code = max(lost, key=lambda pair: severity(pair[1].state), default=("", None))
    why = f" {cell} is {code.state.replace('_', ' ')}, {code.title}: {code.evidence}." if code else ""
    count = len(found.cells)
    none = f"none of {count} cells has a value" if count > 1 else "the 1 cell has no value"
    reasons = (f" {one.cell}: {one.quantity.reason}." for one in figures if one.quantity.reason)
    return f"No answer: {none} to use.{why or next(reasons, '')}"


def _steps(found: JudgedStudy, undecided: Sequence[Comparison]) -> list[NextStep]:
    """What would finish or decide it, the most urgent first."""
    trials, seconds = len(found.plan.trials), found.block_s
    steps = []
    if not found.complete:
        left = max(1 - found.done / max(trials, 1), 0)
        rest = None if seconds is None else seconds * found.plan.blocks * left
        verb = "tune prove" if any(one.state for one in found.plan.targets) else "run"
        steps.append(NextStep(f"finish the study: leadline {verb} --resume DIR", rest, first=True))
    more = wider(undecided, seconds)
    otherwise = {judged(one.kind).more_blocks for one in found.plan.cells}
    if more and all(otherwise):
        more = NextStep(min(otherwise))
    return [*steps, *([more] if more else [])]
