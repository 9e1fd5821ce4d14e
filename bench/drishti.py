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
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import drishti_page
from drishti_cases import CASES, RANKED, HabitCase

HERE = Path(__file__).parent
RUNS, PAGE = HERE / "drishti.jsonl", HERE / "drishti.md"
LOCK = HERE / "drishti_requirements.lock"
PLACE = HERE.parent / "target" / "drishti"
VENV, SOURCE = PLACE / "venv", HERE / "floors" / "io_habits.c"
LIMIT_S = 120.0
_LEVEL = re.compile(r"message\(\s*(INSIGHTS_\w+),\s*\w+,\s*(HIGH|WARN|INFO|OK)\b")
_CODE = re.compile(r"^(INSIGHTS_\w+) = '(\w+)'", re.MULTILINE)
_LEVELS = {"HIGH": "critical", "WARN": "warning", "INFO": "information", "OK": "good"}


def command(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done


def installed() -> Path:
    """Drishti in an environment of its own; its command."""
    if not (VENV / "bin" / "drishti").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        pip = [
            str(VENV / "bin" / "pip"),
            "install",
            "--quiet",
            "--require-hashes",
            "--requirement",
            str(LOCK),
        ]
        subprocess.run(pip, check=True)
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
    compiler = ["mpicc", "-DMPI"] if ranked else ["gcc"]
    command([*compiler, "-O2", "-Wall", "-Wextra", "-o", str(binary), str(SOURCE)])
    return binary


def versions(darshan: Path) -> dict[str, Any]:
    """Of all that took part."""
    names = ("drishti-io", "darshan")
    listed = command([str(VENV / "bin" / "pip"), "list", "--format", "json"]).stdout
    found = {one["name"]: one["version"] for one in json.loads(listed) if one["name"] in names}
    config = darshan.parent.parent / "bin" / "darshan-config"
    runtime = re.search(rb"DARSHAN_VERSION=(\S+)", config.read_bytes()) if config.exists() else None
    told = re.search(rb"\b3\.\d+\.\d+\b", darshan.read_bytes())
    found["darshan-runtime"] = (runtime[1] if runtime else told[0] if told else b"unknown").decode()
    found["leadline"] = command([sys.executable, "-m", "leadline", "--version"]).stdout.split()[-1]
    return {"versions": found, "levels": levels()}


def leadline(*words: str) -> str:
    """The program itself, from outside."""
    return command([sys.executable, "-m", "leadline", *words]).stdout


def named(trace: Path) -> dict[str, Any]:
    """What leadline's diagnosis names, with its shares of the run time."""
    (cell,) = json.loads(leadline("diagnose", str(trace), "--json"))["cells"]
    return {
        "named": {cause["cause"]: cause["share"] for cause in cell["named"]},
        "behind": {cause["cause"]: cause["share"] for cause in cell["behind"]},
        "open": [one["cause"] for one in cell["open"]],
    }


def said(log: Path, place: Path) -> dict[str, Any]:
    """What Drishti names: its codes, and the words that it has for them."""
    drishti = [str(VENV / "bin" / "drishti"), "--code", "--csv", "--export_dir", str(place), "--size", "400"]
    printed = command([*drishti, str(log)], cwd=place).stdout
    (file,) = place.glob("*.csv")
    with file.open() as rows:
        (row,) = csv.DictReader(rows)
    words = dict(re.findall(r"\[([A-Z]\d\d)\] (.*?)\s*│?$", printed, re.MULTILINE))
    counted = re.search(r"(\d+) critical issues, (\d+) warnings", printed)
    return {
        "codes": [code for code, value in row.items() if value == "True"],
        "words": words,
        "counted": [int(number) for number in counted.groups()] if counted else None,
    }


def run(one: HabitCase, seed: int, darshan: Path) -> dict[str, Any]:
    """A program three times with the same seed: to make its data, under leadline, under Darshan."""
    binary = built(one.ranks > 1)
    ranks = ["mpiexec", "-n", str(one.ranks)] if one.ranks > 1 else []
    place = PLACE / "kept" / f"{one.name}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    logs, sheets = place / "logs", place / "sheets"
    for folder in (logs, sheets):
        folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=PLACE) as name:
        works = [Path(name) / "first", Path(name) / "second"]
        for work in works:
            work.mkdir()
        for work in works:
            command([str(built(False)), "make", str(work), str(seed)])
        own = [*ranks, str(binary), one.name, str(works[0]), str(seed)]
        leadline("trace", "-o", str(place / "trace"), "--", *own)
        recorded = [*ranks, "env", f"LD_PRELOAD={darshan}", str(binary), one.name, str(works[1]), str(seed)]
        switch = {} if ranks else {"DARSHAN_ENABLE_NONMPI": "1"}
        command(recorded, env={**os.environ, **switch, "DARSHAN_LOGDIR": str(logs)})
    (log,) = logs.glob("*io_habits*.darshan")
    leadline("import", "darshan", str(log), "-o", str(place / "imported"))
    return {**judged(one.name, seed), "drishti": said(log, sheets)}


def judged(name: str, seed: int) -> dict[str, Any]:
    """What leadline says of the traces that were kept."""
    place = PLACE / "kept" / f"{name}-{seed}"
    both = {"leadline": named(place / "trace"), "leadline_darshan": named(place / "imported")}
    return {"case": name, "seed": seed, **both}


def run_all(arguments: argparse.Namespace) -> None:
    """What is not in the file yet, in random order by the seed."""
    installed()
    cases = [(one, arguments.darshan) for one in CASES]
    cases += [(one, arguments.ranked) for one in RANKED if arguments.ranked]
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    planned = [(one, library, seed) for one, library in cases for seed in seeds]
    random.Random(arguments.seed).shuffle(planned)  # noqa: S311 - an order, no secret
    lines = [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []
    about = versions(arguments.darshan)
    had = {(line["case"], line["seed"]) for line in lines if "case" in line}
    with RUNS.open("a") as file:
        if about not in lines:
            file.write(json.dumps(about) + "\n")
        for one, library, seed in planned:
            if (one.name, seed) not in had:
                file.write(json.dumps(run(one, seed, library.resolve())) + "\n")
                file.flush()
                print(one.name, seed, flush=True)


def diagnose_again() -> None:
    """The same traces by rules that changed since; Drishti's answers stay."""
    lines = [json.loads(line) for line in RUNS.read_text().splitlines()]
    lines = [{**line, **judged(line["case"], line["seed"])} if "case" in line else line for line in lines]
    RUNS.write_text("".join(json.dumps(line) + "\n" for line in lines))


def main() -> None:
    """Run, diagnose what was kept once more, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("run", "again", "judge"))
    parser.add_argument("--darshan", type=Path, help="libdarshan.so, built without MPI")
    parser.add_argument(
        "--ranked", type=Path, help="libdarshan.so, built with MPI: programs of several ranks, too"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.what == "again":
        diagnose_again()
        return
    if arguments.what == "judge":
        PAGE.write_text(drishti_page.page([json.loads(line) for line in RUNS.read_text().splitlines()]))
        return
    if arguments.darshan is None or not arguments.darshan.exists():
        parser.error("--darshan names no library: Drishti reads what Darshan's library records")
    if shutil.which("gcc") is None:
        parser.error("the programs are in C, and gcc is not installed")
    run_all(arguments)


if __name__ == "__main__":
    main()
