"""Mapped files: those that matter are named and cast doubt, those of every program do neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import clock
from trace_tables import file_row, files_table, process, tables

from leadline.report import render
from leadline.report.redact import redacted
from leadline.store.reader import open_result
from leadline.tracing.store import create_trace_result
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings

MIB = 1 << 20


def found(path: Path, *rows: dict[str, Any], read: int = 0, **extra: Any) -> Findings:
    content = tables(processes=(process(bytes_read=read),), files=files_table(rows), extra=extra)
    create_trace_result(path / "r", {"t0001": content}, title="p", details={}, now_ns=clock())
    return build_findings(open_result(path / "r"))


def mapping(number: int = 0, **values: Any) -> dict[str, Any]:
    return file_row(number, **{"MMAPS": 1, "mapped_bytes": 32 * MIB, "write_mmaps": 0, **values})


def said(findings: Findings) -> list[str]:
    return [one.text for one in findings.statements if one.says == "trace_mapped"]


def test_a_large_mapping_is_named_first_and_makes_it_doubtful(tmp_path: Path) -> None:
    findings = found(tmp_path, mapping(), read=34_000)
    assert [code.code for code in findings.cells[0].validity.codes] == ["mapped_files"]
    assert findings.statements[0].text == (
        "/data/0 was mapped into memory (32 MiB in 1 mapping): totals of bytes lack what was read through"
        " it; the time of its page faults is unknown, and counts as time outside of file calls."
    )


def test_several_are_named_by_the_largest_and_their_sum(tmp_path: Path) -> None:
    rows = (mapping(0), mapping(1, mapped_bytes=64 * MIB, MMAPS=4, write_mmaps=1), mapping(2, mapped_bytes=9))
    (text,) = said(found(tmp_path, *rows, copies=[{"copy": 0, "faults_major": 7}]))
    assert text.startswith(
        "2 files were mapped into memory, 96 MiB in all, first /data/1 (64 MiB in 4 mappings)"
    )
    assert "what was read and written through them" in text
    assert text.endswith("; 7 page faults of the whole command had to read.")


@pytest.mark.parametrize("read", [320 * MIB + 1, 10**12])
def test_what_is_small_beside_the_bytes_of_calls_casts_no_doubt(tmp_path: Path, read: int) -> None:
    assert said(found(tmp_path, mapping(), read=read)) == []


@pytest.mark.parametrize(
    "path",
    [
        *("/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/p/_ext.cpython-311.so", "/etc/ld.so.cache"),
        *("/usr/lib/locale/locale-archive", "/usr/lib/locale/C.utf8/LC_CTYPE"),
        "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
    ],
)
def test_what_every_program_maps_is_no_data(tmp_path: Path, path: str) -> None:
    findings = found(tmp_path, mapping(path=path))
    assert (said(findings), findings.state) == ([], "VALID")


def test_a_size_that_a_source_does_not_know_may_be_any(tmp_path: Path) -> None:
    findings = found(tmp_path, mapping(mapped_bytes=None, write_mmaps=None, MMAPS=3), read=10**12)
    assert findings.state == "DOUBTFUL"
    assert "(3 mappings, of a size that is not known)" in said(findings)[0]


@pytest.mark.parametrize("read_s", [0.01, 0.00001])  # with almost no I/O computing is still the bottleneck
@pytest.mark.parametrize(("cpu_s", "computes"), [(0.95, True), (0.05, False), (None, False)])
def test_only_cpu_time_says_that_a_program_computes(
    tmp_path: Path, cpu_s: float | None, computes: bool, read_s: float
) -> None:
    copy = {"copy": 0} if cpu_s is None else {"copy": 0, "cpu_user_ns": cpu_s * 1e9, "cpu_system_ns": 0}
    content = tables(
        processes=(process(seconds={"read": read_s, "write": 0.0, "meta": 0.0, "sync": 0.0}),),
        extra={"wall_s": 1.0, "copies": [copy]},
    )
    create_trace_result(tmp_path / "r", {"t0001": content}, title="p", details={}, now_ns=clock())
    statements = build_findings(open_result(tmp_path / "r")).statements
    assert ("rule_bound_by_compute" in [one.says for one in statements]) is computes
    assert any("computing is the bottleneck" in one.text.lower() for one in statements) is computes


def test_mapped_files_are_in_no_redacted_report(tmp_path: Path) -> None:
    findings = redacted(found(tmp_path, mapping(path="/secret/data")))
    assert said(findings)
    for form in ("html", "md", "json"):
        assert "/secret" not in render(findings, form)
