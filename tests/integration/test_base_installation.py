"""What `pip install leadline` brings is enough: no process of a command has the packages of the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from targets import RESULT

from leadline.interpreter import module_environment

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_STUDY = """
format: leadline.study/1
blocks: 3
limits: {reserve: 1M}
works: {reads: {rw: randread, bs: 64k, size: 1M, runtime: 200ms}}
"""


def with_all_that_it_needs(names: list[str]) -> dict[str, Distribution]:
    """Installed packages by name: these, and what they need themselves without an extra of theirs."""
    found: dict[str, Distribution] = {}
    while names:
        match = _NAME.match(names.pop())
        assert match
        if match[0].lower() in found:
            continue
        found[match[0].lower()] = one = distribution(match[0])
        names += [need for need in one.requires or () if "extra ==" not in need and "; python" not in need]
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the packages of the base alone, and leadline's sources on its path."""
    place = tmp_path_factory.mktemp("base")
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    for one in with_all_that_it_needs(list(PROJECT["dependencies"])).values():
        for top in {path.parts[0] for path in one.files or () if path.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    return place / "bin" / "python"


def run(python: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """A command of leadline by that Python."""
    return subprocess.run(
        [python, "-P", "-m", "leadline", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=module_environment(),
    )


@pytest.mark.parametrize(
    "module",
    ["darshan", "distributed", "duckdb", "optuna", "pandas", "pyDOE3", "pytest", "scipy", "vl_convert"],
)
def test_no_package_of_an_extra_is_there(base: Path, module: str) -> None:
    done = subprocess.run([base, "-P", "-c", f"import {module}"], capture_output=True, check=False)
    assert b"ModuleNotFoundError" in done.stderr


def test_a_study_runs_and_is_shown_by_the_base_alone(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    (tmp_path / "s.yaml").write_text(_STUDY)
    (tmp_path / "data").mkdir()
    (tmp_path / "other").mkdir()
    targets = [word for name in ("data", "other") for word in ("--target", f"{name}={tmp_path / name}")]
    done = run(base, "run", tmp_path / "s.yaml", *targets, "--quiet", "--out", out)
    assert done.returncode in (0, 3), done.stderr  # 3: trials of 0.2 s may be called too short
    for words in (["show", out, "--json"], ["diagnose", out], ["list", tmp_path]):
        done = run(base, *words)
        assert done.returncode in (0, 3), (words, done.stderr)
        assert done.stdout.strip()


def test_a_program_is_traced_and_the_trace_is_shown_by_the_base_alone(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    done = run(base, "trace", "--out", out, "--", "cat", "/etc/passwd")
    assert done.returncode == 0, done.stderr
    for words in (["show", out], ["report", out, "--format", "md"]):
        done = run(base, *words)
        assert done.returncode == 0, done.stderr
        assert "cat" in done.stdout


@pytest.mark.parametrize("form", ["md", "csv", "json", "openmetrics"])
def test_a_report_is_made_by_the_base_alone(base: Path, form: str) -> None:
    done = run(base, "report", RESULT, "--format", form)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 500
    assert done.stderr == ""


def test_a_page_is_made_by_the_base_and_says_what_draws_its_charts_without_scripts(
    base: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = run(base, "report", RESULT, "-o", page)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "charts" in line
    assert "pip install 'leadline[report]'" in line
    text = page.read_text()
    assert 'id="chart-runtime"' in text
    assert "<svg xmlns" not in text
    assert "vl-convert is not installed" in text
    assert run(Path(sys.executable), "report", RESULT, "-o", page).stderr == ""
    assert "<svg" in page.read_text()


def test_doctor_names_the_extra_that_is_missing(base: Path) -> None:
    done = run(base, "doctor")
    assert done.returncode == 0, done.stderr
    for name in ("report", "search", "darshan", "hosts"):
        assert f"leadline[{name}]" in done.stdout
