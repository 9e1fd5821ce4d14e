"""`leadline run` and `show` answer a study's question on one screen, and what they say is in the figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from measured import CACHED, assert_measured
from support import Command, assert_one_screen

STUDY = """
format: leadline.study/1
question: Does storage cost anything here?
defaults: {size: 1M, time_based: true, runtime: 400ms}  # far from what is too short: a thread may begin late
works:
  randread_4k: {rw: randread, bs: 4k}
  seqread_1m: {rw: read, bs: 1M}
"""


@pytest.fixture
def finished(leadline: Command, tmp_path: Path) -> tuple[Path, str]:
    """A result of memory against no storage at all, which differ by far, and what the run printed."""
    (tmp_path / "a").mkdir()
    (tmp_path / "study.yaml").write_text(STUDY)
    targets = ("--target", f"a={tmp_path / 'a'}", "--target", "n=null://")
    done = leadline(
        "run", str(tmp_path / "study.yaml"), *targets, "--blocks", "4", "--out", str(tmp_path / "r")
    )
    assert_measured(done, tmp_path / "r", CACHED)
    return tmp_path / "r", done.stdout


def test_the_answer_is_what_the_comparisons_say(finished: tuple[Path, str], leadline: Command) -> None:
    result, printed = finished
    document = json.loads(leadline("show", str(result), "--json").stdout)
    lines = printed.splitlines()
    assert lines[0] == document["question"] == "Does storage cost anything here?"
    assert " ".join(printed.split()).find(document["answer"]) > 0
    led = [one for one in document["comparisons"] if one["metric"] in ("bandwidth", "iops")]
    said = re.search(r"faster than a in (?:all (\d)|(\d) of 2) workloads", document["answer"])
    faster = [one for one in led if one["verdict"] == "faster"]
    assert int(said[1] or said[2]) == len(faster) if said else not faster
    undecided = [one for one in led if one["verdict"] == "undecided"]
    assert bool(undecided) == ("inconclusive" in document["answer"].lower())
    for factor, work in re.findall(r"([\d.,]+)x in (\w+) \(CI", document["answer"]):
        ratio = next(one["ratio"] for one in led if one["work"] == work)
        assert float(factor.replace(",", "")) == pytest.approx(ratio, rel=0.05)  # two digits are printed


def test_the_screen_fits_and_all_and_one_table_are_asked_for(
    finished: tuple[Path, str], leadline: Command
) -> None:
    result, printed = finished
    shown = leadline("show", str(result)).stdout
    assert shown in printed
    assert_one_screen(shown)
    assert "\x1b" not in shown
    whole = leadline("show", str(result), "--all").stdout
    assert len(whole.splitlines()) > len(shown.splitlines())
    assert "Validity" in whole
    table = leadline("show", str(result), "--table", "latency_mean").stdout
    assert table.count("randread_4k") == 2
    refused = leadline("show", str(result), "--table", "speed")
    assert refused.returncode == 2
    assert "choose one of: bandwidth" in refused.stderr
    assert leadline("show", str(result), "--all", "--json").returncode == 2
