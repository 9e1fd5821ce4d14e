"""What goes on on a mount, as the figures of one trial: all users of the mount together are its work.

What nobody asked of them, such as how many operations are to be in flight, is not known, and stays open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.counters.catalogue import trial_figures
from leadline.store.tables import SeriesRow, TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosis.causes import applying
from leadline.verdict.diagnosis.judge import Diagnosed, diagnose
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.of_trial import between, figures_of
from leadline.verdict.diagnosis.seen.values import Figures, ratio

_TRIAL = "live"
_NS = 1_000_000_000


@dataclass(frozen=True)
class Watched:
    """A mount that was looked at for `elapsed_s`.

    `change` are the observers' figures between two marks, as `Delta.as_json` has them; `samples` their
    series: time in ns, source, subject, metric, value, unit; `values` what users did (`leadline watch`);
    `host` what a manifest says of the host.
    """

    elapsed_s: float
    change: Mapping[str, Any]
    samples: Sequence[tuple[int, str, str, str, float, str]]
    values: Mapping[str, float | str | None]
    facts: TargetFacts
    host: Mapping[str, str] = field(default_factory=dict)


def diagnose_live(watched: Watched) -> Diagnosed:
    """The causes that hold for what goes on."""
    return diagnose([figures_of_live(watched)], applying(watched.facts))


def figures_of_live(watched: Watched) -> Figures:
    """As of a trial that lasted as long."""
    row, series = _row(watched), _series(watched)
    samples = Samples.of_rows(row, series)
    found = figures_of(row, (), samples, None, target=watched.facts, host=watched.host)
    reads, writes = (watched.values.get(name) for name in ("reads_per_s", "writes_per_s"))
    times = (watched.values.get("mean_read_s"), watched.values.get("mean_write_s"))
    spent = [
        rate * time
        for rate, time in zip((reads, writes), times, strict=True)
        if isinstance(rate, float) and isinstance(time, float)
    ]
    if isinstance(reads, float) and isinstance(writes, float) and reads + writes > 0:
        in_flight = sum(spent)
        found |= {"in_flight": in_flight, "latency_s": in_flight / (reads + writes)}
    else:  # nobody's calls were seen, or there were none
        found |= dict.fromkeys(
            ("operations_per_s", "bytes_per_s", "request_bytes", "write_share", "in_flight", "latency_s")
        )
    found["metadata_per_operation"] = ratio(found["mds_requests_per_s"], found["operations_per_s"])
    return found | between(found)


def _row(watched: Watched) -> TrialRow:
    def count(name: str) -> int:
        value = watched.values.get(name)
        return round(value * watched.elapsed_s) if isinstance(value, float | int) else 0

    read, written = count("read_bytes_per_s"), count("written_bytes_per_s")
    observed = {figure.name: watched.change.get(figure.name) for figure in trial_figures()}
    return TrialRow(
        **observed,
        trial=_TRIAL,
        cell=_TRIAL,
        target=_TRIAL,
        work=_TRIAL,
        block=1,
        order=1,
        seed=0,
        state="complete",
        error=None,
        started_unix_ns=0,
        ramp_ns=0,
        measured_ns=round(watched.elapsed_s * _NS),
        first_done_ns=0,
        last_done_ns=round(watched.elapsed_s * _NS),
        read_bytes=read,
        read_operations=count("reads_per_s"),
        write_bytes=written,
        write_operations=count("writes_per_s"),
        sync_operations=count("syncs_per_s"),
        total_read_bytes=read,
        total_write_bytes=written,
        cpu_user_ns=0,
        cpu_system_ns=0,
        busy_share_max=None,
        late_ns_max=None,
        late_ns_mean=None,
        unwritten_blocks=0,
        verified_blocks=0,
        caches_dropped=False,
        job="{}",
        factors="{}",
        threads="[]",
        summary="{}",
        reasons=json.dumps(watched.change.get("reasons", {})),
        sources=json.dumps(watched.change.get("sources", {})),
        start_state=json.dumps(watched.change.get("state_start")),
        end_state=json.dumps(watched.change.get("state_end")),
    )


def _series(watched: Watched) -> list[SeriesRow]:
    """Times as of a trial: from its start on."""
    first = min((at for at, *_ in watched.samples), default=0)
    return [
        SeriesRow(_TRIAL, at - first + 1, source, subject, metric, value, unit)
        for at, source, subject, metric, value, unit in watched.samples
    ]
