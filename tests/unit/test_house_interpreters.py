"""The rule on Python processes catches every way but the one of `leadline.interpreter`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RULE = Path(__file__).parents[2] / "tools" / "house" / "interpreters.py"


def rule(folder: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(RULE), str(folder)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nrun([sys.executable, 'x'])\n",
        "from sys import executable\n",
        "run(['python3', '-m', 'leadline.run'])\n",
        "run(*(python, '-m', f'distributed.cli.{x}'))\n",
        "start(python, '-m', 'leadline')\n",
        "line = f'{python} -m leadline --version'\n",
    ],
)
def test_another_way_to_start_python_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    found = rule(tmp_path, "one.py", text)
    assert found.returncode == 1
    assert "one.py:" in found.stdout


def test_the_one_way_and_words_about_commands_are_no_breach(tmp_path: Path) -> None:
    rule(tmp_path, "interpreter.py", "import sys\nWORDS = [sys.executable, '-P', '-m', 'leadline']\n")
    text = "help = 'try `ssh HOST PYTHON -m leadline --version`'\nwords = ['qemu', '-m', '512M']\n"
    found = rule(tmp_path, "one.py", text)
    assert (found.returncode, found.stdout) == (0, "")
