"""What a shell is offered of a directory: results, and no name that would move the cursor."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from leadline.cli.options import complete_result


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
