"""Whose CPU time and bytes: recorded tables of processes, and this test's own."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from builders import facts

from leadline.observe.host.proc_parse import parse_task_stat
from leadline.observe.host.processes import CpuAccount, ProcessSnapshot, ProcessTable, read_table
from leadline.observe.host.reader import TICK_NS
from leadline.observe.network.sockets import listeners
from leadline.observe.reading import Mark, Request, delta
from leadline.study.target import ServerAccess

KTHREAD = 0x00200000
NONE: frozenset[str] = frozenset()


def stat(name: str, parent: int, ticks: int, children: int = 0, flags: int = 0, started: int = 5) -> str:
    fields = [
        "S",
        parent,
        1,
        1,
        0,
        -1,
        flags,
        0,
        0,
        0,
        0,
        ticks,
        0,
        children,
        0,
        20,
        0,
        1,
        0,
        started,
        1,
        100,
        0,
    ]
    return f"1 ({name}) " + " ".join(map(str, fields))


def table(own: set[int], **lines: str) -> ProcessSnapshot:
    found = {int(key.removeprefix("p")): parse_task_stat(text) for key, text in lines.items()}
    return ProcessSnapshot({pid: one for pid, one in found.items() if one is not None}, frozenset(own))


def test_a_task_says_whose_child_it_is_and_whether_it_is_the_kernels() -> None:
    found = parse_task_stat(stat("a) b (c", 7, 3, children=4, flags=KTHREAD))
    assert found is not None
    assert (found.name, found.parent, found.children_ticks, found.is_kernel) == ("a) b (c", 7, 4, True)


def test_a_child_that_ended_is_not_counted_twice() -> None:
    account = CpuAccount()
    first = account.add(table({10, 11}, p10=stat("run", 1, 100), p11=stat("worker", 10, 50)), NONE)
    then = account.add(table({10}, p10=stat("run", 1, 110, children=70)), NONE)
    assert then - first == 30  # 10 of the run's own, 20 more of its child's


def test_kernel_threads_and_daemons_count_from_when_they_are_seen() -> None:
    account, daemons = CpuAccount(), frozenset({"ceph-osd"})
    before = table({10}, p10=stat("run", 1, 0), p2=stat("kworker", 0, 900, flags=KTHREAD))
    first = account.add(before, daemons)
    now = table(
        {10},
        p10=stat("run", 1, 0),
        p2=stat("kworker", 0, 930, flags=KTHREAD),
        p3=stat("ceph-osd", 1, 40, started=90),
        p4=stat("python", 1, 5000),
    )
    assert account.add(now, daemons) - first == 70


def test_a_thread_that_ended_takes_nothing_back() -> None:
    account = CpuAccount()
    first = account.add(table({10}, p10=stat("run", 1, 5), p2=stat("kworker", 0, 900, flags=KTHREAD)), NONE)
    assert account.add(table({10}, p10=stat("run", 1, 6)), NONE) - first == 1


def test_the_busiest_of_the_others_is_named() -> None:
    account = CpuAccount()
    before = {"p10": stat("run", 1, 0), "p4": stat("old", 1, 5000), "p5": stat("hog\n", 1, 10)}
    account.busiest(table({10}, **before), NONE)
    after = {**before, "p5": stat("hog\n", 1, 200), "p10": stat("run", 1, 900)}
    assert account.busiest(table({10}, **after), NONE) == "hog\\n (process 5)"
    assert account.busiest(table({10}, **after), NONE) == ""


def test_children_of_children_belong_to_the_run() -> None:
    sleeper = subprocess.Popen(["sh", "-c", "echo ready; read x & wait"], stdout=subprocess.PIPE)
    try:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        found = read_table(os.getpid())
        below = {pid for pid, one in found.stats.items() if one.parent == sleeper.pid}
        assert {os.getpid(), sleeper.pid} | below <= found.own
        assert os.getppid() not in found.own
    finally:
        sleeper.kill()
        sleeper.wait()


def test_what_the_run_writes_is_its_own_even_by_children_that_ended(tmp_path: Path) -> None:
    source = ProcessTable({"a": facts()}, os.getpid())
    marks = []
    for moment in ("start", "end"):
        if marks:
            words = (
                "dd",
                "if=/dev/zero",
                f"of={tmp_path / 'f'}",
                "bs=1M",
                "count=8",
                "conv=fsync",
                "status=none",
            )
            subprocess.run(words, check=True)
        found = source.counters(Request("a", None))
        marks.append(Mark(moment, len(marks), found.values, found.reasons, found.sources))
    change = delta(*marks)
    if facts_of(tmp_path) != "tmpfs":  # the kernel counts nothing for memory
        assert change.own_written_bytes is not None
        assert change.own_written_bytes >= 8 << 20


def facts_of(path: Path) -> str:
    from leadline.observe.mounts.mounts import inspect

    return inspect(str(path)).file_system


def test_where_the_targets_own_daemon_is_not_known_nobody_is_accused() -> None:
    targets = {
        "fuse": facts(file_system="fuse.sshfs"),
        "nfs": facts(access="nfs"),
        "nbd": facts(device="nbd0"),
    }
    source = ProcessTable(targets, os.getpid(), server_is_here=lambda one: one.access == "nfs")
    for name, words in (("fuse", "FUSE"), ("nfs", "server"), ("nbd", "nbd0")):
        found = source.counters(Request(name, None))
        assert found.values["explained_cpu_ns"] is None
        assert words in found.reasons["explained_cpu_ns"]


def test_a_container_that_does_not_see_the_kernels_threads_accuses_nobody(tmp_path: Path) -> None:
    for pid, line in ((10, stat("run", 1, 5)), (11, stat("sh", 1, 5))):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(line)
        (tmp_path / str(pid) / "io").write_text("read_bytes: 7\nwrite_bytes: 8\n")
    found = ProcessTable({"a": facts()}, 10, tmp_path).counters(Request("a", None))
    assert found.values["explained_cpu_ns"] is None
    assert "container" in found.reasons["explained_cpu_ns"]
    assert (found.values["own_read_bytes"], found.values["own_written_bytes"]) == (7, 8)


def test_sessions_of_one_study_on_one_machine_are_no_load_of_others(tmp_path: Path) -> None:
    session = b"python\0-m\0leadline.hosts.session\0"
    lines = {
        2: (stat("kthread", 0, 0, flags=KTHREAD), b""),
        10: (stat("python", 1, 100), session + b"s1\0"),
        20: (stat("python", 1, 300), session + b"s1\0"),
        21: (stat("worker", 20, 50), b"worker\0"),
        30: (stat("python", 1, 7000), session + b"s2\0"),
    }
    for pid, (line, command) in lines.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(line)
        (tmp_path / str(pid) / "cmdline").write_bytes(command)
        (tmp_path / str(pid) / "io").write_text("read_bytes: 7\nwrite_bytes: 8\n")
    source = ProcessTable({"a": facts()}, 10, tmp_path)
    first = source.counters(Request("a", None))
    for pid, ticks in ((10, 110), (20, 320), (21, 53), (30, 7900)):
        name, parent = ("worker", 20) if pid == 21 else ("python", 1)
        (tmp_path / str(pid) / "stat").write_text(stat(name, parent, ticks))
    second = source.counters(Request("a", None))
    explained = [found.values["explained_cpu_ns"] or 0 for found in (first, second)]
    assert explained[1] - explained[0] == (10 + 20 + 3) * TICK_NS
    assert second.sources["busiest_other"] == "python (process 30)"
    assert second.values["own_written_bytes"] == 8  # each host has its own


def test_others_share_of_cpu_is_what_nobody_explains() -> None:
    names = ("cpu_total_ns", "cpu_busy_ns", "cpu_steal_ns", "interrupt_cpu_ns", "explained_cpu_ns")
    start = Mark("s", 0, dict.fromkeys(names, 0), sources=dict.fromkeys(names, "x"))
    values = dict(zip(names, (1000 * TICK_NS, 600 * TICK_NS, 0, 50 * TICK_NS, 150 * TICK_NS), strict=True))
    end = Mark("e", 1, values, sources=dict.fromkeys(names, "x"))
    assert delta(start, end).other_cpu_share == 0.4
    assert delta(start, Mark("e", 1, {**values, "explained_cpu_ns": None})).other_cpu_share is None


def test_the_targets_own_server_is_not_somebody_else() -> None:
    account, served = CpuAccount(), {20}
    before = {
        "p10": stat("run", 1, 0),
        "p20": stat("smbd", 1, 5),
        "p21": stat("smbd", 20, 5),
        "p30": stat("hog", 1, 5),
    }
    first = table({10}, **before)
    assert first.below(served) == {20, 21}
    start = account.add(first, NONE, first.below(served))
    account.busiest(first, NONE, first.below(served))
    after = table({10}, **{**before, "p21": stat("smbd", 20, 905), "p30": stat("hog", 1, 8)})
    assert account.add(after, NONE, after.below(served)) - start == 900
    assert account.busiest(after, NONE, after.below(served)) == "hog (process 30)"


def test_the_server_of_a_target_is_found_by_the_port_that_it_listens_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listeners(port) == {os.getpid()}
        here = facts(access="nfs", server=ServerAccess(here=True, port=port))
        found = ProcessTable({"a": here}, os.getpid()).counters(Request("a", None))
        assert found.values["explained_cpu_ns"] is not None
        assert "the target's server" in found.sources["explained_cpu_ns"]
    assert listeners(port) == frozenset()
    gone = ProcessTable({"a": here}, os.getpid(), server_is_here=lambda _facts: True).counters(
        Request("a", None)
    )
    assert gone.values["explained_cpu_ns"] is None
