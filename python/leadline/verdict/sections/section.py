"""What a report is made of besides its cells: sections of words, tables, facts and charts, and what stands
on the first screen, as frozen values.

Verdicts make them, renderers walk them: neither knows the other, so that a new section is in every report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from leadline.verdict.model import Comparison, FigureTable, Quantity, State
from leadline.verdict.sections.charts import Chart, StageBars, StageSpan


@dataclass(frozen=True)
class AskedFigure:
    """What a work is asked for on one target, and how it compares; no comparison where it is the base.

    `work` is the name of its row: with the operation or the metric, where a work is asked for several.
    `leads`: the work is asked for it; else it explains what leads, as the stages of a pipeline do.
    `footnoted`: no doubt about it can change what the answer says of it.
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
    footnoted: bool = False


@dataclass(frozen=True)
class NextStep:
    """What to do next, and how long that takes where it is known. `first`: nothing helps before it."""

    text: str
    seconds: float | None = None
    first: bool = False


@dataclass(frozen=True)
class StudyAnswer:
    """`against` says what ratios are to, empty without any; `matrix` stands in the figures' place on the
    screen, and without them has the picture, too.

    `run_seconds` is how long the study took, where it is known. `said` are sentences below the answer, the
    most important first; `sound` is what is said of one that nothing casts doubt on. `footnotes` are validity
    codes that cannot change the answer.
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
    footnotes: tuple[str, ...] = ()


_NOTE = "One trial of each target on one scale of time: a bar for each operation, from its start to its end."


def stages_section(
    tables: tuple[FigureTable, ...], spans: tuple[StageSpan, ...], note: str = _NOTE
) -> Section:
    """Its tables below the chart, where any stage took a time; `note` says what the chart shows."""
    drawn = any(span.end_s > 0 for span in spans)
    chart = (Panels(((StageBars("stages", spans),),), note=note, legend=True),) if drawn else ()
    document = {"tables": tables, "points": [], "models": [], "stages": spans}
    return Section(
        name="copies",
        title="Operation by operation",
        parts=(*chart, *tables),
        short="Operations",
        json={"application": document},
        in_csv=False,
    )


Clean = Callable[[Any], Any]


@dataclass(frozen=True)
class Item:
    """One thing that is said. `lead` are its first words; `notes` go on, `details` stand below.

    `number` is what marks in tables refer to. `count` and `code` stand beside the lead; `points` are named.
    `state` has the colour of the code.
    """

    text: str
    lead: str = ""
    number: int | None = None
    doubtful: bool = False
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    points: tuple[tuple[str, str], ...] = ()
    count: int = 1
    code: str = ""
    state: State | None = None


@dataclass(frozen=True)
class Words:
    """Things that are said, one after the other; `none` is said on a page where there is none of them.

    Without a `title` they stand below that of their section. `style` is how a page lays them out, `anchor`
    what the marks in tables lead to there.
    """

    items: tuple[Item, ...]
    title: str = ""
    none: str = ""
    style: Literal["list", "numbered", "articles", "cards"] = "list"
    anchor: str = "item"


@dataclass(frozen=True)
class Marked:
    """A text in a table with the numbers of the items that are about it."""

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class TextTable:
    """A table of words; `right` are the columns with numbers, `total` how many rows there are in all.

    `brief` is how many rows a report has that is no page. `spaced`: with room around each column.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | Marked, ...], ...]
    right: frozenset[int] = frozenset()
    note: str = ""
    total: int = 0
    brief: int | None = None
    spaced: bool = False


@dataclass(frozen=True)
class Facts:
    """Names with what is known of each."""

    title: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Panels:
    """Charts in rows of panels. `legend`: with the targets' colours."""

    rows: tuple[tuple[Chart, ...], ...]
    title: str = ""
    note: str = ""
    legend: bool = False


Part = Words | FigureTable | TextTable | Facts | Panels


@dataclass(frozen=True)
class Section:
    """A part of a report. `name` is its anchor on the page and, without `json`, its key in JSON.

    `short` is its name where the titles of several are the same: its title where it has none.
    `json` are keys of `show --json` with their values, where they are not made from the parts. `leads`: on
    the page it stands before sections that do not. `page_only`: what it says is elsewhere in reports that are
    no page. `in_csv` is False where the figures are those of cells, which are rows already.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    short: str | None = None
    note: str = ""
    json: Mapping[str, Any] | None = None
    leads: bool = False
    page_only: bool = False
    in_csv: bool = True

    @property
    def entry(self) -> str:
        """Its name beside others of the same title."""
        return self.title if self.short is None else self.short

    @property
    def tables(self) -> tuple[FigureTable, ...]:
        """Its tables of figures."""
        return tuple(part for part in self.parts if isinstance(part, FigureTable))


@dataclass(frozen=True)
class Borrowed:
    """Where figures are from that nobody measured here, and how exactly they are held against each other."""

    source: str
    tolerance: str


@dataclass(frozen=True)
class Frame:
    """How a report lays out what all results have. The default is that of a study.

    `cells`: each has rows, charts and details; without it the sections show what was found. `made_by` says
    how it was recorded, `incomplete` what is wrong with what did not end, `steps` what to do next, `no_jobs`
    why cells are no jobs of fio, `verb` which of leadline's goes on with what did not end, `meaning` what
    the state says where it is none of figures. `command`: `about`
    is a command line, and works are named after it. `hidden` makes the sections anew without what identifies.
    """

    cells: bool = True
    borrowed: Borrowed | None = None
    made_by: tuple[str, ...] = ()
    incomplete: str = ""
    steps: tuple[str, ...] = ()
    no_jobs: str = ""
    verb: str = "run"
    meaning: str = ""
    command: bool = False
    hidden: Callable[[Clean], tuple[Section, ...]] | None = field(default=None, compare=False, repr=False)


STUDY_FRAME, PROOF_FRAME = Frame(), Frame(verb="tune prove")
