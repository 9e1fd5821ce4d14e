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
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness import (
    PROGRAM,
    CommandError,
    Lab,
    Row,
    Runs,
    UnsettledError,
    bench,
    cases,
    diagnosed,
    lab,
    scratch,
    table,
)
from leadline.lab.record import read_record
from leadline.verdict.diagnosis.causes import FIGURES
from leadline.verdict.diagnosis.judge import diagnose

HELD_S = 4.0
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
LEVELS = ("weak", "middle", "strong")
TUNED = frozenset({1})  # thresholds were chosen by the runs of these seeds, which prove nothing
AGAIN = 100  # added to a seed where the same is run twice with it
# True of this lab without any fault: the client's link of 200 Mbit is full in streams, and one request at a
# time waits for nothing else.
_OWN = frozenset({"link_full", "links_in_turn", "latency_bound"})
_WORDS = """
Faults are injected into a lab (`bench/cases/diagnosis.yaml`), work is measured, and `leadline diagnose`
reads the result, out of which every trace of the fault was taken. **Right**: the cause that was injected
is named, of two both. **Undecided**: neither it nor another that can be injected is. **Wrong**: one is
named that can be injected and was not; so, too, where nothing was. What else is named of undecided runs,
such as the flushes of the OSDs' devices, no case injects: whether it is true is not tried here. A full link
of the client in streams, and too little in flight where one request follows the other, are true of this lab
without any fault, and no accusation.

Shares are of different things: of a request's time, how full what is full is, or the part of the time in
which an event held. A cause without one is present, and nothing measured how much it takes. What is observed
since these runs were made, such as the part of the time in which a control group was stopped, is not known of
them.

Thresholds were chosen by the runs of seed {tuned} alone, before the others were made. Two changes came later.
Lost packets are named from 1.5 % on: from there on the constant that was their share had let them be named.
Small writes that are written twice, or made larger, never bound: the quiet runs have them, too. What follows
counts the other seeds. The figures of each trial are kept in `bench/diagnosis.jsonl`;
`python bench/diagnosis.py judge` makes this page of them.
"""


@dataclass(frozen=True)
class DiagnosisCase:
    """A cause by `LEVELS` (or of two causes at once): see cases/diagnosis.yaml."""

    name: str
    right: list[str]
    strengths: list[dict[str, Any]]
    limits: str = ""


_TABLE = cases("diagnosis")
CASES, PAIRS = ([DiagnosisCase(**one) for one in _TABLE[kind]] for kind in ("cases", "pairs"))
BY_NAME = {case.name: case for case in (*CASES, *PAIRS)}


def planned(seeds: int, first: int) -> list[Row]:
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


def measured(there: Lab, one: Row, ways: dict[str, str]) -> Row:
    """One run: broken, measured, mended, blinded, diagnosed."""
    if case := BY_NAME.get(one["case"]):
        strength = case.strengths[0 if one["level"] == "two" else LEVELS.index(one["level"])]
    else:
        strength = {"work": one["case"].partition(", ")[2]}
    way, text = _TABLE["works"][strength["work"]]
    faults = strength.get("faults", ())
    with scratch("diagnosis", "/tmp") as place, ExitStack() as stack:
        study, out = place / "study.yaml", place / "out"
        study.write_text(STUDY.format(work=text))
        stack.callback(there.mend)
        there.settle()
        for kind, on, options in faults:
            there.inject(kind, on, *(f"{name}={value}" for name, value in options.items()))
        if "held" in strength:
            stack.enter_context(held(there, *strength["held"]))
        words = ["run", study, "--target", f"target={ways[way]}", "-o", out, "--seed", str(one["seed"])]
        words += ["--ignore-health", *(["--under-fault"] if faults else [])]
        there.inside("client1", *PROGRAM, *words)
        stack.close()
        blind(out)
        cells = diagnosed(out)
    told = [
        {"named": [cause["cause"] for cause in cell["named"]], "figures": cell["figures"]} for cell in cells
    ]
    return {**one, "cells": told}


@contextmanager
def held(there: Lab, name: str, part: float) -> Iterator[None]:
    """Stop a daemon of the lab for that share of each period, until the block ends."""
    pid = next(one.pid for one in read_record(there.directory).processes if one.name == name)
    end = threading.Event()

    def hold() -> None:
        while not end.wait(HELD_S * (1 - part)):
            os.kill(pid, signal.SIGSTOP)
            end.wait(HELD_S * part)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


def blind(out: Path) -> None:
    """Take what was injected out of a result."""
    journal = out / "events.jsonl"
    lines = [line for line in journal.read_text().splitlines() if "fault" not in json.loads(line)["event"]]
    journal.write_text("\n".join(lines) + "\n")
    for file in (out / "trials").glob("*.parquet"):
        rows = pq.read_table(file)
        for name in ("faults", "under_fault"):
            at = rows.schema.get_field_index(name)
            field = rows.schema.field(at)
            rows = rows.set_column(at, field, pa.nulls(rows.num_rows, field.type))
        pq.write_table(rows, file)


def run(asked: argparse.Namespace) -> None:
    """What is not there yet, on a new lab where one does not mend."""
    done = asked.lines.done("case", "level", "seed")
    left = [one for one in planned(asked.seeds, asked.seed) if tuple(one.values()) not in done]
    left = [one for one in left if asked.only in one["case"] and asked.level in (None, one["level"])][
        : asked.most
    ]
    while left:
        with lab("diagnosis", topology=TOPOLOGY, mounts=["client1"]) as there:
            rest = _on_lab(there, left, asked.lines)
        if len(rest) == len(left):
            raise SystemExit("a new lab does not come to rest")
        left = rest


def _on_lab(there: Lab, left: list[Row], runs: Runs) -> list[Row]:
    """Run by run, each kept at once; those that are left where the lab did not mend."""
    ways = there.targets("client1")
    ways["libcephfs-ec"] = ways["libcephfs"].replace("replicated", "erasure")
    for number, one in enumerate(left, 1):
        try:
            found = measured(there, one, ways)
        except UnsettledError:
            return left[number - 1 :]
        except CommandError as error:  # it is tried again the next time
            print(f"[{number}/{len(left)}] {one}: {error}", flush=True)
            continue
        runs.keep(found)
        print(f"[{number}/{len(left)}] {one}: {[cell['named'] for cell in found['cells']]}", flush=True)
    return []


# -- the page ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """One run, and what became of it."""

    case: str
    level: str
    seed: int
    named: tuple[str, ...]
    share: float | None
    outcome: str
    beside: bool

    @property
    def tuned(self) -> bool:
        """Whether thresholds were chosen by it."""
        return self.seed % AGAIN in TUNED


def judged(runs: Sequence[Row]) -> Iterator[Judged]:
    """Each cell of each run. What was observed later than a run was made is not known of it."""
    injected = frozenset(name for case in CASES for name in case.right)
    unknown = dict.fromkeys(FIGURES)
    for one in runs:
        for cell in one["cells"]:
            found = diagnose([{**unknown, **figures} for figures in cell["figures"]])
            names = tuple(cause.entry.name for cause in found.named)
            part = found.named[0].share if found.named else None
            outcome = _outcome(BY_NAME.get(one["case"]), one["level"], frozenset(names), injected)
            beside = outcome == "undecided" and bool(set(names) - injected - _OWN)
            yield Judged(one["case"], one["level"], one["seed"], names, part, outcome, beside)


def _outcome(case: DiagnosisCase | None, level: str, names: frozenset[str], injected: frozenset[str]) -> str:
    right = frozenset(case.right if case else ())
    if names & (injected - right - _OWN):
        return "wrong"
    if case is None:
        return "right"
    found = right & names
    return "right" if found and (level != "two" or found == right) else "undecided"


def page(runs: Sequence[Row]) -> Iterator[str]:
    """The page's lines."""
    found = sorted(judged(runs), key=lambda one: (one.case, one.level, one.seed))
    counted, tuned = [one for one in found if not one.tuned], ", ".join(map(str, sorted(TUNED)))
    yield "# Diagnosis: what was injected, and what was named"
    yield from [*_WORDS.format(tuned=tuned).splitlines(), ""]
    headings = "strength | >runs | >right | >undecided | >wrong | >of the undecided: something else named"
    yield from [*table(headings, _by_strength(counted)), "", "## By cause", ""]
    headings = f"cause | {' | '.join(f'>{level}' for level in LEVELS)} | why not oftener"
    yield from [*table(headings, _by_case(counted)), "", "## Left out", ""]
    yield from (f"- {name}: {why}" for name, why in _TABLE["left_out"].items())
    yield from ["", "## Every run that counts", "", *_lines(counted), ""]
    yield from [f"## The runs that thresholds were chosen by (seed {tuned})", ""]
    yield from _lines(one for one in found if one.tuned)


def _by_strength(runs: Sequence[Judged]) -> Iterator[Sequence[object]]:
    for level in (*LEVELS, "two", ""):
        of_level = [one for one in runs if one.level == level]
        counts = Counter(one.outcome for one in of_level)
        words = {"two": "two causes at once", "": "nothing injected"}.get(level, level)
        outcomes = (counts[outcome] for outcome in ("right", "undecided", "wrong"))
        yield words, len(of_level), *outcomes, sum(one.beside for one in of_level)


def _by_case(runs: Sequence[Judged]) -> Iterator[Sequence[object]]:
    """How often each is named, and why not oftener."""
    for case in CASES:
        parts = []
        for level in LEVELS:
            outcomes = [one.outcome for one in runs if (one.case, one.level) == (case.name, level)]
            parts.append(f"{outcomes.count('right')} of {len(outcomes)}" if outcomes else "-")
        yield case.name, *parts, case.limits


def _lines(runs: Iterable[Judged]) -> Iterator[str]:
    rows = (
        (
            one.case,
            one.level,
            one.seed,
            ", ".join(one.named),
            "" if one.share is None else f"{100 * one.share:.0f} %",
            one.outcome,
        )
        for one in runs
    )
    return table("cause | strength | >seed | named | >share | outcome", rows)


OPTIONS: dict[str, dict[str, Any]] = {
    "--seed": {"type": int, "default": 2, "help": "the first; 1 is what thresholds were chosen by"},
    "--seeds": {"type": int, "default": 3},
    "--only": {"default": "", "help": "cases with this in their name"},
    "--level": {"help": "cases of this strength: weak, middle, strong, two"},
    "--most": {"type": int, "default": 10_000, "help": "runs at most"},
}

if __name__ == "__main__":
    bench("diagnosis", __doc__, run, page, OPTIONS)
