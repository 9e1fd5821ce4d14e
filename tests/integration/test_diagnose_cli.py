"""`leadline diagnose` as it is typed: on a result of this host, on a damaged one, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support import Command, command_line

STUDY = """
format: leadline.study/1
blocks: 2
works:
  busy: {rw: randread, bs: 4k, size: 16M, iodepth: 1, time_based: true, runtime: 1s}
  slow: {rw: randread, bs: 4k, size: 16M, iodepth: 1, time_based: true, runtime: 1s, rate_iops: 20}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("diagnose")
    (place / "study.yaml").write_text(STUDY)
    out = place / "out"
    words = command_line("run", str(place / "study.yaml"), "--target", "nothing=null://", "-o", str(out))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: a loaded machine may make a cell INVALID
    return out


def test_the_answer_is_first_then_each_cell_has_a_line_and_one_cell_a_screen(
    leadline: Command, result: Path
) -> None:
    lines = leadline("diagnose", str(result)).stdout.splitlines()
    assert lines[0].startswith("nothing, 2 cells. Bottleneck: ")
    table = [line for line in lines[lines.index("") + 1 :] if not line.startswith(" ")]
    assert [line.split()[0] for line in table[:3]] == ["cell", "nothing.busy", "nothing.slow"]
    assert max(len(line) for line in lines if not line.startswith("  leadline ")) <= 100
    whole = leadline("diagnose", str(result), "--cell", "slow")
    assert whole.returncode == 0, whole.stderr
    printed = whole.stdout.splitlines()
    assert printed[0].startswith("nothing.slow: ")
    assert len(printed) <= 40
    assert max(map(len, printed)) <= 100
    assert any("this host's CPUs" in line for line in printed)
    assert not any("fullest port" in line for line in printed), "there is no link on the way to nothing"


def test_json_has_every_figure_of_every_trial(leadline: Command, result: Path) -> None:
    found = json.loads(leadline("diagnose", str(result), "--json").stdout)
    assert found["format"] == "leadline.diagnosis/1"
    for cell in found["cells"]:
        assert cell["outcome"] in ("named", "undecided")
        assert [one["engine_share"] is not None for one in cell["figures"]] == [True, True]
        assert all(one["osd_write_s"] is None for one in cell["figures"])
        open_causes = {one["cause"] for one in cell["open"]}
        assert not {"link_full", "osd_cpu", "client_thread"} & open_causes, "where nothing is stored"


def test_a_result_without_samples_is_judged_by_what_it_has(
    leadline: Command, result: Path, tmp_path: Path
) -> None:
    """As of versions that stored none, or where they were removed."""
    old = tmp_path / "old"
    shutil.copytree(result, old)
    for file in (old / "series").iterdir():
        file.unlink()
    done = leadline("diagnose", str(old), "--cell", "busy")
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    assert done.stdout or "series" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(("--cell", "nobody"), "no cell has 'nobody' in its name"), (("--cell", ""), "")],
)
def test_a_cell_that_is_not_there(
    leadline: Command, result: Path, words: tuple[str, ...], complaint: str
) -> None:
    done = leadline("diagnose", str(result), *words)
    assert done.returncode == (2 if complaint else 0)
    assert complaint in done.stderr
    assert "nothing.busy" in done.stderr + done.stdout


def test_what_is_no_study_is_refused(leadline: Command, tmp_path: Path) -> None:
    done = leadline("diagnose", str(tmp_path))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    figures = tmp_path / "published"
    assert leadline("import", "published", "castor", "-o", str(figures)).returncode in (0, 2)
    if figures.exists():
        assert "not trials" in leadline("diagnose", str(figures)).stderr
