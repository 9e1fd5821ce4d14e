"""leadline neither follows nor believes what another account put under a name that a worker uses."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leadline.durable import new_file
from leadline.foreign import read_plain
from leadline.workloads.application.copies import Capture
from leadline.workloads.pipeline import client

OTHER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")


def config(place: Path, stolen: Path) -> dict[str, Any]:
    """What a client is told: to make a file."""
    script = f"touch {stolen}"
    action = {"step": None, "command": ["sh", "-c", script], "buffer": 8192, "digest": "md5"}
    action |= {"how": "auto", "url": None, "timeout_ns": 10**9, "seen_from": None}
    stage = {"stage": "s", "actions": [action], "inputs": [], "output": None, "width": None}
    return {
        **{"pipeline": [stage], "source_bytes": 1, "cache": "warm", "output": str(place), "widest": []},
        **{"client": 1, "workspace": str(place), "target": str(place), "source": None, "wall_ns": 0},
        **{"progress": str(place / "progress"), "limit_s": 9.0},
    }


def foreign(file: Path) -> None:
    os.chown(file, OTHER, OTHER)


def writable(file: Path) -> None:
    file.chmod(0o666)


def linked(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to(file.with_name("real"))


def named_twice(file: Path) -> None:
    os.link(file, file.with_name("second"))


@pytest.mark.parametrize("change", [pytest.param(foreign, marks=needs_root), writable, linked, named_twice])
def test_a_client_of_a_pipeline_takes_no_commands_from_a_file_that_another_account_could_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    file, stolen = tmp_path / "client-1.json", tmp_path / "stolen"
    file.write_text(json.dumps(config(tmp_path, stolen)))
    change(file)
    monkeypatch.setattr(sys, "argv", ["client", str(file)])
    code = client.main()
    assert not stolen.exists()
    assert code == 1


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("words")
    assert read_plain(tmp_path / "own", 9, own=True) == b"words"


def test_a_new_file_is_written_through_no_link_and_over_no_other_name(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "link").symlink_to(precious)
    os.link(precious, tmp_path / "second")
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "link")
    for _ in range(2):
        with new_file(tmp_path / "second") as file:
            file.write(b"new")
    assert precious.read_text() == "precious"
    assert (tmp_path / "second").read_text() == "new"


@pytest.mark.parametrize("put", [os.link, os.symlink])
def test_what_a_program_prints_is_written_into_no_file_of_others(
    tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    put(precious, tmp_path / "copy.out")
    with contextlib.suppress(OSError):
        Capture(tmp_path / "copy").close()
    assert precious.read_text() == "precious"
