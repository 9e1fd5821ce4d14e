"""The sweeps of a result with their knees, from the cells whose figures can be used, and what a plateau is
made of: how loaded each observed part was in its trials, and which of them was full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from leadline.analysis.knee import Knee, MeasuredSweep, Place, find_knee, measured_sweeps
from leadline.analysis.statistics.means import typical
from leadline.plan.model import PlannedCell
from leadline.store.tables import SeriesRow, TrialRow
from leadline.study.kinds import planned
from leadline.study.target import TargetFacts
from leadline.units import format_rate, format_size
from leadline.verdict.inputs import Material
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Cell

FULL = 0.9  # of what a part can do: above it the part is what bounds
_PORTS = 5  # named
_WIRES = "wire"  # the source of samples of a lab's ports
# Of a port's rate, what its counters show when it is full: headers are counted once a packet, but sent with
# each segment (MTU 1500; docs/observers.md).
_CARRIED = 0.956
_IN_TURN = 3  # of these ports are named


@dataclass(frozen=True)
class PlateauPart:
    """A part on the way, the share of what it can do that was in use (mean of the trials), and how that
    reads."""

    name: str
    share: float
    words: str


@dataclass(frozen=True)
class PlateauParts:
    """Parts that were observed, the most loaded first, and the names of those that could not be."""

    seen: tuple[PlateauPart, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def full(self) -> tuple[PlateauPart, ...]:
        """Those that bound it."""
        return tuple(part for part in self.seen if part.share >= FULL)


def parts_of_plateau(
    trials: Sequence[TrialRow], samples: Mapping[str, Sequence[SeriesRow]], facts: TargetFacts
) -> PlateauParts:
    """All parts that were observed in the trials on the plateau."""
    found = [
        part
        for part in (
            _mean("this host's processors", (trial.cpu_busy_share for trial in trials)),
            _mean("the engine's busiest thread", (trial.busy_share_max for trial in trials)),
            *_link(trials),
            *_device(trials, samples, facts),
            *_ports(trials, samples),
            _fullest_port(trials, samples),
        )
        if part is not None
    ]
    names = {part.name for part in found}
    unseen = []
    if facts.is_remote and "the network link" not in names and not any(n.startswith("port ") for n in names):
        unseen.append("the network link (no speed of it is known)")
    if facts.is_remote:
        unseen.append("the servers' devices")
    return PlateauParts(tuple(sorted(found, key=lambda part: -part.share)), tuple(unseen))


def _mean(name: str, values: Iterable[float | None]) -> PlateauPart | None:
    known = [value for value in values if value is not None]
    return _part(name, fmean(known)) if known else None


def _part(name: str, share: float, of: float | None = None) -> PlateauPart:
    what = "" if of is None else f" of {format_rate(of)}"
    return PlateauPart(name, share, f"{name} {100 * share:.0f} %{what}")


def _link(trials: Sequence[TrialRow]) -> Iterator[PlateauPart]:
    """The interface that carries the traffic, against the speed of its link."""
    found = [
        (max(trial.interface_sent_bytes or 0, trial.interface_received_bytes or 0) / seconds, limit)
        for trial in trials
        if (limit := trial.wire_limit_bytes_per_s) and (seconds := (trial.ramp_ns + trial.measured_ns) / 1e9)
    ]
    if found:
        speed = fmean(most for _, most in found)
        yield _part("the network link", fmean(rate / most for rate, most in found), speed)


def _device(
    trials: Sequence[TrialRow], samples: Mapping[str, Sequence[SeriesRow]], facts: TargetFacts
) -> Iterator[PlateauPart]:
    """The device that the target lies on, where it is this host's."""
    if facts.device is None:
        return
    name = facts.device.rpartition("/")[2]
    values = [
        row.value
        for trial in trials
        for row in _during(trial, samples)
        if (row.source, row.subject, row.metric) == ("host", name, "busy") and row.value is not None
    ]
    if values:
        yield _part(f"device {name}", fmean(values))


def _ports(trials: Sequence[TrialRow], samples: Mapping[str, Sequence[SeriesRow]]) -> Iterator[PlateauPart]:
    """The most loaded ports of a lab's switches, each by the fuller of its two ways."""
    rates: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        for row in _during(trial, samples):
            if row.source == _WIRES and row.value is not None:
                rates.setdefault((row.subject, row.metric), []).append(row.value)
    found = []
    for port in dict.fromkeys(subject for subject, _ in rates):
        limit = rates.get((port, "rate_bytes_per_s"))
        ways = [fmean(own) for way in ("tx", "rx") if (own := rates.get((port, f"{way}_bytes_per_s")))]
        if limit and limit[-1] > 0 and ways:
            found.append(_part(f"port {port}", max(ways) / limit[-1], limit[-1]))
    found.sort(key=lambda part: -part.share)
    yield from found[:_PORTS]


def _fullest_port(
    trials: Sequence[TrialRow], samples: Mapping[str, Sequence[SeriesRow]]
) -> PlateauPart | None:
    """Whichever port was the fullest at each moment, by the median of a trial's moments: its drain is none.

    A write of many chunks waits for the slowest of their ways, and that is now one port, now another.
    """
    shares: list[float] = []
    in_turn = Counter[str]()
    for trial in trials:
        rows = [row for row in _during(trial, samples) if row.source == _WIRES and row.value]
        limits = {row.subject: row.value for row in rows if row.metric == "rate_bytes_per_s"}
        moments: dict[int, tuple[float, str]] = {}
        for row in rows:
            if row.subject in limits and row.metric in ("tx_bytes_per_s", "rx_bytes_per_s"):
                share = (row.value or 0.0) / (limits[row.subject] or 1.0) / _CARRIED
                moments[row.t_ns] = max(moments.get(row.t_ns, (0.0, "")), (share, row.subject))
        if moments:
            shares.append(median(share for share, _ in moments.values()))
            in_turn.update(port for _, port in moments.values())
    if len(in_turn) < 2:  # it has a line of its own
        return None
    share, names = min(fmean(shares), 1.0), [name for name, _ in in_turn.most_common(_IN_TURN)]
    return PlateauPart("ports in turn", share, f"ports in turn {100 * share:.0f} % ({', '.join(names)})")


def _during(trial: TrialRow, samples: Mapping[str, Sequence[SeriesRow]]) -> Iterator[SeriesRow]:
    """Samples of the measured interval; of a trial too short to have one, those of all of it."""
    rows = samples.get(trial.trial, ())
    end_ns = trial.ramp_ns + trial.measured_ns
    within = [row for row in rows if trial.ramp_ns < row.t_ns <= end_ns]
    yield from within or (row for row in rows if row.t_ns > 0)


_ON = 0.5  # the probability from which on a cell is said to be on the plateau


@dataclass(frozen=True)
class SweepFound:
    """A sweep on a target. `knee` is None where no cell has a figure to use.

    `trials` counts those that were run, `unusable` the cells whose figures are INVALID; `parts` say what the
    plateau is made of; `tried` has the cells of the grid with a trial, as judged, by place.
    """

    measured: MeasuredSweep
    knee: Knee | None
    trials: int
    tried: Mapping[Place, Cell]
    unusable: frozenset[Place]
    parts: PlateauParts

    @property
    def unit(self) -> str:
        """Of its rate."""
        return metric_kind(self.measured.asked.metric).unit

    @property
    def sizes(self) -> tuple[bool, ...]:
        """Which of its options are sizes, in bytes."""
        job = next(iter(self.measured.cells.values())).job
        return tuple(option in planned(job).byte_fields for option in self.measured.asked.over)

    def level(self, option: int, at: int) -> str:
        """A level of an option as it reads."""
        value = self.measured.grid.levels[option][at]
        return format_size(value) if self.sizes[option] else f"{value:g}"

    def levels(self, place: Place) -> str:
        """`32 MiB x 4`."""
        return " x ".join(self.level(option, at) for option, at in enumerate(place))

    def words(self, place: Place) -> str:
        """`buffer 32 MiB x in_flight 4 (128 MiB)`."""
        own = " x ".join(
            f"{option} {self.level(number, at)}"
            for number, (option, at) in enumerate(zip(self.measured.asked.over, place, strict=True))
        )
        return own if len(place) == 1 else f"{own} ({self.amount(self.measured.grid.amount(place))})"

    def amount(self, product: float) -> str:
        """The product of levels."""
        return format_size(product) if any(self.sizes) else f"{product:,.0f}"

    def rate_of(self, place: Place) -> float | None:
        """What was measured in a cell, the mean of its blocks."""
        return typical(list(self.measured.rates.get(place, {}).values()))

    @property
    def largest(self) -> Place:
        """The end of its grid."""
        return max(self.measured.cells, key=lambda cell: (self.measured.grid.amount(cell), cell))

    def cell_ids(self, places: Sequence[Place]) -> tuple[str, ...]:
        """The ids of cells that were tried, and whose figures can be used."""
        return tuple(
            self.tried[place].id for place in places if place in self.tried and place not in self.unusable
        )

    @property
    def plateau(self) -> tuple[Place, ...]:
        """Tried cells that are on the plateau; where none surely is, the best of them."""
        if self.knee is None:
            return ()
        knee, usable = self.knee, sorted(set(self.measured.rates) - self.unusable)
        on = tuple(place for place in usable if knee.reached.get(place, 0) >= _ON)
        return on or tuple(sorted(usable, key=lambda place: knee.rates[place])[-1:])


def find_sweeps(read: Material, cells: Sequence[Cell]) -> tuple[SweepFound, ...]:
    """Every sweep of a result; `cells` are those that were tried, judged."""
    by_id = {cell.id: cell for cell in cells}
    return tuple(_found(one, by_id, read) for one in measured_sweeps(read.whole, read.tables))


def _found(measured: MeasuredSweep, cells: Mapping[str, Cell], read: Material) -> SweepFound:
    tried = {place: cells[cell.id] for place, cell in measured.cells.items() if cell.id in cells}
    unusable = frozenset(place for place, cell in tried.items() if cell.validity.state in UNUSABLE)
    rates = {place: own for place, own in measured.rates.items() if place not in unusable}
    knee = find_knee(measured.grid, rates, measured.asked.share)
    found = SweepFound(
        measured,
        knee,
        sum(len(cell.trials) for cell in tried.values()),
        tried,
        unusable,
        PlateauParts(),
    )
    if knee is None:
        return found
    on = found.plateau
    planned_cell: PlannedCell = measured.cells[on[0]]
    trials = [trial for place in on for trial in read.good(measured.cells[place].id)]
    parts = parts_of_plateau(trials, read.samples, read.facts[planned_cell.target])
    return replace(found, parts=parts)
