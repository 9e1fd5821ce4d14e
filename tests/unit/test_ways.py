"""One table of all ways to a storage: figures, ratios, dashes with reasons, and what it says in words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import MIB, trial_row

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured, add_costs
from leadline.errors import SpecError
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.report.figures import PrintedTable, printed_figures
from leadline.report.renderers.markdown import to_markdown
from leadline.report.renderers.show_json import to_json
from leadline.report.section_parts import show_sections
from leadline.study.library import load_study
from leadline.study.target import LeftOut, Target, TargetFacts
from leadline.verdict.model import Cell, CellShown, Findings, Quantity, State, TargetView, Validity
from leadline.verdict.ways import MeasuredWay, columns_of, way_statements, ways_of, ways_section, ways_table

RATES = {"fuse": [100.0, 110.0, 105.0], "lib": [200.0, 221.0, 209.0], "local": [900.0, 1000.0, 950.0]}
ACCESS = {"fuse": "ceph-fuse", "lib": "libcephfs", "local": "local"}
JOB = {"rw": "randread", "bs": 4096, "iodepth": 16, "numjobs": 1}
SHOWN = CellShown(leading=("iops", "bandwidth"), directions=("read",), asked=(("", "iops"),), in_flight=16)


def _cell(name: str, state: State = "VALID", cpu_ns: float = 1000.0, **metrics: Quantity) -> Cell:
    mean = sum(RATES[name]) / len(RATES[name])
    found = {
        "iops": Quantity(mean, "1/s", mean * 0.9, mean * 1.1, 3),
        "latency_mean": Quantity(16e9 / mean, "ns"),
        "client_cpu_per_operation": Quantity(cpu_ns, "ns"),
        "wire_per_byte": Quantity(1.0, "B/B"),
        **metrics,
    }
    return Cell(f"{name}.small", name, "small", {}, JOB, found, Validity(state), shown=SHOWN)


def _table(name: str) -> CellTable:
    measured = {block: Measured({"iops": rate}, {}) for block, rate in enumerate(RATES[name], 1)}
    return CellTable(f"{name}.small", (), measured)


VIEWS = tuple(TargetView(name, f"/{name}", access, name) for name, access in ACCESS.items())
TABLES = {f"{name}.small": _table(name) for name in RATES}
GONE = LeftOut("smb", None, "smbd is not installed")
CANNOT = LeftOut("lib", "links", "libcephfs has no such operation")


def _ways(*cells: Cell, left_out: tuple[LeftOut, ...] = (GONE,), **more: Any) -> tuple[MeasuredWay, ...]:
    return ways_of(VIEWS, cells or tuple(_cell(name) for name in RATES), left_out, **more)


def _findings(ways: tuple[MeasuredWay, ...], **changes: Any) -> Findings:
    table = ways_table(ways, columns_of(ways), TABLES, 0.05)
    assert table is not None
    cells = tuple(cell for way in ways for cell in way.cells.values())
    section = ways_section((table,))
    assert section is not None
    shown = (section,)
    return Findings(
        "0badcafe", "study", "t", "", "", "VALID", VIEWS, cells, (), (), sections=shown, **changes
    )


def _printed(findings: Findings) -> PrintedTable:
    (table,) = (table for section in findings.sections for table in section.tables)
    return printed_figures(table)


def _row(findings: Findings, figure: str, way: str) -> list[str]:
    table = _printed(findings)
    (row,) = [row for row in table.rows if row.keys == (figure, way)]
    return [item.text for item in row.measures]


def test_each_way_has_its_rate_its_ratio_to_the_first_and_its_costs() -> None:
    findings = _findings(_ways())
    assert _row(findings, "measured", "fuse") == ["105 1/s"]
    assert _row(findings, "against fuse", "fuse") == ["1.00\u00d7"]
    assert _row(findings, "against fuse", "lib") == ["2.00\u00d7"]
    assert _row(findings, "client CPU per operation", "lib") == ["1.00 us"]
    assert _row(findings, "wire per byte or operation", "lib") == ["1.00 B/B"]


def test_a_way_that_is_not_there_is_a_dash_with_its_reason() -> None:
    findings = _findings(_ways())
    table = _printed(findings)
    assert _row(findings, "measured", "smb") == ["\u2013"]
    assert "smb: smbd is not installed" in table.reasons


def test_an_invalid_figure_has_the_word_and_no_ratio() -> None:
    ways = _ways(_cell("fuse"), _cell("lib", "INVALID"), _cell("local"))
    findings = _findings(ways)
    assert "INVALID 210 1/s" in to_markdown(findings)
    assert _row(findings, "against fuse", "lib") == ["\u2013"]


def test_an_emulated_way_has_the_word_and_no_ratio_against_the_host() -> None:
    guest = replace(_cell("fuse"), id="kernel.small", target="kernel")
    ways = _ways(guest=((TargetView("kernel", "/k", "ceph-kernel", "CephFS"),), (guest,)))
    findings = _findings(ways)
    assert _row(findings, "measured", "kernel (EMULATED)") == ["105 1/s"]
    assert _row(findings, "against fuse", "kernel (EMULATED)") == ["\u2013"]
    said = [one.text for one in way_statements(ways, columns_of(ways), TABLES, 0.05, ())]
    assert not any("kernel is first" in text for text in said)
    assert any("EMULATED" in text for text in said)


def test_json_has_the_table_in_base_units() -> None:
    (table,) = to_json(_findings(_ways()))["ways"]
    ratio = next(row for row in table["rows"] if row["keys"] == ["against fuse", "lib"])
    assert ratio["values"][0]["value"] == pytest.approx(2.0, rel=0.01)
    assert ratio["values"][0]["low"] < ratio["values"][0]["value"] < ratio["values"][0]["high"]


def test_words_name_the_way_to_take_and_set_this_hosts_own_disk_beside_them() -> None:
    ways = _ways(_cell("fuse", cpu_ns=9e6), _cell("lib"), _cell("local"), left_out=(GONE, CANNOT))
    said = way_statements(ways, columns_of(ways), TABLES, 0.05, (GONE, CANNOT))
    assert said[0].text.startswith("small: lib is fastest with 210 IOPS; fuse has 105 IOPS")
    assert "for comparison local has 950 IOPS" in said[0].text
    assert "fuse: its client uses 0.945 CPUs" in said[0].evidence
    assert "lib has no value for links: libcephfs has no such operation." in [one.text for one in said]
    assert "smb was not measured: smbd is not installed." in [one.text for one in said]


def test_operations_that_were_not_kept_in_flight_are_said() -> None:
    slow = _cell("fuse", latency_mean=Quantity(4e9 / 105, "ns"))
    ways = _ways(slow, _cell("lib"), _cell("local"))
    (said,) = way_statements(ways, columns_of(ways), TABLES, 0.05, ())
    assert "fuse: has 4.00 of 16 requests outstanding" in said.evidence


def test_a_table_too_wide_for_a_terminal_is_printed_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    cells = tuple(replace(_cell("fuse"), id=f"fuse.w{n}", work=f"work_number_{n}") for n in range(6))
    ways = ways_of(VIEWS[:1], cells, ())
    show_sections(_findings(ways).sections, Console(width=80), whole=True)
    printed = capsys.readouterr().out
    assert printed.count("Every access method and workload") > 1
    assert all(len(line) <= 80 for line in printed.splitlines() if "fuse" in line)


# -- the study and the plan ----------------------------------------------------------------------------


def _reach(**changes: Any) -> Plan:
    study = load_study("reach", {}, ())
    study = study.model_copy(update=changes)
    facts = {
        "path": TargetFacts("local", "ext4", "ext4 on vda", direct_io=True, free_bytes=1 << 40),
        "none": TargetFacts("null", "null", "no storage"),
    }
    targets = {"path": Target("path", "/x"), "none": Target("none", "null://")}
    return make_plan(study, targets, facts, Host(8 << 30, absent=(GONE,)), 1)


def test_what_a_target_cannot_do_is_left_out_with_the_reason_and_survives_the_manifest() -> None:
    plan = _reach()
    left = {(one.target, one.work): one.reason for one in plan.left_out}
    assert left["none", "names"] == "null:// has no files"
    assert left["smb", None] == "smbd is not installed"
    assert ("path", "names") not in left
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
    assert any("left out, none: names: null:// has no files" in note for note in plan.notes)


def test_without_where_possible_the_study_is_refused() -> None:
    with pytest.raises(SpecError, match="null:// has no files"):
        _reach(where_possible=False)


# -- costs ---------------------------------------------------------------------------------------------


def _costs(**changes: Any) -> tuple[dict[str, float], dict[str, str]]:
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    add_costs(values, reasons, trial_row(**changes), 1000)
    return values, reasons


def test_cpu_of_engine_and_client_daemon_are_one_cost() -> None:
    values, _ = _costs(client_cpu_ns=700)
    assert values["client_cpu_per_operation"] == 1.0


def test_bytes_on_the_wire_are_those_of_both_directions_per_byte_of_work() -> None:
    values, _ = _costs(wire_sent_bytes=10 * MIB, wire_received_bytes=100 * MIB)
    assert values["wire_per_byte"] == pytest.approx(1.1)
    values, _ = _costs(total_read_bytes=0, wire_sent_bytes=300, wire_received_bytes=700)
    assert values["wire_per_operation"] == 1.0


@pytest.mark.parametrize(
    ("sources", "wire", "reason"),
    [
        ("network interface lo, servers on this host, both directions in each value", 5, "loopback"),
        ("TCP sockets of process 7", 0, "before its connections were seen"),
        ("", None, "no network in between"),
    ],
)
def test_a_count_that_is_not_the_clients_own_is_no_figure(
    sources: str, wire: int | None, reason: str
) -> None:
    values, reasons = _costs(
        wire_sent_bytes=wire,
        wire_received_bytes=wire,
        sources=json.dumps({"wire_sent_bytes": sources}),
    )
    assert "wire_per_byte" not in values
    assert reason in reasons["wire_per_byte"]


@pytest.mark.parametrize(("access", "said"), [("ceph-fuse", True), ("rados", False), ("libnfs", False)])
def test_few_bytes_on_the_wire_are_a_caches_only_where_the_way_has_one(access: str, said: bool) -> None:
    views = (TargetView("fuse", "/fuse", access, "fuse"), *VIEWS[1:])
    cells = (_cell("fuse", wire_per_byte=Quantity(0.48, "B/B")), _cell("lib"), _cell("local"))
    ways = ways_of(views, cells, ())
    found = way_statements(ways, columns_of(ways), TABLES, 0.05, ())
    assert any("a cache answered" in line for one in found for line in one.evidence) is said
