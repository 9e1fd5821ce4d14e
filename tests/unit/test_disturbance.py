"""A trial that is disturbed from outside: what its row keeps of it, and what a verdict makes of that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import cell, facts, trial_row

from leadline.observe.mounts.mountinfo import mount_of, read_mounts
from leadline.observe.mounts.mounts import shown_options
from leadline.run.watches import DisturbanceWatch
from leadline.store.tables import TrialRow
from leadline.study.target import Target, TargetFacts
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case

MOUNT = {
    "mount_id": 30,
    "device": "8:1",
    "subtree": "/",
    "mount_point": "/mnt",
    "file_system": "ext4",
    "source": "/dev/sda1",
    "options": ["rw", "relatime"],
}
PLANNED = replace(facts(), file_system="ext4", source="/dev/sda1", options=("rw", "relatime"))


def mounts(after: dict[str, Any] | None = None, **before: Any) -> str:
    first = {**MOUNT, **before}
    return json.dumps({"before": first, "after": {**first, **(after or {})}})


def codes(*rows: TrialRow) -> dict[str, tuple[str, str]]:
    found = judge(Case(cell(), PLANNED, rows, len(rows), 1 << 34, None)).codes
    return {one.code: (one.state, one.evidence) for one in found}


def said(**columns: Any) -> tuple[str, str] | None:
    found = codes(trial_row(trial="t0001"), trial_row(trial="t0002", **columns))
    return found.get("target_changed") or found.get("worker_stopped")


def test_a_result_without_these_columns_is_not_doubted() -> None:
    assert said() is None
    assert said(stopped_ns=0, mounts=mounts()) is None


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        ({}, {"options": ["rw", "relatime", "sync"]}, "DOUBTFUL", "sync was added"),
        ({"options": ["rw"]}, {}, "DOUBTFUL", "before t0002 its mount options changed: relatime was removed"),
        ({}, {"options": ["rw", "relatime", "addr=10.0.0.7"]}, "DOUBTFUL", "changed: addr was added"),
        ({}, {"options": ["rw", "relatime", "rasize=4096"]}, "DOUBTFUL", "rasize=4096 was added"),
        ({}, {"mount_id": 31}, "DOUBTFUL", "during t0002 it was mounted anew"),
        ({}, {"source": "/dev/sdb1"}, "INVALID", "another file system took its place (ext4, then ext4)"),
        ({"file_system": "tmpfs", "source": "none"}, {}, "INVALID", "(ext4, then tmpfs)"),
    ],
)
def test_a_change_of_the_targets_mount_is_named(
    before: dict[str, Any], after: dict[str, Any], state: str, words: str
) -> None:
    found = said(mounts=mounts(after, **before))
    assert found is not None
    assert found[0] == state
    assert words in found[1]


def test_settings_that_are_proved_may_mount_otherwise_between_trials() -> None:
    proved = {"states": json.dumps({"state": "with"}), "mounts": mounts(options=["rw", "rasize=1"])}
    assert said(**proved) is None
    assert said(**{**proved, "mounts": mounts({"options": ["rw"]}, options=["rw", "rasize=1"])}) is not None


@pytest.mark.parametrize(("stopped_ns", "state"), [(1_000_000, "DOUBTFUL"), (10**12, "INVALID")])
def test_a_stopped_worker_is_worse_by_its_share_of_the_trial(stopped_ns: int, state: str) -> None:
    found = said(stopped_ns=stopped_ns)
    assert found is not None
    assert found[0] == state


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "leadline-test", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield tmp_path
    subprocess.run(["umount", "--recursive", str(tmp_path)], check=True)


def watched(target: Path, mount_point: Path) -> tuple[DisturbanceWatch, str]:
    mount = mount_of(str(mount_point), read_mounts())
    assert mount is not None
    there: TargetFacts = replace(facts(), mount_point=str(mount_point), options=shown_options(mount))
    return DisturbanceWatch([Target("a", str(target))], {"a": there}), "a"


def test_a_mount_over_the_targets_directory_is_another_file_system(place: Path) -> None:
    (place / "inner").mkdir()
    watch, name = watched(place / "inner", place)
    watch.begin(name)
    subprocess.run(["mount", "-t", "tmpfs", "leadline-other", str(place / "inner")], check=True)
    (found,) = watch.end(name, [_Idle()])  # type: ignore[list-item]
    seen = json.loads(found["mounts"])
    assert seen["before"]["source"] == "leadline-test"
    assert seen["after"]["source"] == "leadline-other"


def test_a_target_that_is_a_link_to_another_mount_is_looked_at_there(
    place: Path, tmp_path_factory: Any
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (place / "link").symlink_to(elsewhere)
    its = mount_of(str(elsewhere), read_mounts())
    assert its is not None
    watch, name = watched(place / "link", Path(its.mount_point))
    watch.begin(name)
    (found,) = watch.end(name, [_Idle()])  # type: ignore[list-item]
    assert json.loads(found["mounts"])["after"]["mount_point"] == its.mount_point


def test_what_has_no_mount_has_no_such_column() -> None:
    watch = DisturbanceWatch([Target("a", "null://")], {"a": facts()})
    watch.begin("a")
    (found,) = watch.end("a", [_Idle()])  # type: ignore[list-item]
    assert found == {"stopped_ns": 0, "mounts": None}


class _Idle:
    """A job whose worker nobody stopped."""

    @property
    def worker(self) -> _Idle:
        return self

    def stopped_ns(self, _since_ns: int, _until_ns: int) -> int:
        return 0
