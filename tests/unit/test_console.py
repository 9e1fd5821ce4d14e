"""What reaches a terminal: text from outside is shown, and never acted on."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest
from rich.table import Table
from rich.text import Text

import leadline
from leadline.cli import console
from leadline.cli.main import run_command_line
from leadline.errors import ResultError
from leadline.store.acting import SeenManifest
from leadline.store.journal import Journal

EVIL = "a\x1b]0;owned\x07\x1b[2J\u202eb\u200b\x9b1m\r\nleadline: all is well\udcff"


def shown(text: str) -> list[str]:
    """The lines of an output; none may hold anything that a terminal acts on."""
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines), text
    assert "leadline: all is well" not in lines
    return lines


@pytest.mark.parametrize("err", [False, True])
def test_a_line_stays_one_line_whatever_it_holds(capfd: pytest.CaptureFixture[str], err: bool) -> None:
    console.echo(f"removed: {EVIL}", err=err)
    out = capfd.readouterr()
    assert len(shown(out.err if err else out.out)) == 2


def test_text_in_lines_keeps_its_lines_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    console.echo_text("a\tb\n\x1b[31mc\n")
    assert capfd.readouterr().out == "a\tb\n\\x1b[31mc\n\n"


def test_an_error_is_its_message_and_its_remedy(capfd: pytest.CaptureFixture[str]) -> None:
    console.complain(ResultError(f"{EVIL} is damaged", f"restore {EVIL}"))
    lines = shown(capfd.readouterr().err)
    assert len(lines) == 3
    assert lines[1].startswith("  restore")


@pytest.mark.parametrize("stderr", [False, True])
def test_tables_and_text_of_rich_are_cleaned(capfd: pytest.CaptureFixture[str], stderr: bool) -> None:
    made = console.make_console(stderr=stderr)
    table = Table(title="t")
    table.add_column("path")
    table.add_row(Text(EVIL.replace("\r\n", "")))
    made.print(table)
    made.print(EVIL.replace("\r\n", ""), markup=False)
    out = capfd.readouterr()
    text = out.err if stderr else out.out
    shown(text)
    assert text.count(r"\x1b[2J") == 2


def test_a_defect_is_told_without_what_its_text_would_do(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(EVIL)

    monkeypatch.setattr(click.Group, "main", broken)
    for debug in ("", "1"):
        monkeypatch.setenv("LEADLINE_DEBUG", debug)
        assert run_command_line(["list"]) == 1
        lines = shown(capfd.readouterr().err)
        assert any(line.startswith("leadline: internal error: RuntimeError: a") for line in lines)
        assert any(line.startswith("Traceback") for line in lines) == bool(debug)


@pytest.mark.parametrize(
    "arguments",
    [["show", EVIL], [EVIL], ["list", EVIL], ["run", f"./{EVIL}.yaml"], ["trend", EVIL], ["--" + EVIL]],
)
def test_a_command_line_is_repeated_as_text(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run_command_line(arguments) == 2
    shown(capfd.readouterr().err)


def test_undo_shows_what_a_journal_calls_a_path(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (["gone " + EVIL], {"left " + EVIL: "why " + EVIL})
    monkeypatch.setattr("leadline.run.session.undo_run", lambda _path, _seen: (*found, ""))
    monkeypatch.setattr("leadline.store.acting.look_at", lambda _path: SeenManifest({}, ()))
    assert run_command_line(["undo", str(tmp_path)]) == 1
    out = capfd.readouterr()
    assert len(shown(out.out)) == len(shown(out.err)) == 2


def test_undo_of_a_forged_journal_says_nothing_raw(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from builders import clock, manifest

    from leadline.store.writer import create_result

    path = tmp_path / "r\x1b[31m"
    create_result(path, manifest(title=EVIL), clock()).close()
    Journal(path / "events.jsonl", clock()).append("workspace_intended", target=EVIL, directory=5)
    assert run_command_line(["undo", str(path)]) == 2
    lines = shown(capfd.readouterr().err)
    assert "events.jsonl, line 1" in lines[0]


def test_nothing_but_the_console_prints() -> None:
    """Verbs print through functions that escape; what writes to a stream otherwise says why, here."""
    allowed = {
        "console.py",
        "report.py",  # a report to standard output, byte for byte
        "lab_guest.py",  # what a command in the guest prints, byte for byte
    }
    folder = Path(leadline.__file__).parent / "cli"
    for file in folder.rglob("*.py"):
        if file.name in allowed:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                of = ast.unparse(node.func)
                assert of not in ("print", "click.echo", "click.secho"), f"{file}: {of}"
                assert not of.startswith(("sys.stdout.", "sys.stderr.")) or of.endswith(
                    ("isatty", "flush", "fileno")
                ), f"{file}: {of}"
                assert of != "Console", f"{file} makes a console of its own"
