"""What is shown of a simulation: the topology as a tree with how full each part is, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.simulation.course import CourseStep
from leadline.simulation.model import SimulatedCluster
from leadline.simulation.simulate import Simulated

_ROWS_MAX = 400
_FULLEST = 8
_OSDS_MAX = 8  # of a host: more are shown as the fullest of them


@dataclass(frozen=True)
class ShownUse:
    """A part that can be full: `share` in use, 0 to 1; `bounds` a work of this phase."""

    what: str
    share: float
    bounds: bool

    @property
    def number(self) -> str:
        """In percent."""
        return f"{100 * self.share:.0f} %"


@dataclass(frozen=True)
class ShownMember:
    """A switch, host or kind of client, as deep as it hangs in the tree."""

    name: str
    depth: int
    uses: tuple[ShownUse, ...]


@dataclass(frozen=True)
class ShownPhase:
    """A time in which rates are steady: words on it, and the tree."""

    title: str
    lines: tuple[str, ...]
    members: tuple[ShownMember, ...]
    left_out: int = 0


@dataclass(frozen=True)
class ShownStep:
    """A phase of a course: where it is drawn, and its words."""

    drawn: CourseStep
    since: str
    words: str


@dataclass(frozen=True)
class ShownCourse:
    """A work over a failure's phases: its highest rate in words, and a step for each phase."""

    work: str
    most: str
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True)
class ShownSimulation:
    """All of a page."""

    topology: str
    answer: str
    standing: str
    sources: tuple[str, ...]
    phases: tuple[ShownPhase, ...]
    courses: tuple[ShownCourse, ...] = ()


def members_of(cluster: SimulatedCluster, found: Simulated) -> tuple[ShownMember, ...]:
    """The tree from the top switch down; what nothing limits has no bar."""
    bounds = _bounds(found)
    below: dict[str, list[str]] = {}
    for name, above in cluster.above.items():
        below.setdefault(above, []).append(name)
    rows = list(_rows(cluster, found.use, bounds, below, "", 0))
    rows.append(
        ShownMember(
            "each client", 1, _uses(found.use, bounds, ("client link", "client processor"), "client ")
        )
    )
    common = ("metadata server", "this machine's processors")
    rows.append(ShownMember("for all", 0, _uses(found.use, bounds, common, "")))
    return tuple(row for row in rows if row.uses or row.name in below)


def shown_members(cluster: SimulatedCluster, found: Simulated) -> tuple[tuple[ShownMember, ...], int]:
    """As many as a page takes, and how many were left out; of a tall tree the fullest parts come first."""
    rows = members_of(cluster, found)
    taken = rows[:_ROWS_MAX]
    if len(rows) > _FULLEST:
        names = sorted(found.use, key=lambda name: -found.use[name])[:_FULLEST]
        taken = (ShownMember("fullest of all", 0, _uses(found.use, _bounds(found), names, "")), *taken)
    return taken, max(len(rows) - _ROWS_MAX, 0)


def _bounds(found: Simulated) -> set[str]:
    """The parts that bound a work."""
    return {
        one.bound.rpartition(", ")[2].removesuffix(" next")
        for one in found.predicted
        if "in flight" not in one.bound
    }


def _rows(
    cluster: SimulatedCluster,
    use: Mapping[str, float],
    bounds: set[str],
    below: Mapping[str, Sequence[str]],
    top: str,
    depth: int,
) -> Iterator[ShownMember]:
    for name in below.get(top, ()):
        if name in cluster.clients:
            continue
        whose = [
            f"{name} up",
            f"{name} down",
            f"{name} processors",
            f"{name} disk reads",
            f"{name} disk writes",
        ]
        own = _uses(use, bounds, whose, f"{name} ")
        yield ShownMember(name, depth, (*own, *_osds(cluster, use, bounds, name)))
        yield from _rows(cluster, use, bounds, below, name, depth + 1)


def _osds(
    cluster: SimulatedCluster, use: Mapping[str, float], bounds: set[str], host: str
) -> Iterator[ShownUse]:
    """Devices and processors of a host's OSDs, each; of many the fullest."""
    mine = [osd for osd, home in enumerate(cluster.osd_hosts) if home == host]
    for what in ("device", "processor"):
        found = [
            ShownUse(f"osd.{osd} {what}", _share(use, name), name in bounds)
            for osd in mine
            if (name := f"osd.{osd} {what}") in use
        ]
        if len(found) > _OSDS_MAX:
            found = [max(found, key=lambda one: (one.bounds, one.share))]
        yield from found


def _uses(
    use: Mapping[str, float], bounds: set[str], names: Sequence[str], prefix: str
) -> tuple[ShownUse, ...]:
    return tuple(
        ShownUse(name.removeprefix(prefix), _share(use, name), name in bounds)
        for name in names
        if name in use
    )


def _share(use: Mapping[str, float], name: str) -> float:
    return min(use[name], 1.0)
