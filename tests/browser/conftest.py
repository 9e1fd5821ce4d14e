"""One browser for all tests of this folder, and the example reports, each rendered once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools import Page, browser, find_browser
from targets import RESULT

from findings_examples import EXAMPLES
from leadline.report import render
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings


@pytest.fixture(scope="session")
def tab() -> Iterator[Page]:
    """A tab of a headless Chromium with a fresh profile."""
    executable = find_browser()
    if executable is None:
        pytest.skip("no Chromium: install Debian's package chromium")
    with browser(executable) as page:
        yield page


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of an example's page, or of that of a result which was recorded."""
    folder = tmp_path_factory.mktemp("reports")

    def path_of(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            found = build_findings(open_result(RESULT)) if name == "recorded" else EXAMPLES[name]()
            path.write_text(render(found, "html"), encoding="utf-8")
        return path

    return path_of
