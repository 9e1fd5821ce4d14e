"""What the program and its pages tell a user to run exists, with every option that is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from printed_commands import ROOT, texts, told, unquoted, wrong

from leadline.cli.change.tune_reach import TuneOptions, journal_meant
from leadline.cli.main import (
    EXIT_FAILED,
    EXIT_GATE,
    EXIT_GOOD,
    EXIT_INVALID,
    EXIT_UNDECIDED,
    EXIT_USAGE,
    leadline,
)
from leadline.tuning.changing.journal import TuningJournal, state_directory


def test_every_command_that_is_told_has_its_verb_and_options() -> None:
    found = [(place, command) for place, text in texts() for command in told(text)]
    assert len(found) > 500
    assert [
        f"{place}: leadline {command}: {why}" for place, command in found if (why := wrong(command))
    ] == []


def test_the_path_of_a_result_is_printed_as_a_shell_takes_it_for_one_word() -> None:
    assert list(unquoted()) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("see `leadline mount-plan`", "has no verb"),
        ("a change of mounts (leadline mount-plan)", "has no verb"),
        ("go on with: leadline tune revert --config x", "has no option --config"),
        ("take it back with: leadline tune undo", "has no verb"),
        ("take it back with: leadline tune revert --conf 'a b' --id x", ""),
    ],
)
def test_a_command_that_is_wrong_is_found(text: str, why: str) -> None:
    (command,) = told(text)
    assert why in wrong(command)
    assert bool(why) == bool(wrong(command))


def test_a_tuning_command_repeats_whatever_names_its_journal_and_system(tmp_path: Path) -> None:
    which = TuneOptions("", tmp_path / "a b.conf", "tuner", tmp_path / "state")
    named = f"leadline tune revert --conf '{tmp_path}/a b.conf' --id tuner --state {tmp_path}/state"

    assert journal_meant(which).command("revert") == named
    assert journal_meant(TuneOptions(state=tmp_path)).command("status") == (
        f"leadline tune status --state {tmp_path}"
    )


def test_a_tuning_command_of_a_journal_that_nobody_named_names_it_where_it_is_not_this_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert TuningJournal(state_directory({"XDG_STATE_HOME": str(tmp_path)})).command("revert") == (
        "leadline tune revert"
    )
    assert TuningJournal(tmp_path / "a").command("revert") == f"leadline tune revert --state {tmp_path}/a"


def test_every_target_of_make_that_is_told_is_in_the_makefile() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    told_targets = {
        (page.name, target)
        for page in pages
        for target in re.findall(r"(?:`|^    )make ([a-z][a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert len(told_targets) > 50
    assert [one for one in sorted(told_targets) if one[1] not in known] == []


def test_the_help_and_the_page_of_results_have_the_exit_codes() -> None:
    helped = " ".join((leadline.help or "").split())
    codes = (EXIT_GOOD, EXIT_FAILED, EXIT_USAGE, EXIT_INVALID, EXIT_GATE, EXIT_UNDECIDED)
    told_codes = re.findall(r"(?:: |, )(\d) ", helped[helped.index("Exit codes") :])
    assert told_codes == [str(code) for code in codes]
    page = (ROOT / "docs" / "results.md").read_text()
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == [str(code) for code in codes]
