"""The journal of changed settings: whatever becomes of its bytes and its disk, all is put back."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from failing_disk import FailingDisk
from mutations import mutated
from tuned_system import FakeCluster, fake_system, make_root, without_checksums

from leadline.errors import LeadlineError, RefusedChangeError, TuningError
from leadline.tuning.changing import holding
from leadline.tuning.changing.applying import Pace, apply
from leadline.tuning.changing.checks import parse_words, resolve
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.system import TuningSystem
from private_mounts import with_private_mounts

_QUICK = Pace(settle_s=0.0, hold_s=0.0, watch_s=0.0)
_WORDS = ("backlog=4096", "swappiness=1", "backfills=3", "noscrub=true")
_MUTATIONS = 400


class Tuned:
    """A small host with a cluster, and a journal."""

    def __init__(self, place: Path) -> None:
        self.root, self.cluster = make_root(place / "root"), FakeCluster()
        self.system: TuningSystem = fake_system(self.root, self.cluster)
        self.journal = TuningJournal(place / "state")
        self.before = self.values

    @property
    def values(self) -> Any:
        """Everything that can be changed."""
        files = {str(path): path.read_text() for path in self.root.rglob("*") if path.is_file()}
        return files, dict(self.cluster.config), set(self.cluster.flags)

    def apply(self, *words: str, say: Callable[[str], None] = lambda _: None) -> str:
        """The run."""
        changes = resolve(self.system, parse_words(words or _WORDS, ()))[0]
        return apply(self.system, changes, journal=self.journal, pace=_QUICK, say=say).run


@pytest.fixture
def tuned(tmp_path: Path) -> Tuned:
    """One that nothing was changed on."""
    return Tuned(tmp_path)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_all_is_put_back_by_an_apply_whose_journal_cannot_be_written_from_any_call_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    disk = FailingDisk(monkeypatch)
    number, refused = 0, 0
    while True:
        number += 1
        tuned = Tuned(tmp_path / str(number))
        disk.calls, disk.fails_at, disk.error = 0, number, error
        problem = _error_of(tuned.apply)
        if problem is None:
            assert disk.calls < number
            break
        assert os.strerror(error) in problem.message
        assert tuned.values == tuned.before, number
        refused += isinstance(problem, RefusedChangeError)
    assert number > 20
    assert refused > 3


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_all_is_put_back_by_a_revert_whose_journal_cannot_be_written(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    tuned.apply()
    disk = FailingDisk(monkeypatch)
    disk.fails_at, disk.error = 1, error

    found = revert(tuned.system, tuned.journal)

    assert (len(found.back), found.left) == (len(_WORDS), [])
    assert os.strerror(error) in found.unwritten
    assert tuned.values == tuned.before
    disk.fails_at = 0
    assert not revert(tuned.system, tuned.journal).unwritten
    assert not tuned.journal.state().outstanding()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_the_guard_puts_everything_back_where_the_journal_can_neither_be_written_nor_read(
    tuned: Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    run = tuned.apply()
    disk = FailingDisk(monkeypatch)
    real = os.open

    def unreadable(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).startswith(str(tmp_path / "state")):
            raise OSError(error, os.strerror(error), path)
        return real(path, *arguments, **more)

    def breaks(_: float) -> None:
        disk.fails_at, disk.error = 1, error
        monkeypatch.setattr(os, "open", unreadable)

    monkeypatch.setattr(holding.time, "sleep", breaks)
    monkeypatch.setattr(holding, "reached", lambda *_: tuned.system)

    assert "nobody confirmed it in time" in holding.wait(tuned.journal, run, 0.05)
    assert tuned.values == tuned.before


def test_the_guard_puts_back_what_it_has_seen_where_the_journal_was_removed(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tuned.apply()
    monkeypatch.setattr(holding.time, "sleep", lambda _: tuned.journal.path.unlink(missing_ok=True))
    monkeypatch.setattr(holding, "reached", lambda *_: tuned.system)

    assert "nobody confirmed it in time" in holding.wait(tuned.journal, run, 0.05)
    assert tuned.values == tuned.before


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a file system of its own needs root")
def test_a_disk_that_fills_up_in_mid_course_has_room_for_all_that_was_begun(tmp_path: Path) -> None:
    """The file system is a real one, of 256 KiB, which somebody fills after the first change."""

    def filled() -> None:
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", str(state)]
        subprocess.run(mount, check=True, timeout=20)
        tuned = Tuned(tmp_path)

        def fill(_: str) -> None:
            with (state / "others").open("ab", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(b"x" * 512)

        tuned.apply(say=fill)
        assert len(tuned.journal.state().outstanding()) == len(_WORDS)
        found = revert(tuned.system, tuned.journal)
        assert (found.left, found.unwritten) == ([], "")
        assert tuned.values == tuned.before
        assert not tuned.journal.state().outstanding()
        with pytest.raises(RefusedChangeError, match="nothing was changed"):
            tuned.apply("backlog=1024")
        assert tuned.values == tuned.before

    with_private_mounts(filled)


def _error_of(action: Callable[[], object]) -> LeadlineError | None:
    try:
        action()
    except LeadlineError as problem:
        return problem
    return None


def _damaged(tuned: Tuned, data: bytes) -> None:
    tuned.journal.path.write_bytes(data)


def _lines(tuned: Tuned) -> list[bytes]:
    return tuned.journal.path.read_bytes().rstrip(b"\0").splitlines(keepends=True)


def _flips(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Each line with each tenth of its bytes flipped."""
    for at, line in enumerate(lines):
        for place in range(0, len(line) - 1, 10):
            changed = bytes([*line[:place], line[place] ^ 1, *line[place + 1 :]])
            yield at, b"".join([*lines[:at], changed, *lines[at + 1 :]])


def test_a_byte_that_was_flipped_anywhere_is_one_error_that_names_file_and_line(tuned: Tuned) -> None:
    """Also in a value: a wrong one is never put back."""
    tuned.apply()
    for at, data in _flips(_lines(tuned)):
        _damaged(tuned, data)
        with pytest.raises(LeadlineError) as problem:
            tuned.journal.state()
        assert str(tuned.journal.path) in problem.value.message
        assert f"line {at + 1}" in problem.value.message or "another version" in problem.value.message


def test_a_line_that_was_cut_out_is_named_by_the_one_after_it(tuned: Tuned) -> None:
    tuned.apply()
    lines = _lines(tuned)
    for at in range(len(lines) - 1):
        _damaged(tuned, b"".join(lines[:at] + lines[at + 1 :]))
        with pytest.raises(TuningError, match=f"line {at + 1}, is damaged"):
            tuned.journal.state()


@pytest.mark.parametrize(
    ("event", "key", "value"),
    [
        ("begun", "reach", {"conf": 5, "client_name": "", "namespaces": {}}),
        ("begun", "reach", {"conf": "", "client_name": "", "namespaces": {"a": 5}}),
        ("begun", "reach", {"nonesuch": ""}),
        ("begun", "run", ["a"]),
        ("begun", "confirm_by_s", "soon"),
        ("begun", "health", []),
        ("begun", "health", {"status": "HEALTH_OK"}),
        ("changing", "number", "1"),
        ("changing", "number", True),
        ("changing", "run", "nonesuch"),
        ("changing", "life", None),
        ("changing", "change", {"setting": "a", "place": {}, "value": 1, "before": None}),
        ("changing", "change", {"setting": "a", "place": {"host": []}, "value": "1", "before": None}),
        ("changing", "setting", {"access": {"kind": "sysctl", "options": {}}, "needs": "live"}),
        ("changing", "setting", {"access": {"kind": "sysctl", "options": {"key": 5}}, "needs": "live"}),
        ("changing", "setting", {"access": {"kind": [], "options": {}}, "needs": "live"}),
        ("done", "number", 99),
        ("holding", "pid", "x"),
        ("holding", "pid", -1),
        ("nonesuch", "number", 1),
    ],
)
def test_a_value_of_another_kind_is_one_error_that_names_file_and_line(
    tuned: Tuned, event: str, key: str, value: object
) -> None:
    """In a journal without checksums, as the version before this one wrote it."""
    run = tuned.apply()
    tuned.journal.say("holding", run=run, pid=5)
    records = [json.loads(line) for line in without_checksums(b"".join(_lines(tuned))).splitlines()]
    at = next((at for at, one in enumerate(records) if one["event"] == event), len(records) - 1)
    records[at] |= {"event": event, key: value}
    _damaged(tuned, "".join(json.dumps(one) + "\n" for one in records).encode())

    with pytest.raises(TuningError, match=f"{tuned.journal.path}, line {at + 1}, is damaged"):
        tuned.journal.state()


def test_whatever_the_bytes_are_it_is_a_state_or_one_error_that_names_the_file(tuned: Tuned) -> None:
    tuned.apply()
    chance = random.Random("journal")  # noqa: S311 - the same in each run
    true = b"".join(_lines(tuned))
    plain = without_checksums(true)
    for _ in range(_MUTATIONS):
        _damaged(tuned, mutated(chance.choice([true, plain.encode()]), chance))
        problem = _error_of(tuned.journal.state)
        assert problem is None or str(tuned.journal.path) in problem.message


def test_a_journal_without_checksums_of_the_version_before_is_put_back_and_written_on(tuned: Tuned) -> None:
    tuned.apply()
    _damaged(tuned, without_checksums(b"".join(_lines(tuned))).encode())

    assert not revert(tuned.system, tuned.journal).left
    assert tuned.values == tuned.before
    assert not tuned.journal.state().outstanding()


def test_one_change_that_cannot_be_put_back_for_any_reason_keeps_no_other_from_it(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.apply()
    real = tuned.system.kind(tuned.system.setting("swappiness")).read

    def broken(setting: Any, place: Any) -> Any:
        if setting.name == "swappiness":
            raise KeyError("key")
        return real(setting, place)

    monkeypatch.setattr(tuned.system.kind(tuned.system.setting("swappiness")), "read", broken)

    found = revert(tuned.system, tuned.journal)

    assert len(found.back) == len(_WORDS) - 1
    assert found.left[0].startswith("swappiness on this host: ")
    assert f"{tuned.journal.path}, line " in found.left[0]


def test_a_file_of_the_users_that_is_called_lock_is_not_written(tuned: Tuned) -> None:
    lock = tuned.journal.directory / "lock"
    lock.parent.mkdir(mode=0o700)
    lock.write_text("the user's own\n")
    with pytest.raises(RefusedChangeError, match="is no lock of leadline's"):
        tuned.apply()
    assert lock.read_text() == "the user's own\n"
    assert tuned.values == tuned.before


def test_a_lock_of_which_a_lost_power_left_zeros_is_one(tuned: Tuned) -> None:
    lock = tuned.journal.directory / "lock"
    lock.parent.mkdir(mode=0o700)
    lock.write_bytes(bytes(21))
    with tuned.journal.locked():
        assert lock.read_bytes().split()[0] == str(os.getpid()).encode()
