"""A lab's file of faults: what was appended is read again, whatever else stands in it or in its place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline import faults
from leadline.faults import FILE, FORMAT, Fault, begin, end, in_force, read


def line(**changes: object) -> str:
    whole = {"format": FORMAT, "id": "1", "kind": "link-rate", "on": "host1", "words": "slow"}
    return json.dumps({**whole, "began_unix_s": 10.0, "ended_unix_s": None, **changes})


def test_what_began_is_in_force_until_it_ended(tmp_path: Path) -> None:
    assert read(tmp_path) == ()
    first = begin(tmp_path, "1", "link-rate", "host1", "link of host1 at 100 Mbit/s")
    second = begin(tmp_path, "2", "osd-down", "osd.0", "osd.0 is down")
    assert in_force(read(tmp_path)) == (first, second)
    end(tmp_path, "1")
    (ended, still) = read(tmp_path)
    assert in_force((ended, still)) == (second,)
    assert ended.ended_unix_s is not None
    assert first.began_unix_s <= ended.ended_unix_s


@pytest.mark.parametrize(
    ("begin_s", "end_s", "overlaps", "covers"),
    [
        (0.0, 9.0, False, False),
        (0.0, 10.0, True, False),
        (12.0, 13.0, True, True),
        (9.0, 21.0, True, False),
        (10.0, 20.0, True, True),
        (21.0, 22.0, False, False),
    ],
)
def test_a_fault_is_at_a_time_or_not(begin_s: float, end_s: float, overlaps: bool, covers: bool) -> None:
    found = Fault("1", "k", "on", "words", 10.0, 20.0)
    assert (found.overlaps(begin_s, end_s), found.covers(begin_s, end_s)) == (overlaps, covers)


def test_one_in_force_has_no_end(tmp_path: Path) -> None:
    found = begin(tmp_path, "1", "k", "on", "words")
    assert found.overlaps(found.began_unix_s + 1e9, found.began_unix_s + 2e9)
    assert found.covers(found.began_unix_s + 1e9, found.began_unix_s + 2e9)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "no JSON",
        "[1]",
        "null",
        line()[:30],
        line(id=7),
        line(id=["1"]),
        line(began_unix_s="soon"),
        line(began_unix_s=None),
        line(words=None),
        line(ended_unix_s="late"),
        line().replace("10.0", "NaN"),
        line().replace("10.0", "1e999"),
        line(format="leadline.faults/2"),
        line(format=None),
        json.dumps({"format": FORMAT, "id": "good", "ended_unix_s": "late"}),
        json.dumps({"format": FORMAT, "id": "unknown", "ended_unix_s": 1.0}),
        json.dumps({"format": FORMAT, "id": {}, "ended_unix_s": 1.0}),
        "[" * 100_000,
        "\udcff\x00",
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_damaged_line_takes_no_other_with_it(tmp_path: Path, damage: str) -> None:
    good = line(id="good")
    (tmp_path / FILE).write_bytes(f"{good}\n{damage}\n{line(id='2')}\n".encode(errors="surrogateescape"))
    assert [(fault.id, fault.ended_unix_s) for fault in read(tmp_path)] == [("good", None), ("2", None)]


def test_a_key_that_a_newer_program_adds_hides_no_fault(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(line(severity="high") + "\n")
    assert len(in_force(read(tmp_path))) == 1


def test_a_line_that_a_crash_tore_takes_none_of_the_next_with_it(tmp_path: Path) -> None:
    begin(tmp_path, "1", "k", "on", "words")
    with (tmp_path / FILE).open("a") as file:
        file.write(line(id="torn")[:40])
    end(tmp_path, "1")
    assert in_force(read(tmp_path)) == ()
    assert len(read(tmp_path)) == 1


def _link(place: Path) -> None:
    (place.parent / "elsewhere").write_text(line())
    place.symlink_to("elsewhere")


def _fifo(place: Path) -> None:
    os.mkfifo(place)


def _directory(place: Path) -> None:
    place.mkdir()


@pytest.mark.parametrize("make", [_link, _fifo, _directory])
def test_what_is_no_plain_file_is_neither_read_nor_written_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / FILE)
    with pytest.raises(OSError):  # noqa: PT011 - of several kinds
        read(tmp_path)
    with pytest.raises(OSError):  # noqa: PT011
        begin(tmp_path, "1", "k", "on", "words")
    if make is _link:
        assert (tmp_path / "elsewhere").read_text() == line()


def test_a_file_of_more_than_any_lab_writes_is_said_to_be_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "_BYTES_MAX", 1 << 20)
    (tmp_path / FILE).write_text(f"{line()}\n" * 10_000)
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read(tmp_path)
