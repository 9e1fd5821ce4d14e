"""`make drishti-bench`: what is wrong with a program's way of I/O, by leadline and by Drishti side by side.

    python bench/drishti.py run --darshan LIB [--ranked LIB] --seeds 2   # bench/drishti.jsonl; goes on there
    python bench/drishti.py again                                        # its traces by rules that changed
    python bench/drishti.py judge                                        # bench/drishti.md, from it alone

Drishti reads logs of Darshan, so Darshan's own library records the same programs: LIB is its `libdarshan.so`
without MPI, of `--ranked` with it. Drishti and what it needs are installed apart, below `target/`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import HERE, ROOT, Row, bench, cases, command, diagnosed, leadline, scratch, table, text

LOCK = HERE / "drishti_requirements.lock"
PLACE = ROOT / "target" / "drishti"
VENV, SOURCE = PLACE / "venv", HERE / "floors" / "io_habits.c"
_LEVEL = re.compile(r"message\(\s*(INSIGHTS_\w+),\s*\w+,\s*(HIGH|WARN|INFO|OK)\b")
_CODE = re.compile(r"^(INSIGHTS_\w+) = '(\w+)'", re.MULTILINE)
_LEVELS = {"HIGH": "critical", "WARN": "warning", "INFO": "information", "OK": "good"}
# Drishti says it of every program without MPI-IO, and none here has any: counted apart.
NO_MPI_IO = "M01"
# A verdict on the program, and no accusation of its I/O.
NO_ACCUSATION = frozenset(
    {"bound_by_compute", "waiting_asleep", "waiting_for_locks", "waiting_for_others", "waiting_for_cpus"}
)
TOOLS = {
    "leadline": "leadline, its own trace",
    "leadline_darshan": "leadline, Darshan's log",
    "drishti": "Drishti, Darshan's log",
}


@dataclass(frozen=True)
class HabitCase:
    """A habit of `floors/io_habits.c`; `words` say to people what it does (see cases/drishti.yaml)."""

    name: str
    words: str
    leadline: Sequence[str] = ()
    drishti: Sequence[str] = ()
    also: Sequence[str] = ()
    ranks: int = 1

    @property
    def clean(self) -> bool:
        """Nothing is wrong with it."""
        return not (self.leadline or self.drishti)

    def right(self, tool: str) -> Sequence[str]:
        """What names its problem in the words of a tool."""
        return self.drishti if tool == "drishti" else self.leadline


CASES = [HabitCase(**one) for one in cases("drishti")]


def installed() -> Path:
    """Drishti in an environment of its own; its command."""
    if not (VENV / "bin" / "drishti").exists():
        command(sys.executable, "-m", "venv", VENV)
        command(VENV / "bin" / "pip", "install", "--quiet", "--require-hashes", "--requirement", LOCK)
    return VENV / "bin" / "drishti"


def levels() -> dict[str, str]:
    """Drishti's level of each code, as its own source has it."""
    (folder,) = VENV.glob("lib/python*/site-packages/drishti/includes")
    codes = dict(_CODE.findall((folder / "config.py").read_text()))
    # A comma inside the words of a call would only hide it: each code is looked for.
    found = {
        codes[name]: _LEVELS[level] for name, level in _LEVEL.findall((folder / "module.py").read_text())
    }
    assert {"P05", "P09", "S01", "M01"} <= set(found)
    return found


def built(ranked: bool) -> Path:
    """The program, with MPI where ranks share the work."""
    PLACE.mkdir(parents=True, exist_ok=True)
    binary = PLACE / ("io_habits_ranked" if ranked else "io_habits")
    command(*(("mpicc", "-DMPI") if ranked else ("gcc",)), "-O2", "-Wall", "-Wextra", "-o", binary, SOURCE)
    return binary


def versions(darshan: Path) -> Row:
    """Of all that took part."""
    names = ("drishti-io", "darshan")
    listed = command(VENV / "bin" / "pip", "list", "--format", "json")
    found = {one["name"]: one["version"] for one in json.loads(listed) if one["name"] in names}
    config = darshan.parent.parent / "bin" / "darshan-config"
    runtime = re.search(rb"DARSHAN_VERSION=(\S+)", config.read_bytes()) if config.exists() else None
    told = re.search(rb"\b3\.\d+\.\d+\b", darshan.read_bytes())
    found["darshan-runtime"] = (runtime[1] if runtime else told[0] if told else b"unknown").decode()
    found["leadline"] = leadline("--version").split()[-1]
    return {"versions": found, "levels": levels()}


def named(trace: Path) -> Row:
    """What leadline's diagnosis names, with its shares of the run time."""
    (cell,) = diagnosed(trace)
    return {
        "named": {cause["cause"]: cause["share"] for cause in cell["named"]},
        "behind": {cause["cause"]: cause["share"] for cause in cell["behind"]},
        "open": [one["cause"] for one in cell["open"]],
    }


def said(log: Path, place: Path) -> Row:
    """What Drishti names: its codes, and the words that it has for them."""
    words = ("--code", "--csv", "--export_dir", place, "--size", "400", log)
    printed = command(VENV / "bin" / "drishti", *words, cwd=place)
    (file,) = place.glob("*.csv")
    with file.open() as rows:
        (row,) = csv.DictReader(rows)
    told = dict(re.findall(r"\[([A-Z]\d\d)\] (.*?)\s*│?$", printed, re.MULTILINE))
    counted = re.search(r"(\d+) critical issues, (\d+) warnings", printed)
    return {
        "codes": [code for code, value in row.items() if value == "True"],
        "words": told,
        "counted": [int(number) for number in counted.groups()] if counted else None,
    }


def measured(one: HabitCase, seed: int, darshan: Path) -> Row:
    """A program three times with the same seed: to make its data, under leadline, under Darshan."""
    binary = built(one.ranks > 1)
    ranks = ["mpiexec", "-n", str(one.ranks)] if one.ranks > 1 else []
    place = PLACE / "kept" / f"{one.name}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    logs, sheets = place / "logs", place / "sheets"
    for folder in (logs, sheets):
        folder.mkdir(parents=True)
    with scratch("run", PLACE) as files:
        works = [files / "first", files / "second"]
        for work in works:
            work.mkdir()
            command(built(False), "make", work, str(seed))
        own = [*ranks, binary, one.name, works[0], str(seed)]
        leadline("trace", "-o", place / "trace", "--", *own, allowed=(0,))
        recorded = [*ranks, "env", f"LD_PRELOAD={darshan}", binary, one.name, works[1], str(seed)]
        switch = {} if ranks else {"DARSHAN_ENABLE_NONMPI": "1"}
        command(*recorded, env={**os.environ, **switch, "DARSHAN_LOGDIR": str(logs)})
    (log,) = logs.glob("*io_habits*.darshan")
    leadline("import", "darshan", log, "-o", place / "imported", allowed=(0,))
    return {**traces_named(one.name, seed), "drishti": said(log, sheets)}


def traces_named(name: str, seed: int) -> Row:
    """What leadline says of the traces that were kept."""
    place = PLACE / "kept" / f"{name}-{seed}"
    both = {"leadline": named(place / "trace"), "leadline_darshan": named(place / "imported")}
    return {"case": name, "seed": seed, **both}


def run(asked: argparse.Namespace) -> None:
    """What is not in the file yet, in random order by the seed."""
    if asked.darshan is None or not asked.darshan.exists():
        raise SystemExit("--darshan names no library: Drishti reads what Darshan's library records")
    if shutil.which("gcc") is None:
        raise SystemExit("the programs are in C, and gcc is not installed")
    installed()
    libraries = [(one, asked.ranked if one.ranks > 1 else asked.darshan) for one in CASES]
    seeds = range(asked.seed, asked.seed + asked.seeds)
    planned = [(one, library, seed) for one, library in libraries if library for seed in seeds]
    random.Random(asked.seed).shuffle(planned)  # noqa: S311 - an order, no secret
    runs, about = asked.lines, versions(asked.darshan)
    had = runs.done("case", "seed")
    if about not in list(runs):
        runs.keep(about)
    for one, library, seed in planned:
        if (one.name, seed) not in had:
            runs.keep(measured(one, seed, library.resolve()))
            print(one.name, seed, flush=True)


def again(asked: argparse.Namespace) -> None:
    """The same traces by rules that changed since; Drishti's answers stay."""
    rows = [
        {**row, **traces_named(row["case"], row["seed"])} if "case" in row else row for row in asked.lines
    ]
    asked.lines.replace(rows)


# -- the page ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What a tool named of one run, and what that is worth."""

    case: HabitCase
    tool: str
    named: tuple[str, ...]

    @property
    def beside(self) -> tuple[str, ...]:
        """Accusations that are not true."""
        return tuple(
            code for code in self.named if code not in (*self.case.right(self.tool), *self.case.also)
        )

    @property
    def outcome(self) -> str:
        """By the words of the page."""
        if self.case.clean:
            return "false alarm" if self.beside else "right"
        if set(self.named) & set(self.case.right(self.tool)):
            return "right"
        return "wrong" if self.beside else "silent"


def page(lines: Sequence[Row]) -> Iterator[str]:
    """The whole of it."""
    about, prose = [line for line in lines if "levels" in line][-1], text("drishti")
    runs = [line for line in lines if "case" in line]
    tried = [one for one in CASES if any(line["case"] == one.name for line in runs)]
    answers = {
        (one.name, tool): [
            Answer(one, tool, _named(line, tool, about["levels"]))
            for line in runs
            if line["case"] == one.name
        ]
        for one in tried
        for tool in TOOLS
    }
    seeds = ", ".join(map(str, sorted({line["seed"] for line in runs})))
    told = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    marked = sum(NO_MPI_IO in line["drishti"]["codes"] for line in runs)
    yield from ["# A program's way of I/O: leadline beside Drishti", "", prose["introduction"], ""]
    yield f"Seeds {seeds}; {told}."
    yield f"{len(runs)} runs of {len(tried)} programs; `{NO_MPI_IO}` in {marked} of them."
    headings = (
        " | >of bad habits: right | >silent | >wrong | >beside | >of clean programs: right | >false alarm"
    )
    yield from ["", *table(headings, _summary(tried, answers)), "", "## Each program", ""]
    yield "What was named in any seed; in bold what names the habit, in brackets what is true beside. Where"
    yield from ["seeds differ the outcome says so.", ""]
    rows = ((one.name, one.words, *(_cell(answers[one.name, tool]) for tool in TOOLS)) for one in tried)
    yield from [*table(f"program | what it does | {' | '.join(TOOLS.values())}", rows), "", prose["limits"]]


def _named(line: Row, tool: str, levels: Mapping[str, str]) -> tuple[str, ...]:
    if tool != "drishti":
        return tuple(code for code in line[tool]["named"] if code not in NO_ACCUSATION)
    codes = line["drishti"]["codes"]
    return tuple(code for code in codes if levels[code] in ("critical", "warning") and code != NO_MPI_IO)


def _summary(
    tried: Sequence[HabitCase], answers: Mapping[tuple[str, str], Sequence[Answer]]
) -> Iterator[Sequence[object]]:
    for tool, words in TOOLS.items():
        bad, clean = (
            [one for case in tried if case.clean == state for one in answers[case.name, tool]]
            for state in (False, True)
        )
        found, quiet = ([one.outcome for one in some] for some in (bad, clean))
        yield (
            words,
            *(found.count(state) for state in ("right", "silent", "wrong")),
            sum(len(one.beside) for one in bad),
            *(quiet.count(state) for state in ("right", "false alarm")),
        )


def _cell(found: Sequence[Answer]) -> str:
    outcomes = [one.outcome for one in found]
    words = " and ".join(
        name if len(set(outcomes)) == 1 else f"{name} ({outcomes.count(name)} of {len(outcomes)})"
        for name in dict.fromkeys(outcomes)
    )
    codes = dict.fromkeys(code for one in found for code in one.named)
    return f"{words}: {', '.join(_marked(code, found[0]) for code in codes)}" if codes else words


def _marked(code: str, one: Answer) -> str:
    if code in one.case.right(one.tool):
        return f"**{code}**"
    return f"({code})" if code in one.case.also else code


OPTIONS: dict[str, dict[str, Any]] = {
    "--darshan": {"type": Path, "help": "libdarshan.so, built without MPI"},
    "--ranked": {"type": Path, "help": "libdarshan.so, built with MPI: programs of several ranks, too"},
    "--seed": {"type": int, "default": 1},
    "--seeds": {"type": int, "default": 3},
}

if __name__ == "__main__":
    bench("drishti", __doc__, run, page, OPTIONS, {"again": again})
