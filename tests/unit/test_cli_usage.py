"""A command without its words prints its help, as it is read, and ends as a wrong command line does."""

from __future__ import annotations

import pytest

from leadline.cli.main import EXIT_USAGE, run_command_line


@pytest.mark.parametrize("words", [[], ["mount"], ["lab"], ["tune"], ["import"], ["model"], ["deploy"]])
def test_a_command_without_its_words_prints_its_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == EXIT_USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err.splitlines()[0] == f"Usage: {' '.join(['leadline', *words])} [OPTIONS] COMMAND [ARGS]..."
    )
    assert "\\n" not in printed.err
    assert "Error" not in printed.err
