"""`leadline plan` and `leadline studies`: what is printed."""

from __future__ import annotations

import json

import jsonschema
import pytest
from click.testing import CliRunner

from leadline.cli.measure import plan as plan_verb
from leadline.cli.measure import studies as studies_verb
from leadline.cli.measure import study_options
from leadline.errors import SpecError, UsageError
from leadline.plan.model import Plan
from leadline.study.kinds import ASKED, JOB_OPTIONS


@pytest.fixture(autouse=True)
def _every_engine_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_options, "_unavailable_engines", dict)


def plan_output(*arguments: str) -> str:
    result = CliRunner().invoke(plan_verb.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_plan_prints_every_trial_and_every_option() -> None:
    text = plan_output("quick", "--target", "n=null://", "--blocks", "2", "--seed", "5")
    assert "12 trials: 6 cells x 2 blocks, seed 5" in text
    for order in range(1, 13):
        assert f"t{order:04d} n." in text
    for option in JOB_OPTIONS:
        assert (f" {option}=" in text) == (option in ASKED["io"].model_fields)


def test_plan_says_what_is_written_where(tmp_path: object) -> None:
    text = plan_output("quick", "--target", f"a={tmp_path}", "--set", "size=1M", "--set", "limits.reserve=0")
    assert f"below {tmp_path}/leadline-<id>/" in text
    assert "1 file of 1 MiB" in text


def test_plan_says_how_small_a_difference_the_blocks_can_find() -> None:
    three = plan_output("quick", "--target", "n=null://", "--blocks", "3")
    twelve = plan_output("quick", "--target", "n=null://", "--target", "m=null://", "--blocks", "12")
    assert "minimum detectable difference (80 % power; 3 blocks, " in three
    assert "; 12 blocks, " in twelve
    assert "where ratios vary by 10%" in twelve
    assert "one block finds no difference" in plan_output("quick", "--target", "n=null://", "--blocks", "1")


def test_plan_as_json_is_the_plan() -> None:
    plan = Plan.from_json(json.loads(plan_output("render", "--target", "n=null://", "--json")))
    assert len(plan.trials) == 66


def test_plan_sends_no_control_character_of_a_user_to_the_terminal() -> None:
    text = plan_output("quick", "--target", "n=null://", "--set", "title=[red]\x1b[31mhi")
    assert "\x1b" not in text
    assert "[red]" in text


def test_plan_without_a_target_is_a_usage_error() -> None:
    with pytest.raises(SpecError, match="no target"):
        CliRunner().invoke(plan_verb.command, ["quick"], catch_exceptions=False)


def test_studies_lists_prints_and_publishes() -> None:
    def studies(*arguments: str) -> str:
        return CliRunner().invoke(studies_verb.command, arguments, catch_exceptions=False).stdout

    assert {row["name"] for row in json.loads(studies("--json"))["studies"]} >= {"quick", "render"}
    assert "quick" in studies()
    assert "format: leadline.study/1" in studies("quick")
    jsonschema.validate(json.loads(studies("render", "--json")), json.loads(studies("--schema")))
    with pytest.raises(UsageError):
        studies("quick", "--schema")
