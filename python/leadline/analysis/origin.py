"""Where the bytes of a trial came from and went to: application, wire, OSDs, device.

All counts cover the whole trial, ramp included, so that they can be held against each other. Jobs that ran
together share what was observed, and so it is held against what all of them moved; `reasons` says so under
`application`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.chain import NOBODY
from leadline.store.tables import TrialRow


@dataclass(frozen=True)
class Bytes:
    """Bytes of one or more trials, both directions; None with its reason is "not observable".

    `device` is the target's own block device, or behind Ceph what the OSDs' stores read and wrote; `own` is
    what the run's own processes fetched from and sent to block devices.
    """

    application: int
    wire: int | None
    osd: int | None
    device: int | None
    reasons: dict[str, str]
    own: int | None = None


def bytes_read(trials: Sequence[TrialRow], others: Mapping[str, str] = NOBODY) -> Bytes:
    """Reads: what applications got, what came over the wire, from OSDs, from devices.

    `others` are columns whose counts are not this run's, with the reason: these are not in it.
    """
    return _collect(
        trials,
        others,
        {
            "application": ("group_read_bytes", "total_read_bytes"),
            "wire": ("wire_received_bytes",),
            "osd": ("osd_read_bytes",),
            "device": ("device_read_bytes", "store_read_bytes"),
            "own": ("own_read_bytes",),
        },
    )


def bytes_written(trials: Sequence[TrialRow], others: Mapping[str, str] = NOBODY) -> Bytes:
    """Writes: what applications gave, what went over the wire, to OSDs, to devices."""
    return _collect(
        trials,
        others,
        {
            "application": ("group_written_bytes", "total_write_bytes"),
            "wire": ("wire_sent_bytes",),
            "osd": ("osd_written_bytes",),
            "device": ("device_written_bytes", "store_written_bytes"),
            "own": ("own_written_bytes",),
        },
    )


def _collect(
    trials: Sequence[TrialRow], others: Mapping[str, str], columns: dict[str, tuple[str, ...]]
) -> Bytes:
    reasons: dict[str, str] = {}
    sums: dict[str, int | None] = {}
    for name, candidates in columns.items():
        found = next((c for c in candidates if all(getattr(t, c) is not None for t in trials)), None)
        if found is None or not trials or found in others:
            sums[name] = None
            reasons[name] = others.get(found or "") or _reason(trials, candidates)
        else:
            sums[name] = sum(getattr(trial, found) for trial in trials)
    if trials and all(trial.group_read_bytes is not None for trial in trials):
        reasons["application"] = _reason(trials, ("group",))
    return Bytes(sums["application"] or 0, sums["wire"], sums["osd"], sums["device"], reasons, sums["own"])


def _reason(trials: Sequence[TrialRow], candidates: tuple[str, ...]) -> str:
    for trial in trials:
        given = json.loads(trial.reasons)
        for candidate in candidates:
            if candidate in given:
                return str(given[candidate])
    return "not observable on this kind of target"
