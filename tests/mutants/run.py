"""Programs that are wrong on purpose, and whether the tests notice: one that they pass is a hole in them.

    python tests/mutants/run.py [NAME...]     (`make mutants`; NAME: a part of a subject's or a mutant's name)

A mutant is a row of the tables beside this file, one table a subject: one text of one file that is exchanged
for another in a copy of the tree, and the tests that must fail then. It prints a line a mutant; the exit code
is 1 where one survived, 2 where one could not be tried, as its text or its tests are no longer there.

Nobody knows what a wrong program does, so each runs in namespaces of its own: it sees no process of the host,
and what it started ends with it. What decides what is ended or removed has no mutant here.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from namespaces import alone

ROOT = Path(__file__).resolve().parents[2]
TABLES = Path(__file__).parent
TREE = ("python", "tests", "crates", "bench", "docs", "tools", "Cargo.toml", "Cargo.lock", "pyproject.toml")
# Without what takes longer to load than most of these tests take.
PLAIN = tuple(
    word for name in ("cacheprovider", "hypothesispytest", "xdist") for word in ("-p", f"no:{name}")
)
# What most tests load, and no mutant changes: loaded once, before each of them is forked.
LOADED = (
    "hypothesis",
    "numpy",
    "pyarrow.parquet",
    "pytest",
    "ruamel.yaml",
    "scipy.stats",
)
OUTPUT_MAX_BYTES = 1 << 20
DEADLINE_S = 600
CAUGHT, SURVIVED, NOT_RUN, BROKEN = "caught", "SURVIVED", "NOT RUN", "BROKEN"


@dataclass(frozen=True)
class Mutant:
    """`old` occurs once in `file`; `tests` are words for pytest; `build` is what is compiled, if any."""

    subject: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    build: str = ""

    @property
    def label(self) -> str:
        """How it is called in what is printed and asked for."""
        return f"{self.subject}: {self.name}"


@dataclass
class Tried:
    """How the tests of a mutant ended; `words` name the test that caught it, or why it could not be tried."""

    mutant: Mutant
    state: str
    words: str
    seconds: float = 0.0


@dataclass
class Copy:
    """A copy of the tree, and what its tests say of it unchanged, by their words."""

    place: Path
    unchanged: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    def judge(self, tests: Sequence[str]) -> tuple[str, str]:
        """What tests say of the copy as it is: a state, and the first test that failed or why none ran."""
        report, said = self.place / "report.xml", self.place / "said"
        report.unlink(missing_ok=True)
        with said.open("w+b") as output:
            code = alone(
                lambda: self.test([*PLAIN, f"--junitxml={report}", *tests]), output.fileno(), DEADLINE_S
            )
        if code not in (0, 1) or not report.exists():
            return BROKEN, f"pytest ended with {code}: {last_line(said)}"
        return verdict_of(report)

    def test(self, words: Sequence[str]) -> int:
        """In a process of its own: pytest, with the package of the copy and not the one installed."""
        import pytest

        os.chdir(self.place)
        os.environ["PYTHONPATH"] = str(self.place / "python")
        sys.path.insert(0, str(self.place / "python"))
        sys.argv = ["pytest", *words]
        return int(pytest.main(list(words)))


def verdict_of(report: Path) -> tuple[str, str]:
    """A failed assertion catches; a fixture that breaks before any says nothing of the tests."""
    ran, why_not = 0, "no test has that name"
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest of this run wrote it
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        if case.find("failure") is not None:
            return CAUGHT, name
        if (error := case.find("error")) is not None:
            return BROKEN, f"{name}: {error.get('message')}"
        if (skipped := case.find("skipped")) is not None:
            why_not = str(skipped.get("message"))
        else:
            ran += 1
    return (SURVIVED, f"{ran} tests passed") if ran else (NOT_RUN, why_not)


def last_line(file: Path) -> str:
    text = file.read_text(errors="replace")[-OUTPUT_MAX_BYTES:]
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")


def read_tables() -> Iterator[Mutant]:
    """The mutants of all tables; `tests` of a table are those of its mutants that name none."""
    for table in sorted(TABLES.glob("*.toml")):
        content = tomllib.loads(table.read_text())
        for row in content.pop("mutant"):
            found = content | row
            yield Mutant(table.stem, **(found | {"tests": tuple(found["tests"])}))


@dataclass(frozen=True)
class Build:
    """What cargo makes of a mutant, below the directory of its builds, and where the package looks for it."""

    words: tuple[str, ...]
    made: str
    installed: str

    def make(self, copy: Copy) -> None:
        """Compile the copy. Raises LookupError where that fails: the mutant is no program."""
        # What the tree's own crates need is kept from run to run.
        built = ROOT / "target" / "mutants"
        words = ("cargo", "build", "--quiet", "--locked", "--target-dir", str(built), *self.words)
        # The agent has the tracer's library in it, as tools/build.sh puts it there.
        library = copy.place / "python/leadline/lib/libleadline_tracer.so"
        given = {**os.environ, "LEADLINE_TRACER": str(library)}
        done = subprocess.run(words, cwd=copy.place, env=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LookupError(f"it does not compile: {done.stderr.strip()[:200]!a}")
        shutil.copyfile(built / self.made, copy.place / self.installed)


BUILDS = {
    "tracer": Build(
        ("--profile", "tracer", "--package", "leadline-tracer"),
        "tracer/libleadline_tracer.so",
        "python/leadline/lib/libleadline_tracer.so",
    ),
    "agent": Build(
        ("--release", "--package", "leadline-agent"),
        "release/leadline-agent",
        "python/leadline/lib/agent/leadline-agent-x86_64",
    ),
    "engine": Build(
        ("--release", "--package", "leadline-python", "--features", "pyo3/extension-module"),
        "release/lib_core.so",
        "python/leadline/_core.abi3.so",
    ),
}


@contextmanager
def copied_tree() -> Iterator[Copy]:
    """The tree as it is now, with what was built of it, in a directory that goes with it."""
    with tempfile.TemporaryDirectory(prefix="leadline-mutants-") as directory:
        place = Path(directory)
        for name in TREE:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, place / name)
            else:
                shutil.copy2(source, place / name)
        programs = ROOT / "target" / "test-programs"
        if programs.exists():
            shutil.copytree(programs, place / "target" / "test-programs")
        (place / "target").mkdir(exist_ok=True)
        yield Copy(place)


@contextmanager
def changed(copy: Copy, mutant: Mutant) -> Iterator[None]:
    """The copy with the mutant in it, compiled where it has to be; as it was afterwards.

    Raises LookupError where its text is not there once, or does not compile.
    """
    file = copy.place / mutant.file
    text = file.read_text() if file.exists() else ""
    if (count := text.count(mutant.old)) != 1:
        raise LookupError(f"its text occurs {count} times in {mutant.file}")
    build = BUILDS.get(mutant.build)
    kept = (copy.place / build.installed).read_bytes() if build else b""
    write(file, text.replace(mutant.old, mutant.new))
    try:
        if build:
            build.make(copy)
        yield
    finally:
        write(file, text)
        if build:
            (copy.place / build.installed).write_bytes(kept)


def write(file: Path, text: str) -> None:
    """Python takes what it compiled for what was written in the same second: that goes too."""
    file.write_text(text)
    Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)


def try_one(copy: Copy, mutant: Mutant) -> Tried:
    """Its tests, unchanged once for all that name the same ones, then with the mutant in the copy."""
    began_s = time.monotonic()
    if mutant.tests not in copy.unchanged:
        copy.unchanged[mutant.tests] = copy.judge(mutant.tests)
    state, words = copy.unchanged[mutant.tests]
    if state == CAUGHT:
        state, words = BROKEN, f"{words} fails without the mutant"
    if state == SURVIVED:
        try:
            with changed(copy, mutant):
                state, words = copy.judge(mutant.tests)
        except LookupError as error:
            state, words = BROKEN, str(error)
    return Tried(mutant, state, words, time.monotonic() - began_s)


def main(names: Sequence[str]) -> int:
    """Try them one by one; 0 where each was caught, 1 where one survived, 2 where one could not be tried."""
    if os.geteuid() != 0:
        print("mutants run in namespaces of their own, which needs root", file=sys.stderr)
        return 2
    # In CI Hypothesis draws the same each time, and does not ask how busy the host is.
    os.environ["CI"] = "1"
    for name in LOADED:
        importlib.import_module(name)
    mutants = [one for one in read_tables() if not names or any(name in one.label for name in names)]
    began_s, states = time.monotonic(), Counter[str]()
    with copied_tree() as copy:
        for mutant in mutants:
            tried = try_one(copy, mutant)
            states[tried.state] += 1
            print(f"{tried.state:9}{mutant.label:62} {tried.seconds:6.1f} s  {tried.words}", flush=True)
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    print(f"{len(mutants)} mutants in {time.monotonic() - began_s:.0f} s: {told}")
    return 2 if states[BROKEN] or not mutants else int(states[SURVIVED] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
