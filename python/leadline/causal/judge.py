"""From a profile to what it says: the slopes, and the run time elsewhere with what limits the prediction.

What calls take on another mount is typed, or comes from what was recorded there. A profile is kept as JSON
(leadline.profile/1): the runs as they were, and what follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.analysis.sensitivity import (
    ObservedRun,
    PredictedTime,
    SensitivityFit,
    estimated,
    fit_sensitivity,
    predict,
)
from leadline.analysis.statistics.means import Estimate
from leadline.causal.model import CLASSES, CallSums, CausalProfile, Condition, DelayedRun
from leadline.errors import ResultError, UsageError
from leadline.foreign import parse_json, read_plain, reading

if TYPE_CHECKING:
    from leadline.tracing.tables import TraceTables


FORMAT = "leadline.profile/1"
_BYTES_MAX = 64 << 20


def to_document(
    profile: CausalProfile, fit: SensitivityFit | None, elsewhere: Elsewhere | None = None
) -> dict[str, Any]:
    """All of it; `classes` and `run` are null where there are too few blocks."""
    return {
        "format": FORMAT,
        **profile.details,
        "program": list(profile.program),
        "below": list(profile.below),
        "seed": profile.seed,
        "delays_ns": list(profile.delays_ns),
        "asked": list(profile.asked),
        "called": list(profile.classes),
        "blocks_asked": profile.blocks_asked,
        "blocks": len(profile.blocks()),
        "ended": profile.ended,
        "cautions": list(profile.cautions),
        "run": None if fit is None else asdict(fit.run),
        "classes": None if fit is None else {name: _class(profile, fit, name) for name in profile.classes},
        "elsewhere": None if elsewhere is None else asdict(elsewhere),
        "first": _run(profile.first),
        "runs": [_run(run) for run in profile.runs],
    }


def to_text(document: Mapping[str, Any]) -> str:
    """The document as it is printed and stored."""
    return json.dumps(document, indent=1, allow_nan=False)


def _class(profile: CausalProfile, fit: SensitivityFit, name: str) -> dict[str, Any]:
    found = fit.classes[name]
    return {
        "calls": profile.calls(name),
        "latency_s": profile.latency_s(name),
        "slope": asdict(found.slope),
        "by_delay": [{"delay_s": delay_s, "slope": asdict(slope)} for delay_s, slope in found.by_delay],
        "bends": found.bends,
    }


def _run(run: DelayedRun) -> dict[str, Any]:
    sums = {name: asdict(one) for name, one in run.sums.items()}
    return {"block": run.block, **asdict(run.condition), "run_s": run.run_s, "sums": sums}


def read_profile(path: Path) -> CausalProfile:
    """A profile that was stored. Raises ResultError where it is none."""
    with reading(path, "name a file that `leadline profile` made"):
        found = parse_json(read_plain(path, _BYTES_MAX))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ResultError(
                f"{path} is no profile of the format {FORMAT}", "name a file that `leadline profile` made"
            )
        classes = tuple(_known(name) for name in found["called"])
        return CausalProfile(
            program=tuple(map(str, found["program"])),
            below=tuple(map(str, found["below"])),
            seed=int(found["seed"]),
            delays_ns=tuple(map(int, found["delays_ns"])),
            asked=tuple(_known(name) for name in found["asked"]),
            classes=classes,
            first=_read_run(found["first"]),
            runs=tuple(_read_run(run) for run in found["runs"]),
            blocks_asked=int(found["blocks_asked"]),
            ended=found["ended"] if found["ended"] in ("whole", "time") else "interrupted",
            cautions=tuple(map(str, found["cautions"])),
            details={name: str(found[name]) for name in ("created", "version") if name in found},
        )


def _known(name: str) -> str:
    if name not in CLASSES:
        raise ValueError(f"no class is called {name!a}")
    return str(name)


def _read_run(found: Mapping[str, Any]) -> DelayedRun:
    delayed = found["delayed"]
    sums = {
        _known(name): CallSums(int(one["calls"]), float(one["own_s"]), float(one["waited_s"]))
        for name, one in found["sums"].items()
    }
    condition = Condition(None if delayed is None else _known(delayed), int(found["delay_ns"]))
    return DelayedRun(int(found["block"]), condition, float(found["run_s"]), sums)


# The kinds of time of a trace, and the classes that each stands for.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "meta": ("metadata",),
    "read": ("small-read", "large-read"),
    "write": ("write",),
    "sync": ("sync",),
}
_GROUPS: Mapping[str, tuple[str, ...]] = {"read": ("small-read", "large-read")}


@dataclass(frozen=True)
class LatencyThere:
    """Seconds that a call takes there, with bounds where blocks tell them; `typed`, or recorded."""

    call_s: Estimate
    typed: bool = False


def class_names(text: str) -> tuple[str, ...]:
    """The classes of `metadata,read`; `read` is both kinds of reads. Raises UsageError."""
    found: dict[str, None] = {}
    for word in text.split(","):
        names = _GROUPS.get(word.strip(), (word.strip(),))
        if names[0] not in CLASSES:
            raise UsageError(
                f"no class of calls is called {word.strip()!a}", f"use some of: {', '.join(CLASSES)}; or read"
            )
        found.update(dict.fromkeys(names))
    return tuple(name for name in CLASSES if name in found)


def typed_latencies(text: str) -> dict[str, LatencyThere]:
    """Seconds a call of `metadata=3ms,read=1ms`, by class. Raises UsageError."""
    found: dict[str, LatencyThere] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign:
            raise UsageError(
                f"{part!a} is no latency of a class", "write CLASS=TIME, for example metadata=3ms"
            )
        for one in class_names(name):
            if one in found:
                raise UsageError(f"{one} has two latencies", "name each class once")
            found[one] = LatencyThere(_one_value(units.parse_duration(value) / 1e9), typed=True)
    return found


def recorded_latencies(path: Path) -> tuple[dict[str, LatencyThere], str]:
    """The same of a profile, or of a trace, that was made there; and what the reader must know of them."""
    if path.is_dir():
        return _of_trace(path)
    from leadline.causal.judge import read_profile

    return _of_profile(read_profile(path)), ""


def _of_profile(there: CausalProfile) -> dict[str, LatencyThere]:
    """Of the runs there that were not delayed; how they scatter from block to block is known."""
    found = {}
    for name in CLASSES:
        by_block = [one.own_s / one.calls for one in there.plain_sums(name) if one.calls]
        latency_s = there.latency_s(name)
        if by_block:
            found[name] = LatencyThere(estimated(by_block))
        elif latency_s is not None:
            found[name] = LatencyThere(_one_value(latency_s))
    return found


def _of_trace(path: Path) -> tuple[dict[str, LatencyThere], str]:
    from leadline.store.reader import open_result
    from leadline.tracing.store import read_trace_without_segments

    tables = read_trace_without_segments(open_result(path))
    own = _of_own_files(tables)
    if own:
        return own, (
            "the latencies there are means of one trace over the user's files, with one for all reads; how"
            " they scatter is not known. A profile made there (--like FILE) tells more"
        )
    seconds: dict[str, float] = {}
    for process in tables.processes:
        for kind, spent in (json.loads(process.seconds or "{}") or {}).items():
            seconds[kind] = seconds.get(kind, 0.0) + (spent or 0.0)
    counts: dict[str, int] = {}
    for row in tables.latency:
        counts[row.kind] = counts.get(row.kind, 0) + row.operations
    found = {
        name: LatencyThere(_one_value(seconds.get(kind, 0.0) / counts[kind]))
        for kind, names in _KINDS.items()
        for name in names
        if counts.get(kind)
    }
    if not found:
        raise UsageError(
            f"the trace {path} has no calls with times", "name a trace of a program that reads or writes"
        )
    return found, (
        "the latencies there are means of one trace over all its files, libraries included, with one for"
        " all reads; how they scatter is not known. A profile made there (--like FILE) tells more"
    )


# More calls whose time is in a file's F_META_TIME.
_BESIDE_METADATA = ("SEEKS", "DUPS", "MMAPS", "advises", "failed")


def _of_own_files(tables: TraceTables) -> dict[str, LatencyThere]:
    """Means over the user's files: calls on libraries may be a thousand, and as fast on any mount.

    A file's time of writing holds its syncs, so files that were synced tell nothing of writes.
    """
    from leadline.tracing.figures import shares, speeds, wall_seconds
    from leadline.tracing.files import views
    from leadline.tracing.tables import METADATA_COUNTERS

    if not tables.processes:
        return {}
    wall_s = wall_seconds(tables)
    meta = " + ".join(f"coalesce({name}, 0)" for name in (*METADATA_COUNTERS, *_BESIDE_METADATA))
    query = (
        f"SELECT sum(F_META_TIME), sum({meta}), sum(F_READ_TIME), sum(READS),"  # noqa: S608 - our own names
        " sum(F_WRITE_TIME) FILTER (WHERE syncs = 0), sum(WRITES) FILTER (WHERE syncs = 0)"
        " FROM files WHERE belongs IN ('user', 'looked')"
    )
    with views(tables, shares(tables, wall_s), speeds(tables, wall_s)) as connection:
        found = connection.execute(query).fetchall()[0]
    by_kind = {kind: found[2 * place : 2 * place + 2] for place, kind in enumerate(("meta", "read", "write"))}
    return {
        name: LatencyThere(_one_value(float(seconds) / int(calls)))
        for kind, (seconds, calls) in by_kind.items()
        for name in _KINDS[kind]
        if seconds and calls
    }


def _one_value(seconds: float) -> Estimate:
    return Estimate(seconds, None, None, 1)


_BLOCKS_MIN = 3  # two leave one degree of freedom: such an interval says nothing


@dataclass(frozen=True)
class Elsewhere:
    """The run time where calls take other times: which (seconds, by class), how long, and what casts doubt on
    it."""

    there: Mapping[str, Estimate]
    time: PredictedTime
    doubts: tuple[str, ...]


def judge(profile: CausalProfile) -> SensitivityFit | None:
    """The fit over the whole blocks; None where there are too few for an interval."""
    blocks = profile.blocks()
    if len(blocks) < _BLOCKS_MIN:
        return None
    return fit_sensitivity([[_observed(run) for run in block] for block in blocks], profile.classes)


def _observed(run: DelayedRun) -> ObservedRun:
    name = run.condition.delayed
    waited_s = run.sums[name].waited_s if name and name in run.sums else 0.0
    return ObservedRun(run.run_s, name, run.condition.delay_ns / 1e9, waited_s)


def predict_elsewhere(
    profile: CausalProfile, fit: SensitivityFit, there: Mapping[str, LatencyThere], doubts: Sequence[str] = ()
) -> Elsewhere:
    """Raises UsageError where a latency was typed for a class that the program calls and that was not
    profiled; of what was recorded there such classes are left out, which is said.
    """
    for name, latency in there.items():
        if latency.typed and name not in profile.classes and profile.calls(name):
            raise UsageError(
                f"the command makes {profile.calls(name):,.0f} {name} calls, which were not delayed",
                f"profile it with --class {name} too, or leave {name} out",
            )
    used = {name: there[name] for name in profile.classes if name in there}
    if not used:
        raise UsageError(
            "none of the classes that have a latency there is called by the command",
            f"name some of: {', '.join(profile.classes)}",
        )
    calls = {name: profile.calls(name) for name in used}
    own_s = {name: [one.own_s for one in profile.plain_sums(name)] for name in used}
    latencies = {name: latency.call_s for name, latency in used.items()}
    return Elsewhere(
        latencies,
        predict(fit, calls, own_s, latencies),
        (*doubts, *_doubts(profile, fit, used), *_unsaid(profile, used)),
    )


def _doubts(profile: CausalProfile, fit: SensitivityFit, used: Mapping[str, LatencyThere]) -> list[str]:
    found = []
    longest_s = profile.delays_ns[-1] / 1e9
    for name, latency in used.items():
        here_s = profile.latency_s(name) or 0.0
        more_s = latency.call_s.value - here_s
        if more_s > 1.5 * longest_s:
            found.append(
                f"a {name} call takes {units.format_latency(more_s * 1e9)} more there than here, and at most"
                f" {units.format_latency(longest_s * 1e9)} were tried: that the line goes on is assumed"
            )
        if fit.classes[name].bends:
            found.append(f"the run time does not follow the delay of {name} calls in a straight line")
    return found


def _unsaid(profile: CausalProfile, used: Mapping[str, LatencyThere]) -> list[str]:
    missing = [name for name in CLASSES if profile.calls(name) and name not in used]
    return [f"{', '.join(missing)} calls are taken to be as fast there as here"] if missing else []
