"""What a result allows one to say, as frozen values: the only thing that reports read.

`show --json` (format `leadline.show/1`) is a projection of `Findings`; so is every other report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from leadline.study import schemes

if TYPE_CHECKING:
    from leadline.verdict.sections.section import Frame, Section, StudyAnswer

State = Literal["VALID", "DOUBTFUL", "INVALID", "NOT_RUN"]
Outcome = Literal["faster", "slower", "same", "undecided"]
_OUTCOME_WORDS = {"same": "equivalent", "undecided": "inconclusive"}
Tone = Literal["headline", "finding", "caution"]
Passed = Literal["holds", "lost", "undecided", "invalid", "missing"]

# From the best to the worst. A figure of an INVALID cell is never shown without that word: so what stands for
# several cells says it even where others of them were not run at all.
SEVERITY: tuple[State, ...] = ("VALID", "DOUBTFUL", "NOT_RUN", "INVALID")
UNUSABLE: tuple[State, ...] = ("INVALID", "NOT_RUN")  # never to be compared


def severity(state: State) -> int:
    """The larger the worse."""
    return SEVERITY.index(state)


def worst(states: Iterable[State]) -> State:
    """The worst of some states; VALID when there is none."""
    return max(states, key=severity, default="VALID")


def part_label(work: str, part: str) -> str:
    """How a part of a work, as an operation of metadata, is named where each has a line."""
    return work if work == part else f"{work} {part}"


def outcome_words(outcome: str) -> str:
    """An outcome of a comparison, a gate or a requirement as people read it; documents keep the value."""
    return _OUTCOME_WORDS.get(outcome, outcome)


@dataclass(frozen=True)
class Quantity:
    """A metric of a cell, its geometric mean over the blocks: `low` to `high` is the 95 % interval.

    Units: `B/s`, `1/s`, `ns`, `B`, `s`, `1` (a share). `value` is None where nothing was measured,
    and then `reason` says why; `low` and `high` are None below two blocks.
    """

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class Code:
    """A validity code that fired, with what was seen and what to do about it."""

    code: str
    state: State
    title: str
    evidence: str
    remedy: str


@dataclass(frozen=True)
class Validity:
    """The worst state of the codes that fired; VALID when none did."""

    state: State
    codes: tuple[Code, ...] = ()


@dataclass(frozen=True)
class TrialView:
    """One trial for the engineers' table. `values` has the metrics' names as keys, base units."""

    trial: str
    block: int
    order: int
    state: str
    error: str | None
    values: dict[str, float | None]


@dataclass(frozen=True)
class Curve:
    """Latency percentiles of a cell, all its trials' histograms merged exactly.

    `points` are (percentile 0..100, latency in ns); `direction` is read, write or sync; `clock` is
    `submission`, `completion`, `total` (both, from the actual start) or `intended` (from the intended
    start, open loop). `buckets` are the histogram's (latency in ns, operations).
    """

    direction: str
    clock: str
    operations: int
    points: tuple[tuple[float, float], ...]
    mean_ns: float | None = None
    stdev_ns: float | None = None
    buckets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class FaultSpan:
    """When a fault was in force during a trial, in seconds since the trial's start."""

    words: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Line:
    """A time series of one trial: `points` are (seconds since the trial's start, value).

    A point stands at the end of its interval. `measured_to_s` is given where the figures of the trial come
    from a part of it only (steady state), `shift_s` where its level shifts. `faults` are those that it ran
    under.
    """

    trial: str
    block: int
    name: str
    unit: str
    points: tuple[tuple[float, float], ...]
    measured_from_s: float = 0.0
    measured_to_s: float | None = None
    shift_s: float | None = None
    faults: tuple[FaultSpan, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where a cell's bytes went: shares, per byte that the application moved; None is "not observable"."""

    application_bytes: float
    wire_bytes: float | None
    device_bytes: float | None
    osd_bytes: float | None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChainPlace:
    """A place on the way between application and device, or several that nothing tells apart.

    `share` is the part of the application's bytes that came from here (reads) or got no further by the end of
    the trials (writes); `bytes` were counted on the way into it. None is "not observable": `reason`.
    `model` is what `bytes` per application byte would be by the model, of writes behind the host.
    """

    name: str
    words: str
    share: float | None
    bytes: int | None
    bytes_per_byte: float | None
    model: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Chain:
    """The bytes of a cell in one direction, place by place; all its trials together, their ramps included.

    `acknowledged` says where a write is when the application is told that it is done, `model` what the
    models of the places assume, `together` that jobs which ran at the same time were counted as one.
    """

    direction: Literal["read", "write"]
    application_bytes: int
    places: tuple[ChainPlace, ...]
    acknowledged: str | None = None
    model: str | None = None
    together: str | None = None


@dataclass(frozen=True)
class CellShown:
    """How a cell is laid out, as its kind of work says.

    `leading` are the rates that it may be drawn by, the first that has a value; `directions` are those that
    stand before its metrics' names where it has several; each of `parts` has metrics with its name in front,
    and a row. `asked` are its columns in the table of all targets, a part ("" for the whole) and its metric;
    `note` stands below it. `in_flight` is how many operations it asks to have in flight, where it does;
    `pattern` says in words how it moves data, in blocks of `block_bytes` where all have one size. With
    `own_tables` or `own_charts` it is not among those of all cells.
    """

    leading: tuple[str, ...] = ("bandwidth", "iops")
    directions: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    note: str = ""
    in_flight: int | None = None
    pattern: str = ""
    block_bytes: int | None = None
    own_tables: bool = False
    own_charts: bool = False


@dataclass(frozen=True)
class Cell:
    """One combination of target, work and factor levels, and everything known of it.

    `kind` is the kind of work, by the name of its folder below `workloads`. `swept` names the sweep that
    it is a cell of.
    """

    id: str
    target: str
    work: str
    factors: dict[str, Any]
    job: dict[str, Any]
    metrics: dict[str, Quantity]
    validity: Validity
    trials: tuple[TrialView, ...] = ()
    curves: tuple[Curve, ...] = ()
    lines: tuple[Line, ...] = ()
    origin: Origin | None = None
    chains: tuple[Chain, ...] = ()
    kind: str = "io"
    shown: CellShown = CellShown()
    swept: str | None = None


@dataclass(frozen=True)
class MoreBlocks:
    """What would decide a comparison: with `blocks` more a difference of `tells` (0.2: 20 %) is found in four
    of five studies."""

    blocks: int
    tells: float


@dataclass(frozen=True)
class Comparison:
    """`other` against `base` in one work, as the ratio other/base, paired by block.

    `verdict` speaks of `other`: faster, slower, same (within `margin`), undecided. `assumption` says
    what the interval rests on where that needs saying (few blocks). The interval has the `confidence` at
    which the comparison was decided, more than 0.95 where a study has several: `correction` says so.
    `skewness` is that of the blocks' log ratios, where it is more than chance makes it. `part` is the part of
    the work that the metric is of, as an operation of metadata. `unlike`: it scatters unlike the other cells,
    of which its interval was not learned. `more` is what it would take to decide it, where that is known.
    `values` are the figures of base and other, where each is one trial and stands for nothing else.
    """

    work: str
    metric: str
    base: str
    other: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    verdict: Outcome
    margin: float = 0.05
    assumption: str | None = None
    validity: State = "VALID"
    confidence: float = 0.95
    correction: str | None = None
    skewness: float | None = None
    part: str | None = None
    unlike: bool = False
    more: MoreBlocks | None = None
    values: tuple[Quantity, ...] = ()

    @property
    def at_least(self) -> float | None:
        """How many times, at least, where a difference was found: the end of the interval nearer to 1.

        One-sided, it holds at half of what the interval errs.
        """
        if self.low is None or self.high is None or self.verdict not in ("faster", "slower"):
            return None
        return self.low if self.low > 1 else 1 / max(self.high, 1e-300)

    @property
    def least_factor(self) -> float:
        """The same, 1 where nothing was found."""
        return self.at_least or 1.0


@dataclass(frozen=True)
class Statement:
    """One sentence for a person, with the evidence that it rests on.

    `says` names its template: each name is used once, and has a checker in `tests/sentences` that works out
    by itself what the sentence states. `cells` are the ids of the cells whose figures it rests on: it is
    never surer than they are (`verdict/certainty.py`).
    """

    tone: Tone
    text: str
    evidence: tuple[str, ...] = ()
    says: str = field(kw_only=True)
    cells: tuple[str, ...] = field(kw_only=True, default=())


@dataclass(frozen=True)
class TargetView:
    """A target as reports show it; `words` is the phrase, `facts` the details."""

    name: str
    url: str
    access: str
    words: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def has_storage(self) -> bool:
        """False where nothing is stored, and leadline measures itself."""
        return schemes.access(self.access).storage != "none"


@dataclass(frozen=True)
class FigureRow:
    """A row of figures; `keys` name what they are of, `state` is the worst of the cells behind them, None
    where there is no cell.

    `states` are those of each figure, where they rest on cells of their own.
    """

    keys: tuple[str, ...]
    values: tuple[Quantity, ...]
    state: State | None
    states: tuple[State, ...] = ()


@dataclass(frozen=True)
class FigureTable:
    """Figures of an application or of ways to a storage.

    `keys` head the columns that name a row, `columns` those of figures. `brief` is how many rows the first
    screen has, where it has not all of them.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[FigureRow, ...]
    note: str = ""
    brief: int | None = None


@dataclass(frozen=True)
class RequiredFigure:
    """A figure that a requirement asks of a cell, or of two: `met` is None where that is undecided.

    `quantity` is of the whole, of each process or host, or a ratio, as the requirement has it. `seen` is what
    was measured in words, `why` is what leaves it undecided, `decides` what would decide it.
    """

    cells: tuple[str, ...]
    figure: str
    asked: str
    quantity: Quantity
    state: State
    met: bool | None
    seen: str
    why: str = ""
    decides: str = ""


@dataclass(frozen=True)
class JudgedRequirement:
    """A requirement with what the result says to it; `source` is where it comes from.

    `figures` are those of every cell that it is of; where there is none, `why` says so and `decides` what
    to do.
    """

    name: str
    source: str
    asked: str
    where: str
    met: bool | None
    figures: tuple[RequiredFigure, ...] = ()
    why: str = ""
    decides: str = ""

    @property
    def verdict(self) -> str:
        """In words."""
        return {True: "met", False: "not met", None: "undecided"}[self.met]


def _study_frame() -> Frame:
    from leadline.verdict.sections.section import STUDY_FRAME  # which is made of what is defined here

    return STUDY_FRAME


@dataclass(frozen=True)
class Findings:
    """A whole result, judged. `host`, `cluster`, `itself` (leadline's own cost) are flat facts to list.

    `sections` are what it has besides cells, in the order of reports; `frame` is how all of it is laid out;
    `answer` is that of a study to its question; `required` are the requirements that it was held against.
    `private` are texts that tell where it was made, each with what a redacted report says instead.
    """

    id: str
    kind: str
    title: str
    about: str
    created: str
    state: State
    targets: tuple[TargetView, ...]
    cells: tuple[Cell, ...]
    comparisons: tuple[Comparison, ...]
    statements: tuple[Statement, ...]
    host: dict[str, str] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)
    itself: dict[str, str] = field(default_factory=dict)
    study: dict[str, Any] = field(default_factory=dict)
    reproduce: tuple[str, ...] = ()
    version: str = ""
    complete: bool = True
    published_units: bool = False
    sections: tuple[Section, ...] = ()
    private: Mapping[str, str] = field(default_factory=dict, repr=False)
    frame: Frame = field(default_factory=_study_frame)
    answer: StudyAnswer | None = None
    required: tuple[JudgedRequirement, ...] = ()


@dataclass(frozen=True)
class RegressionCheck:
    """One cell and metric: the ratio new over baseline with its interval, None where unknown.

    `name` is `target.work`; `state` the worse validity of both cells.
    """

    name: str
    metric: str
    passed: Passed
    words: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    state: State = "VALID"


@dataclass(frozen=True)
class Regression:
    """All checks of a result against a baseline (A and B in `notes`: what else differs between the two).

    `allow` is the loss allowed, as a share.
    """

    baseline: str
    new: str
    allow: float
    checks: tuple[RegressionCheck, ...]
    notes: tuple[str, ...] = ()

    def count(self, *kinds: Passed) -> int:
        """How many checks ended so."""
        return sum(1 for check in self.checks if check.passed in kinds)
