"""What stands on the first screen, as frozen values: question, answer, figures, next steps."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.verdict.model import Comparison, FigureTable, Quantity, State
from leadline.verdict.sections.section import TextTable


@dataclass(frozen=True)
class AskedFigure:
    """What a work is asked for on one target, and how it compares; no comparison where it is the base.

    `work` is the name of its row: with the operation or the metric, where a work is asked for several.
    `leads`: the work is asked for it; else it explains what leads, as the stages of a pipeline do.
    """

    work: str
    target: str
    cell: str
    metric: str
    quantity: Quantity
    state: State
    comparison: Comparison | None = None
    leads: bool = True
    higher_is_better: bool = True


@dataclass(frozen=True)
class NextStep:
    """What to do next, and how long that takes where it is known."""

    text: str
    seconds: float | None = None


@dataclass(frozen=True)
class StudyAnswer:
    """`against` says what ratios are to, empty without any; `matrix` stands in the figures' place on the
    screen, and without them has the picture, too.

    `run_seconds` is how long the study took, where it is known. `said` are sentences below the answer, the
    most important first; `sound` is what is said of one that nothing casts doubt on.
    """

    question: str
    text: str
    figures: tuple[AskedFigure, ...] = ()
    against: str = ""
    matrix: FigureTable | TextTable | None = None
    steps: tuple[NextStep, ...] = ()
    run_seconds: float | None = None
    said: tuple[str, ...] = ()
    sound: str = ""
