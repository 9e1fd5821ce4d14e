"""elbencho's results (`--csvfile`, `--jsonfile`) as published figures, with what must hold between them.

Columns are those of its docs/csv-docs.md; keys of JSON those of `printPhaseResultsAsJSON` in its
Statistics.cpp, an object a line. `last` is when the slowest thread was done, `first` when the fastest was.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.foreign import parse_json
from leadline.imported.tables import TableMaker, clean

BYTES_MAX = 64 << 20
PHASES_MAX = 2_000
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_NEEDED = ("operation", "time ms [last]")
# A column of ours: its name in CSV, its path in JSON, its unit and its kind.
_COLUMNS: Mapping[str, tuple[str, tuple[str, ...], str, str]] = {
    "first": ("time ms [first]", ("first_done", "elapsed_time_ms"), "ms", "time_first"),
    "last": ("time ms [last]", ("last_done", "elapsed_time_ms"), "ms", "elapsed"),
    "entries": ("entries/s [last]", ("last_done", "entries/s"), "1/s", "entry_rate"),
    "operations": ("IOPS [last]", ("last_done", "iops"), "IOPS", "operation_rate"),
    "bandwidth": ("MiB/s [last]", ("last_done", "bytes/s"), "MiB/s", "rate"),
    "least": ("IO lat us [min]", ("last_done", "latency", "IO", "min_us"), "us", "latency_least"),
    "mean": ("IO lat us [avg]", ("last_done", "latency", "IO", "avg_us"), "us", "latency_mean"),
    "most": ("IO lat us [max]", ("last_done", "latency", "IO", "max_us"), "us", "latency_most"),
}
_KEYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "operation": ("operation", ("phase_type",)),
    "random": ("random", ("config", "random_offsets")),
    "threads": ("threads", ("config", "threads")),
    "hosts": ("hosts", ("config", "hosts")),
    "depth": ("IO depth", ("config", "io_depth")),
    "direct": ("direct IO", ("config", "direct_io")),
    "block": ("block size", ("config", "block_size")),
}
# The same columns of the reads of a mixed phase (--rwmixpct, --rwmixthr), whose own columns are its writes.
_MIXED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "entries": ("rwmix read entries/s [last]", ("last_done", "rwmix_read", "entries/s")),
    "operations": ("rwmix read IOPS [last]", ("last_done", "rwmix_read", "iops")),
    "bandwidth": ("rwmix read MiB/s [last]", ("last_done", "rwmix_read", "bytes/s")),
    "least": ("rwmix read IO lat us [min]", ("last_done", "latency", "IO", "rwmix_read", "min_us")),
    "mean": ("rwmix read IO lat us [avg]", ("last_done", "latency", "IO", "rwmix_read", "avg_us")),
    "most": ("rwmix read IO lat us [max]", ("last_done", "latency", "IO", "rwmix_read", "max_us")),
}
_OF_BOTH = ("first", "last")  # a mixed phase has one time
_TRUE = ("1", "true")


def elbencho_document(text: str, name: str, link: str | None = None) -> str:
    """The document of a file of either kind. Raises ValueError where it is none."""
    phases = list(_of_json(text) if text.lstrip().startswith("{") else _of_csv(text))
    if not phases:
        raise ValueError("it has no phase: name what --csvfile or --jsonfile wrote")
    if len({phase["phase"] for phase in phases}) > PHASES_MAX:
        raise ValueError(f"it has more than {PHASES_MAX} phases: split it")
    made = TableMaker(f"elbencho: {name}", "", "elbencho")
    known = [column for column in _COLUMNS if any(phase[column] is not None for phase in phases)]
    columns = {column: {"unit": _COLUMNS[column][2], "kind": _COLUMNS[column][3]} for column in known}
    keys = ("phase", *_KEYS)
    rows = [[*(phase[key] for key in keys), *(phase[column] for column in known)] for phase in phases]
    made.table(
        "phases", "Phases", keys, columns, [[one if one is not None else "-" for one in row] for row in rows]
    )
    named = [
        (".".join(str(level) for level in row[: len(keys)]), phase)
        for row, phase in zip(rows, phases, strict=True)
    ]
    for formula, because in _doubts(named):
        made.check(formula, because)
    if link is not None:
        made.facts["link"] = link
        for where, phase in named:
            if phase["bandwidth"] is not None:
                made.check(f"phases.{where}.bandwidth <= facts.link", "nothing is faster than the links")
    return made.text()


def _of_csv(text: str) -> Iterator[dict[str, str | None]]:
    """A row a phase, two of a mixed one; a file that was appended to has its heading again."""
    heading: Sequence[str] = ()
    place = 0
    for row in csv.reader(io.StringIO(text, newline="")):
        if "operation" in row:
            heading = row
        elif row and heading:
            found = dict(zip(heading, row, strict=False))
            if not all(found.get(name) for name in _NEEDED):
                raise ValueError(f"a row has no {' or no '.join(_NEEDED)}")
            place += 1
            reads = {own: found.get(names[0]) for own, names in _MIXED.items()}
            yield from _phases(place, {own: found.get(name) for own, name in _csv_names()}, reads)
    if not heading:
        raise ValueError(
            "it has no heading of elbencho's CSV (a column `operation`): --nocsvlabels leaves it out"
        )


def _csv_names() -> Iterator[tuple[str, str]]:
    yield from ((own, names[0]) for own, names in _KEYS.items())
    yield from ((own, names[0]) for own, names in _COLUMNS.items())


def _of_json(text: str) -> Iterator[dict[str, str | None]]:
    lines = (line for line in text.splitlines() if line.strip())
    for place, line in enumerate(lines, start=1):
        value = parse_json(line)
        found = {own: _at(value, names[1]) for own, names in _KEYS.items()}
        found |= {own: _at(value, names[1]) for own, names in _COLUMNS.items()}
        if found["operation"] is None or found["last"] is None:
            raise ValueError("a line is no phase of elbencho: it has no phase_type or no last_done")
        reads = {own: _at(value, names[1]) for own, names in _MIXED.items()}
        yield from _phases(place, _in_mib(found), _in_mib(reads))


def _in_mib(found: dict[str, str | None]) -> dict[str, str | None]:
    if found["bandwidth"] is not None:
        found["bandwidth"] = f"{float(_plain(found['bandwidth'])) / (1 << 20):.3f}"
    return found


def _phases(
    place: int, found: Mapping[str, str | None], reads: Mapping[str, str | None]
) -> Iterator[dict[str, str | None]]:
    """The row of a phase. elbencho counts the reads of a mixed one apart: they are a second row."""
    name, operation = f"p{place}", found.get("operation") or ""
    if not any((value or "").strip() not in ("", "0") for value in reads.values()):
        yield {"phase": name, **_phase(found)}
        return
    both = {key: found.get(key) for key in (*_KEYS, *_OF_BOTH)}
    if any((found.get(key) or "").strip() not in ("", "0") for key in ("operations", "bandwidth")):
        yield {"phase": name, **_phase({**found, "operation": f"{operation} writes"})}
    yield {"phase": name, **_phase({**both, **reads, "operation": f"{operation} reads"})}


def _at(value: Any, path: Sequence[str]) -> str | None:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return None if value is None or isinstance(value, dict | list) else str(value)


def _phase(found: Mapping[str, str | None]) -> dict[str, str | None]:
    """Levels as names that formulas can hold, figures as they were printed."""
    phase: dict[str, str | None] = {}
    for key in _KEYS:
        level = re.sub(r"[^A-Za-z0-9]+", "_", clean(found.get(key) or "")).strip("_").lower()
        phase[key] = level[:40] or "none"
    phase["random"] = "random" if phase["random"] in _TRUE else "sequential"
    for column in _COLUMNS:
        text = (found.get(column) or "").strip()
        phase[column] = _plain(text) if text else None
    return phase


def _plain(text: str | None) -> str:
    if text is None or not _NUMBER.fullmatch(text):
        raise ValueError(f"{clean(str(text))[:40]!a} is no value")
    return text


def _doubts(phases: Sequence[tuple[str, Mapping[str, str | None]]]) -> Iterator[tuple[str, str]]:
    for where, phase in phases:
        if phase["mean"] is not None and float(phase["mean"]) == 0:
            yield f"phases.{where}.mean >= 2 us", "no I/O takes no time: latencies of 0 are not measured ones"
        yield f"phases.{where}.first <= phases.{where}.last", "the fastest thread is done before the slowest"
    alike = ("operation", "threads", "hosts", "depth", "direct")
    for where, small in phases:
        for other, large in phases:
            pair = (small["random"], large["random"]) == ("random", "sequential")
            same = all(small[key] == large[key] for key in alike) and small["operation"] == "read"
            if pair and same and _block(small) <= _block(large) and small["bandwidth"] and large["bandwidth"]:
                yield (
                    f"phases.{where}.bandwidth <= phases.{other}.bandwidth",
                    "random reads that are faster than sequential ones come from a cache",
                )


def _block(phase: Mapping[str, str | None]) -> int:
    text = phase["block"] or ""
    return int(text) if text.isdecimal() else 0
