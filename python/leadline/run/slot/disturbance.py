"""What disturbs a trial and is in no counter: a worker that is stopped, a target whose mount changes.

It reads the mount table and asks what forked the worker. It makes no call on a target.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leadline.observe.mounts.mountinfo import Mount, mount_of, read_mounts
from leadline.observe.mounts.mounts import shown_options
from leadline.run.group import Member
from leadline.store.tables import TrialRow
from leadline.study.target import Target, TargetFacts


class DisturbanceWatch:
    """One for a run: `begin` and `end` stand around each trial, or each group of jobs at the same time."""

    def __init__(self, targets: Sequence[Target], facts: Mapping[str, TargetFacts]) -> None:
        self._places = {one.name: _place_of(one, facts.get(one.name)) for one in targets}
        self._since_ns = 0
        self._before: dict[str, Any] | None = None

    def begin(self, target: str) -> None:
        """Just before the trial starts."""
        self._before = _mount_at(self._places[target])
        self._since_ns = time.monotonic_ns()

    def end(self, target: str, members: Sequence[Member]) -> tuple[dict[str, Any], ...]:
        """Just after it: for each job the columns `stopped_ns` and `mounts`."""
        until_ns = time.monotonic_ns()
        after = _mount_at(self._places[target])
        seen = None if after is None or self._before is None else {"before": self._before, "after": after}
        mounts = None if seen is None else json.dumps(seen)
        return tuple(
            {"stopped_ns": member.worker.stopped_ns(self._since_ns, until_ns), "mounts": mounts}
            for member in members
        )


def marked(rows: Sequence[TrialRow], disturbed: Sequence[Mapping[str, Any]]) -> list[TrialRow]:
    """The rows with their columns."""
    return [replace(row, **found) for row, found in zip(rows, disturbed, strict=True)]


def _place_of(target: Target, facts: TargetFacts | None) -> str | None:
    """A path on the target's mount, without a call on it: links in the target's own path are not followed."""
    if not target.is_path or facts is None or facts.mount_point is None:
        return None
    path = os.path.normpath(target.url)
    mount = mount_of(path, read_mounts())
    return path if mount is not None and mount.mount_point == facts.mount_point else facts.mount_point


def _mount_at(place: str | None) -> dict[str, Any] | None:
    mount = None if place is None else mount_of(place, read_mounts())
    return None if mount is None else _stored(mount)


def _stored(mount: Mount) -> dict[str, Any]:
    return {
        "mount_id": mount.mount_id,
        "device": f"{mount.major}:{mount.minor}",
        "subtree": mount.root,
        "mount_point": mount.mount_point,
        "file_system": mount.file_system,
        "source": mount.source,
        "options": list(shown_options(mount)),
    }
