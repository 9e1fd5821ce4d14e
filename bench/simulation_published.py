"""What bench/simulation.md says of published figures: held against the model, and inferred by it.

Of published rows the parameters are the catalogue's; inputs that a source does not give are assumed: those
rows are weak. Inferred, which validates nothing, are CASTOR's uplinks, solved for from the rate that was
published, and Fermilab's curve over copies: its first points are given to the model of copies, and the others
predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median_high
from typing import Any

from scipy import stats

from harness import Row, cases, table
from leadline.analysis.models.storage import run_time
from leadline.simulation.model import SimulatedCluster, parse_work
from leadline.simulation.parameters import catalogue
from leadline.simulation.simulate import simulate

MIB = 1024**2
GBIT = 1e9 / 8 * 0.956  # MTU 1500 without headers
_SWITCHES, _HOSTS, _CLIENTS, _DISKS, _PROXIES = 6, 45, 40, 12, 12


def even(
    hosts: int, osds: int, device: str, clients: int, link: float, client_link: float
) -> SimulatedCluster:
    """Hosts and clients on one switch; Gbit/s."""
    names, users = [f"host{n}" for n in range(hosts)], [f"client{n}" for n in range(clients)]
    homes = tuple(name for name in names for _ in range(osds))
    return SimulatedCluster(
        {"core": "", **dict.fromkeys(names + users, "core")},
        {**dict.fromkeys(names, link * GBIT), **dict.fromkeys(users, client_link * GBIT)},
        homes,
        (device,) * len(homes),
        tuple(users),
    )


def castor(
    uplink: float = 10.0,
    switches: int = _SWITCHES,
    *,
    clients_below: bool = False,
    proxies_below: bool = False,
) -> SimulatedCluster:
    """540 disks in 45 hosts behind uplinks of so many Gbit/s; clients and proxies below them or the core."""
    hosts, users = [f"host{n}" for n in range(_HOSTS)], [f"client{n}" for n in range(_CLIENTS)]
    proxies = [f"proxy{n}" for n in range(_PROXIES)] if proxies_below else []
    above_hosts = [f"switch{n}" for n in range(switches)]
    above: dict[str, str] = {"core": "", **dict.fromkeys(above_hosts, "core"), **dict.fromkeys(users, "core")}
    below = [hosts, *([users] if clients_below else []), proxies]
    above |= {name: above_hosts[n % switches] for names in below for n, name in enumerate(names)}
    rates = dict.fromkeys([*hosts, *users, *proxies], 10 * GBIT)
    rates |= dict.fromkeys(above_hosts, uplink * GBIT)
    homes = tuple(host for host in hosts for _ in range(_DISKS))
    roles = {"xrootd": tuple(proxies)} if proxies else {}
    return SimulatedCluster(above, rates, homes, ("hdd",) * len(homes), tuple(users), proxies=roles)


def predicted(cluster: SimulatedCluster, work: str, draws: int) -> Any:
    """What the model gives of one work."""
    return simulate(cluster, [parse_work(work, 1)], catalogue(), draws=draws).predicted[0]


def published_lines() -> Iterator[str]:
    """Published figures beside what is predicted of them."""
    found = [(one, *_published(one)) for one in cases("published")]
    yield from ["## Published figures", ""]
    headings = "figure | predicted (90 %) | measured | interval | bound predicted | assumed by us | source"
    yield from [*table(headings, (cells for _, cells, _, _ in found)), ""]
    error = median_high(abs(ratio - 1) for *_, ratio in found)
    sure = [is_inside for one, _, is_inside, _ in found if not one.get("weak")]
    inside = sum(is_inside for _, _, is_inside, _ in found)
    yield f"{inside} of {len(found)} inside; median of the absolute error {error:.0%}."
    yield f"Of the {len(sure)} rows that are not weak, {sum(sure)} are inside; all are of one cluster."


def _published(case: Row) -> tuple[Sequence[str], bool, float]:
    """Cells of the table, whether the interval holds what was measured, and predicted over measured."""
    one = predicted(even(*case["even"]) if "even" in case else castor(), case["work"], 100)
    in_bytes = case["unit"] == "B/s"
    of, unit = (one.work.piece_bytes / MIB, "MiB/s") if in_bytes else (1.0, "/s")
    measured = case["measured"] / (MIB if in_bytes else 1.0)
    low, most, high = one.low * of, one.operations_s * of, one.high * of
    is_inside = low <= measured <= high
    cells = (
        case["name"],
        f"{most:,.0f} ({low:,.0f} to {high:,.0f}) {unit}",
        f"{measured:,.0f}",
        "inside" if is_inside else "outside",
        one.bound,
        f"{'**weak**: ' if case.get('weak') else ''}{case['assumed']}",
        case["source"],
    )
    return cells, is_inside, most / measured


# -- inferred ------------------------------------------------------------------------------------------

_CASTOR_BYTES_S = 2.2e9
_DRAWS, _ROUNDS, _CLOSE = 50, 12, 0.004
_WRITES = "rw=write,iodepth=16,protection=8+3,clients=40"
Rates = tuple[float, float, float]  # most likely, low and high end of 90 %


@dataclass(frozen=True)
class Layout:
    """Where clients and proxies may have been; of switches the document says only which uplinks were full."""

    name: str
    cluster: Callable[[float], SimulatedCluster]
    work: str = _WRITES


LAYOUTS = (
    Layout("clients at the core, no proxy (the row above)", castor),
    Layout("clients below the same six switches, no proxy", lambda rate: castor(rate, clients_below=True)),
    Layout(
        "clients and 12 proxies below the same six switches",
        lambda rate: castor(rate, clients_below=True, proxies_below=True),
        f"{_WRITES},through=xrootd",
    ),
)
OTHER_REASONS = (
    Layout("six uplinks", castor),
    Layout("five uplinks", lambda rate: castor(rate, switches=5)),
    Layout("four uplinks", lambda rate: castor(rate, switches=4)),
    Layout("six uplinks, 128 groups", castor, f"{_WRITES},groups=128"),
    Layout("six uplinks, 32 groups", castor, f"{_WRITES},groups=32"),
    *LAYOUTS[1:],
)
# Seconds of a run by the number of runs at once: table 4 of Diagnostic and Testing of the Ceph Filesystem.
RUNS: Mapping[str, Mapping[int, float]] = {
    "its system of then": {1: 813, 2: 847, 4: 943, 6: 1344, 7: 1529, 8: 1529},
    "CephFS of the analysis facility": {1: 925, 2: 918, 4: 889, 6: 895, 7: 902, 8: 914},
}
CPUS = {"its system of then": 4.0, "CephFS of the analysis facility": 8.0}
GIVEN = (1, 2, 4)


@cache
def rates_of(layout: Layout, uplink: float) -> Rates:
    """Bytes per second that the model gives at this rate of uplinks."""
    one = predicted(layout.cluster(uplink), layout.work, _DRAWS)
    piece = one.work.piece_bytes
    return one.operations_s * piece, one.low * piece, one.high * piece


def uplink_for(layout: Layout, place: int, wanted: float) -> float:
    """Gbit/s at which that end of the rates is what is wanted; rates are nearly as the uplinks."""
    uplink = 10.0
    for _ in range(_ROUNDS):
        found = rates_of(layout, uplink)[place]
        if abs(found / wanted - 1) < _CLOSE:
            return uplink
        uplink *= wanted / found
    raise SystemExit(f"{layout.name}: no uplink gives {wanted:.3g} B/s")


def inferred_lines(prose: Mapping[str, str]) -> Iterator[str]:
    """The whole section."""
    yield from ["## Inferred from published figures", "", "### CASTOR's uplinks, as they must have been", ""]
    yield from [prose["castor_asked"], ""]
    headings = "layout assumed | >uplink, Gbit/s (90 %) | >of one link of 10 Gbit/s"
    yield from table(headings, map(_uplink, LAYOUTS))
    yield from ["", "With uplinks of 10 Gbit/s, one link's rate, other layouts write:", ""]
    yield from table("layout assumed | >GB/s (90 %) | 2.2 GB/s", map(_of_one_link, OTHER_REASONS))
    yield from ["", prose["castor"], "", "### Fermilab's curve over copies", "", prose["fermilab_asked"], ""]
    headings = "system, processors | >runs | >model, s | >fit's 90 %, s | >published, s | >off"
    yield from [*table(headings, _fermilab()), "", prose["fermilab"]]


def _uplink(layout: Layout) -> Sequence[str]:
    likely, most, least = (uplink_for(layout, place, _CASTOR_BYTES_S) for place in range(3))
    return layout.name, f"{likely:.1f} ({least:.1f} to {most:.1f})", f"{likely / 10:.0%}"


def _of_one_link(layout: Layout) -> Sequence[str]:
    likely, low, high = (rate / 1e9 for rate in rates_of(layout, 10.0))
    inside = "inside" if low <= _CASTOR_BYTES_S / 1e9 <= high else "outside"
    return layout.name, f"{likely:.2f} ({low:.2f} to {high:.2f})", inside


def _fermilab() -> Iterator[Sequence[object]]:
    """Each number of runs that was not given: the model's range, the fit's interval, what was published.

    Off is from the nearest end of the model's range.
    """
    for name, times in RUNS.items():
        given = {float(runs): times[runs] for runs in GIVEN}
        for runs in (runs for runs in times if runs not in GIVEN):
            found, published = run_time(given, CPUS[name], runs).computed[0], times[runs]
            low, high = interval_of(given, CPUS[name], runs)
            off = min(max(published, found.low), found.high) / published - 1
            inside = "" if low <= published <= high else ", **outside**"
            wide = found.high - found.low > 1
            span = f"{found.low:,.0f} to {found.high:,.0f}" if wide else f"{found.high:,.0f}"
            fit = f"{low:,.0f} to {high:,.0f}"
            yield f"{name}, {CPUS[name]:g}", runs, span, fit, f"{published:,.0f}", f"{off:+.1%}{inside}"


def interval_of(given: Mapping[float, float], cpus: float, runs: int) -> tuple[float, float]:
    """90 % for one more run, by the fit's own scatter: the time is a sum of C and s, each by its weight."""
    xs, ys = list(given), list(given.values())
    mean = sum(xs) / len(xs)
    square = sum((x - mean) ** 2 for x in xs)
    slope = sum((x - mean) * (y - sum(ys) / len(ys)) for x, y in given.items()) / square
    start = sum(ys) / len(ys) - slope * mean
    freedom = len(xs) - 2
    scatter = sum((y - start - slope * x) ** 2 for x, y in given.items()) / freedom
    of_compute, of_shared = max(1.0, runs / cpus), min(float(runs), cpus)
    variance = (
        1
        + of_compute**2 * (1 / len(xs) + mean**2 / square)
        + of_shared**2 / square
        - 2 * of_compute * of_shared * mean / square
    )
    half = float(stats.t.ppf(0.95, freedom)) * math.sqrt(scatter * variance)
    middle = of_compute * start + of_shared * slope
    return middle - half, middle + half
