"""`make nothing-bench`: what does `leadline diagnose` accuse where nothing is broken?

    python bench/nothing.py run --runs 200 --minutes 40   # lines in bench/nothing.jsonl; goes on there
    python bench/nothing.py judge                         # bench/nothing.md, from these lines alone

Labs are started, studies are run over every access method that the lab has, and each cell is diagnosed: one
run. Nothing is injected. A cause that is named is false, unless it is one of `TRUE` (nothing_page.py), which
was written before the first run. The metrics of each trial are kept, so that a changed table of causes is
judged again without a lab.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnosis import command, settle
from nothing_page import page

HERE = Path(__file__).parent
RUNS, PAGE = HERE / "nothing.jsonl", HERE / "nothing.md"
LAB = "nothing"
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


@contextmanager
def lab(place: Path, *, links: bool) -> Iterator[Path]:
    """A lab of its own with every gateway, gone afterwards."""
    directory, topology = place / "lab", place / "centre.yaml"
    topology.write_text(LINKS)
    options = ("--topology", str(topology)) if links else ("--osds", "3", "--gateways", "all")
    try:
        command("lab", "up", LAB, "--dir", str(directory), *options, timeout=900)
        if links:
            for client in ("client1", "client2"):
                command("lab", "mount", client, "--dir", str(directory), check=False)
        yield directory
    finally:
        command("lab", "down", "--dir", str(directory), check=False)


def grow_old(directory: Path) -> None:
    """What a lab has behind it after a while: an OSD that was down and came back, and is clean again."""
    command("lab", "inject", "osd-down", "osd.1", "--dir", str(directory))
    time.sleep(10)
    command("lab", "inject", "--clear", "--dir", str(directory))
    settle(directory)


def where(directory: Path, client: str | None, way: str, place: Path) -> str:
    """What `--target` takes for an access method."""
    if way == "local":
        (place / "local").mkdir(exist_ok=True)
        return str(place / "local")
    host = ("--host", client) if client else ()
    found = json.loads(command("lab", "targets", "--dir", str(directory), *host, "--json").stdout)
    return next(one["where"] for one in found["targets"] if one["name"] == way)


def measure(directory: Path, one: Round, place: Path, seed: int) -> list[dict[str, Any]]:
    """The cells of one round, each with what is named."""
    study = place / "own.yaml"
    study.write_text(OWN)
    waiting, outs = [], []
    for number in range(1, one.clients + 1):
        client = f"client{number}" if one.links else None
        inside = ("lab", "exec", client, "--dir", str(directory), "--") if client else ()
        outs.append(place / f"out{number}")
        words = ["run", str(study) if one.study == "own" else one.study, "-o", str(outs[-1])]
        words += ["--blocks", "2", "--seed", str(seed + number), "--quiet"]
        changed = [f"runtime={one.seconds}s"] if one.study == "own" else []
        changed += [f"works.{work}.size=64M" for work in LARGE] if one.study == "reach" else []
        words += [word for change in changed for word in ("--set", change)]
        words += ["--target", f"{one.way}={where(directory, client, one.way, place)}"]
        leadline = (sys.executable, "-m", "leadline")
        waiting.append(
            subprocess.Popen(
                [*leadline, *inside, *(leadline if inside else ()), *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "AWS_SHARED_CREDENTIALS_FILE": str(directory / _CREDENTIALS)},
            )
        )
    complaints = [process.communicate(timeout=3600)[1] for process in waiting]
    rows = []
    for out, complaint in zip(outs, complaints, strict=True):
        if not (out / "manifest.json").exists():
            print(complaint[-1000:], flush=True)
            continue
        said = json.loads(command("diagnose", str(out), "--json").stdout)
        rows += [_row(one, cell) for cell in said["cells"] if cell["outcome"] != "unusable"]
        shutil.rmtree(out)
    return rows


def _row(one: Round, cell: Mapping[str, Any]) -> dict[str, Any]:
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
        place = Path(tempfile.mkdtemp(prefix="nothing-", dir="/var/tmp"))
        try:
            there_already = nullcontext(asked.lab)
            with lab(place, links=links) if asked.lab is None else there_already as directory:
                for old, own in ages.items():
                    if old and own:
                        grow_old(directory)
                    _measured(directory, own, place, asked, end)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _wanted(asked: argparse.Namespace, *, links: bool, old: bool) -> list[Round]:
    """The rounds that are not kept, none where there are enough runs."""
    there = {row["round"] for row in kept()}
    left = [one for one in rounds(asked.seed, links=links, old=old) if one.name not in there]
    return [one for one in left if asked.only in one.name] if _lacks_runs(asked, left) else []


def _lacks_runs(asked: argparse.Namespace, own: Sequence[Round]) -> bool:
    """Whether runs of this kind of lab are missing."""
    if not own:
        return False
    place = own[0].place
    return sum(row["round"].startswith(place) for row in kept()) < asked.runs / 4


def _measured(
    directory: Path, own: Sequence[Round], place: Path, asked: argparse.Namespace, end: float
) -> None:
    for one in own:
        if not _lacks_runs(asked, own) or time.monotonic() > end:
            return
        settle(directory)
        rows = measure(directory, one, place, asked.seed)
        with RUNS.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        print(f"{one.name}: {len(rows)} cells", flush=True)


def kept() -> list[dict[str, Any]]:
    """The runs that are stored."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=("run", "judge"))
    parser.add_argument("--runs", type=int, default=200, help="cells that are enough")
    parser.add_argument("--minutes", type=float, default=40, help="no round begins later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rounds with this in their name, such as ', old,'")
    parser.add_argument("--lab", type=Path, metavar="DIR", help="on this one, which is up, all on one host")
    asked = parser.parse_args()
    if asked.do == "judge":
        PAGE.write_text("\n".join(page(kept())) + "\n")
    else:
        run(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
