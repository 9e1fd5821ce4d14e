"""What `make test` makes of tests that fail beside others: tried alone once, told either way."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Fails where its file says so; each time it runs, the file is a line shorter.
TESTS = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["once", "always", "a - b"])
def test_it(name):
    file = Path(__file__).with_name(name)
    lines = file.read_text().splitlines() if file.exists() else []
    file.write_text("\\n".join(lines[1:]))
    assert not lines, "said so"
"""


PAGE = """
| promise | tested by |
|---|---|
| Nothing is lost. | `tests/test_some.py`, `test_it*` |
"""


@pytest.fixture
def phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with one phase of three tests in a directory of its own."""
    spec = importlib.util.spec_from_file_location("phases_under_test", ROOT / "tools" / "test_phases.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "safety.md").write_text(PAGE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra -p no:cacheprovider\n")
    monkeypatch.delenv("PYTEST_ARGUMENTS", raising=False)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(module, "LANES", ((module.Phase("some", ("tests/test_some.py",)),),))
    monkeypatch.setattr(module, "LAST", module.Phase("true", ("true",), pytest=False))
    return module


def failing(tmp_path: Path, **times: int) -> None:
    """Let tests fail so many times."""
    for name, count in times.items():
        (tmp_path / "tests" / name).write_text("x\n" * count)


def test_one_that_passes_alone_is_a_failure_that_is_told_as_such(
    phases: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(tmp_path, once=1, **{"a - b": 1})
    assert phases.main([]) == 1
    *_, first, last = capsys.readouterr().out.splitlines()
    log = tmp_path / "logs" / "some.log"
    assert first == f"FAILED tests/test_some.py::test_it[once] beside others, passed alone: {log}"
    assert last == f"FAILED tests/test_some.py::test_it[a - b] beside others, passed alone: {log}"


def test_one_that_fails_alone_too_is_a_failure_and_the_last_line(
    phases: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(tmp_path, once=1, always=9)
    assert phases.main([]) == 1
    log = tmp_path / "logs" / "some.log"
    last = f"FAILED tests/test_some.py::test_it[always] beside others and alone: {log}"
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_too_many_are_not_tried_again(
    phases: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(phases, "AGAIN", 1)
    failing(tmp_path, once=1, **{"a - b": 1})
    assert phases.main([]) == 1
    assert "alone" not in capsys.readouterr().out


def test_a_phase_that_ends_otherwise_is_a_failure_whatever_its_tests_do(
    phases: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(phases, "LAST", phases.Phase("false", ("false",), pytest=False))
    failing(tmp_path, once=1)
    assert phases.main([]) == 1
    out = capsys.readouterr().out
    assert "alone" not in out
    assert out.splitlines()[-1] == f"FAILED false, with code 1: {tmp_path / 'logs' / 'false.log'}"


def test_all_that_pass_say_nothing_of_failures(
    phases: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phases.main([]) == 0
    assert "FAILED" not in capsys.readouterr().out


def test_a_test_of_a_promise_that_was_left_out_fails_the_run(
    phases: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE + "| Nothing is removed. | `tests/test_other.py` |\n| And more | `make kills` |\n"
    (tmp_path / "docs" / "safety.md").write_text(page)
    assert phases.main([]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("FAILED, as it was left out")
    assert last.endswith("docs/safety.md: Nothing is removed.: test_other.py")


def test_a_promise_whose_test_is_skipped_here_is_named_and_fails_nothing(
    phases: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = "import pytest\n\ndef test_other():\n    pytest.skip('no such server')\n"
    (tmp_path / "tests" / "test_other.py").write_text(skipped)
    (tmp_path / "docs" / "safety.md").write_text(PAGE + "| All are served. | `test_other` |\n")
    phase = phases.Phase("some", ("tests/test_some.py", "tests/test_other.py"))
    phases.LANES = ((phase,),)
    assert phases.main([]) == 0
    assert "skipped here: a test of a promise of docs/safety.md: All are served.: test_other" in (
        capsys.readouterr().out
    )


def test_what_is_left_to_the_night_is_left_out_unless_all_is_asked_for(
    phases: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase = phases.Phase("some", ("tests",), "own_lab")
    words = phase.command()
    assert words[words.index("-m", 3) + 1] == "own_lab and not nightly"
    monkeypatch.setenv(phases.EVERYTHING, "1")
    words = phase.command()
    assert words[words.index("-m", 3) + 1] == "own_lab"
