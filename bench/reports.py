"""What `show` and `report` cost at scale: 228 trials of 11 targets, 5,000 trials, and large traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cost import Places
from growth import exponent
from leadline.store.bundles import bundle_trials
from leadline.store.reader import open_result
from ratios import spread
from sides import LIMIT_S
from trace_report import CASES, GROWN, growth, make

STUDY = """format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 1M, runtime: 100ms, time_based: true, rw: randread, engine: psync, direct: false}
works:
  small: {bs: 4k}
  middle: {bs: 16k}
  large: {bs: 64k}
blocks: BLOCKS
"""
TARGETS = 11
BLOCKS = 7  # by 11 targets and 3 works: 231 trials
MIDDLE, MANY_TRIALS = 4, 5_000  # so many times as many, and so many at least
HEAD = ["| of | command | s | CPU, s | MiB | at most | goal |", "|---|---|---|---|---|---|---|"]
PAGE_LIMIT_MB = 5.0


def reports(places: Places) -> list[str]:
    """Each command in a process of its own, once to warm up and then as often as the rounds say."""
    lines = ["## Reports at scale", "", *HEAD]
    with tempfile.TemporaryDirectory(dir=places.memory) as scratch:
        path = _measured(Path(scratch), 1 if places.quick else BLOCKS)
        trials = len(list((path / "trials").iterdir()))
        what = f"{trials} trials of {TARGETS} targets"
        lines += _rows(places, what, path, {"show": 1.0, "report": 2.0})
        if not places.quick:
            lines += _many_trials(places, path, Path(scratch), trials)
        for case in CASES[: 1 if places.quick else None]:
            found = make(case, Path(scratch))
            limits = {"show": case.seconds_max, "report": case.seconds_max}
            lines += _rows(places, case.name, found, limits, case.mib_max)
        if not places.quick:
            powers = " | ".join(growth(Path(scratch), _cost))
            lines.append(f"| {GROWN} | show, beyond its start | {powers} | | |")
    return [
        *lines,
        "",
        "Seconds and CPU seconds of the whole process, Python's start included; the results lie in memory.",
        "Goals are of seconds, and of MiB where two stand. More trials are those of the first row, block by",
        "block again, each command once. Beyond its start: less what a trace of one file takes. Powers are",
        "slopes of logarithms.",
        "",
        "Commands:",
        "",
        "    leadline show RESULT",
        "    leadline report RESULT -o PAGE",
        "",
    ]


def _many_trials(places: Places, path: Path, scratch: Path, trials: int) -> list[str]:
    """Rows of the result grown, and the power of the number of trials by which CPU time grows."""
    lines, sizes, costs = [], [trials], [_cost(["show", str(path)])[1]]
    for times, limits in (
        (MIDDLE, {"show": None}),
        (-(-MANY_TRIALS // trials), {"show": 5.0, "report": None}),
    ):
        grown = grow(path, scratch / f"grown-{times}", times)
        sizes.append(len(list((grown / "trials").iterdir())))
        lines += _rows(places, f"{sizes[-1]} trials of {TARGETS} targets", grown, limits)
        costs.append(_cost(["show", str(grown)])[1])
    start = _cost(["--version"])[1]
    power = exponent(sizes, [cost - start for cost in costs])
    return [
        *lines,
        f"| {sizes[0]} to {sizes[-1]} trials | show, beyond --version | | trials^{power:.2f} | | | |",
    ]


def _rows(
    places: Places,
    what: str,
    path: Path,
    limits: dict[str, float | None],
    mib_max: int | None = None,
    rounds: int = 5,
) -> list[str]:
    lines = []
    page = path.parent / "page.html"
    for command, limit_s in limits.items():
        words = [command, str(path), *(["-o", str(page)] if command == "report" else [])]
        if rounds > 1:
            _cost(words)  # the first reads programs from the disk
        wall, cpu, mib = (
            spread(column)
            for column in zip(*(_cost(words) for _ in range(min(rounds, places.rounds(rounds)))), strict=True)
        )
        bound = "" if limit_s is None else f"{limit_s:g} s" + (f", {mib_max} MiB" if mib_max else "")
        verdict = ""
        if limit_s is not None:
            met = wall.high <= limit_s and (mib_max is None or mib.high <= mib_max)
            missed = wall.low > limit_s or (mib_max is not None and mib.low > mib_max)
            verdict = "met" if met else f"{'**missed**' if missed else 'undecided'}: {_loading(words)}"
        taken = f"{wall.words(2)} | {cpu.words(2)} | {mib.words(0)}"
        lines.append(f"| {what} | {command} | {taken} | {bound} | {verdict} |")
    if page.exists():
        size_mb = page.stat().st_size / 1e6
        verdict = "met" if size_mb < PAGE_LIMIT_MB else "**missed**"
        lines.append(f"| {what} | the page: {size_mb:.1f} MB | | | | {PAGE_LIMIT_MB:g} MB | {verdict} |")
        page.unlink()
    return lines


def _environment() -> dict[str, str]:
    """As installed programs have it: modules are compiled once, not at each start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _cost(words: list[str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and MiB of one command; 3 says no more than that a cell is doubtful."""
    began = time.monotonic()
    command = [sys.executable, "-m", "leadline", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment()) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 3):
        raise RuntimeError(f"leadline {' '.join(words)} failed: {child.returncode}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _loading(words: list[str]) -> str:
    """What of a command is loading modules, by one run more."""
    command = [sys.executable, "-X", "importtime", "-m", "leadline", *words]
    done = subprocess.run(
        command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_environment()
    )
    spent = [line.split(":")[1].split("|")[0] for line in done.stderr.splitlines() if "import time:" in line]
    return f"{sum(int(one) for one in spent if one.strip().isdigit()) / 1e6:.2f} s of it load modules"


def _measured(scratch: Path, blocks: int) -> Path:
    """A result of a real run on directories in memory."""
    study, out = scratch / "study.yaml", scratch / "result"
    study.write_text(STUDY.replace("BLOCKS", str(blocks)))
    words = ["run", str(study), "--out", str(out), "--quiet"]
    for number in range(TARGETS):
        directory = scratch / f"target-{number}"
        directory.mkdir()
        words += ["--target", f"t{number}={directory}"]
    subprocess.run(
        [sys.executable, "-m", "leadline", *words],
        timeout=LIMIT_S,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    return out


def grow(source: Path, into: Path, times: int) -> Path:
    """The result with its blocks so many times one after another: the same rows as further trials."""
    manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text())
    plan, events = manifest["plan"], (source / "events.jsonl").read_text().splitlines()
    planned, blocks = plan["trials"], plan["blocks"]
    finished = {
        event["trial"]: event for event in map(json.loads, events) if event["event"] == "trial_finished"
    }
    into.mkdir()
    for table in ("trials", "latency", "series"):
        (into / table).mkdir()
    trials, lines = [], [line for line in events if json.loads(line)["event"] != "study_finished"]
    for again in range(1, times):
        for one in planned:
            order = one["order"] + again * len(planned)
            trial = f"t{order:05}"
            changes = {"trial": trial, "order": order, "block": one["block"] + again * blocks}
            trials.append({**one, **changes, "id": trial})
            del trials[-1]["trial"]
            for table in ("trials", "latency", "series"):
                rows = pq.read_table(source / table / f"{one['id']}.parquet")
                pq.write_table(_changed(rows, changes), into / table / f"{trial}.parquet")
            lines.append(json.dumps({**finished[one["id"]], "trial": trial}))
    for table in ("trials", "latency", "series"):
        for file in (source / table).iterdir():
            (into / table / file.name).hardlink_to(file)
    plan |= {"trials": planned + trials, "blocks": blocks * times}
    (into / "manifest.json").write_text(json.dumps(manifest))
    (into / "events.jsonl").write_text("\n".join([*lines, events[-1]]) + "\n")
    bundle_trials(into, open_result(into).finished)  # as a run leaves them
    return into


def _changed(rows: pa.Table, changes: dict[str, Any]) -> pa.Table:
    for name, value in changes.items():
        place = rows.schema.get_field_index(name)
        if place >= 0:
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array([value] * rows.num_rows, field.type))
    return rows
