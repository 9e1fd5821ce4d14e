"""What a chart shows, as frozen values in base units: a kind of mark and its data. Reports draw them.

`name` tells a chart from the others of a report. Texts are as they were found: reports make them printable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leadline.verdict.model import Quantity, State


@dataclass(frozen=True)
class GrowthPoint:
    """So many at once, and what it took."""

    series: str
    target: str
    count: int
    value: Quantity
    state: State
    words: str


@dataclass(frozen=True)
class GrowthModel:
    """What a model says of a series: (so many at once, figure). It is no measurement."""

    series: str
    target: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class GrowthLines:
    """Seconds, or another unit, by how many at once: a line with intervals for each series, models dotted."""

    name: str
    title: str
    axis: str
    points: tuple[GrowthPoint, ...]
    models: tuple[GrowthModel, ...] = ()
    unit: str = "s"


@dataclass(frozen=True)
class ShareBar:
    """A whole in parts: (name of the part, share), in an order that all bars of a chart have."""

    label: str
    words: str
    parts: tuple[tuple[str, float], ...]
    state: State = "VALID"


@dataclass(frozen=True)
class ShareBars:
    """Bars in parts; `numbers`: each part with its share in it, and every bar with its state."""

    name: str
    title: str
    unit: str
    bars: tuple[ShareBar, ...]
    axis: str | None = None
    numbers: bool = False


@dataclass(frozen=True)
class StageSpan:
    """One stage of one trial on a chart of time: seconds since the trial's start.

    `label` stands beside the bar in the place of how long it took, where that would mislead; `state` is None
    where nothing was judged.
    """

    series: str
    target: str
    trial: str
    block: int
    client: int
    stage: str
    start_s: float
    end_s: float
    state: State | None
    words: str = ""
    label: str = ""


@dataclass(frozen=True)
class StageBars:
    """What each series did when, on one scale of time: a panel for each, a line for each stage."""

    name: str
    spans: tuple[StageSpan, ...]


@dataclass(frozen=True)
class RateLines:
    """Bytes moved in bins of `bin_s` seconds, by name."""

    name: str
    title: str
    bin_s: float
    moved: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class AmountLine:
    """An amount over time: (seconds since the trial's start, value)."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ShadedSpan:
    """From when to when something went on, in seconds, and what."""

    start_s: float
    end_s: float
    words: str


@dataclass(frozen=True)
class AmountLines:
    """Amounts of one unit over time, with what went on meanwhile shaded."""

    name: str
    title: str
    unit: str
    lines: tuple[AmountLine, ...]
    spans: tuple[ShadedSpan, ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """A row each, a column a bin of `bin_s` seconds; the darker the more bytes. `kind` has the colour."""

    name: str
    title: str
    kind: str
    bin_s: float
    rows: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class LifeBar:
    """From when to when something was there, in seconds."""

    label: str
    start_s: float
    end_s: float
    words: str


@dataclass(frozen=True)
class LifeBars:
    """What was there when, a bar each."""

    name: str
    title: str
    bars: tuple[LifeBar, ...]


@dataclass(frozen=True)
class TimeBar:
    """Seconds in parts: (name of the part, seconds); parts of nothing are left out.

    `label` stands on the axis, `title` is the whole name, `words` say what it is.
    """

    label: str
    title: str
    words: str
    total_s: float
    parts: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class TimeBars:
    """What took longest first: seconds in parts."""

    name: str
    title: str
    bars: tuple[TimeBar, ...]


@dataclass(frozen=True)
class CountBars:
    """How often each was seen. `kind` has the colour."""

    name: str
    title: str
    unit: str
    kind: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GroupedBar:
    """A target's figure in a group, as at a block size; `label` names it where its bar is explained."""

    group: str
    target: str
    label: str
    value: Quantity
    state: State


@dataclass(frozen=True)
class GroupedBars:
    """Bars by group, in each of them one for each target."""

    name: str
    title: str
    bars: tuple[GroupedBar, ...]


@dataclass(frozen=True)
class CellCurves:
    """The latency percentiles of a cell, by its id; `place` tells its charts from those of others."""

    name: str
    cell: str
    place: int


@dataclass(frozen=True)
class KneeField:
    """A cell of a sweep's grid: what it gives of the plateau, measured in so many `trials`, or by the fit.

    `share` is None where neither is known. `could_be`: it could be the knee; `words` say all of it.
    """

    column: str
    row: str
    share: float | None
    trials: int
    words: str
    knee: bool = False
    could_be: bool = False


@dataclass(frozen=True)
class KneeMap:
    """A rate over the grid of a sweep as shares of its plateau; `columns` and `rows` are levels, rising."""

    name: str
    title: str
    unit: str
    column_option: str
    row_option: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    fields: tuple[KneeField, ...]


@dataclass(frozen=True)
class PlaceUse:
    """A part of the way to the storage: how much of what it can do was in use, and what waited there.

    Means of a cell's trials. `use` is None where it was not observable, and, without `can_be_full`, where it
    is no part of which a share can be in use. `waits` says in words what `saturation` has as figures, `by`
    which bottlenecks are here.
    """

    place: str
    what: str
    use: float | None
    bounds: bool = False
    waits: str = ""
    saturation: Mapping[str, float] = field(default_factory=dict)
    can_be_full: bool = True
    by: str = ""


@dataclass(frozen=True)
class PlacesChain:
    """The way of a cell from the work to the device, part by part; `bound` says by what it is bound."""

    name: str
    title: str
    bound: str
    uses: tuple[PlaceUse, ...]
    state: State = "VALID"


Chart = (
    AmountLines
    | GrowthLines
    | ShareBars
    | StageBars
    | RateLines
    | HeatMap
    | LifeBars
    | TimeBars
    | CountBars
    | GroupedBars
    | CellCurves
    | KneeMap
    | PlacesChain
)
