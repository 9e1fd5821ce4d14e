"""Are predicted rates what a lab then has? Predictions are stored before anything of them is measured.

    python bench/simulation_lab.py calibrate            # bench/simulation_parameters.yaml, by one small lab
    python bench/simulation_lab.py predict first        # every point of a table, into bench/simulation.jsonl
    python bench/simulation_lab.py measure first        # what is not measured yet; goes on there

A point that was measured is never predicted again, and one that was not predicted is never measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulation_points import CALIBRATION, EVEN_AS, GROUPS, OBJECT_BYTES, POOLS, SIZE_BYTES, TABLES, LabCase

HERE = Path(__file__).parent
POINTS, PARAMETERS = HERE / "simulation.jsonl", HERE / "simulation_parameters.yaml"
DEVICE, CORES = "unknown", "2"
SETTLED_S = 90.0
LONGEST_S = 90.0  # of a lab, before any was timed
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


class LabError(Exception):
    """A lab that is not there, or a command that failed in it."""


def leadline(
    *words: str, inside: Path | None = None, timeout: float = 400, program: Sequence[str] = ("-m", "leadline")
) -> str:
    """The program itself, from outside; what it prints."""
    done = subprocess.run(
        [sys.executable, *program, *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=inside,
    )
    if done.returncode not in (0, 3, 5):
        raise LabError(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def ceph(lab: Path, *words: str) -> str:
    """One command of Ceph's to a lab."""
    asked = ["ceph", "-c", str(lab / "ceph.conf"), "--connect-timeout", "20", *words]
    return subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout


def kept() -> list[dict[str, Any]]:
    """The lines that are stored."""
    return [json.loads(line) for line in POINTS.read_text().splitlines()] if POINTS.exists() else []


def store(lines: Sequence[dict[str, Any]]) -> None:
    """Append with the time at which they were known."""
    with POINTS.open("a") as file:
        for one in lines:
            file.write(json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), **one}) + "\n")


def names(case: LabCase) -> list[str]:
    """Of the points of a case."""
    return [f"{case.name}.{pool}.{work.name}" for work in case.works for pool in work.pools]


@contextmanager
def lab(case: LabCase) -> Iterator[Path]:
    """A lab of the case with its two pools, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="simulation-lab-", dir="/var/tmp"))
    topology, directory = place / "centre.yaml", place / "lab"
    topology.write_text(case.topology)
    try:
        words = (
            "lab",
            "up",
            f"simulation{os.getpid()}",
            "--topology",
            str(topology),
            "--dir",
            str(directory),
            "--no-mount",
        )
        program = ("-c", SMALL_BUCKETS.format(case.bucket_bytes)) if case.bucket_bytes else ("-m", "leadline")
        leadline(*words, program=program)
        ceph(directory, "config", "set", "global", "mon_max_pg_per_osd", "4000")
        count = str(GROUPS)
        ceph(directory, "osd", "pool", "create", "copies", count, count, "replicated")
        ceph(directory, "osd", "pool", "create", "coded", count, count, "erasure", "k2m1")
        ceph(directory, "osd", "pool", "set", "coded", "allow_ec_overwrites", "true")
        for pool in POOLS:
            ceph(directory, "osd", "pool", "application", "enable", pool, "leadline")
        for osd in case.out:
            ceph(directory, "osd", "out", str(osd))
        settle(directory)
        yield directory
    finally:
        leadline("lab", "down", "--dir", str(directory))
        shutil.rmtree(place, ignore_errors=True)


def settle(directory: Path) -> None:
    """Wait until every group serves and none moves: with an OSD out some stay undersized."""
    end = time.monotonic() + SETTLED_S
    while time.monotonic() < end:
        found = json.loads(ceph(directory, "status", "-f", "json"))["pgmap"]["pgs_by_state"]
        words = {word for one in found for word in one["state_name"].split("+")}
        if not words - {"active", "clean", "undersized", "degraded"}:
            return
        time.sleep(0.5)
    raise LabError(f"the lab does not come to rest: {sorted(words)}")


def run(directory: Path, case: LabCase, out: Path) -> None:
    """All works of a case on its pools, in one study: from the client, or from all of them at once."""
    works = "\n".join(
        f"  {work.name}: {{rw: {work.rw}, bs: {work.bs}, iodepth: {work.depth}}}" for work in case.works
    )
    study = out.parent / "study.yaml"
    study.write_text(STUDY.format(works=works, size=SIZE_BYTES, blocks=case.blocks))
    words = ["run", str(study), "-o", out.name, "--ignore-health", "--seed", "1"]
    for pool in dict.fromkeys(pool for work in case.works for pool in work.pools):
        url = f"rados://{pool}?conf={directory / 'ceph.conf'}&object_size={OBJECT_BYTES}"
        words += ["--target", f"{pool}={url}"]
    inner = ("--dir", str(directory), "--", sys.executable, "-m", "leadline")
    if case.clients_at_once == 1:
        leadline("lab", "exec", "client1", *inner, *words, inside=out.parent, timeout=600)
        return
    # One run a client, begun together: each has a link of its own, and nothing else is to be full.
    with ThreadPoolExecutor(case.clients_at_once) as pool:
        begun = [
            pool.submit(
                leadline,
                *("lab", "exec", f"client{number}", *inner, *words[:3], f"{out.name}-{number}", *words[4:]),
                inside=out.parent,
                timeout=600,
            )
            for number in range(1, case.clients_at_once + 1)
        ]
        for one in begun:
            one.result()


def measured(out: Path, case: LabCase) -> list[dict[str, Any]]:
    """What each cell says, of all clients together."""
    if case.clients_at_once == 1:
        return _of_one(out, case)
    each = [
        _of_one(out.with_name(f"{out.name}-{number}"), case) for number in range(1, case.clients_at_once + 1)
    ]
    return [
        {
            **cells[0],
            "operations_s": sum(cell["operations_s"] for cell in cells),
            "clients": [cell["operations_s"] for cell in cells],
        }
        for cells in zip(*each, strict=True)
    ]


def _of_one(out: Path, case: LabCase) -> list[dict[str, Any]]:
    cells = json.loads(leadline("diagnose", out.name, "--json", inside=out.parent))["cells"]
    found = []
    for cell in cells:
        rates = [one["operations_per_s"] for one in cell["figures"] if one["operations_per_s"]]
        if not rates:
            raise LabError(f"{cell['cell']} moved nothing")
        found.append(
            {
                "kind": "measured",
                "point": f"{case.name}.{cell['target']}.{cell['work']}",
                "operations_s": sum(rates) / len(rates),
                "trials": rates,
                "validity": cell["validity"],
                "diagnosed": [one["cause"] for one in cell["named"]],
                "cpu_share": [one["cpu_share"] for one in cell["figures"]],
            }
        )
    return found


def predicted(case: LabCase) -> list[dict[str, Any]]:
    """By the command, as a user has it."""
    found = []
    with tempfile.TemporaryDirectory(prefix="simulation-") as place:
        topology = Path(place) / "centre.yaml"
        topology.write_text(case.topology)
        for work in case.works:
            for pool in work.pools:
                asked = f"rw={work.rw},bs={work.bs},iodepth={work.depth}"
                asked += f",protection={POOLS[pool]},groups={EVEN_AS}"
                words = ["simulate", str(topology), "--device", DEVICE, "--one-machine", CORES, "--json"]
                words += ["--parameters", str(PARAMETERS), "--work", asked]
                for osd in case.out:
                    words += ["--osd-out", str(osd)]
                one = json.loads(leadline(*words))["works"][0]
                found.append(
                    {
                        "kind": "predicted",
                        "point": f"{case.name}.{pool}.{work.name}",
                        "operations_s": one["operations_s"],
                        "low": one["low"],
                        "high": one["high"],
                        "bound": one["bound"],
                        "injected": case.bound,
                    }
                )
    return found


def calibrate() -> None:
    """The few points that the parameters are from."""
    with lab(CALIBRATION) as directory, tempfile.TemporaryDirectory(prefix="simulation-") as place:
        out = Path(place) / "calibration"
        run(directory, CALIBRATION, out)
        topology = Path(place) / "centre.yaml"
        topology.write_text(CALIBRATION.topology)
        words = ("--device", DEVICE, "--one-machine", CORES, "--calibrate", out.name, "-o", str(PARAMETERS))
        print(leadline("simulate", topology.name, *words, inside=Path(place)))
        store([{**one, "kind": "calibration"} for one in measured(out, CALIBRATION)])


def measure(table: Sequence[LabCase], seconds: float) -> None:
    """Lab by lab; none is begun that would not end in time."""
    end, longest = time.monotonic() + seconds, 0.0
    done = {one["point"] for one in kept() if one["kind"] == "measured"}
    asked = {one["point"] for one in kept() if one["kind"] == "predicted"}
    for case in table:
        if set(names(case)) <= done or not set(names(case)) <= asked:
            continue
        began = time.monotonic()
        if began + max(longest, LONGEST_S) > end:
            print("the time is over: go on by the same command")
            return
        try:
            with lab(case) as directory, tempfile.TemporaryDirectory(prefix="simulation-") as place:
                out = Path(place) / "result"
                run(directory, case, out)
                found = [one for one in measured(out, case) if one["point"] not in done]
        except (LabError, subprocess.SubprocessError) as error:  # it is tried again the next time
            print(f"{case.name}: {error}", flush=True)
            continue
        store(found)
        longest = max(longest, time.monotonic() - began)
        for one in found:
            print(
                one["point"],
                one["operations_s"],
                one["diagnosed"],
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )


def main() -> int:
    """Do one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=("calibrate", "predict", "measure"))
    parser.add_argument("table", choices=tuple(TABLES), nargs="?", default=next(iter(TABLES)))
    parser.add_argument("--seconds", type=float, default=3600.0, help="no lab is begun that would end later")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended: the lab is taken down"))
    if asked.do == "calibrate":
        if any(one["kind"] == "predicted" for one in kept()):
            raise SystemExit("points were predicted by these parameters: they are frozen")
        calibrate()
    elif asked.do == "predict":
        known = {one["point"] for one in kept() if one["kind"] == "predicted"}
        for case in TABLES[asked.table]:
            if not known & set(names(case)):
                store(predicted(case))
    else:
        measure(TABLES[asked.table], asked.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
