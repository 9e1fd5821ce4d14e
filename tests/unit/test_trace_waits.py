"""What a process waits for outside of its calls on files: as seen from outside, and as it is divided."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from trace_tables import SECOND, process, tables

from leadline.tracing.figures import shares
from leadline.tracing.sources.waits import ASLEEP, FILE, LOCK, OTHER, PAGE, PEER, RUNNING, WaitWatch, kind_of

NUMBERS = {"x86_64": (230, 202, 61, 257, 0, 1), "aarch64": (115, 98, 260, 56, 63, 64)}
SLEEP, FUTEX, WAIT, OPEN, READ, _ = NUMBERS[os.uname().machine]


@pytest.mark.parametrize(
    ("text", "target", "kind"),
    [
        ("running\n", "", RUNNING),
        ("-1 0x7ffc28 0x7f11\n", "", PAGE),
        ("-1 0x0 0x0\n", "", None),  # it has ended
        ("", "", None),
        (f"{SLEEP} 0x1 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "", ASLEEP),
        (f"{FUTEX} 0x1 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "", LOCK),
        (f"{WAIT} 0x1 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "", PEER),
        (f"{OPEN} 0x1 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "", FILE),
        (f"{READ} 0x3 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "/data/f", FILE),
        (f"{READ} 0x3 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "pipe:[17]", PEER),
        (f"{READ} 0x3 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "socket:[17]", PEER),
        (f"{READ} 0x3 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "/dev/tty", OTHER),
        ("9999 0x3 0x1 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", "", OTHER),
    ],
)
def test_the_call_that_a_thread_is_in_says_what_it_waits_for(
    text: str, target: str, kind: str | None
) -> None:
    asked: list[int] = []
    assert kind_of(text, lambda fd: asked.append(fd) or target) == kind  # type: ignore[func-returns-value]
    assert asked == ([3] if target else [])


class Fake:
    """A /proc of processes that are in the calls that a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def task(
        self, pid: int, call: str, children: str = "", task: int | None = None, run: str = "0 0 1"
    ) -> None:
        """One thread."""
        place = self.root / str(pid) / "task" / str(task or pid)
        place.mkdir(parents=True, exist_ok=True)
        (self.root / str(pid) / "stat").write_text(f"{pid} (a b) S 1 2")
        for name, content in (("syscall", call), ("children", children), ("schedstat", run)):
            (place / name).write_text(content)


def looked(fake: Fake, looks: int = 4) -> dict[str, Any]:
    """What a watch of process 10 has seen after so many looks, a quarter of a second apart."""
    now = iter(range(1000))
    watch = WaitWatch(fake.root, lambda: next(now) / 4)
    watch.add({10: 0})
    for _ in range(looks):
        watch.look()
    return asdict(watch.close()[0])


def test_a_process_waits_for_what_its_threads_do_and_idle_threads_wait_for_locks(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    fake.task(10, f"{FUTEX} 0x0", run="100000000 20000000 1")
    fake.task(10, "-1 0x7f 0x7f", task=11, run="300000000 30000000 1")
    assert looked(fake) == {
        "looks": 4,
        "watched_s": 1.0,
        "seconds": {"page": 1.0},
        "cpu_s": 0.4,
        "queued_s": 0.05,
    }
    fake.task(10, "running", task=12)
    assert looked(fake)["seconds"] == {"running": 1.0}


def test_a_parent_waits_for_nothing_while_its_child_lives(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    fake.task(10, f"{WAIT} 0x0", children="20 ")
    fake.task(20, f"{SLEEP} 0x0")
    assert looked(fake)["seconds"] == {"asleep": 1.0}
    (tmp_path / "20" / "stat").write_text("20 (a b) Z 1 2")
    assert looked(fake)["seconds"] == {"peer": 1.0}


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process_of = subprocess.Popen(words)
    try:
        yield process_of
    finally:
        process_of.kill()
        process_of.wait()


def test_a_real_process_that_sleeps_is_seen_asleep() -> None:
    with running("sleep", "60") as sleeper:
        watch = WaitWatch()
        watch.begin({sleeper.pid: 0})
        end = time.monotonic() + 30
        while "asleep" not in watch._found[0].seconds and time.monotonic() < end:
            time.sleep(0.01)
        assert set(watch.close()[0].seconds) - {"running"} == {"asleep"}


def test_a_real_process_that_ends_is_watched_no_more() -> None:
    with running(sys.executable, "-S", "-c", "pass") as short:
        watch = WaitWatch()
        watch.add({short.pid: 0})
        short.wait()
        watch.look()
        assert watch._copies == {}
        watch.close()


def divided(
    cpu_s: float | None, waits: Mapping[str, Any] | None = None, read_s: float = 0.1, **changes: Any
) -> Any:
    """The shares of a process of one second with so much CPU time, and what was seen of it."""
    copy: dict[str, Any] = {"copy": 0, "wall_s": 1.0}
    if cpu_s is not None:
        copy |= {"cpu_user_ns": int(cpu_s * SECOND), "cpu_system_ns": 0}
    if waits is not None:
        copy["waits"] = {"looks": 40, "watched_s": 1.0, **waits}
    row = process(seconds={"read": read_s, "write": 0.0, "meta": 0.0, "sync": 0.0}, **changes)
    return shares(tables(processes=(row,), extra={"wall_s": 1.0, "copies": [copy]}), 1.0).whole


def test_the_rest_is_computing_as_far_as_a_cpu_ran_and_else_waiting() -> None:
    found = divided(0.3)
    assert (found.rest, found.compute, found.wait) == pytest.approx((0.9, 0.3, 0.6))
    assert found.waits == pytest.approx({"unknown": 0.6})
    threads = divided(7.0)
    assert (threads.compute, threads.wait) == pytest.approx((0.9, 0.0))


def test_without_cpu_time_neither_computing_nor_waiting_is_known() -> None:
    found = divided(None)
    assert (found.rest, found.compute, found.wait) == (pytest.approx(0.9), None, None)


def test_each_process_has_its_own_cpu_time_where_the_source_knows_it() -> None:
    found = divided(0.8, cpu_user_ns=SECOND // 4, cpu_system_ns=SECOND // 4)
    assert found.compute == pytest.approx(0.5)


def test_waiting_is_divided_by_what_was_seen_and_the_rest_is_not_known() -> None:
    found = divided(0.1, {"seconds": {"page": 0.4, "asleep": 0.2}, "queued_s": 0.1})
    assert found.waits == pytest.approx({"page": 0.4, "asleep": 0.2, "queue": 0.1, "unknown": 0.1})
    more = divided(0.1, {"seconds": {"page": 0.8, "asleep": 0.8}})
    assert more.waits == pytest.approx({"page": 0.4, "asleep": 0.4})


def test_waits_that_together_are_longer_than_the_process_waited_are_all_shortened() -> None:
    found = divided(0.1, {"seconds": {"asleep": 0.8}, "queued_s": 0.8})
    assert found.waits == pytest.approx({"asleep": 0.4, "queue": 0.4})


def test_a_process_that_could_run_and_had_no_cpu_waited_for_one() -> None:
    assert divided(0.2, {"seconds": {"running": 0.9}}).waits == pytest.approx({"queue": 0.7})
    assert divided(0.1, {"seconds": {}, "queued_s": 0.5}).waits == pytest.approx(
        {"queue": 0.5, "unknown": 0.3}
    )


def test_few_looks_tell_nothing() -> None:
    assert divided(0.1, {"looks": 2, "seconds": {"page": 0.05}}).waits == pytest.approx({"unknown": 0.8})


def test_calls_on_files_beyond_those_that_were_timed_are_the_loaders() -> None:
    assert divided(0.1, {"seconds": {"file": 0.1, "page": 0.1}}).waits.get("unseen") is None
    found = divided(0.1, {"seconds": {"file": 0.9}}, read_s=0.0)
    assert found.waits["unseen"] == pytest.approx(0.6)


def test_cpu_time_of_a_process_that_nobody_waited_for_is_not_taken_for_none() -> None:
    parent = process(0, ended_ns=SECOND // 2)
    child = process(1, parent=0, ended_ns=SECOND)
    account = {"copy": 0, "wall_s": 1.0, "cpu_user_ns": 0, "cpu_system_ns": 0}
    alone = tables(processes=(parent, child), extra={"wall_s": 1.0, "copies": [account]})
    assert shares(alone, 1.0).whole.compute is None
    seen = {**account, "waits": {"looks": 40, "watched_s": 1.0, "seconds": {}, "cpu_s": 0.4}}
    watched = tables(processes=(parent, child), extra={"wall_s": 1.0, "copies": [seen]})
    whole = shares(watched, 1.0).whole
    assert whole.compute == pytest.approx(0.4 / whole.base_s)
