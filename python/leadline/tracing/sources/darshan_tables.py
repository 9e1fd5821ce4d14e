"""Darshan's logs as the tables of a trace: counters of POSIX, STDIO and MPI-IO, heat maps, DXT as segments.

Logs of one command line are copies of it; logs of several, as of a pipeline of a shell, are processes of one
run. A rank is a process; what Darshan kept for all ranks at once is a process of its own, since nobody can
tell whose it was.
"""

from __future__ import annotations

import functools
import json
import math
import resource
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.errors import UsageError
from leadline.foreign import parse_json, reading
from leadline.interpreter import module_command, module_environment
from leadline.observe.hang_guard import temporary_directory
from leadline.store.making import temporary
from leadline.tracing.paths import is_stream_by_name, renamed
from leadline.tracing.sources.darshan_columns import (
    PREFIXES,
    by_slowest,
    counters,
    slowest_rank,
    times,
)
from leadline.tracing.sources.darshan_reader import COUNTED, TRACED, old_version
from leadline.tracing.tables import (
    ALL_RANKS,
    OWN_COUNTERS,
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    segments_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa


READ_DEADLINE_S = 600
MEMORY_MAX_BYTES = 8 << 30  # a damaged length must not take the machine's memory
NS = 1e9
_OLD_REMEDY = "print it with darshan-parser of darshan-util 2.3, or run the program again with Darshan 3"
REMEDY = "copy the log anew; `darshan-parser LOG` shows what can still be read"


@dataclass
class DarshanLog:
    """What the reader wrote of one log."""

    path: Path
    about: dict[str, Any]
    modules: dict[str, dict[str, list[Any]]]
    traces: dict[str, pa.Table]
    copy: int = 0
    first: int = 0  # the number of its first process in its copy
    shift_ns: int = 0  # from the trial's start to this log's
    numbers: dict[tuple[str, int, str], int] = field(default_factory=dict)  # (module, rank, id) -> file

    @property
    def ranks(self) -> int:
        """How many processes ran."""
        return int(self.about["processes"])

    @property
    def rows(self) -> int:
        """How many processes it is in the tables: its ranks, and what they share."""
        shared = any(rank < 0 for columns in self.modules.values() for rank in columns["rank"])
        return self.ranks + 1 if shared and self.ranks > 1 else self.ranks

    @property
    def recorded(self) -> bool:
        """False where no call on a file was: Darshan keeps no module without a record."""
        return bool(set(self.about["modules"]) - {"HEATMAP"})

    def process(self, rank: int) -> int:
        """The number of a rank's row; that of what all ranks share comes last."""
        if rank >= 0:
            return self.first + rank
        return self.first + (0 if self.ranks == 1 else self.ranks)

    @property
    def most_s(self) -> float | None:
        """The longest that it can have run; None where it has no end."""
        known: float | None = 1.0 if self.about["within_a_second"] else self.about["wall_s"]
        return known

    @property
    def end_ns(self) -> float:
        """When it ended at the latest, as many logs keep whole seconds; a log that was cut has no end."""
        if not self.about["ended"]:
            return math.inf
        return float(self.about["started_unix_ns"] + ((self.about["wall_s"] or 0.0) + 1) * NS)

    @property
    def name(self) -> str:
        """The path that stands for a record without a name."""
        return self.path.name


def require_library() -> None:
    from importlib.util import find_spec

    if find_spec("darshan") is None:
        raise UsageError(
            "PyDarshan, which reads Darshan's logs, is not installed",
            "install it with leadline: pip install 'leadline[darshan]'",
        )


def read_log(path: Path) -> DarshanLog:
    """One log, read in a process that may crash."""
    from pyarrow import feather

    try:
        with path.open("rb") as file:
            old = old_version(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file of Darshan") from None
    if old is not None:
        raise UsageError(f"Darshan {old} wrote {path}: the library of Darshan 3 cannot read it", _OLD_REMEDY)
    with temporary(Path(temporary_directory())) as directory:
        _run_reader(path, directory)
        about = parse_json((directory / "log.json").read_text(encoding="utf-8"))
        modules = {
            module: feather.read_table(str(directory / f"{module}.arrow"), memory_map=False).to_pydict()
            for module in COUNTED
            if (directory / f"{module}.arrow").is_file()
        }
        traces = {
            module: _ipc(directory / f"{module}.arrow")
            for module in TRACED
            if (directory / f"{module}.arrow").is_file()
        }
    if about["within_a_second"]:
        about["wall_s"] = None
    return DarshanLog(path, about, modules, traces)


def _ipc(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _run_reader(path: Path, directory: Path) -> None:
    command = module_command("leadline.tracing.sources.darshan_reader", str(path), str(directory))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=module_environment(),
            timeout=READ_DEADLINE_S,
            check=False,
            preexec_fn=_bound_memory,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{path} could not be read in {READ_DEADLINE_S} s", REMEDY) from None
    reason = directory / "error.txt"
    if reason.is_file():
        raise UsageError(f"{path} cannot be read: {reason.read_text(encoding='utf-8')}", REMEDY)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise UsageError(f"{path} is damaged: Darshan's library died of it ({name})", REMEDY)
    if done.returncode or not (directory / "log.json").is_file():
        said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()[-1:]
        raise UsageError(f"{path} cannot be read: {said[0] if said else 'no reason given'}", REMEDY)


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))


SHORT_S = 20.0  # of a run in whole seconds: below, a second is more than five percent of it
_CALLS = {
    ("POSIX", "read"): "read",
    ("POSIX", "write"): "write",
    ("MPI-IO", "read"): "MPI_File_read",
    ("MPI-IO", "write"): "MPI_File_write",
}


def read_darshan(paths: Sequence[Path]) -> TraceTables:
    """The trace of one or several logs. Raises UsageError for what cannot be read."""
    require_library()
    logs = [read_log(path) for path in paths]
    _refuse_apart(logs)
    _number_processes(logs)
    # The library reads damaged logs too: what it makes of them may be beyond all that a table can hold.
    with reading(", ".join(str(path) for path in paths), REMEDY, UsageError):
        return _tables(logs)


def _refuse_apart(logs: Sequence[DarshanLog]) -> None:
    """Logs of one trial are of one job, or of processes that ran at the same time."""
    if len({log.about["job"] for log in logs}) == 1:
        return
    ordered = sorted(logs, key=lambda log: log.about["started_unix_ns"])
    last = ordered[0]
    for log in ordered[1:]:
        if log.about["started_unix_ns"] > last.end_ns:
            raise UsageError(
                f"{last.name} (job {last.about['job']}) had ended before {log.name} (job {log.about['job']})"
                " began: they are not of one run",
                "import together only what ran at the same time; hold two results against each other with:"
                " leadline compare A B",
            )
        last = max(last, log, key=lambda one: one.end_ns)


def _number_processes(logs: Sequence[DarshanLog]) -> None:
    """Copies of one command line each have their own; of several the processes count through."""
    several = len({log.about["executable"] for log in logs}) > 1
    first = 0
    for place, log in enumerate(logs):
        if several:
            log.first, first = first, first + log.rows
        else:
            log.copy = place


def _tables(logs: Sequence[DarshanLog]) -> TraceTables:
    first = min(log.about["started_unix_ns"] for log in logs)
    for log in logs:
        log.shift_ns = log.about["started_unix_ns"] - first
    files = _files(logs)
    segments, latency = _segments(logs)
    found = TraceTables(
        mode="import",
        processes=tuple(row for log in logs for row in _processes(log)),
        files=files,
        latency=tuple(latency),
        segments=segments,
        source=_source(logs),
        warnings=tuple(_warnings(logs)),
        extra=_extra(logs, first),
    )
    paths = dict.fromkeys(files["path"].to_pylist())
    return renamed(found, {path: None for path in paths if _is_stream(path)})


def _source(logs: Sequence[DarshanLog]) -> str:
    """Version and jobs, and which modules are left out: no count that is read is less for them."""
    jobs = ", ".join(dict.fromkeys(f"job {log.about['job']}" for log in logs))
    found = f"Darshan {logs[0].about['version']}, {jobs}"
    left = {name for log in logs for name in log.about["modules"]} - {*COUNTED, *TRACED, "HEATMAP"}
    return f"{found}; modules that are not read here: {', '.join(sorted(left))}" if left else found


def _is_stream(path: str) -> bool:
    """FIFOs and sockets, by their names: Darshan does not say. Its standard streams keep their module."""
    return path.startswith("/") and is_stream_by_name(path)


def _files(logs: Sequence[DarshanLog]) -> pa.Table:
    import pyarrow as pa

    parts = []
    count = 0
    for log in logs:
        names = log.about["names"]
        for module, columns in log.modules.items():
            rows = len(columns["id"])
            ranks = columns["rank"]
            for place in range(rows):
                log.numbers[module, ranks[place], columns["id"][place]] = count + place
            content: dict[str, list[Any]] = {
                "copy": [log.copy] * rows,
                "process": [log.process(rank) for rank in ranks],
                "file": list(range(count, count + rows)),
                "module": [module] * rows,
                "path": [names.get(number, f"record {number} of {log.name}") for number in columns["id"]],
                **counters(module, columns),
                **times(module, columns, log.shift_ns / NS),
                **{name: [None] * rows for name in OWN_COUNTERS},
            }
            count += rows
            parts.append(pa.table(content, schema=files_schema()))
    return pa.concat_tables(parts) if parts else files_schema().empty_table()


def _processes(log: DarshanLog) -> list[ProcessRow]:
    """A row for every rank, and one for what all share."""
    totals = _totals(log)
    return [_process(log, number, totals.get(log.first + number, {})) for number in range(log.rows)]


def _totals(log: DarshanLog) -> dict[int, dict[str, int]]:
    """Counts of calls by process and counter; the layers stay apart, as their names do."""
    wanted = (
        "OPENS",
        "READS",
        "WRITES",
        "SEEKS",
        "STATS",
        "FSYNCS",
        "FDSYNCS",
        "BYTES_READ",
        "BYTES_WRITTEN",
    )
    totals: dict[int, dict[str, int]] = {}
    for module, columns in log.modules.items():
        known = counters(module, columns)
        for place, rank in enumerate(columns["rank"]):
            row = totals.setdefault(log.process(rank), {})
            for name in wanted:
                value = known[name][place]
                if value:
                    key = PREFIXES[module] + name
                    row[key] = row.get(key, 0) + value
    return totals


def _process(log: DarshanLog, number: int, totals: dict[str, int]) -> ProcessRow:
    wall_s = log.about["wall_s"]
    words = log.about["executable"]
    moved = {
        name: totals.get(f"POSIX_{name}", 0) + totals.get(f"STDIO_{name}", 0)
        for name in ("BYTES_READ", "BYTES_WRITTEN")
    }
    return ProcessRow(
        copy=log.copy,
        process=log.first + number,
        parent=None,
        pid=number if number < log.ranks else -1,  # Darshan keeps ranks, not pids
        executable=words.split(" ")[0],
        command=ALL_RANKS if number >= log.ranks else _words(words),
        mode="import",
        started_ns=log.shift_ns,
        ended_ns=None if wall_s is None else log.shift_ns + int(wall_s * NS),
        end="unknown",
        status=None,
        threads=None,
        bytes_read=moved["BYTES_READ"],
        bytes_written=moved["BYTES_WRITTEN"],
        calls=json.dumps({name: count for name, count in totals.items() if "_BYTES_" not in name}),
        seconds="{}",  # Darshan has seconds by file only
        lost="{}",
        notes=json.dumps([f"record truncated: {module}" for module in _partial(log)]),
    )


@functools.lru_cache(maxsize=8)  # each rank of a log has the same, and there are thousands
def _words(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return json.dumps(words)


def _segments(logs: Sequence[DarshanLog]) -> tuple[pa.Table | None, list[TraceLatencyRow]]:
    """DXT's accesses as segments, and latency histograms of those of the POSIX layer."""
    import pyarrow as pa

    parts, latency = [], []
    for log in logs:
        for traced, rows in log.traces.items():
            module = TRACED[traced]
            parts.append(_segment_part(log, module, rows))
            if module == "POSIX" and not log.about["modules"][traced]["partial"]:
                latency += _latency(log, rows)
    if not parts:
        return None, latency
    return pa.concat_tables(parts).unify_dictionaries().sort_by("start_ns"), latency


def _segment_part(log: DarshanLog, module: str, rows: pa.Table) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    ids, ranks = rows["id"].to_pylist(), rows["rank"].to_pylist()
    directions = rows["direction"].to_pylist()
    start_s, end_s = rows["start_s"].to_numpy(), rows["end_s"].to_numpy()
    count = rows.num_rows
    calls = [_CALLS[module, direction] for direction in directions]
    content = {
        "copy": [log.copy] * count,
        "process": [log.process(rank) for rank in ranks],
        "thread": ranks,
        "file": [_number(log, module, rank, key) for rank, key in zip(ranks, ids, strict=True)],
        "call": pa.array(calls).dictionary_encode().cast(pa.dictionary(pa.int16(), pa.string())),
        "offset": rows["offset"],
        "length": rows["length"],
        "result": rows["length"],
        "start_ns": np.rint(start_s * NS).astype(np.int64) + log.shift_ns,
        "duration_ns": np.maximum(np.rint((end_s - start_s) * NS), 0).astype(np.int64),
    }
    return pa.table(content, schema=segments_schema())


def _number(log: DarshanLog, module: str, rank: int, key: str) -> int | None:
    """The file of a traced access: of its rank, or of all ranks where the counters were joined."""
    own = log.numbers.get((module, rank, key))
    return log.numbers.get((module, -1, key)) if own is None else own


def _latency(log: DarshanLog, rows: pa.Table) -> list[TraceLatencyRow]:
    import numpy as np

    from leadline._core import histogram_of

    durations = np.maximum(np.rint((rows["end_s"].to_numpy() - rows["start_s"].to_numpy()) * NS), 0)
    ranks = rows["rank"].to_numpy()
    directions = np.array(rows["direction"].to_pylist())
    found = []
    for rank in np.unique(ranks).tolist():
        for direction in ("read", "write"):
            values = durations[(ranks == rank) & (directions == direction)].astype(np.int64).tolist()
            if values:
                number = log.process(rank)
                found.append(TraceLatencyRow(log.copy, number, direction, len(values), histogram_of(values)))
    return found


def _partial(log: DarshanLog) -> list[str]:
    return [name for name, module in log.about["modules"].items() if module["partial"]]


def _warnings(logs: Sequence[DarshanLog]) -> list[str]:
    found = []
    for log in logs:
        partial = _partial(log)
        if partial:
            found.append(
                f"{log.name} is PARTIAL: Darshan's memory was full, and its modules {', '.join(partial)} "
                "left out files or accesses; all their values are lower bounds"
            )
        if not log.about["ended"]:
            found.append(f"{log.name} does not say when its job ended: the run time is not known")
        if not log.recorded and any(other.recorded for other in logs):
            continue  # one of several processes that made no call on a file, as a shell that waits for others
        if not set(log.modules):
            found.append(
                f"{log.name} has counters of none of {', '.join(COUNTED)}: nothing is known of its I/O"
            )
        elif "POSIX" not in log.modules and set(log.about["modules"]) - {"HEATMAP"} != {"STDIO"}:
            # A program that used STDIO alone has none either: Darshan keeps no module without a record.
            found.append(f"{log.name} has no POSIX module: what went below STDIO and MPI-IO is not known")
    return found


def _time_doubts(logs: Sequence[DarshanLog]) -> list[str]:
    """What makes times less than exact, while every call and byte was counted."""
    found = []
    for log in logs:
        waited = sum(map(_is_stream, log.about["names"].values()))
        if waited:
            found.append(
                f"{log.name}: {waited} paths are named as FIFOs and sockets are, and Darshan does not tell:"
                " their time is counted as waiting, not as I/O"
            )
        if log.about["within_a_second"]:
            found.append(
                f"{log.name} began and ended within one second, and keeps whole seconds: the run time is not"
                " known, and nothing is a share of it"
            )
        elif log.about["whole_seconds"] and (log.about["wall_s"] or SHORT_S) < SHORT_S:
            part = units.format_percent(1 / log.about["wall_s"])
            found.append(f"{log.name} keeps whole seconds: its run time and every share may be {part} off")
    return found


def _extra(logs: Sequence[DarshanLog], first_ns: int) -> dict[str, Any]:
    speed, slowest = by_slowest([log.modules for log in logs])
    last_start_ns = max(log.about["started_unix_ns"] for log in logs)
    copies = [[log for log in logs if log.copy == copy] for copy in sorted({log.copy for log in logs})]
    return {
        "wall_s": _end_s(logs, [log.about["wall_s"] for log in logs]),
        "wall_most_s": _end_s(logs, [log.most_s for log in logs]),
        "time_doubts": _time_doubts(logs),
        "started_unix_ns": first_ns,
        "at_once": bool(last_start_ns <= min(log.end_ns for log in logs)),
        "copies": [_copy(of_one, any(log.recorded for log in logs)) for of_one in copies],
        "agg_perf_by_slowest": speed,
        "agg_time_by_slowest": slowest,
        "slowest_ranks": [
            {"executable": log.about["executable"].split(" ")[0], **found}
            for log in logs
            if (found := slowest_rank(log.modules, log.ranks))
        ],
        "logs": [_about(log) for log in logs],
        "heat": [row for log in logs for row in _heat(log)],
    }


def _end_s(logs: Sequence[DarshanLog], walls: Sequence[float | None]) -> float | None:
    """From the trial's start to the last end of these logs; None where one is not known."""
    ends = [log.shift_ns / NS + wall for log, wall in zip(logs, walls, strict=True) if wall is not None]
    return max(ends) if len(ends) == len(logs) else None


def _copy(logs: Sequence[DarshanLog], any_recorded: bool) -> dict[str, Any]:
    """Its run time and the time of its processes that did something. Null where an end is not known.

    A process of several that made no call on a file waits for others, or is not of interest to storage.
    """
    recorded = [log for log in logs if log.recorded] or logs
    times = [log.about["wall_s"] for log in recorded]
    end_s = _end_s(logs, [log.about["wall_s"] for log in logs])
    start_s = min(log.shift_ns for log in logs) / NS
    return {
        "copy": logs[0].copy,
        "wall_s": None if end_s is None else end_s - start_s,
        "process_s": None
        if None in times
        else sum(log.about["wall_s"] * max(1, log.ranks) for log in recorded),
        "idle": any_recorded and not any(log.recorded for log in logs),
    }


def _about(log: DarshanLog) -> dict[str, Any]:
    kept = ("job", "processes", "version", "library", "executable", "metadata", "wall_s", "started_unix_ns")
    return {
        "file": log.name,
        **{name: log.about[name] for name in kept},
        "modules": sorted(log.about["modules"]),
        "partial": _partial(log),
    }


def _heat(log: DarshanLog) -> list[dict[str, Any]]:
    """Bytes by slice of time, of each rank and layer."""
    names = log.about["names"]
    return [
        {
            "copy": log.copy,
            "process": log.process(row["rank"]),
            "layer": names.get(str(row["id"]), "").removeprefix("heatmap:") or "unknown",
            "bin_s": row["bin_s"],
            "bytes_read": row["read"],
            "bytes_written": row["written"],
        }
        for row in log.about.get("heat", ())
    ]
