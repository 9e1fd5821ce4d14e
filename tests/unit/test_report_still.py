"""What draws charts as SVG is started beforehand, for pages alone, and no failure of that is anybody's."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest
from targets import RESULT

from findings_examples import typical
from leadline.interpreter import module_environment
from leadline.report import prepare, render, still_charts


def started(format: str) -> int:
    """How many threads it began, all of which have ended."""
    before = set(threading.enumerate())
    prepare(format)
    begun = set(threading.enumerate()) - before
    for one in begun:
        one.join(60)
        assert not one.is_alive()
    return len(begun)


def test_the_least_chart_is_drawn() -> None:
    assert still_charts.svg_of(still_charts._LEAST).startswith("<svg")


def test_only_a_page_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    gate = threading.Event()
    monkeypatch.setattr(still_charts, "svg_of", lambda spec: (gate.wait(60), drawn.append(spec)))
    threading.Timer(0.2, gate.set).start()
    for format in ("md", "csv", "json"):
        prepare(format)
    assert drawn == []
    prepare("html")
    gate.wait(60)
    for one in threading.enumerate():
        if one is not threading.current_thread() and not one.daemon:
            one.join(60)
    assert drawn == [still_charts._LEAST]


def test_what_cannot_start_is_met_by_who_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []

    def broken(_spec: object) -> str:
        raise ImportError("no vl_convert")

    monkeypatch.setattr(still_charts, "svg_of", broken)
    monkeypatch.setattr(threading, "excepthook", failures.append)
    assert started("html") <= 1
    assert failures == []


def limited(*words: str, gib: int = 4) -> subprocess.CompletedProcess[str]:
    """This Python under a limit of address space (`ulimit -v`)."""
    most = gib << 30
    command = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({most}, {most})); {words[0]}"
    return subprocess.run(
        [sys.executable, "-c", command, *words[1:]], check=False, capture_output=True, text=True
    )


def test_a_page_under_a_limit_of_address_space_has_no_still_charts_and_says_so(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run = (
        "import sys; from leadline.cli.main import run_command_line; sys.exit(run_command_line(sys.argv[1:]))"
    )
    done = limited(run, "report", str(RESULT), "-o", str(page), gib=2)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "ulimit -v" in line]
    assert "charts" in line
    text = page.read_text()
    assert "limited to 2 GiB" in text
    assert "<svg xmlns" not in text
    assert 'id="chart-runtime"' in text
    assert len(text) < 700_000


def test_a_page_with_its_charts_carries_nothing_that_draws_them() -> None:
    text = render(typical(), "html")
    assert text.count("<svg xmlns") == text.count("<figure") > 20
    assert 'id="chart-runtime"' not in text


def test_a_picture_says_its_values_and_nothing_for_machines() -> None:
    spec = {
        "data": {"values": [{"a": 1.23456, "tip": 'x & <y> "q"'}]},
        "mark": {"type": "bar", "clip": True},
        "encoding": {
            "x": {"field": "a", "type": "quantitative"},
            "text": {"field": "tip"},
            "description": {"field": "tip"},
        },
    }
    text = still_charts.picture("one", spec)
    root = ElementTree.fromstring(text)  # noqa: S314  (it was made here)
    assert [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")] == ['x & <y> "q"']
    assert "<y>" not in text
    assert not re.search(r"role=|aria-label|\.\d{3}", text)
    ids = [part.get("id") for part in root.iter() if part.get("id")]
    assert ids
    assert all(name.startswith("one-") and f"url(#{name})" in text for name in ids)


def test_the_chart_runtime_is_not_made_where_that_would_end_the_process() -> None:
    making = "from leadline.report.renderers.runtime import made_runtime; made_runtime()"
    done = limited(making)
    assert done.returncode == 1
    assert "UsageError" in done.stderr
    assert "ulimit -v unlimited" in done.stderr


def test_no_child_tries_the_engine_where_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    monkeypatch.setattr(subprocess, "run", None)
    still_charts.undrawable.cache_clear()
    assert still_charts.undrawable() is None


def test_the_build_can_make_the_runtime_before_there_is_an_extension() -> None:
    program = (
        "import sys; sys.modules['leadline._core'] = None; import leadline.report.renderers.runtime as found;"
        " print(found.made_runtime.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=module_environment(),
    )
    assert done.stdout == "made_runtime\n", done.stderr
