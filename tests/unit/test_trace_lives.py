"""Ends of processes: as they were seen from outside, else the last that was recorded of each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_tables import SECOND, file_row, files_table, process, segment, segments_table, tables

from leadline.tracing.figures import shares
from leadline.tracing.sources.lives import EndWatch, SeenEnd, kernel_start, with_last_seen


def test_the_last_record_is_where_a_process_was_last_seen() -> None:
    endless = {"ended_ns": None, "end": "unknown", "status": None}
    content = tables(
        processes=(
            process(0, **endless),
            process(1, **endless),
            process(2, **endless, started_ns=7),
            process(3, parent=2, started_ns=SECOND),
            process(4, ended_ns=None, end="running", status=None),
        ),
        files=files_table([file_row(process=0, F_WRITE_END_TIMESTAMP=0.25, F_CLOSE_END_TIMESTAMP=0.5)]),
        segments=segments_table([segment(process=1, start_ns=100, duration_ns=50), segment(process=1)]),
    )
    found = with_last_seen(content).processes
    assert [(row.end, row.ended_ns) for row in found] == [
        ("last seen", SECOND // 2),
        ("last seen", 1_000_000),
        ("last seen", SECOND),
        ("exit", SECOND),
        ("running", None),
    ]


def test_shares_are_of_the_life_that_was_seen() -> None:
    content = tables(
        processes=(process(0), process(1, ended_ns=None, end="unknown", status=None)),
        files=files_table([file_row(process=1, F_READ_END_TIMESTAMP=0.5)]),
    )
    assert shares(with_last_seen(content), 1.0).whole.base_s == pytest.approx(1.5)
    assert shares(content, 1.0).whole.base_s == pytest.approx(2.0)  # as if it had lived to the end


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[EndWatch]:
    found = EndWatch(".log")
    found.add(tmp_path)
    found.begin()
    yield found
    found.close()


def ended(directory: Path, name: str, how: int, *, unseen: bool = False) -> tuple[int, float]:
    """A child that makes a log and then ends by a signal; its pid, and when it was over."""
    pid = os.fork()
    if not pid:
        (directory / f"{os.getpid()}-{name}.log").touch()
        time.sleep(0 if unseen else 0.1)
        os.kill(os.getpid(), how)
    os.waitpid(pid, 0)
    return pid, time.time()


def test_the_end_of_a_process_that_was_waited_for_is_known_with_its_signal(
    watch: EndWatch, tmp_path: Path
) -> None:
    before = time.time()
    pid, after = ended(tmp_path, "7", signal.SIGUSR1)
    watch.close()
    seen = watch.ends[f"{pid}-7"]
    assert before < seen.ended_unix_ns / 1e9
    assert seen.ended_unix_ns / 1e9 < after + 0.4
    assert seen.end in (("signal", signal.SIGUSR1), ("unknown", None))  # the kernel tells it from 6.15 on


def test_every_process_is_seen_however_short_it_lives(watch: EndWatch, tmp_path: Path) -> None:
    names = {f"{ended(tmp_path, str(n), signal.SIGKILL, unseen=True)[0]}-{n}" for n in range(50)}
    watch.close()
    assert set(watch.ends) == names


def test_a_process_that_still_runs_has_no_end(watch: EndWatch, tmp_path: Path) -> None:
    (tmp_path / f"{os.getpid()}-1.log").touch()
    watch.close()
    assert watch.ends == {}


def test_how_a_process_ended_is_read_as_from_wait() -> None:
    assert SeenEnd(None, 0, signal.SIGTERM | 0x80).end == ("signal", signal.SIGTERM)
    assert SeenEnd(None, 0, 3 << 8).end == ("exit", 3)
    assert SeenEnd(None, 0, None).end == ("unknown", None)
    assert kernel_start(os.getpid()) == int(
        Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    )
