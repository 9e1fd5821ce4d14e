"""What a checker of sentences has at hand: the sentence, all that is said beside it, and the stored tables.

A checker is bound to the name of a sentence (`Statement.says`). It reads figures out of the text, works out
by itself what they should be, from the rows as they are stored, and raises AssertionError where they are not.
It uses nothing of `leadline.analysis`, `leadline.verdict` or `leadline.tracing` but the shape of their words.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Any

from leadline.store.reader import Result
from leadline.store.tables import TrialRow
from leadline.verdict.model import Cell, Findings, Statement

_SCALE = {"": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
    "s": 1.0,
    "second": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "hour": 3600.0,
    "h": 3600.0,
    "day": 86400.0,
}
_NUMBER = r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
_SIZE = re.compile(rf"({_NUMBER}) ([KMGTP]i)?B(?:/s)?")
_DURATION = re.compile(
    rf"({_NUMBER}) (ns|us|µs|ms|microseconds?|milliseconds?|seconds?|minutes?|hours?|days?|s|min|h)\b"
)
_DOUBT = re.compile(
    r" \((?:DOUBTFUL(?:, as (?P<every>both|all (?P<all>\d+)) of its cells are)?"
    r"|(?P<some>\d+) of its (?P<of>\d+) cells (?:is|are) DOUBTFUL)\.\)$"
)


@dataclass(frozen=True)
class Said:
    """One sentence, and everything it can be held against."""

    statement: Statement
    findings: Findings
    result: Result
    trials: Sequence[TrialRow]  # every stored one

    @property
    def text(self) -> str:
        """The sentence without the doubt that was added to it."""
        return _DOUBT.sub("", self.statement.text)

    @property
    def doubt(self) -> tuple[int, int] | None:
        """Of how many cells it says that they are DOUBTFUL, and of how many in all."""
        found = _DOUBT.search(self.statement.text)
        if found is None:
            return None
        if found["some"]:
            return int(found["some"]), int(found["of"])
        count = int(found["all"] or ("2" if found["every"] else "1"))
        return count, count

    def complete(self, cell: str) -> list[TrialRow]:
        """The trials of a cell that came to their end."""
        return [row for row in self.trials if row.cell == cell and row.state == "complete"]

    def counted(self, cell: str) -> list[TrialRow]:
        """The same without the trials of a search that its figure is not taken from."""
        planned = next(one for one in self.plan["cells"] if one["id"] == cell)
        search = planned["search"]
        if not search:
            return self.complete(cell)
        blocks = Counter(row.block for row in self.trials if row.cell == cell)
        whole = [row for row in self.complete(cell) if blocks[row.block] >= search["trials"]]
        return list(_found(whole, self._late(search)))

    def kept(self, cell: str) -> list[TrialRow]:
        """Of a search, the trials with the highest rate of each block that kept one."""
        late = self._late(next(one["search"] for one in self.plan["cells"] if one["id"] == cell))
        return [row for row in self.counted(cell) if _keeps(row, late)]

    def _late(self, search: Mapping[str, Any]) -> frozenset[str]:
        """Trials whose latency, from the intended start, passed the bound."""
        own = (row for row in self.result.latency() if row.clock == "intended" and row.interval < 0)
        return frozenset(
            row.trial
            for row in own
            if _bounded(row.histogram, search["latency"]) > 1e9 * seconds(_spaced(search["bound"]))
        )

    def cell(self, name: str) -> Cell:
        """A judged cell, for its state."""
        return next(cell for cell in self.findings.cells if cell.id == name)

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan as it is stored."""
        found: Mapping[str, Any] = self.result.manifest["plan"]
        return found

    def match(self, pattern: str) -> dict[str, str]:
        """The parts of the whole text; AssertionError where it is of another form."""
        found = re.fullmatch(pattern, self.text, re.DOTALL)
        assert found, f"{self.statement.says} does not read {pattern!r}: {self.text!r}"
        return {name: value for name, value in found.groupdict().items() if value is not None}


def _bounded(histogram: bytes, latency: str) -> float:
    """Nanoseconds of a percentile, or of the mean."""
    from leadline import _core

    if latency == "mean":
        return _core.histogram_summary(histogram)["mean"]
    return float(_core.histogram_percentiles(histogram, [float(latency.removeprefix("p"))])[0])


def _found(rows: Sequence[TrialRow], late: frozenset[str]) -> Iterator[TrialRow]:
    """Of each block the highest rate that was kept within the bound; where none was, the lowest."""
    for block in sorted({row.block for row in rows}):
        tried = [(json.loads(row.job)["rate_iops"], row) for row in rows if row.block == block]
        kept = [(rate, row) for rate, row in tried if _keeps(row, late)]
        yield (max(kept, key=lambda one: one[0]) if kept else min(tried, key=lambda one: one[0]))[1]


def _keeps(row: TrialRow, late: frozenset[str]) -> bool:
    done = (row.read_operations + row.write_operations) * 1e9 / row.measured_ns
    return row.trial not in late and done >= 0.98 * float(json.loads(row.job)["rate_iops"])


Checker = Callable[[Said], None]
CHECKERS: dict[str, Checker] = {}


def checks(*names: str) -> Callable[[Checker], Checker]:
    """Bind a checker to the names of sentences."""

    def bind(checker: Checker) -> Checker:
        for name in names:
            assert name not in CHECKERS, f"{name} has two checkers"
            CHECKERS[name] = checker
        return checker

    return bind


def number(text: str) -> float:
    """A printed number."""
    return float(text.replace(",", ""))


def size(text: str) -> float:
    """Bytes, or bytes a second."""
    found = _SIZE.fullmatch(text.strip())
    assert found, f"{text!r} is no size"
    return number(found[1]) * _SCALE[found[2] or ""]


def seconds(text: str) -> float:
    """A duration of one or several parts: `1 minute 9 seconds`."""
    parts = _DURATION.findall(text)
    assert parts, f"{text!r} is no duration"
    return sum(
        number(value) * _SECONDS[unit.removesuffix("s") or "s"]
        if unit not in _SECONDS
        else number(value) * _SECONDS[unit]
        for value, unit in parts
    )


def durations(text: str) -> list[float]:
    """Every duration in a text, of one part each."""
    return [seconds(" ".join(found)) for found in _DURATION.findall(text)]


def close(found: float, expected: float, digits: int = 3) -> None:
    """Equal as far as it was printed: `digits` of them, rounded."""
    allowed = 0.51 * 10.0 ** (1 - digits) * max(abs(expected), abs(found))
    assert abs(found - expected) <= allowed, f"{found} was said, {expected} it is"


def geometric(values: Iterable[float]) -> float:
    """The geometric mean."""
    return exp(fmean(map(log, values)))


def listed(names: str) -> list[str]:
    """`a, b and c`."""
    return re.split(r", | and ", names)


def _spaced(text: str) -> str:
    """`5ms` as `5 ms`."""
    return re.sub(r"(?<=\d)(?=[a-z])", " ", text)
