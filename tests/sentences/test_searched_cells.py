"""Who wants cells of a search is told to take its proof: its targets are states of many proposals each."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from made_searched import random_searched

from leadline.cli.main import EXIT_USAGE, run_command_line
from leadline.store.own import read_proposals


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One that has a proof, and one that has none."""
    found: dict[str, Path] = {}
    for seed in range(40):
        path = random_searched(random.Random(seed), tmp_path_factory.mktemp("searches") / "r")  # noqa: S311
        found["proved" if (path / "proof").is_dir() else "unproved"] = path
        if len(found) == 2:
            break
    return found


ASKED = (
    "diagnose R",
    "compare R R",
    "reproduce suse --measured R",
    "plan quick --target a=null:// --like R",
    "tune audit --no-ceph --for R",
    "tune emit net.core.rmem_max=4096 --format sysctl --from R",
    "report R --format csv",
    "report R --format fio",
    "show R --table iops",
    "show R --fail-if any.validity==INVALID",
)
BESIDE_ITS_PROOF = ("compare R/proof R", "gate R/proof --baseline R", "hosts R R/proof")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        *(("proved", words) for words in (*ASKED, *BESIDE_ITS_PROOF)),
        *(("unproved", words) for words in ASKED),
    ],
)
def test_a_search_has_no_cells_and_names_its_proof(
    searches: dict[str, Path], kind: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = searches[kind]
    code = run_command_line([re.sub("^R", str(path), word) for word in words.split()])
    told = " ".join(capsys.readouterr().err.split())
    assert code == EXIT_USAGE, told
    assert f"{path} is a search of settings" in told
    remedy = f"proof of what it found: {path}/proof" if kind == "proved" else f"leadline show {path}"
    assert remedy in told


def test_a_list_calls_a_search_by_its_name(
    searches: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run_command_line(["list", str(searches["proved"]), "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["state"].partition(",")[0] == "search"
    assert row["targets"] == []


def test_a_copy_of_a_search_has_its_proposals_and_its_proof(
    searches: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = searches["proved"]
    assert run_command_line(["import", "result", str(path), "-o", str(tmp_path)]) == 0
    copy = tmp_path / path.name
    assert read_proposals(copy) == read_proposals(path) != ()
    said = []
    for one in (path, copy):
        capsys.readouterr()
        run_command_line(["show", str(one), "--json"])
        said.append(json.loads(capsys.readouterr().out)["search"])
    assert said[0] == said[1]
