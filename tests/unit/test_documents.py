"""Pages that are made from data are the data's; the house's own rules hold."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "leadline"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_the_page_of_checks_is_what_the_tool_makes() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "check_page.py"))["page"]()
    assert (ROOT / "docs" / "check.md").read_text() == made, "run: python tools/check_page.py"


def test_the_page_of_settings_is_that_of_their_table() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "tuning_page.py"))["page"]()
    assert (ROOT / "docs" / "tuning.md").read_text() == made, "run: python tools/tuning_page.py"


def test_the_page_of_fio_s_options_is_what_the_tool_makes() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "fio_page.py"))["page"]()
    assert (ROOT / "docs" / "fio.md").read_text() == made, "run: python tools/fio_page.py"


def test_the_page_of_diagnoses_has_the_causes_and_the_figures() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "diagnosis_page.py"))["page"]()
    assert (ROOT / "docs" / "diagnosis.md").read_text() == made, "run: python tools/diagnosis_page.py"


def test_the_page_of_commands_is_what_help_says() -> None:
    words = [sys.executable, str(ROOT / "tools" / "cli_page.py"), "-"]
    made = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    assert (ROOT / "docs" / "cli.md").read_text() == made, "run: python tools/cli_page.py"


def test_the_page_of_validity_codes_is_the_catalogues() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "validity_page.py"))["page"]()
    assert (ROOT / "docs" / "validity.md").read_text() == made, "run: python tools/validity_page.py"


def test_the_tables_of_counters_are_the_lists() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "observers_page.py"))["page"]()
    assert (ROOT / "docs" / "observers.md").read_text() == made, "run: python tools/observers_page.py"


def test_the_page_of_proofs_is_what_their_lines_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    found = runpy.run_path(str(ROOT / "bench" / "tuning.py"))
    made = "\n".join(found["page"](list(found["Runs"](ROOT / "bench" / "tuning.jsonl")))) + "\n"
    assert (ROOT / "bench" / "tuning.md").read_text() == made, "run: python bench/tuning.py judge"


def test_every_file_says_why_it_exists() -> None:
    texts = {module.relative_to(PACKAGE): module.read_text() for module in MODULES}
    silent = [
        str(module) for module, text in texts.items() if text and not ast.get_docstring(ast.parse(text))
    ]
    assert not silent, "open these with why they exist: " + ", ".join(silent)


def library_part(module: Path) -> ast.Module:
    """A module without its `if __name__ == "__main__"`: that part is a child process of leadline's own."""
    tree = ast.parse(module.read_text())
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test).startswith("__name__ =="))
    ]
    return tree


def test_only_the_command_line_prints_or_exits() -> None:
    banned = ("print", "exit")
    for module in MODULES:
        if "cli" in module.relative_to(PACKAGE).parts:
            continue
        for node in ast.walk(library_part(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in banned, f"{module}: {node.func.id}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) != ("sys", "exit"), module
