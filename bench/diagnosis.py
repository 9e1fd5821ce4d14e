"""`make diagnosis-bench`: are causes that were injected into a lab named, and is nothing else accused?

    python bench/diagnosis.py run                        # lines in bench/diagnosis.jsonl; goes on there
    python bench/diagnosis.py judge                      # bench/diagnosis.md, from these lines alone

Runs are in random order by the seed. What was injected is taken out of each result before it is diagnosed:
the journal's events and the column `faults`. The figures of each trial are kept, so that a changed table of
causes is judged again without a lab.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from diagnosis_cases import CASES, LEVELS, PAIRS, WORKS, Fault, Strength
from diagnosis_page import AGAIN, page
from leadline.lab.record import read_record

HERE = Path(__file__).parent
RUNS, PAGE = HERE / "diagnosis.jsonl", HERE / "diagnosis.md"
LAB = "diagnosis"
HELD_S = 4.0
SETTLED_S = 60.0
QUIET = ("stream", "small", "one", "read", "files")
TOPOLOGY = """
ec: 2+1
mtu: 1500
switches:
  core:
  rack: {uplink: core}
hosts:
  head1: {switch: core, runs: [mon, mgr, mds]}
  host[1-4]: {switch: rack, link: 400Mbit, osds: 1}
  gate1: {switch: core, runs: [xrootd]}
clients:
  client1: {switch: core, link: 200Mbit}
"""
STUDY = """
format: leadline.study/1
blocks: 2
defaults: {{runtime: 8s}}
works:
  work: {work}
"""


def command(*words: str, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """The program itself, from outside."""
    done = subprocess.run(
        [sys.executable, "-m", "leadline", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and done.returncode not in (0, 3, 5):
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
    return done


def targets(directory: Path) -> dict[str, str]:
    """The lab's ways by name, as its client sees them."""
    found = json.loads(
        command("lab", "targets", "--dir", str(directory), "--host", "client1", "--json").stdout
    )
    ways = {one["name"]: one["where"] for one in found["targets"]}
    return {**ways, "libcephfs-ec": ways["libcephfs"].replace("replicated", "erasure")}


def planned(seeds: int, first: int) -> list[dict[str, Any]]:
    """Every run of every case, none injected among them and two at once, in random order."""
    numbers = range(first, first + seeds)
    found = [
        {"case": case.name, "level": level, "seed": seed}
        for case in CASES
        for level in LEVELS
        for seed in numbers
    ]
    found += [{"case": case.name, "level": "two", "seed": seed} for case in PAIRS for seed in numbers]
    found += [
        {"case": f"nothing, {work}", "level": "", "seed": seed}
        for work in QUIET
        for number in numbers
        for seed in (number, number + AGAIN)
    ]
    random.Random(first).shuffle(found)  # noqa: S311 - an order, no secret
    return found


def strength_of(one: dict[str, Any]) -> Strength:
    """What is broken in a run, and what is run."""
    cases = {case.name: case for case in (*CASES, *PAIRS)}
    if one["case"] not in cases:
        return Strength(one["case"].partition(", ")[2])
    case = cases[one["case"]]
    return case.strengths[0 if one["level"] == "two" else LEVELS.index(one["level"])]


def run(directory: Path, one: dict[str, Any], ways: dict[str, str]) -> dict[str, Any]:
    """One run: broken, measured, mended, blinded, diagnosed."""
    strength = strength_of(one)
    way, text = WORKS[strength.work]
    with tempfile.TemporaryDirectory(prefix="diagnosis-") as place, ExitStack() as stack:
        study, out = Path(place) / "study.yaml", Path(place) / "out"
        study.write_text(STUDY.format(work=text))
        stack.callback(command, "lab", "inject", "--clear", "--dir", str(directory), check=False)
        settle(directory)
        for fault in strength.faults:
            command("lab", "inject", *_words(fault), "--dir", str(directory))
        if strength.held is not None:
            stack.enter_context(held(directory, *strength.held))
        words = ["run", str(study), "--target", f"target={ways[way]}", "-o", str(out)]
        words += ["--seed", str(one["seed"]), "--ignore-health"]
        words += ["--under-fault"] if strength.faults else []
        inside = ("lab", "exec", "client1", "--dir", str(directory), "--", sys.executable, "-m", "leadline")
        command(*inside, *words)
        stack.close()
        blind(out)
        said = json.loads(command("diagnose", str(out), "--json").stdout)
    cells = [
        {"named": [cause["cause"] for cause in cell["named"]], "figures": cell["figures"]}
        for cell in said["cells"]
    ]
    return {**one, "cells": cells}


class UnsettledError(Exception):
    """What a run broke did not mend."""


@contextmanager
def lab() -> Iterator[Path]:
    """A lab of its own, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="diagnosis-lab-", dir="/var/tmp"))
    topology, directory = place / "centre.yaml", place / "lab"
    topology.write_text(TOPOLOGY)
    try:
        command("lab", "up", LAB, "--topology", str(topology), "--dir", str(directory))
        command("lab", "mount", "client1", "--dir", str(directory), check=False)
        yield directory
    finally:
        command("lab", "down", "--dir", str(directory), check=False)
        shutil.rmtree(place, ignore_errors=True)


def measure(directory: Path, left: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run by run, each kept at once; those that are left where the lab did not mend."""
    ways = targets(directory)
    for number, one in enumerate(left, 1):
        try:
            found = run(directory, one, ways)
        except UnsettledError:
            return left[number - 1 :]
        except SystemExit as error:  # it is tried again the next time
            print(f"[{number}/{len(left)}] {one}: {error}", flush=True)
            continue
        with RUNS.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(f"[{number}/{len(left)}] {one}: {[cell['named'] for cell in found['cells']]}", flush=True)
    return []


def settle(directory: Path) -> None:
    """Wait until nothing is left of the run before: an OSD that comes back, groups that are recovered."""
    end = time.monotonic() + SETTLED_S
    while time.monotonic() < end:
        words = (
            "ceph",
            "-c",
            str(directory / "ceph.conf"),
            "--connect-timeout",
            "10",
            "status",
            "-f",
            "json",
        )
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            status = json.loads(done.stdout)
            states = {one["state_name"] for one in status["pgmap"]["pgs_by_state"]}
            osds = status["osdmap"]
            if states == {"active+clean"} and osds["num_up_osds"] == osds["num_osds"] == osds["num_in_osds"]:
                return
        time.sleep(1)
    raise UnsettledError(directory)


@contextmanager
def held(directory: Path, name: str, share: float) -> Iterator[None]:
    """Stop a daemon of the lab for that share of each period, until the block ends."""
    pid = next(one.pid for one in read_record(directory).processes if one.name == name)
    end = threading.Event()

    def hold() -> None:
        while not end.wait(HELD_S * (1 - share)):
            os.kill(pid, signal.SIGSTOP)
            end.wait(HELD_S * share)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


def _words(fault: Fault) -> list[str]:
    kind, on, options = fault
    return [kind, on, *(f"{name}={value}" for name, value in options.items())]


def blind(out: Path) -> None:
    """Take what was injected out of a result."""
    journal = out / "events.jsonl"
    lines = [line for line in journal.read_text().splitlines() if "fault" not in json.loads(line)["event"]]
    journal.write_text("\n".join(lines) + "\n")
    for file in (out / "trials").glob("*.parquet"):
        table = pq.read_table(file)
        for name in ("faults", "under_fault"):
            at = table.schema.get_field_index(name)
            field = table.schema.field(at)
            table = table.set_column(at, field, pa.nulls(table.num_rows, field.type))
        pq.write_table(table, file)


def main() -> int:
    """Run what is not there yet, or judge what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=("run", "judge"))
    parser.add_argument("--seed", type=int, default=2, help="the first; 1 is what thresholds were chosen by")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="cases with this in their name")
    parser.add_argument("--level", help="cases of this strength: weak, middle, strong, two")
    parser.add_argument("--most", type=int, default=10_000, help="runs at most")
    asked = parser.parse_args()
    if asked.do == "judge":
        PAGE.write_text("\n".join(page(kept())) + "\n")
        return 0
    done = {(one["case"], one["level"], one["seed"]) for one in kept()}
    left = [
        one
        for one in planned(asked.seeds, asked.seed)
        if (one["case"], one["level"], one["seed"]) not in done
    ]
    left = [one for one in left if asked.only is None or asked.only in one["case"]]
    left = [one for one in left if asked.level is None or asked.level == one["level"]][: asked.most]
    while left:
        with lab() as directory:
            rest = measure(directory, left)
        if len(rest) == len(left):
            raise SystemExit("a new lab does not come to rest")
        left = rest
    return 0


def kept() -> list[dict[str, Any]]:
    """The runs that are stored."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


if __name__ == "__main__":
    sys.exit(main())
