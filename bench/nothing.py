"""`make nothing-bench`: what does `leadline diagnose` accuse where nothing is broken?

    python bench/nothing.py run --runs 200 --minutes 40   # lines in bench/nothing.jsonl; goes on there
    python bench/nothing.py judge                         # bench/nothing.md, from these lines alone

Labs are started, studies are run over every access method that the lab has, and each cell is diagnosed: one
run. Nothing is injected. A cause that is named is false, unless it is one of cases/nothing.yaml, which
was written before the first run. The metrics of each trial are kept, so that a changed table of causes is
judged again without a lab.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import PROGRAM, Lab, Row, bench, cases, diagnosed, lab, scratch, table
from leadline.verdict.diagnosis.causes import FIGURES
from leadline.verdict.diagnosis.judge import Diagnosed, diagnose
from leadline.verdict.diagnosis.trial_figures import operation_s

LINKS = """
ec: 2+1
switches:
  core:
hosts:
  host[1-3]: {switch: core, osds: 1, runs: [mon, mgr, mds]}
  gate1: {switch: core, runs: [nfs, smb, xrootd, rgw]}
clients:
  client[1-2]: {switch: core}
"""
_CREDENTIALS = "gateways/rgw/credentials"
_DIRECT = "direct: true, time_based: true"
WAYS = ("ceph-fuse", "libcephfs", "rados", "radosstriper", "nfs", "nfs3", "smb", "xrootd", "s3", "local")
NAMED = ("ceph-fuse", "libcephfs", "nfs", "smb", "local")  # file systems
LARGE = ("read_4m", "write_4m", "read_4k", "randread_4k", "randwrite_4k", "randread_1m")  # of reach
# Of each study the seconds of a trial, where that is not its own, and the access methods that it is for.
STUDIES = (
    ("own", 1, WAYS),
    ("own", 6, WAYS),
    ("quick", 2, WAYS),
    ("reach", 2, WAYS),
    ("metadata", 2, NAMED),
    ("shared", 2, NAMED),
    ("interference", 2, NAMED),
    ("render-files", 2, NAMED),
)
OWN = f"""
format: leadline.study/1
where_possible: true
works:
  stream_out: {{rw: write, bs: 4M, size: 64M, iodepth: 4, time_based: true}}
  stream_in: {{rw: read, bs: 4M, size: 64M, iodepth: 4, time_based: true}}
  small_out: {{rw: randwrite, bs: 4k, size: 16M, iodepth: 8, {_DIRECT}}}
  small_in: {{rw: randread, bs: 4k, size: 16M, iodepth: 8, {_DIRECT}}}
  one: {{rw: randwrite, bs: 4k, size: 16M, iodepth: 1, {_DIRECT}}}
  mixed: {{rw: randrw, bs: 64k, size: 32M, iodepth: 4, numjobs: 2, time_based: true}}
  names: {{operations: [create, stat, unlink], files: 100, time_based: true}}
"""


@dataclass(frozen=True)
class Round:
    """One `leadline run` over one access method, or one from each client at the same time."""

    links: bool
    old: bool
    clients: int
    way: str
    study: str
    seconds: int

    @property
    def name(self) -> str:
        return f"{self.place}, clients: {self.clients}, {self.way}, {self.study}, {self.seconds} s"

    @property
    def place(self) -> str:
        """Its lab, and how old that is."""
        return f"{'hosts and links' if self.links else 'one host'}, {'old' if self.old else 'fresh'}"


def rounds(seed: int, *, links: bool, old: bool) -> list[Round]:
    """Those of one lab, with the access methods in turns, so that a part of them has each."""
    chance = random.Random(f"{seed} {links} {old}")  # noqa: S311 - an order, no secret
    turns = []
    for way in chance.sample(WAYS, len(WAYS)):
        of_way = [
            Round(links, old, clients, way, study, seconds)
            for clients in ((1, 2) if links else (1,))
            for study, seconds, ways in STUDIES
            if way in ways
        ]
        chance.shuffle(of_way)
        turns.append(of_way)
    return [one for turn in itertools.zip_longest(*turns) for one in turn if one is not None]


TRUE: dict[str, str] = cases("nothing")
_WORDS = """
Studies run over every access method of labs in which nothing is broken (`make nothing-bench`), and each cell
is diagnosed: one run. **True**: the cause is of the load, of this host or of the access method, as listed
below. **False**: a cause is named that accuses equipment, software, the network or the state of the cluster,
also where it is only said to be next, apart from the load of other processes. The goal is 2 % at most.
"""


def grow_old(there: Lab) -> None:
    """What a lab has behind it after a while: an OSD that was down and came back, and is clean again."""
    there.inject("osd-down", "osd.1")
    time.sleep(10)
    there.mend()
    there.settle()


def measure(there: Lab, one: Round, place: Path, seed: int) -> list[Row]:
    """The cells of one round, each with what is named."""
    study, local = place / "own.yaml", place / "local"
    study.write_text(OWN)
    local.mkdir(exist_ok=True)
    waiting, outs = [], []
    for number in range(1, one.clients + 1):
        client = f"client{number}" if one.links else ""
        outs.append(place / f"out{number}")
        where = str(local) if one.way == "local" else there.targets(client)[one.way]
        words = ["run", str(study) if one.study == "own" else one.study, "-o", str(outs[-1])]
        words += ["--blocks", "2", "--seed", str(seed + number), "--quiet", "--target", f"{one.way}={where}"]
        changed = [f"runtime={one.seconds}s"] if one.study == "own" else []
        changed += [f"works.{work}.size=64M" for work in LARGE] if one.study == "reach" else []
        words += [word for change in changed for word in ("--set", change)]
        waiting.append(
            subprocess.Popen(
                [*(there.exec_words(client) if client else ()), *PROGRAM, *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "AWS_SHARED_CREDENTIALS_FILE": str(there.directory / _CREDENTIALS)},
            )
        )
    complaints = [process.communicate(timeout=3600)[1] for process in waiting]
    rows = []
    for out, complaint in zip(outs, complaints, strict=True):
        if not (out / "manifest.json").exists():
            print(complaint[-1000:], flush=True)
            continue
        rows += [_row(one, cell) for cell in diagnosed(out) if cell["outcome"] != "unusable"]
        shutil.rmtree(out)
    return rows


def _row(one: Round, cell: Mapping[str, Any]) -> Row:
    named = [{key: cause[key] for key in ("cause", "share", "evidence")} for cause in cell["named"]]
    # What was not observed is unknown when it is judged again.
    known = [{name: value for name, value in trial.items() if value is not None} for trial in cell["figures"]]
    return {"round": one.name, "cell": cell["cell"], "named": named, "figures": known}


def run(asked: argparse.Namespace) -> None:
    """Rounds until there are enough runs, or the time is over: on each kind of lab as many, fresh and old."""
    end = time.monotonic() + 60 * asked.minutes
    for links in (False, True) if asked.lab is None else (False,):
        ages = {old: _wanted(asked, links=links, old=old) for old in (False, True)}
        if not any(ages.values()) or time.monotonic() > end:
            continue
        shape: Any = {"topology": LINKS, "mounts": ["client1", "client2"]} if links else {}
        options = () if links else ("--osds", "3", "--gateways", "all")
        given = nullcontext(Lab(asked.lab)) if asked.lab else lab("nothing", *options, **shape)
        with given as there, scratch("nothing") as place:
            for old, own in ages.items():
                if old and own:
                    grow_old(there)
                _measured(there, own, place, asked, end)


def _wanted(asked: argparse.Namespace, *, links: bool, old: bool) -> list[Round]:
    """The rounds that are not kept, none where there are enough runs."""
    done = asked.lines.done("round")
    left = [one for one in rounds(asked.seed, links=links, old=old) if (one.name,) not in done]
    return [one for one in left if asked.only in one.name] if _lacks_runs(asked, left) else []


def _lacks_runs(asked: argparse.Namespace, own: Sequence[Round]) -> bool:
    """Whether runs of this kind of lab are missing."""
    return bool(own) and sum(row["round"].startswith(own[0].place) for row in asked.lines) < asked.runs / 4


def _measured(there: Lab, own: Sequence[Round], place: Path, asked: argparse.Namespace, end: float) -> None:
    for one in own:
        if not _lacks_runs(asked, own) or time.monotonic() > end:
            return
        there.settle()
        rows = measure(there, one, place, asked.seed)
        asked.lines.keep(*rows)
        print(f"{one.name}: {len(rows)} cells", flush=True)


# -- the page ------------------------------------------------------------------------------------------


def page(runs: Sequence[Row]) -> Iterator[str]:
    """The page's lines."""
    found = [_judged_now(run) for run in runs]
    now = [[one.entry.name for one in each.named] for each in found]
    apart = [[one.entry.name for one in each.apart] for each in found]
    false = [sorted({*named, *others} - set(TRUE)) for named, others in zip(now, apart, strict=True)]
    then = [sorted({one["cause"] for one in run["named"]} - set(TRUE)) for run in runs]
    accused, count = sum(map(bool, false)), len(runs)
    part = f"{100 * accused / count:.1f} %" if count else "no run"
    masked = sum("others_here" in named for named in now)
    linked = sum("hosts and links" in run["round"] for run in runs)
    several = sum("clients: 1," not in run["round"] for run in runs)
    yield from ["# Diagnosis where nothing is broken", *_WORDS.splitlines(), ""]
    yield f"{count} runs: {accused} have a false cause ({part})."
    yield f"By the causes as they were when these runs were measured: {sum(map(bool, then))}."
    yield f"In {masked} runs other processes are named: they had much of the CPUs, as the lab's daemons do."
    yield f"On a lab with hosts and links: {linked} runs; of several clients at once: {several}."
    yield ""
    yield from _by("round", [run["round"] for run in runs], false)
    yield from _by("access method", [run["cell"].partition(".")[0] for run in runs], false)
    accusing = (
        (run["round"], run["cell"], *(", ".join(some) for some in causes))
        for run, *causes in zip(runs, false, then, strict=True)
        if any(causes)
    )
    yield from ["## False causes", "", *table("round | cell | now | when measured", accusing), ""]
    counted = Counter(cause for named in now for cause in named)
    yield from ["## Causes that are true here", ""]
    rows = ((f"`{cause}`", counted[cause], why) for cause, why in TRUE.items())
    yield from table("cause | >runs that name it | why it can be true", rows)


def _judged_now(run: Mapping[str, Any]) -> Diagnosed:
    rows = [{name: one.get(name) for name in FIGURES} for one in run["figures"]]
    return diagnose([{**row, "operation_s": operation_s(row)} for row in rows])


def _by(title: str, keys: Sequence[str], false: Sequence[Sequence[str]]) -> Iterator[str]:
    by_key: dict[str, list[bool]] = defaultdict(list)
    for key, one in zip(keys, false, strict=True):
        by_key[key].append(bool(one))
    rows = ((key, len(which), sum(which)) for key, which in sorted(by_key.items()))
    yield from [*table(f"{title} | >runs | >with a false cause", rows), ""]


OPTIONS: dict[str, dict[str, Any]] = {
    "--runs": {"type": int, "default": 200, "help": "cells that are enough"},
    "--minutes": {"type": float, "default": 40, "help": "no round begins later"},
    "--seed": {"type": int, "default": 1},
    "--only": {"default": "", "help": "rounds with this in their name, such as ', old,'"},
    "--lab": {"type": Path, "metavar": "DIR", "help": "on this one, which is up, all on one host"},
}

if __name__ == "__main__":
    bench("nothing", __doc__, run, page, OPTIONS)
