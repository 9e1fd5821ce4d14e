"""What a result allows one to say, as frozen values: the only thing that reports read.

`show --json` (format `leadline.show/1`) is a projection of `Findings`; so is every other report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from leadline.study import schemes
from leadline.tracing.model import TraceView

State = Literal["VALID", "DOUBTFUL", "INVALID", "NOT_RUN"]
Outcome = Literal["faster", "slower", "same", "undecided"]
Tone = Literal["headline", "finding", "caution"]


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
class TrialRow:
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
class Line:
    """A time series of one trial: `points` are (seconds since the trial's start, value).

    A point stands at the end of its interval. `measured_to_s` is given where the figures of the trial come
    from a part of it only (steady state), `shift_s` where its level shifts.
    """

    trial: str
    block: int
    name: str
    unit: str
    points: tuple[tuple[float, float], ...]
    measured_from_s: float = 0.0
    measured_to_s: float | None = None
    shift_s: float | None = None


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
class Cell:
    """One combination of target, work and factor levels, and everything known of it.

    `kind` is the kind of work, by the name of its folder below `workloads`.
    """

    id: str
    target: str
    work: str
    factors: dict[str, Any]
    job: dict[str, Any]
    metrics: dict[str, Quantity]
    validity: Validity
    trials: tuple[TrialRow, ...] = ()
    curves: tuple[Curve, ...] = ()
    lines: tuple[Line, ...] = ()
    origin: Origin | None = None
    chains: tuple[Chain, ...] = ()
    kind: str = "io"


@dataclass(frozen=True)
class Comparison:
    """`other` against `base` in one work, as the ratio other/base, paired by block.

    `verdict` speaks of `other`: faster, slower, same (within `margin`), undecided. `assumption` says
    what the interval rests on where that needs saying (few blocks). The interval has the `confidence` at
    which the comparison was decided, more than 0.95 where a study has several: `correction` says so.
    `skewness` is that of the blocks' log ratios, where it is more than chance makes it.
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


@dataclass(frozen=True)
class Statement:
    """One sentence for a person, with the evidence that it rests on."""

    tone: Tone
    text: str
    evidence: tuple[str, ...] = ()


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
class PublishedEntry:
    """A figure as printed, with the numbers of the doubts about it."""

    text: str
    doubts: tuple[int, ...] = ()


@dataclass(frozen=True)
class PublishedTable:
    """A table of a document as it was published."""

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[PublishedEntry, ...], ...]


@dataclass(frozen=True)
class PublishedDoubt:
    """What does not agree, or is limited by something else than storage; `number` counts from 1."""

    number: int
    code: str
    title: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedClaim:
    """A sentence of the document, what its tables say, and what it rests on."""

    text: str
    section: str
    published: str | None
    computed: str
    agrees: bool
    notes: tuple[str, ...]
    rests_on: tuple[str, ...]


@dataclass(frozen=True)
class PublishedView:
    """A document's figures, recomputed: `tested` of them could be, `agreed` did."""

    source: str
    tables: tuple[PublishedTable, ...]
    doubts: tuple[PublishedDoubt, ...]
    claims: tuple[PublishedClaim, ...]
    derived: tuple[str, ...]
    tested: int
    agreed: int
    tolerance: str


@dataclass(frozen=True)
class ApplicationRow:
    """A row of figures; `keys` name what they are of, `state` is the worst of the cells behind them.

    `states` are those of each figure, where they rest on cells of their own.
    """

    keys: tuple[str, ...]
    values: tuple[Quantity, ...]
    state: State
    states: tuple[State, ...] = ()


@dataclass(frozen=True)
class ApplicationTable:
    """Figures of an application or of ways to a storage.

    `keys` head the columns that name a row, `columns` those of figures.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[ApplicationRow, ...]
    note: str = ""


@dataclass(frozen=True)
class ApplicationPoint:
    """A cell in the figures: `copies` at once took `run_time`, with its `shares` (read, write, …)."""

    series: str
    target: str
    copies: int
    run_time: Quantity
    shares: dict[str, Quantity]
    state: State


@dataclass(frozen=True)
class ApplicationModel:
    """A model fitted to a series: seconds of computing that `cpus` share, and of what copies do in turn.

    `points` are (copies, seconds by the model, measured / model - 1). It is no measurement.
    """

    series: str
    target: str
    cpus: int
    compute_s: float
    shared_s: float
    fitted_to: tuple[int, ...]
    points: tuple[tuple[int, float, float | None], ...]


@dataclass(frozen=True)
class StageSpan:
    """One stage of one trial on a chart of time: seconds since the trial's start."""

    series: str
    target: str
    trial: str
    block: int
    client: int
    stage: str
    start_s: float
    end_s: float
    state: State
    words: str = ""


@dataclass(frozen=True)
class ApplicationView:
    """What a study of applications shows besides cells and comparisons."""

    tables: tuple[ApplicationTable, ...]
    points: tuple[ApplicationPoint, ...]
    models: tuple[ApplicationModel, ...]
    stages: tuple[StageSpan, ...] = ()


@dataclass(frozen=True)
class Findings:
    """A whole result, judged. `host`, `cluster`, `itself` (leadline's own cost) are flat facts to list."""

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
    published: PublishedView | None = None
    traces: tuple[TraceView, ...] = ()
    application: ApplicationView | None = None
    ways: tuple[ApplicationTable, ...] = ()
