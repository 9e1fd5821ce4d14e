"""The rule on shares catches what it is there for: a result that somebody chose."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "house" / "shares.py"))


def breaches(root: Path, share: str) -> list[str]:
    table = root / "python/leadline/verdict/diagnosis/table/osd.yaml"
    table.parent.mkdir(parents=True)
    table.write_text(f"mine:\n  share: {share}\nother:\n  measured_by: an experiment\n")
    return list(TOOL["breaches"](root))


@pytest.mark.parametrize(
    ("share", "what"),
    [
        ('"0.35"', "a number, 0.35"),
        ("1", "a number, 1"),
        ("throttled_per_s / 10", "a number, 10"),
        ("20 * resent_share", "a number, 20"),
        ("last_share * coalesce(peers_part, 0.5)", "a number, 0.5"),
        ("least(wait_s / latency_s, 1)", "a number, 1"),
        ("least(wait_s, latency_s)", "a function, least("),
        ("wait_s / $most", "a threshold, $most"),
    ],
)
def test_a_share_that_somebody_chose_is_refused(tmp_path: Path, share: str, what: str) -> None:
    (line,) = breaches(tmp_path, share)
    assert line.startswith("python/leadline/verdict/diagnosis/table/osd.yaml: mine: ")
    assert what in line


@pytest.mark.parametrize("share", ["wait_s / latency_s", "1 - in_flight / asked", "(a_1 + b) * c"])
def test_a_share_of_what_was_measured_is_not(tmp_path: Path, share: str) -> None:
    assert breaches(tmp_path, share) == []


def test_the_house_has_no_share_that_somebody_chose() -> None:
    assert list(TOOL["breaches"](ROOT)) == []
