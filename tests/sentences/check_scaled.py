"""What is said of threads and of devices, against the stored trials of their cells."""

from __future__ import annotations

import math
import re

from check_studies import values
from kit import Said, checks, close, geometric, number, size

_THREADS = (
    r"(?P<work>\w+) on (?P<target>\w+): (?P<least>\d+) threads? gives? (?P<first>.+?), (?P<most>\d+) together"
    r" (?P<last>.+) \((?P<times>[\d.]+)x(?:; (?P<low>[\d.]+) to (?P<high>[\d.]+))?\); (?P<law>.+)\."
)
_GRID = [0.0, *(10 ** (step / 12 - 5) for step in range(61))]


def _rate(text: str) -> float:
    return size(text) if text.endswith("B/s") else _count(text)


def _count(text: str) -> float:
    """`314 IOPS`, `1.2 kIOPS`."""
    amount, unit = text.split()
    return number(amount) * {"IOPS": 1, "kIOPS": 1e3, "MIOPS": 1e6}[unit]


@checks("scaling_of_threads")
def scaling_of_threads(said: Said) -> None:
    part = said.match(_THREADS)
    metric = "bandwidth" if part["first"].endswith("B/s") else "iops"
    planned = {cell["id"]: cell for cell in said.plan["cells"]}
    rates = {planned[cell]["job"]["numjobs"]: values(said, cell, metric) for cell in said.statement.cells}
    least, most = min(rates), max(rates)
    assert (least, most) == (int(part["least"]), int(part["most"])), said.text
    for key, at in (("first", least), ("last", most)):
        close(_rate(part[key]), geometric(rates[at].values()))
    both = rates[least].keys() & rates[most].keys()
    times = geometric(rates[most][block] / rates[least][block] for block in both)
    assert abs(times - number(part["times"])) <= 0.0051, said.text
    if "low" in part:
        assert number(part["low"]) - 0.0051 <= times <= number(part["high"]) + 0.0051, said.text
    _law(said, part["law"], {at: geometric(found.values()) for at, found in rates.items()}, len(both))


def _law(said: Said, text: str, rates: dict[int, float], blocks: int) -> None:
    """Against the nearest of many laws on a grid."""
    assert (blocks < 3) == text.startswith("three blocks or more"), said.text
    if blocks < 3:
        return
    top, off = _nearest(rates)
    most = re.fullmatch(r"the peak is at ([\d.,]+) to ([\d.,]+) threads, by the scalability law", text)
    if most:
        assert number(most[1]) / 1.3 <= top <= 1.3 * number(most[2]), said.text
        assert number(most[2]) <= max(rates), said.text
    elif text.startswith("no scalability law"):
        assert off > 0.15, said.text
    elif text.startswith("it still rises at "):
        assert top > 0.8 * max(rates), said.text
    else:
        assert text == "the number of threads at the peak is inconclusive", said.text


def _nearest(rates: dict[int, float]) -> tuple[float, float]:
    """Where the law has its most that is nearest to these rates, and how far it is from one of them at most."""
    best = (math.inf, 0.0, 0.0, 0.0)
    for waits in (one for one in _GRID if one <= 1):
        for talks in (one for one in _GRID if one <= 1):
            shape = {at: at / (1 + waits * (at - 1) + talks * at * (at - 1)) for at in rates}
            one = geometric(rates[at] / shape[at] for at in rates)
            apart = [math.log(rates[at] / (one * shape[at])) for at in rates]
            best = min(best, (sum(each**2 for each in apart), waits, talks, max(map(abs, apart))))
    _, waits, talks, off = best
    return (math.sqrt(max(1 - waits, 1e-9) / talks) if talks else math.inf), math.expm1(off)


@checks("per_device_withheld")
def per_device_withheld(said: Said) -> None:
    part = said.match(
        r"No value per device for (?P<left>\d+) of (?P<all>\d+) cells on a cluster: (?P<why>.+)\."
    )
    clusters = {name: one["ceph"] for name, one in said.result.manifest["targets"].items() if one["ceph"]}
    cells = [cell for cell in said.findings.cells if cell.target in clusters]
    assert len(cells) == int(part["all"]), said.text
    reasons = {words.partition(" ")[2]: int(words.partition(" ")[0]) for words in part["why"].split("; ")}
    assert sum(reasons.values()) == int(part["left"]), said.text
    on_lab = sum(bool(clusters[cell.target]["lab"]) for cell in cells)
    assert reasons.get("on a lab, whose OSDs share one disk", 0) == on_lab, said.text
    unusable = [
        cell
        for cell in cells
        if not clusters[cell.target]["lab"] and cell.validity.state in ("INVALID", "NOT_RUN")
    ]
    assert reasons.get("INVALID or not run", 0) == len(unusable), said.text
