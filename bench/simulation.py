"""`make simulation-bench`: is a simulated cluster what was measured? Points of labs, and published figures.

    python bench/simulation.py calibrate        # bench/simulation_parameters.yaml, by one small lab
    python bench/simulation.py predict first    # every point of a table, into bench/simulation.jsonl
    python bench/simulation.py measure first    # what is not measured yet; goes on there
    python bench/simulation.py judge            # bench/simulation.md, in minutes

Predictions are stored before anything of them is measured: a point that was measured is never predicted
again, and one that was not predicted is never measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from harness import HERE, PROGRAM, Lab, Row, cases, diagnosed, kept, lab, leadline, scratch, table, text
from simulation_published import inferred_lines, published_lines

PARAMETERS = HERE / "simulation_parameters.yaml"
OBJECT_BYTES, SIZE_BYTES, GROUPS = 256 * 1024, 32 * 1024**2, 256
# Objects are dealt out to groups, and groups to OSDs: together as even as so many groups are.
EVEN_AS = round(1 / (1 / GROUPS + 1 / (SIZE_BYTES // OBJECT_BYTES)))
POOLS = {"copies": "3", "coded": "2+1"}
DEVICE, CORES = "unknown", "2"
SETTLED_S = 90.0
LONGEST_S = 90.0  # of a lab, before any was timed
GOAL_ERROR, GOAL_INSIDE = 0.15, 0.9
_MIB = 1024**2
_SIZES = {"16k": 16384, "64k": 65536, "128k": 131072, "256k": 262144}
# The program with other buckets: an experiment of this bench, no option of the lab's.
SMALL_BUCKETS = """
import runpy
from leadline.lab.network import cables
cables._BURST_BYTES_MIN, cables._BURST_S = {}, 0.0
runpy.run_module("leadline", run_name="__main__")
"""
STUDY = """
format: leadline.study/1
blocks: {blocks}
defaults: {{runtime: 4s, direct: true, time_based: true, size: {size}}}
works:
{works}
"""


@dataclass(frozen=True)
class LabCase:
    """A lab and its works (see cases/simulation.yaml).

    `out`: OSDs that are marked out. More than one client run at once, each on its own link.
    `bucket_bytes`: what a link lets pass at once, where it is not the lab's own.
    """

    name: str
    hosts: str
    clients: str
    works: Sequence[str]
    bound: str
    words: str
    switches: str = "core:"
    out: Sequence[int] = ()
    clients_at_once: int = 1
    blocks: int = 1
    bucket_bytes: int = 0
    pools: Sequence[str] = tuple(POOLS)

    @property
    def topology(self) -> str:
        """As `lab up --topology` and `simulate` read it."""
        head = "head1: {switch: core, runs: [mon, mgr, mds]}"
        parts = {"switches": self.switches, "hosts": f"{head}\n{self.hosts}", "clients": self.clients}
        return "ec: 2+1\n" + "".join(
            f"{name}:\n" + "".join(f"  {line}\n" for line in lines.splitlines())
            for name, lines in parts.items()
        )

    @property
    def points(self) -> dict[str, tuple[str, str]]:
        """Its points by name, with pool and work."""
        return {
            f"{self.name}.{pool}.{work.replace(' ', '_')}": (pool, work)
            for work in self.works
            for pool in self.pools
        }


_TABLE = cases("simulation")
CALIBRATION = LabCase(**_TABLE.pop("calibration"))
TABLES = {name: [LabCase(**one) for one in rows] for name, rows in _TABLE.items()}


def store(kind: str, lines: Sequence[Row]) -> None:
    """Append with the time at which they were known."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    kept("simulation").keep(*({"at": at, "kind": kind, **one} for one in lines))


def of_kind(kind: str) -> dict[str, Row]:
    """The points of this kind that are stored."""
    return {one["point"]: one for one in kept("simulation") if one["kind"] == kind}


@contextmanager
def case_lab(case: LabCase) -> Iterator[Lab]:
    """A lab of the case with its two pools, gone afterwards."""
    own = (sys.executable, "-c", SMALL_BUCKETS.format(case.bucket_bytes))
    program = own if case.bucket_bytes else PROGRAM
    name = f"simulation{os.getpid()}"
    with lab(name, "--no-mount", topology=case.topology, program=program) as there:
        for words in (
            "config set global mon_max_pg_per_osd 4000",
            f"osd pool create copies {GROUPS} {GROUPS} replicated",
            f"osd pool create coded {GROUPS} {GROUPS} erasure k2m1",
            "osd pool set coded allow_ec_overwrites true",
            *(f"osd pool application enable {pool} leadline" for pool in POOLS),
            *(f"osd out {osd}" for osd in case.out),
        ):
            there.ceph(*words.split())
        rest(there)
        yield there


def rest(there: Lab) -> None:
    """Wait until every group serves and none moves: with an OSD out some stay undersized."""
    there.settle(("active", "clean", "undersized", "degraded"), SETTLED_S)


def measured(there: Lab, case: LabCase, out: Path) -> list[Row]:
    """All works of a case on its pools, in one study: from the client, or from all of them at once."""
    works = []
    for work in case.works:
        rw, bs, depth = work.split()
        works.append(f"  {work.replace(' ', '_')}: {{rw: {rw}, bs: {bs}, iodepth: {depth}}}")
    study = out.parent / "study.yaml"
    study.write_text(STUDY.format(works="\n".join(works), size=SIZE_BYTES, blocks=case.blocks))
    words: list[str | Path] = [*PROGRAM, "run", study, "--ignore-health", "--seed", "1"]
    for pool in case.pools:
        words += ["--target", f"{pool}=rados://{pool}?conf={there.conf}&object_size={OBJECT_BYTES}"]
    # One run a client, begun together: each has a link of its own, and nothing else is to be full.
    with ThreadPoolExecutor(case.clients_at_once) as pool:
        outs = [out.with_name(f"{out.name}-{number + 1}") for number in range(case.clients_at_once)]
        begun = [
            pool.submit(there.inside, f"client{number}", *words, "-o", own, timeout=600)
            for number, own in enumerate(outs, 1)
        ]
        for one in begun:
            one.result()
    each = [_of_one(own, case) for own in outs]
    if len(each) == 1:
        return each[0]
    rates = [[cell["operations_s"] for cell in cells] for cells in zip(*each, strict=True)]
    return [
        {**one, "operations_s": sum(own), "clients": own} for one, own in zip(each[0], rates, strict=True)
    ]


def _of_one(out: Path, case: LabCase) -> list[Row]:
    found = []
    for cell in diagnosed(out):
        rates = [one["operations_per_s"] for one in cell["figures"] if one["operations_per_s"]]
        if not rates:
            raise RuntimeError(f"{cell['cell']} moved nothing")
        found.append(
            {
                "point": f"{case.name}.{cell['target']}.{cell['work']}",
                "operations_s": sum(rates) / len(rates),
                "trials": rates,
                "validity": cell["validity"],
                "diagnosed": [one["cause"] for one in cell["named"]],
                "cpu_share": [one["cpu_share"] for one in cell["figures"]],
            }
        )
    return found


def predicted(case: LabCase) -> Iterator[Row]:
    """By the command, as a user has it."""
    with scratch("simulation", "/tmp") as place:
        topology = place / "centre.yaml"
        topology.write_text(case.topology)
        for point, (pool, work) in case.points.items():
            rw, bs, depth = work.split()
            asked = f"rw={rw},bs={bs},iodepth={depth},protection={POOLS[pool]},groups={EVEN_AS}"
            words = ["simulate", topology, "--device", DEVICE, "--one-machine", CORES, "--json"]
            words += ["--parameters", PARAMETERS, "--work", asked]
            words += [word for osd in case.out for word in ("--osd-out", str(osd))]
            one = json.loads(leadline(*words))["works"][0]
            told = {name: one[name] for name in ("operations_s", "low", "high", "bound")}
            yield {"point": point, **told, "injected": case.bound}


def calibrate(_asked: argparse.Namespace) -> None:
    """The few points that the parameters are from."""
    if of_kind("predicted"):
        raise SystemExit("points were predicted by these parameters: they are frozen")
    with case_lab(CALIBRATION) as there, scratch("simulation", "/tmp") as place:
        found = measured(there, CALIBRATION, place / "calibration")
        (place / "centre.yaml").write_text(CALIBRATION.topology)
        words = ("--device", DEVICE, "--one-machine", CORES, "--calibrate", place / "calibration-1")
        print(leadline("simulate", place / "centre.yaml", *words, "-o", PARAMETERS, timeout=400))
        store("calibration", found)


def predict(asked: argparse.Namespace) -> None:
    """Every point of a table that is not predicted yet."""
    known = of_kind("predicted")
    for case in TABLES[asked.table]:
        if not known.keys() & case.points.keys():
            store("predicted", list(predicted(case)))


def measure(asked: argparse.Namespace) -> None:
    """Lab by lab; none is begun that would not end in time."""
    end, longest = time.monotonic() + asked.seconds, 0.0
    done, wanted = of_kind("measured").keys(), of_kind("predicted").keys()
    for case in TABLES[asked.table]:
        if case.points.keys() <= done or not case.points.keys() <= wanted:
            continue
        began = time.monotonic()
        if began + max(longest, LONGEST_S) > end:
            print("the time is over: go on by the same command")
            return
        try:
            with case_lab(case) as there, scratch("simulation", "/tmp") as place:
                found = [one for one in measured(there, case, place / "result") if one["point"] not in done]
        except (RuntimeError, subprocess.SubprocessError) as error:  # it is tried again the next time
            print(f"{case.name}: {error}", flush=True)
            continue
        store("measured", found)
        took_s = time.monotonic() - began
        longest = max(longest, took_s)
        for one in found:
            print(one["point"], one["operations_s"], one["diagnosed"], f"{took_s:.0f} s", flush=True)


# -- the page ------------------------------------------------------------------------------------------


def lab_points() -> Iterator[Row]:
    """Points that were predicted and measured since, a row each, in the order of the tables."""
    said, seen = of_kind("predicted"), of_kind("measured")
    for name, rows in TABLES.items():
        for case in rows:
            for point in case.points:
                if point in said and point in seen and seen[point]["operations_s"]:
                    yield _point(name, case, said[point], seen[point])


def _point(of_table: str, case: LabCase, said: Row, seen: Row) -> Row:
    if not said["at"] < seen["at"]:
        raise SystemExit(f"{said['point']} was measured before it was predicted")
    return {
        "table": of_table,
        "case": case,
        "point": said["point"],
        "error": said["operations_s"] / seen["operations_s"] - 1,
        "inside": said["low"] <= seen["operations_s"] <= said["high"],
        "named": re.match(case.bound, said["bound"]) is not None,
        "said": said,
        "seen": seen,
    }


def _sums(points: Sequence[Row]) -> tuple[float, int, int]:
    """The median error, how many are inside, and how many bounds are named rightly."""
    error = median(abs(one["error"]) for one in points)
    return error, sum(one["inside"] for one in points), sum(one["named"] for one in points)


def lab_lines(points: Sequence[Row]) -> Iterator[str]:
    """The section of the page."""
    for name in TABLES:
        mine = [one for one in points if one["table"] == name]
        if not mine:
            continue
        error, inside, named = _sums(mine)
        count = len(mine)
        met = [
            "met" if is_met else "**missed**"
            for is_met in (error <= GOAL_ERROR, inside / count >= GOAL_INSIDE, named == count)
        ]
        yield from [f"### The {name} table: {count} points", ""]
        yield (
            f"Median of the absolute error **{error:.1%}**; **{inside / count:.0%}** inside the"
            f" interval of 90 %; the bound that was injected is named in **{named / count:.0%}**."
            f" Goals: at most {GOAL_ERROR:.0%}, {met[0]}; {GOAL_INSIDE:.0%}, {met[1]}; all, {met[2]}."
        )
        headings = "lab | injected | >points | >median error | >predicted/measured | >inside | >bound named"
        yield from ["", *table(headings, _by_case(mine)), ""]
        headings = (
            "lab, pool, work (bytes, at once) | >predicted, MiB/s (90 %) | >measured | >error | | bound named"
        )
        yield from [*table(headings, map(_shown, mine)), ""]


def _by_case(points: Sequence[Row]) -> Iterator[Sequence[object]]:
    for name in dict.fromkeys(one["case"].name for one in points):
        mine = [one for one in points if one["case"].name == name]
        error, inside, named = _sums(mine)
        ratio = median(one["error"] + 1 for one in mine)
        yield name, mine[0]["case"].words, len(mine), f"{error:.0%}", f"{ratio:.2f}", inside, named


def _shown(one: Mapping[str, Any]) -> Sequence[object]:
    size = _SIZES[one["point"].rsplit("_", 2)[1]] / _MIB
    said, rate = one["said"], one["seen"]["operations_s"] * size
    where, pool, work = one["point"].rsplit(".", 2)
    likely, low, high = (said[name] * size for name in ("operations_s", "low", "high"))
    return (
        f"{where}, {pool}, {work.replace('_', ' ')}",
        f"{likely:.2f} ({low:.2f} to {high:.2f})",
        f"{rate:.2f}",
        f"{one['error']:+.0%}",
        "inside" if one["inside"] else "**outside**",
        f"{said['bound']}{'' if one['named'] else ' (**not it**)'}",
    )


def page() -> Iterator[str]:
    """bench/simulation.md."""
    yield from ["# Simulation against labs and published figures", ""]
    yield from [
        "Made by `python bench/simulation.py judge`; labs by `make simulation-bench`.",
        "",
        "## Labs",
        "",
    ]
    found, prose = list(lab_points()), text("simulation")
    yield from [prose["lab"] if found else "No point of a lab is measured yet.", "", *lab_lines(found)]
    yield from [*published_lines(), "", prose["published"], "", *inferred_lines(prose)]


def judge(_asked: argparse.Namespace) -> None:
    """Write the page."""
    (HERE / "simulation.md").write_text("\n".join(page()) + "\n")


def main() -> None:
    """Do one of the four."""
    do = {one.__name__: one for one in (calibrate, predict, measure, judge)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=tuple(do))
    parser.add_argument("table", choices=tuple(TABLES), nargs="?", default=next(iter(TABLES)))
    parser.add_argument("--seconds", type=float, default=3600.0, help="no lab is begun that would end later")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended: the lab is taken down"))
    do[asked.do](asked)


if __name__ == "__main__":
    main()
