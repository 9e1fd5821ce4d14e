"""Whose a result is, and what its names may be, before anything is done by its words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import ResultError
from leadline.run.session import request_of
from leadline.store.acting import commands_of, look_at
from leadline.store.files import checked_id, checked_name
from undoing import ID, crafted

NOBODY = 65534


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = crafted(tmp_path / "r", {"t": "null://"}, [])
    (path / "replay.script").touch(0o644)
    return path


def test_what_only_its_owner_could_write_is_beyond_doubt(result: Path) -> None:
    assert look_at(result).doubts == ()
    assert look_at(result).manifest["id"] == ID


@pytest.mark.parametrize("mode", [0o020, 0o002])
@pytest.mark.parametrize("name", [".", "manifest.json", "events.jsonl", "replay.script"])
def test_what_others_may_write_is_doubted(result: Path, name: str, mode: int) -> None:
    file = result / name
    file.chmod(file.stat().st_mode | mode)
    (doubt,) = look_at(result).doubts
    assert doubt.startswith(f"{file} may be written by others")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [".", "manifest.json", "events.jsonl", "replay.script"])
def test_what_another_user_owns_is_doubted(result: Path, name: str) -> None:
    os.chown(result / name, NOBODY, NOBODY)
    (doubt,) = look_at(result).doubts
    assert doubt.startswith(f"{result / name} is owned by")
    assert f"(uid {NOBODY})" in doubt


def test_what_root_owns_is_trusted_by_all(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = result.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert bool(look_at(result).doubts) == (found != 0)


def test_a_journal_that_is_a_link_is_doubted(result: Path) -> None:
    (result / "events.jsonl").rename(result.parent / "elsewhere")
    (result / "events.jsonl").symlink_to(result.parent / "elsewhere")
    (doubt,) = look_at(result).doubts
    assert "is a link" in doubt


def test_a_manifest_that_is_a_link_is_refused(result: Path) -> None:
    (result / "manifest.json").rename(result.parent / "elsewhere")
    (result / "manifest.json").symlink_to(result.parent / "elsewhere")
    with pytest.raises(ResultError, match=r"manifest\.json"):
        look_at(result)


def test_another_manifest_than_the_one_that_was_looked_at_is_refused(result: Path) -> None:
    with pytest.raises(ResultError, match="was changed"):
        look_at(result).require_same({"id": "1badc0de"})


def test_commands_are_found_wherever_a_kind_keeps_them_each_once() -> None:
    one, two = ["rm", "-rf"], "sh -c '\x1b'"
    cells: list[dict[str, Any]] = [
        {"job": {"command": one}},
        {"job": {"stages": [{"do": [{"command": two}, {"command": one}]}], "command": None}},
    ]
    assert commands_of({"plan": {"cells": cells}}) == ('["rm", "-rf"]', "\"sh -c '\\u001b'\"")
    assert commands_of({"kind": "trace"}) == ()


@pytest.mark.parametrize(
    "value", [None, 7, "", "0abcdef", "x/../projects", "0ABCDEF1", "0abcdef1\n", "a" * 65]
)
def test_an_id_is_hexadecimal_digits(value: object) -> None:
    with pytest.raises(ResultError, match="is none of leadline's"):
        checked_id(value)


@pytest.mark.parametrize("value", [None, 7, "", ".", "..", "../x", "a/b", "a\0b"])
def test_a_name_is_one_file_s_in_one_directory(value: object) -> None:
    with pytest.raises(ResultError, match="is no plain name"):
        checked_name(value)


@pytest.mark.parametrize("field", ["id", "target"])
def test_a_plan_whose_names_lead_elsewhere_is_not_resumed(result: Path, field: str) -> None:
    manifest = look_at(result).manifest | {"options": {"drop_caches": False}}
    trial = {"id": "t0001", "order": 1, "block": 1, "cell": "t.w", "target": "t", "seed": 1}
    manifest["plan"]["trials"] = [trial | {field: "../../x"}]
    with pytest.raises(ResultError, match="is no plain name"):
        request_of(manifest)
