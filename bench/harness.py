"""What benches share: their runs as JSON lines, pages, medians and shares, commands of leadline, and labs."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results.md"
sys.path.append(str(ROOT / "tests"))  # slow mounts, Dask workers and networks are those of the tests
FINE = (0, 3, 5)  # 3: a cell is doubtful; 5: something was skipped. Both are no matter of a bench.
SETTLED_S = 60.0
Row = dict[str, Any]
Value = TypeVar("Value")

_MARK = re.compile(r"^<!-- section (\w+) -->$", re.MULTILINE)
# Sections of results.md that programs of their own put there.
_PUT = re.compile(r"^<!-- begin [^\n]*-->\n.*?^<!-- end [^\n]*-->\n", re.MULTILINE | re.DOTALL)

# -- runs that are kept, and pages that are judged from them -------------------------------------------


class Runs:
    """The runs of a bench as JSON lines, each kept at once: a bench goes on where it ended."""

    def __init__(self, path: Path) -> None:
        self.path, self._writing = path, threading.Lock()

    def __iter__(self) -> Iterator[Row]:
        return map(json.loads, self.path.read_text().splitlines() if self.path.exists() else ())

    def keep(self, *rows: Mapping[str, Any]) -> None:
        """Add lines that outlive this process."""
        with self._writing, self.path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write other lines in the place of all of these."""
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def done(self, *keys: str) -> set[tuple[Any, ...]]:
        """What is kept, by these keys of the lines that have all of them."""
        return {tuple(row[key] for key in keys) for row in self if all(key in row for key in keys)}


def bench(
    name: str,
    about: str | None,
    run: Callable[[argparse.Namespace], None],
    page: Callable[[list[Row]], Iterable[str]],
    options: Mapping[str, Mapping[str, Any]],
    more: Mapping[str, Callable[[argparse.Namespace], None]] | None = None,
) -> None:
    """The command line: `run` what is not kept yet, or `judge`: the page from the kept runs alone.

    The runs are `lines` of what was asked; `more` are further things to do.
    """

    def judge(asked: argparse.Namespace) -> None:
        (HERE / f"{name}.md").write_text("\n".join(page(list(asked.lines))) + "\n")

    do = {"run": run, "judge": judge, **(more or {})}
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=tuple(do))
    parser.add_argument("--runs-file", type=Path, default=kept(name).path, help="other lines than those kept")
    for option, how in options.items():
        parser.add_argument(option, **how)
    asked = parser.parse_args()
    asked.lines = Runs(asked.runs_file)
    do[asked.do](asked)


def kept(name: str) -> Runs:
    """The runs that a bench keeps beside its page."""
    return Runs(HERE / f"{name}.jsonl")


def cases(name: str) -> Any:
    """The table of a bench's cases."""
    return yaml.safe_load((HERE / "cases" / f"{name}.yaml").read_text(encoding="utf-8"))


def text(name: str) -> dict[str, str]:
    """The prose of a bench's page by part, each after a mark with its name."""
    parts = _MARK.split((HERE / "text" / f"{name}.md").read_text(encoding="utf-8"))
    return {part: words.strip("\n") for part, words in zip(parts[1::2], parts[2::2], strict=True)}


def table(headings: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table; headings are parted by `|`, those of figures begin with `>`."""
    names = [name.strip() for name in headings.split("|")]
    yield "|" + "".join(f" {name.removeprefix('>')} |" if name else " |" for name in names)
    yield f"|{'|'.join('--:' if name.startswith('>') else '---' for name in names)}|"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


class Document:
    """A page of sections that are made at different times: those not made anew stay, with their date.

    The file itself is the store: each section follows a mark with its name.
    """

    def __init__(self, path: Path, introduction: str, order: Iterable[str]) -> None:
        self._path, self._introduction, self._order = path, introduction, tuple(order)
        parts = _MARK.split(path.read_text()) if path.exists() else [""]
        self.sections = {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}

    def make(self, name: str, section: Callable[[], Iterator[str]]) -> None:
        """Make one section, say when and on how busy a machine, and write the whole document."""
        begun, before = time.monotonic(), os.getloadavg()[0]
        heading, _, rest = "\n".join(section()).strip().partition("\n")
        took_s = time.monotonic() - begun
        took = f"{took_s:.0f} s" if took_s < 100 else f"{took_s / 60:.0f} minutes"
        said = (
            f"*Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC in {took}; load average {before:.1f} at the start,"
            f" {os.getloadavg()[0]:.1f} at the end, on {os.cpu_count()} CPUs.*"
        )
        self.sections[name] = f"{heading}\n\n{said}\n\n{rest.strip()}"
        names = [name for name in self._order if name in self.sections]
        parts = [f"<!-- section {name} -->\n{self.sections[name]}\n" for name in names]
        whole = self._path.with_suffix(".new")
        whole.write_text("\n".join([self._introduction, *parts]))
        whole.replace(self._path)

    @classmethod
    def command(
        cls,
        path: Path,
        introduction: str,
        sections: Mapping[str, Callable[[], Iterator[str]]],
        about: str | None,
        named: Mapping[str, Callable[[], Iterator[str]]] | None = None,
        stays: Iterable[str] = (),
    ) -> None:
        """The command line of a document: all sections, or those of these names.

        Those that are `named` are made only where they are; what `stays` never is.
        """
        every = {**sections, **(named or {})}
        parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
        parser.add_argument("sections", nargs="*", help="all, where none is named")
        parser.add_argument("--only", help="the same, with commas")
        parser.add_argument("--output", type=Path, default=path)
        asked = parser.parse_args()
        wanted = asked.only.split(",") if asked.only else asked.sections or [*sections]
        if unknown := set(wanted) - set(every):
            parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(every)}")
        document = cls(asked.output, introduction, (*every, *stays))
        for name in wanted:
            print(f"{name} ...", file=sys.stderr, flush=True)
            document.make(name, every[name])


def put(name: str, lines: Iterable[str], path: Path = RESULTS) -> None:
    """Put a section in the place of what it was before, or at the end."""
    begin, end, text = f"<!-- begin {name} -->", f"<!-- end {name} -->", "\n".join(lines)
    head, found, rest = path.read_text().partition(begin)
    tail = rest.partition(f"{end}\n")[2] if found else ""
    joint = head if found else head.rstrip("\n") + "\n\n"
    path.write_text(f"{joint}{begin}\n{text}\n{end}\n{tail}")


def put_there(path: Path) -> str:
    """The sections that were put into a document, for who writes the rest of it anew."""
    return "\n".join(_PUT.findall(path.read_text())) if path.exists() else ""


def made() -> str:
    """When, and on how busy a machine."""
    when, load = datetime.now(UTC), os.getloadavg()[0]
    return f"*Made {when:%Y-%m-%d %H:%M} UTC; load average {load:.1f} at its end, on {os.cpu_count()} CPUs.*"


# -- figures -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """A median with the interval that holds the true one with 95 %, or all values where there are too few."""

    median: float
    low: float
    high: float

    def words(self, digits: int = 3) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"

    def bold(self, digits: int = 2) -> str:
        """The same, bold where a ratio's interval leaves 1 out."""
        return self.words(digits) if self.low <= 1 <= self.high else f"**{self.words(digits)}**"

    def judged(self, limit: float) -> str:
        """Met or missed only where the whole interval says so."""
        if self.high <= limit:
            return "met"
        return f"**missed** by {self.median - limit:.3g}" if self.low > limit else "undecided"


def spread(values: Iterable[float]) -> Spread:
    """The median's interval by order statistics (Conover 1999, 3.2): ranks from the binomial distribution."""
    ordered = sorted(values)
    count, below = len(ordered), 0
    while sum(math.comb(count, k) for k in range(below + 1)) / 2**count <= 0.025:
        below += 1
    rank = max(below - 1, 0)
    return Spread(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def bounds(hits: int, tries: int) -> tuple[float, float]:
    """The 95 % interval of a share by Clopper and Pearson, Biometrika 26 (1934)."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, tries - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, tries - hits, 0.975)) if hits < tries else 1.0
    return low, high


def share(hits: int, tries: int) -> str:
    """A share in percent with its bounds."""
    low, high = bounds(hits, tries)
    return f"{100 * hits / tries:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size that a cost follows: the slope of its logarithms, by least squares.

    What does not grow, such as a program's start, holds it down: take it from the costs before. Raises
    ValueError for what has no logarithm, and for fewer than two sizes.
    """
    if len(set(sizes)) < 2:
        raise ValueError("a growth needs two sizes that differ")
    return statistics.linear_regression(*(list(map(math.log, values)) for values in (sizes, costs))).slope


def in_turns(sides: Sequence[Callable[[], Value]], rounds: int) -> list[tuple[Value, ...]]:
    """A B C, B C A, C A B, …: each round all sides, each time another one first."""
    found = []
    for turn in range(rounds):
        order = [(turn + step) % len(sides) for step in range(len(sides))]
        taken = {which: sides[which]() for which in order}
        found.append(tuple(taken[which] for which in range(len(sides))))
    return found


# -- commands, and labs --------------------------------------------------------------------------------


class CommandError(RuntimeError):
    """A program that failed, in words."""


def command(*words: str | Path, allowed: Sequence[int] = (0,), timeout: float = 300, **options: Any) -> str:
    """What a program printed. Raises CommandError where it fails, and `subprocess.TimeoutExpired`."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, **options)
    if done.returncode not in allowed:
        told = (done.stderr or done.stdout)[-2000:]
        raise CommandError(f"{' '.join(map(str, words))}: {done.returncode}\n{told}")
    return done.stdout


PROGRAM = (sys.executable, "-m", "leadline")


def leadline(*words: str | Path, allowed: Sequence[int] = FINE, **options: Any) -> str:
    """The program itself, from outside."""
    return command(*PROGRAM, *words, allowed=allowed, **options)


@contextmanager
def scratch(name: str, parent: Path | str = "/var/tmp") -> Iterator[Path]:
    """A directory, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


class UnsettledError(CommandError):
    """A lab that does not come to rest."""


class Lab:
    """A lab that is up, by its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.conf = directory, directory / "ceph.conf"

    def ceph(self, *words: str) -> str:
        """As an administrator."""
        return command("ceph", "-c", self.conf, "--connect-timeout", "20", *words, timeout=60)

    def leadline(self, *words: str, **options: Any) -> str:
        """A verb of leadline's for this lab."""
        return leadline(*words, "--dir", self.directory, **options)

    def inside(self, client: str, *words: str | Path, **options: Any) -> str:
        """On a client, behind its link; on this host where none is named."""
        before = self.exec_words(client) if client else ()
        return command(*before, *words, **{"allowed": FINE, **options})

    def exec_words(self, client: str) -> tuple[str, ...]:
        """What stands before a command that runs on a client."""
        return (*PROGRAM, "lab", "exec", client, "--dir", str(self.directory), "--")

    def targets(self, client: str = "") -> dict[str, str]:
        """The lab's ways by name, as a client (or this host) sees them."""
        host = ("--host", client) if client else ()
        found = json.loads(self.leadline("lab", "targets", *host, "--json"))["targets"]
        return {one["name"]: one["where"] for one in found}

    def inject(self, *words: str) -> None:
        """Break something."""
        self.leadline("lab", "inject", *words)

    def mend(self) -> None:
        """Take back what was broken."""
        self.leadline("lab", "inject", "--clear", allowed=range(256))

    def settle(self, states: Iterable[str] = ("active", "clean"), seconds: float = SETTLED_S) -> None:
        """Wait until groups are in these states alone, and every OSD is up and, with all clean, in."""
        end = time.monotonic() + seconds
        found: set[str] = set()
        while time.monotonic() < end:
            try:
                status = json.loads(self.ceph("status", "-f", "json"))
            except (CommandError, subprocess.TimeoutExpired):
                time.sleep(1)
                continue
            found = {word for one in status["pgmap"]["pgs_by_state"] for word in one["state_name"].split("+")}
            osds = status["osdmap"]
            there = {osds["num_osds"], osds["num_up_osds"], osds["num_in_osds"]}
            if found and found <= set(states) and (len(there) == 1 or "degraded" in states):
                return
            time.sleep(0.5)
        raise UnsettledError(f"the lab does not come to rest: {sorted(found)}")


@contextmanager
def lab(
    name: str,
    *options: str,
    topology: str = "",
    mounts: Iterable[str] = (),
    directory: Path | None = None,
    program: Sequence[str] = PROGRAM,
) -> Iterator[Lab]:
    """A lab of its own, gone afterwards; in a `directory` it stays up, once it was started there."""
    with scratch(f"{name}-lab") as place:
        found = Lab(directory or place / "lab")
        (place / "centre.yaml").write_text(topology)
        shape = ("--topology", str(place / "centre.yaml")) if topology else ()
        try:
            if not (found.directory / "lab.json").exists():
                words = ("lab", "up", name, *shape, *options, "--dir", found.directory)
                command(*program, *words, allowed=FINE, timeout=900)
            for client in mounts:
                found.leadline("lab", "mount", client, allowed=range(256))
            yield found
        finally:
            if directory is None:
                found.leadline("lab", "down", allowed=range(256))


def diagnosed(out: Path) -> list[Row]:
    """The cells of a result, each with its figures and what is named of it."""
    cells: list[Row] = json.loads(leadline("diagnose", out, "--json"))["cells"]
    return cells
