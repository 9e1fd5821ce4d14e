"""What is said of the hosts of a study: codes, sentences, the section, the first screen."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from host_studies import names, stored

from leadline.errors import ResultError
from leadline.hosts.model import ClockOffset
from leadline.report import FORMATS, render
from leadline.report.redact import redacted
from leadline.store.by_host import read_by_host
from leadline.store.merge import check_whole, copy_result
from leadline.store.reader import Result, open_result
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings

MIB = 1 << 20


def codes(found: Findings) -> dict[str, str]:
    return {code.code: code.state for cell in found.cells for code in cell.validity.codes}


def evidence(found: Findings, name: str) -> str:
    return next(c.evidence for cell in found.cells for c in cell.validity.codes if c.code == name)


def rates(slow: dict[str, float] | None = None, noise: float = 0.02) -> Any:
    chance = random.Random(7)  # noqa: S311 - data of a test
    return lambda host, _block, _cell: (
        100 * MIB * (slow or {}).get(host, 1.0) * chance.lognormvariate(0, noise)
    )


def study(path: Path, slow: dict[str, float] | None = None, count: int = 4, **more: Any) -> Result:
    return stored(path / "r", names(count), rates(slow), **more)


def test_equal_hosts_are_said_to_be_equal(tmp_path: Path) -> None:
    found = build_findings(study(tmp_path))
    assert not codes(found).keys() & {"straggler", "clock_skew", "clock_unsure", "host_lost", "hosts_differ"}
    assert found.answer is not None
    assert (
        "4 hosts, started within 0 seconds: none is known to be slower than the others." in found.answer.said
    )
    assert found.cells[0].metrics["bandwidth"].value == pytest.approx(400 * MIB, rel=0.05)


@pytest.mark.provokes("straggler")
@pytest.mark.parametrize("count", [4, 20])
def test_a_slow_host_is_named_and_nobody_else(tmp_path: Path, count: int) -> None:
    found = build_findings(study(tmp_path, {"node0003": 0.7}, count, blocks=6))
    assert codes(found)["straggler"] == "DOUBTFUL"
    assert evidence(found, "straggler").startswith(f"1 of {count} hosts: node0003 0.")
    said = [one for one in found.statements if one.says == "host_slower"]
    assert [one.text.split(" is slower")[0] for one in said] == ["Host node0003"]
    assert " in 2 of 2 cells" in said[0].text
    assert found.answer is not None
    assert any("slower than the others: node0003" in text for text in found.answer.said)
    section = next(one for one in found.sections if one.name == "hosts")
    assert section.json is not None
    assert {one["host"] for one in section.json["hosts"] if one["straggler"]} == {"node0003"}


@pytest.mark.provokes("host_lost")
def test_a_lost_host_makes_its_trial_invalid(tmp_path: Path) -> None:
    found = build_findings(study(tmp_path, lost={"t0001": {"node0002": "its worker ended"}}))
    assert codes(found)["host_lost"] == "INVALID"
    assert evidence(found, "host_lost") == "1 of 4 trials; t0001: on node0002: its worker ended"
    assert "errors" not in codes(found)


@pytest.mark.parametrize(
    ("later_ns", "state"),
    [(20_000_000, None), (50_000_000, "DOUBTFUL"), (1_000_000_000, "INVALID")],
)
def test_hosts_that_begin_late_are_doubted_by_how_much_of_the_time_that_is(
    tmp_path: Path, later_ns: int, state: str | None
) -> None:
    begins = {"node0002": later_ns}
    found = build_findings(study(tmp_path, begins_ns=lambda host: begins.get(host, 0)))
    assert codes(found).get("clock_skew") == state


@pytest.mark.provokes("clock_unsure")
@pytest.mark.parametrize(
    ("error_ns", "moved_ns", "state"),
    [
        (1_000_000, 1_000_000, None),
        (6_000_000, 8_000_000, None),
        (20_000_000, 0, "DOUBTFUL"),
        (1_000_000, 40_000_000, "DOUBTFUL"),
        (1_000_000, 5_000_000_000, "INVALID"),
    ],
)
def test_clocks_that_are_not_known_or_move_are_doubted(
    tmp_path: Path, error_ns: int, moved_ns: int, state: str | None
) -> None:
    compared = [
        {"host": "node0001", "when": when, "offset_ns": offset, "error_ns": error_ns, "measured_unix_ns": 1}
        for when, offset in (("before", 0), ("after", moved_ns))
    ]
    clock = ClockOffset(0, error_ns, 1)
    assert codes(build_findings(study(tmp_path, events=compared, clock=clock))).get("clock_unsure") == state


@pytest.mark.provokes("hosts_differ")
@pytest.mark.parametrize(
    ("other", "state", "words"),
    [
        ({"python": "3.11.2"}, None, ""),
        ({"memory_bytes": 64 << 30}, "DOUBTFUL", f"memory_bytes: {64 << 30} on node0002"),
        ({"leadline": "0.2"}, "INVALID", "leadline: 0.2 on node0002, 0.1 on node0001, node0003"),
    ],
)
def test_hosts_that_are_not_alike_are_named(
    tmp_path: Path, other: dict[str, Any], state: str | None, words: str
) -> None:
    alike = {"leadline": "0.1", "python": "3.11.9", "kernel": "6.1", "cpus": 8, "memory_bytes": 32 << 30}
    facts = [{"name": name, **alike, **(other if name == "node0002" else {})} for name in names(4)]
    found = build_findings(study(tmp_path, facts=facts))
    assert codes(found).get("hosts_differ") == state
    if state:
        assert evidence(found, "hosts_differ").startswith(words)


def test_every_report_has_the_hosts(tmp_path: Path) -> None:
    found = build_findings(study(tmp_path, {"node0003": 0.7}, 40, blocks=6))
    for form in set(FORMATS) - {"fio", "openmetrics"}:
        assert "node0003" in render(found, form), form
    rows = json.loads(render(found, "json"))["hosts"]
    assert len(rows) == 80
    assert "node0017" not in render(found, "md"), "of many hosts only those that stand out are shown"


def test_a_redacted_report_tells_hosts_apart_without_their_names(tmp_path: Path) -> None:
    found = build_findings(study(tmp_path, {"node0003": 0.7}, blocks=6))
    text = render(redacted(found), "md")
    assert "node0003" not in text
    assert "host 3" in text


def test_a_slow_host_in_one_block_is_no_straggler(tmp_path: Path) -> None:
    found = build_findings(study(tmp_path, {"node0003": 0.7}, blocks=1))
    assert "straggler" not in codes(found)
    assert found.answer is not None
    assert any("one block cannot show" in text for text in found.answer.said)


def test_a_copy_of_a_result_has_what_each_host_did(tmp_path: Path) -> None:
    result = study(tmp_path / "there")
    copy = copy_result(check_whole(result.path), tmp_path / "here")
    assert read_by_host(open_result(copy)) == read_by_host(result)
    names_of = [
        sorted(path.name for path in (one / "by_host" / "series").iterdir()) for one in (copy, result.path)
    ]
    assert names_of[0] == names_of[1]


@pytest.mark.parametrize("damage", ["cut", "stranger", "column"])
def test_damaged_tables_by_host_are_said_to_be_damaged(tmp_path: Path, damage: str) -> None:
    result = study(tmp_path)
    file = result.path / "by_host" / "trials" / "t0001.parquet"
    table = pq.read_table(file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    elif damage == "stranger":
        pq.write_table(pq.read_table(file.with_name("t0002.parquet")), file)
    else:
        pq.write_table(table.drop_columns(["clock_offset_ns"]), file)
    with pytest.raises(ResultError, match=r"t0001\.parquet|by_host"):
        build_findings(open_result(result.path))


@pytest.mark.parametrize("lacking", ["host", "offset_ns", "error_ns"])
def test_a_comparison_of_clocks_without_its_figures_is_damage(tmp_path: Path, lacking: str) -> None:
    event = {"host": "node0001", "when": "before", "offset_ns": 1, "error_ns": 1}
    del event[lacking]
    with pytest.raises(ResultError):
        build_findings(study(tmp_path, events=[event]))
