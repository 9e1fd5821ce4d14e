"""What one way writes and another sees: on one directory, and on a mount that believes what it was told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slow_fuse
from measured import WRONG, Expected, assert_measured
from support import Command

_CACHED_S = 3600  # far beyond every test: what the kernel believes it never asks for again


def _run(
    leadline: Command, tmp_path: Path, *arguments: str, expected: tuple[Expected, ...] = ()
) -> tuple[dict[str, Any], str]:
    out = tmp_path / "result"
    done = leadline(
        *("run", "coherence", *arguments, "--blocks", "1", "--out", str(out), "--quiet"), timeout=300
    )
    assert_measured(done, out, *expected)
    whole = leadline("show", str(out), "--all").stdout
    return json.loads(leadline("show", str(out), "--json").stdout), whole


def _figure(found: dict[str, Any], words: str, writer: str, reader: str) -> dict[str, Any]:
    table = next(one for one in found["ways"] if one["name"] == "coherence")
    (row,) = [row for row in table["rows"] if row["keys"] == [words, writer]]
    value: dict[str, Any] = row["values"][table["columns"].index(f"seen by {reader}")]
    return value


def test_two_paths_to_one_directory_see_everything_and_honour_locks(
    leadline: Command, tmp_path: Path, target: Path
) -> None:
    other = tmp_path / "other"
    other.symlink_to(target)
    found, printed = _run(
        leadline, tmp_path, "--target", f"a={target}", "--target", f"b={other}", "--set", "repetitions=2"
    )
    assert len(found["cells"]) == 4
    for words in ("a new file's name", "its bytes, closed", "a rename", "an unlink", "a hard link's stat"):
        assert _figure(found, words, "a", "b")["value"] > 0
    for words in ("a lock by fcntl", "a lock by flock"):
        assert _figure(found, words, "b", "a")["text"] == "honoured"
    assert _figure(found, "two writers in one file, bytes intact", "a", "b")["text"] == "intact"
    assert _figure(found, "two writers in one file, throughput", "a", "b")["value"] > 0
    assert "locks by fcntl are honoured" in printed
    assert list(target.iterdir()) == []


def test_two_directories_that_have_nothing_in_common_are_said_not_to(
    leadline: Command, tmp_path: Path, target: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    limits = ("--set", "repetitions=1", "--set", "give_up=200ms")
    found, _ = _run(
        leadline, tmp_path, "--target", f"a={target}", "--target", f"b={other}", *limits, expected=(WRONG,)
    )
    states = {cell["id"]: cell["validity"]["state"] for cell in found["cells"]}
    assert states["a.coherence_to_b"] == "INVALID"
    codes = next(cell for cell in found["cells"] if cell["id"] == "a.coherence_to_b")["validity"]["codes"]
    assert any("name the same directory by both ways" in code["evidence"] for code in codes)
    assert list(target.iterdir()) == []
    assert list(other.iterdir()) == []


@pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))
def test_what_a_mount_believes_for_an_hour_is_not_seen_and_has_no_number(
    leadline: Command, tmp_path: Path
) -> None:
    program = slow_fuse.build()
    with slow_fuse.mounted(program, tmp_path, _CACHED_S) as mount:
        found, printed = _run(
            leadline,
            tmp_path,
            *("--target", f"below={mount.backing}", "--target", f"mount={mount.path}"),
            *("--set", "repetitions=1", "--set", "give_up=3s"),
            *("--set", "questions=[name, size_closed, unlink, rename]"),
        )
        assert [path.name for path in mount.backing.iterdir()] == []
    for words in ("its size, closed", "an unlink"):
        stale = _figure(found, words, "below", "mount")
        assert stale["value"] is None
        assert stale["text"] == "not in 3 s"
        assert _figure(found, words, "mount", "below")["value"] > 0
    assert _figure(found, "a new file's name", "below", "mount")["value"] > 0
    assert _figure(found, "a rename", "mount", "below")["value"] > 0
    assert "never within 3 s" in printed


def test_metadata_of_a_target_without_files_is_left_out_of_coherence(
    leadline: Command, tmp_path: Path, target: Path
) -> None:
    found, printed = _run(
        leadline,
        tmp_path,
        *("--target", f"a={target}", "--target", "nothing=null://", "--set", "repetitions=1"),
    )
    assert [cell["id"] for cell in found["cells"]] == ["a.coherence_to_a"]
    assert "nothing was not asked" in printed
