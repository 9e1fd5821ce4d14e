"""Asynchronous I/O and the truth: each interface is seen whole, once, with its time, or said not to be."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asynchronous_subject import (
    FILE_BYTES,
    PARTS,
    WITH_HEADERS,
    Said,
    requests_of,
    said,
    segments_of,
    subject,
    traced,
)
from bpf_support import calls, rows_of

import slow_fuse
from leadline import _core
from leadline.store.reader import open_result
from leadline.tracing.figures import OVERLAPPED, UNSEEN
from leadline.tracing.sources import bpf
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import TraceTables
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings
from slow_fuse import SlowMount

CALLED = ("libaio", "by_number", "posix", "list")
SEEN = (
    *(("preload", interface) for interface in (*CALLED, "own_libaio")),
    *(("strace", interface) for interface in CALLED),
    *(("bpf", interface) for interface in (*CALLED, "liburing", "ring_by_number")),
)
DELAY_MS = 30
RUNS = 3
# A latency is kept as the middle of a bucket: so much lower it may come out.
BUCKET = 0.93

pytestmark = WITH_HEADERS


def require(via: str) -> None:
    """Skip with the tracer's own reason where it cannot work."""
    if via == "bpf" and (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)
    if via == "strace" and shutil.which("strace") is None:
        pytest.skip("no strace (Debian: strace)")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the subject's file, all of whose blocks are there: writing changes only them."""
    path = tmp_path / "work"
    path.mkdir()
    with (path / "data").open("wb") as file:
        file.write(bytes(FILE_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return path


def file_sums(tables: TraceTables, path: Path) -> tuple[int, int, int, int]:
    rows = rows_of(tables, path)
    names = ("READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN")
    reads, writes, read, written = (sum(row[name] or 0 for row in rows) for name in names)
    return reads, writes, read, written


def process_bytes(tables: TraceTables) -> tuple[int, int]:
    return sum(row.bytes_read for row in tables.processes), sum(row.bytes_written for row in tables.processes)


def notes(tables: TraceTables) -> set[str]:
    return {note for row in tables.processes for note in json.loads(row.notes)}


def lost(tables: TraceTables) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in tables.processes:
        found.update(json.loads(row.lost))
    return found


def sums_of(truth: Said) -> tuple[int, int, int, int]:
    return PARTS, PARTS, truth.counts.bytes_read, truth.counts.bytes_written


@pytest.mark.parametrize("interface", sorted({interface for _, interface in SEEN}))
def test_the_account_is_what_the_kernel_counts(interface: str, place: Path) -> None:
    """Not under a tracer: what a library writes down in the process is counted, too.

    The kernel charges a page of the file system's own, such as one of its inodes, to whoever makes it dirty:
    by chance that is the subject, once. What the account itself missed is missing in every run.
    """
    command = subject(interface, "direct")
    pairs = []
    for _ in range(RUNS):
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=60, check=True)
        truth = said(done.stdout)
        kernel = (truth.kernel_read, truth.kernel_wrote)
        if not any(kernel):
            pytest.skip("a file system in memory: the kernel counts no bytes of it")
        pairs.append((kernel, (truth.counts.bytes_read, truth.counts.bytes_written)))
        if kernel == pairs[-1][1]:
            return
    raise AssertionError(f"in no run, read and written by the kernel and by the account: {pairs}")


@pytest.mark.parametrize(("via", "interface"), SEEN)
def test_each_request_is_seen_once_with_its_offset_and_bytes(via: str, interface: str, place: Path) -> None:
    require(via)
    text, tables = traced(via, subject(interface, "direct"), place)
    truth = said(text)
    assert requests_of(tables, place / "data") == truth.requests
    assert file_sums(tables, place / "data") == sums_of(truth)
    assert not lost(tables)
    assert not tables.warnings


@pytest.mark.parametrize(
    ("via", "interface"),
    [
        *(("preload", interface) for interface in (*CALLED, "own_libaio")),
        *((via, interface) for via in ("strace", "bpf") for interface in ("libaio", "by_number")),
    ],
)
def test_each_call_is_counted_once_however_it_is_reached(via: str, interface: str, place: Path) -> None:
    require(via)
    text, tables = traced(via, subject(interface), place)
    truth, seen = said(text).counts.calls, calls(tables)
    made = {name: count for name, count in truth.items() if "io_" in name}
    assert made
    assert {name: seen[name] for name in made} == made


def test_the_kernel_sees_what_a_ring_splices(place: Path) -> None:
    require("bpf")
    text, tables = traced("bpf", subject("spliced"), place)
    truth = said(text)
    (row,) = rows_of(tables, place / "data")
    moved = truth.counts.bytes_read, truth.counts.bytes_written
    assert min(moved) > 0
    assert (row["BYTES_READ"], row["BYTES_WRITTEN"]) == moved
    assert (row["copied_out_bytes"], row["copied_in_bytes"]) == moved
    assert calls(tables)["io_uring:splice"] == 2 * PARTS
    assert row["F_READ_TIME"] > 0


@pytest.mark.parametrize("interface", ["liburing", "ring_by_number"])
def test_the_library_says_that_it_does_not_see_rings(interface: str, place: Path) -> None:
    text, tables = traced("preload", subject(interface), place)
    assert said(text).counts.bytes_read
    assert file_sums(tables, place / "data") == (0, 0, 0, 0)
    assert "io_uring" in notes(tables)


@pytest.mark.parametrize("via", ["preload", "bpf"])
def test_requests_whose_results_were_never_asked_for_are_said_to_be_lost(via: str, place: Path) -> None:
    require(via)
    text, tables = traced(via, subject("abandoned"), place)
    assert said(text).counts.calls["io_submit"] == 2
    assert file_sums(tables, place / "data") == (0, 0, 0, 0)
    assert lost(tables) == {"calls": 2 * PARTS}
    assert "asynchronous I/O" in notes(tables)


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio (Debian: fio)")
@pytest.mark.parametrize(
    ("via", "engine"),
    [("preload", "libaio"), ("preload", "posixaio")]
    + [("bpf", engine) for engine in ("libaio", "posixaio", "io_uring")],
)
def test_fio_and_the_tracer_agree_on_its_engine(via: str, engine: str, place: Path) -> None:
    require(via)
    done, tables = fio(via, engine, place)
    sums = (
        *(done[way]["total_ios"] for way in ("read", "write")),
        *(done[way]["io_bytes"] for way in ("read", "write")),
    )
    assert sums[0] + sums[1] == 128
    assert file_sums(tables, place / "data") == sums


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio (Debian: fio)")
def test_an_engine_of_fio_that_the_library_does_not_see_is_said(place: Path) -> None:
    _, tables = fio("preload", "io_uring", place)
    assert file_sums(tables, place / "data") == (0, 0, 0, 0)
    assert "io_uring" in notes(tables)


def fio(via: str, engine: str, place: Path) -> tuple[dict[str, Any], TraceTables]:
    """128 requests of 4 KiB, eight under way at once, in the process itself; fio's own figures."""
    (place / "data").write_bytes(bytes(128 * 4096))
    job = ["fio", "--name=j", f"--ioengine={engine}", "--rw=randrw", "--bs=4k", "--size=512k", "--iodepth=8"]
    job += ["--thread", "--randseed=1", "--direct=1", f"--filename={place / 'data'}", "--output-format=json"]
    text, tables = traced(via, job, place)
    found: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return found, tables


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowMount]:
    if (reason := slow_fuse.missing()) is not None:
        pytest.skip(reason)
    with slow_fuse.mounted(slow_fuse.build(), tmp_path) as mount:
        (mount.backing / "data").write_bytes(bytes(FILE_BYTES))
        yield mount


@pytest.mark.parametrize(("via", "interface"), SEEN)
def test_the_time_of_a_request_is_at_least_what_the_storage_took(
    via: str, interface: str, slow: SlowMount
) -> None:
    require(via)
    slow.rules(read_ms=DELAY_MS, write_ms=DELAY_MS)
    _, tables = traced(via, subject(interface), slow.path)
    path = slow.path / "data"
    took_ns = [int(str(row["duration_ns"])) for row in segments_of(tables, path) if row["offset"] is not None]
    assert len(took_ns) == 2 * PARTS
    assert min(took_ns) >= DELAY_MS * 1_000_000
    (row,) = [row for row in rows_of(tables, path) if row["READS"]]
    # From sums of strace's times what strace itself explains is taken: on a busy host that may be much.
    least_s = 0.0 if via == "strace" else DELAY_MS / 1000
    for name in ("F_READ_TIME", "F_WRITE_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME"):
        assert row[name] >= least_s
    for kind in ("read", "write"):
        long = sum(
            count
            for one in tables.latency
            if one.kind == kind
            for value_ns, count in _core.histogram_buckets(one.histogram)
            if value_ns >= DELAY_MS * 1_000_000 * BUCKET
        )
        assert long == PARTS


@pytest.mark.parametrize(
    ("via", "interface"),
    [
        *(("preload", interface) for interface in CALLED),
        *((via, interface) for via in ("strace", "bpf") for interface in ("libaio", "by_number")),
    ],
)
def test_waiting_for_requests_is_no_time_of_anything_else(via: str, interface: str, slow: SlowMount) -> None:
    require(via)
    slow.rules(read_ms=DELAY_MS, write_ms=DELAY_MS)
    _, tables = traced(via, subject(interface), slow.path)
    assert tables.segments is not None
    waited = ("io_", "aio_", "lio_")
    others_s = sum(
        row["duration_ns"] / 1e9 for row in tables.segments.to_pylist() if not row["call"].startswith(waited)
    )
    seconds = Counter[str]()
    for process in tables.processes:
        seconds.update(json.loads(process.seconds))
    assert seconds["meta"] <= others_s


def reported(via: str, interface: str, place: Path) -> Findings:
    """What a report says of the subject's trace."""
    _, tables = traced(via, subject(interface), place)
    out = place.with_name("result")
    create_trace_result(
        out, {"t0001": tables}, title="requests", details={}, now_ns=itertools.count(1).__next__
    )
    return build_findings(open_result(out))


def test_a_report_of_asynchronous_requests_has_their_time_and_no_remainder(place: Path) -> None:
    found = reported("preload", "libaio", place)
    (cell,) = found.cells
    assert any(statement.text.startswith("I/O overlapped") for statement in found.statements)
    assert not any("the remainder" in statement.text for statement in found.statements)
    assert (cell.metrics["compute_share"].value, cell.metrics["compute_share"].reason) == (None, OVERLAPPED)
    assert (cell.metrics["read_share"].value or 0) > 0


def test_a_report_says_that_requests_were_not_seen_and_shows_no_time_of_them(place: Path) -> None:
    found = reported("preload", "liburing", place)
    (cell,) = found.cells
    assert found.state == "DOUBTFUL"
    assert any("1 process moved through io_uring" in statement.text for statement in found.statements)
    for name in ("read_share", "write_share", "io_time"):
        assert (cell.metrics[name].value, cell.metrics[name].reason) == (None, UNSEEN)
