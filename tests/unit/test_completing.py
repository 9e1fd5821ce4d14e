"""What a shell is offered of a directory: results, and no name that would move the cursor."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from test_help import EVERY

from leadline.cli.options import complete_lab, complete_result


def test_results_are_offered_and_no_name_that_is_no_plain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a", "no", "bad\x1b]0;name"):
        (tmp_path / "r" / name).mkdir(parents=True)
        if name != "no":
            (tmp_path / "r" / name / "manifest.json").touch()
    monkeypatch.chdir(tmp_path)
    context, parameter = click.Context(click.Command("show")), click.Argument(["directory"])
    found = complete_result(context, parameter, "r/")
    assert [(one.type, one.value) for one in found] == [("dir", "r/"), ("plain", "r/a"), ("plain", "r/b")]
    assert [one.value for one in complete_result(context, parameter, "nowhere/")] == ["nowhere/"]


def test_labs_are_offered_where_a_verb_takes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "leadline.lab.registry.directories", lambda _variables: {"big": tmp_path, "lab": tmp_path}
    )
    context, parameter = click.Context(click.Command("down")), click.Argument(["name"])
    assert [one.value for one in complete_lab(context, parameter, "")] == ["big", "lab"]
    (name,) = (one for one in EVERY["leadline lab down"].params if one.name == "name")
    assert [one.value for one in name.shell_complete(context, "b")] == ["big"]
