"""What a page redistributes goes with its notices: each package of the runtime, its copyright and terms."""

from __future__ import annotations

import base64
import gzip
import html
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from findings_examples import small
from leadline.report import render

ROOT = Path(__file__).resolve().parents[2]
NOTICES = ROOT / "python" / "leadline" / "report" / "templates" / "notices.txt"
_WITHOUT_COPYRIGHT = {"robust-predicates"}  # given to the public: the Unlicense


def _tool(name: str = "notices") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def parts() -> list[tuple[str, str]]:
    """The names of each part, and its terms."""
    return [(part.split("\n")[0], part) for part in NOTICES.read_text().split("\n----\n\n")[1:]]


def test_every_package_of_the_runtime_has_its_copyright_and_terms(parts: list[tuple[str, str]]) -> None:
    carried = _tool().carried()
    assert {"vega", "vega-lite", "vega-embed", "d3-array"} <= {name for name, _ in carried}
    for name, version in carried:
        found = [terms for names, terms in parts if f"{name} {version} (" in f" {names}"]
        assert len(found) == 1, f"{name} {version}: run python tools/notices.py"
        assert len(found[0]) > 500, name
        assert name in _WITHOUT_COPYRIGHT or "opyright" in found[0], name


def test_a_page_holds_the_notices_of_what_it_redistributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.report.renderers.page.undrawable", lambda: ("it is not there", "Get it."))
    page = html.unescape(render(small(), "html"))
    packed = re.search('id="chart-runtime">([^<]+)', page)
    assert packed
    assert b"vegaEmbed" in gzip.decompress(base64.b64decode(packed[1]))
    assert NOTICES.read_text().strip() in page


def test_a_page_that_redistributes_nothing_holds_no_notices() -> None:
    assert "Third-party" not in render(small(), "html")


def test_every_crate_that_the_wheel_is_linked_with_has_its_terms_there() -> None:
    tool = _tool()
    named = {(name, version) for name, version, _ in tool.licences((ROOT / "NOTICES-crates.txt").read_text())}
    assert named == tool.linked(), "run: make notices"


def test_an_advisory_holds_for_the_versions_that_it_names_and_no_others() -> None:
    tool = _tool("supply/advisories")
    ranges = [
        {"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}, {"fixed": "2.3"}, {"introduced": "3.0"}]}
    ]
    advisory = {"affected": [{"package": {"name": "Some_Name"}, "versions": ["1.5"], "ranges": ranges}]}
    held = [
        text
        for text in ("1.4", "1.5", "2.0", "2.2.9", "2.3", "2.9", "3.1")
        if tool.affects(advisory, "some-name", tool.Version(text))
    ]
    assert held == ["1.5", "2.0", "2.2.9", "3.1"]
    assert not tool.affects(advisory, "other", tool.Version("2.1"))


def test_a_dependency_without_a_hash_is_found() -> None:
    pins = _tool("house/pins")
    loose = "some==1.0 \\\n    --hash=sha256:00\n    # via x\nother>=1\nmore==1\n"
    assert pins.loose_packages("lock", loose) == ["lock: other>=1", "lock: more==1"]
    crate = '[[package]]\nname = "a"\nversion = "1"\nsource = "git+ssh:x"\n'
    assert len(pins.loose_crates(crate)) == 1
