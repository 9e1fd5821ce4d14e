"""Figures and causes of `leadline watch`, on values made here."""

from __future__ import annotations

import io
import os
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from trace_tables import process

from leadline.errors import SpecError
from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo, place_on
from leadline.observe.mounts.users import unseen_words, users_of
from leadline.report.section_parts import show_sections
from leadline.tracing.sources import waits
from leadline.tracing.sources.strace_world import call_kinds
from leadline.tracing.tables import TraceTables, files_schema
from leadline.watch.causes import judge, read_rules, rules
from leadline.watch.figures import watch_facts
from leadline.watch.sampler import StandingCall, StandingCalls
from leadline.watch.store import Seen, SeenFile, SeenProcess, SeenWait
from leadline.watch.view import by_program, watch_sections

MIB = 1 << 20
MOUNTS = parse_mountinfo(
    "30 1 8:1 / / rw - ext4 /dev/vda rw\n"
    "40 30 0:50 / /mnt/fs rw - fuse.ceph-fuse ceph-fuse rw\n"
    "41 30 0:50 /projects /srv/projects rw - fuse.ceph-fuse ceph-fuse rw\n"
    "42 40 0:60 / /mnt/fs/other rw - tmpfs tmpfs rw\n"
)
CONTAINER = parse_mountinfo(
    "70 1 0:90 / / rw - overlay overlay rw\n71 70 0:50 /projects /data rw - fuse.ceph-fuse ceph-fuse rw\n"
)


def dump(**averages: tuple[int, float]) -> dict[str, dict[str, dict[str, float]]]:
    """A client's perf dump with (count, seconds) of each average."""
    sums = {"rdlat": (0, 0.0), "wrlat": (0, 0.0), "lat": (0, 0.0), "fsync": (0, 0.0), **averages}
    return {"client": {name: {"avgcount": count, "sum": total} for name, (count, total) in sums.items()}}


def seen(**changes: object) -> Seen:
    """Ten seconds of a ceph-fuse mount on which nothing happens."""
    change = {
        "reasons": {},
        "state_end": None,
        "client_read_bytes": 0,
        "client_cached_bytes": 0,
        "client_written_bytes": 0,
        "client_cpu_ns": 10**9,
        "cpu_busy_share": 0.1,
    }
    opened = SeenFile("/mnt/fs/a", True, 40960)
    process = SeenProcess(77, "writer", "alice", (opened,), (), {"wchar": 40960, "syscw": 10}, 10.0)
    plain = Seen(
        path="/mnt/fs",
        words="CephFS through ceph-fuse",
        access="ceph-fuse",
        mount=MOUNTS[1],
        mounts=MOUNTS,
        elapsed_s=10.0,
        change=change,
        samples=(),
        processes=(process,),
        unseen=(),
        calls=None,
        calls_reason="not root",
        client=(dump(), dump()),
        client_reason="",
        calls_s=10.0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def loads(what: Seen) -> list[str]:
    return [cause.name for cause in judge(watch_facts(what)).load]


def limits(what: Seen) -> list[str]:
    return [cause.name for cause in judge(watch_facts(what)).limit]


def with_bytes(what: Seen, **amounts: int) -> Seen:
    return replace(what, change={**what.change, **amounts})


def test_an_idle_mount_is_called_so() -> None:
    assert loads(seen()) == ["nothing"]


def test_small_writes_are_named_from_the_client_s_own_counters() -> None:
    busy = seen(client=(dump(), dump(wrlat=(5000, 4.0))))
    assert loads(with_bytes(busy, client_written_bytes=5000 * 4096)) == ["small_writes"]


def test_a_storm_of_metadata_is_named() -> None:
    assert loads(seen(client=(dump(), dump(lat=(20_000, 9.0))))) == ["metadata"]


def test_forty_calls_a_second_that_cost_next_to_nothing_are_no_storm() -> None:
    assert loads(seen(client=(dump(), dump(lat=(400, 0.2))))) == ["little"]
    assert loads(seen(client=(dump(), dump(lat=(400, 4.0))))) == ["metadata"]


def test_small_writes_that_cost_nothing_have_no_headline() -> None:
    busy = seen(client=(dump(), dump(wrlat=(500, 0.1))))
    assert loads(with_bytes(busy, client_written_bytes=500 * 4096)) == ["little"]


def test_a_stream_is_named_and_not_taken_for_small_writes() -> None:
    busy = seen(client=(dump(), dump(wrlat=(8000, 2.0))))
    assert loads(with_bytes(busy, client_written_bytes=8000 * 131_072)) == ["write_stream"]


def test_without_any_counter_nothing_is_claimed_about_the_load() -> None:
    found = watch_facts(seen(client=None, client_reason="no permission"))
    judged = judge(found)
    assert judged.load == ()
    assert "no permission" in found.not_seen["client"]
    assert "not root" in found.not_seen["calls"]


def test_a_saturated_thread_of_the_client_is_a_limit() -> None:
    rows = tuple(
        (at, "client", f"ceph-fuse.9/{name}", "cpu", load, "cores")
        for at in range(10)
        for name, load in (("msgr-0.12", 0.97), ("fn.13", 0.1))
    )
    found = seen(samples=rows)
    assert limits(found) == ["client_thread"]
    assert watch_facts(found).values["client_thread"] == "msgr-0.12"


def test_a_thread_that_was_busy_once_is_no_limit() -> None:
    rows = tuple((at, "client", "ceph-fuse.9/steady.1", "cpu", 0.1, "cores") for at in range(10))
    once = ((0, "client", "ceph-fuse.9/msgr.2", "cpu", 1.0, "cores"),)
    assert limits(seen(samples=(*rows, *once))) == []


@pytest.mark.parametrize(
    ("slow_ms", "looks", "expected"),
    [
        (60.0, 8, ["slow_osd"]),
        (3.0, 8, []),
        (60.0, 3, []),  # OSDs report every few seconds: little was seen in 15
        (5500.0, 2, ["slow_osd"]),
        (5500.0, 1, []),
        (99.0, 2, []),
    ],
)
def test_an_osd_is_slow_only_by_a_wide_margin(slow_ms: float, looks: int, expected: list[str]) -> None:
    commits = {"osd.0": 2.0, "osd.1": 2.0, "osd.2": slow_ms}
    rows = tuple(
        (at, "ceph", osd, "commit_latency", value, "ms")
        for at in range(looks)
        for osd, value in commits.items()
    )
    assert limits(seen(samples=rows)) == expected


def test_all_osds_that_commit_slowly_accuse_none() -> None:
    rows = tuple(
        (at, "ceph", osd, "commit_latency", ms, "ms")
        for at in range(2)
        for osd, ms in {"osd.0": 300.0, "osd.1": 500.0, "osd.2": 800.0}.items()
    )
    assert limits(seen(samples=rows)) == []


def thread(proc: Path, syscall: str, used_ns: int, tid: int = 77) -> None:
    """What the kernel shows of a thread of process 77."""
    task = proc / "77" / "task" / str(tid)
    task.mkdir(parents=True, exist_ok=True)
    for name, text in (("syscall", syscall), ("schedstat", f"{used_ns} 5 9"), ("comm", "writer")):
        (task / name).write_text(f"{text}\n")


FSYNC = "{} 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f01".format(74 if platform.machine() == "x86_64" else 82)
WRITE = "{} 0x3 0x7f00 0x100000 0x0 0x0 0x0 0x7ffc 0x7f02".format(1 if platform.machine() == "x86_64" else 64)


def test_a_thread_stands_in_a_call_only_where_it_had_no_cpu_in_between(tmp_path: Path) -> None:
    calls, places = StandingCalls(tmp_path), {3: "/a"}
    shown = [(WRITE, 10), (WRITE, 11), (WRITE, 11), (WRITE, 11), (FSYNC, 12), (FSYNC, 12)]
    for second, (text, used_ns) in enumerate(shown):
        thread(tmp_path, text, used_ns)
        calls.look(77, places, float(second))
    ended, going_on = calls.found()
    assert ended == [StandingCall(77, "write", "/a", 1.0, 3.0, from_first=False)]
    assert going_on == [StandingCall(77, "fsync", "/a", 4.0, 5.0, from_first=False)]
    # What began and ended under its eyes is counted by who counts calls, at their ends.
    waits = [SeenWait(77, "write", "/mnt/a", 2.0, 0.0), SeenWait(77, "fsync", "/mnt/a", 1.0, 1.0)]
    assert list(calls.waits(lambda place: f"/mnt{place}")) == waits
    assert list(calls.waits(lambda _: None)) == []
    calls.only(set())  # it has ended
    assert calls.found() == ([*ended, *going_on], [])


def test_every_call_that_a_thread_can_stand_in_is_of_a_known_kind() -> None:
    names = set(waits._CALL_ON_A_FILE.values())
    assert len(names) > 20
    assert names <= call_kinds().keys()


def test_a_call_that_goes_on_at_the_first_look_is_known_as_such_and_elsewhere_it_is_none(
    tmp_path: Path,
) -> None:
    calls = StandingCalls(tmp_path)
    for second in range(3):
        thread(tmp_path, FSYNC, 10)
        thread(tmp_path, "running", 20, tid=78)
        thread(tmp_path, "202 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f01", 20, tid=79)
        thread(tmp_path, FSYNC.replace("0x3", "0x4"), 10, tid=80)  # its descriptor leads elsewhere
        calls.look(77, {3: "/a"}, float(second))
    assert calls.found() == ([], [StandingCall(77, "fsync", "/a", 0.0, 2.0, from_first=True)])
    thread(tmp_path, FSYNC, 11)  # it has ended, and another began
    calls.look(77, {3: "/a"}, 3.0)
    assert list(calls.waits(str)) == [SeenWait(77, "fsync", "/a", 2.0, 2.0)]


def test_an_osd_that_was_slow_once_is_not_blamed() -> None:
    rows = tuple(
        (at, "ceph", f"osd.{osd}", "commit_latency", 400.0 if (at, osd) == (0, 2) else 2.0 + osd % 2, "ms")
        for at in range(8)
        for osd in range(3)
    )
    assert limits(seen(samples=rows)) == []


def test_a_rule_without_evidence_is_refused() -> None:
    with pytest.raises(SpecError, match="evidence"):
        read_rules("odd: {asks: load, title: t, seen: '1=1', remedy: c}")


def test_a_rule_that_asks_something_else_is_refused() -> None:
    with pytest.raises(SpecError, match="'why' is not one of them"):
        read_rules("odd: {asks: why, title: t, seen: '1=1', evidence: e, remedy: c}")


def test_a_rule_over_a_figure_that_is_none_is_refused() -> None:
    table = read_rules("odd: {asks: load, title: t, seen: nonsense > 1, evidence: e, remedy: c}")
    with pytest.raises(SpecError, match="nonsense"):
        judge(watch_facts(seen()), table)


def test_every_figure_that_a_rule_names_is_described() -> None:
    text = Path(__file__).parents[2].joinpath("docs", "watch.md").read_text()
    undescribed = [name for name in watch_facts(seen()).values if f"`{name}`" not in text]
    assert undescribed == []
    assert len(rules()) > 10


def test_a_process_is_found_by_what_it_has_open(tmp_path: Path) -> None:
    place = tmp_path / "4242"
    for name in ("fd", "fdinfo"):
        (place / name).mkdir(parents=True)
    (place / "fd" / "5").symlink_to("/mnt/fs/data with space")
    (place / "fdinfo" / "5").write_text("pos:\t4096\nflags:\t0100001\nmnt_id:\t40\n")
    (place / "fd" / "6").symlink_to("/mnt/fsother/x")
    (place / "cwd").symlink_to("/mnt/fs")
    (place / "comm").write_text("writer\n")
    (place / "maps").write_text("7f00-7f01 r--p 0 00:00 1   /mnt/fs/library.so\n")
    table = "30 1 8:1 / / rw - ext4 /dev/vda rw\n40 30 0:50 / /mnt/fs rw - fuse.ceph-fuse ceph-fuse rw\n"
    mounts = parse_mountinfo(table)
    (user,) = users_of(mounts[1], mounts, proc=tmp_path).users
    assert (user.pid, user.name) == (4242, "writer")
    assert [(file.path, file.place, file.position, file.writing) for file in user.files] == [
        ("/mnt/fs/data with space", "/data with space", 4096, True)
    ]
    assert user.uses == (("working directory", "/"), ("mapped files", "/library.so"))
    assert os.getpid() not in [user.pid for user in users_of(mounts[0], mounts, proc=tmp_path).users]


@pytest.mark.parametrize(
    ("path", "mounts", "place"),
    [
        ("/mnt/fs/projects/a", MOUNTS, "/projects/a"),
        ("/srv/projects/a", MOUNTS, "/projects/a"),
        ("/data/a", CONTAINER, "/projects/a"),
        ("/data", CONTAINER, "/projects"),
        ("/mnt/fs", MOUNTS, "/"),
        ("/mnt/fs/other/a", MOUNTS, None),
        ("/mnt/fs/projects/a", CONTAINER, None),
        ("/mnt/fsother", MOUNTS, None),
    ],
)
def test_a_file_has_one_place_by_whatever_mount_it_is_met(
    path: str, mounts: tuple[Mount, ...], place: str | None
) -> None:
    assert place_on(path, mounts, MOUNTS[1]) == place


def traced(*rows: tuple[int, str, int, int]) -> TraceTables:
    """Calls of processes 1, 2, ...: (process, path, bytes read, bytes written), a call each."""
    columns: dict[str, list[Any]] = {field.name: [0] * len(rows) for field in files_schema()}
    columns |= {
        "copy": [0] * len(rows),
        "process": [row[0] for row in rows],
        "module": ["POSIX"] * len(rows),
        "path": [row[1] for row in rows],
        "BYTES_READ": [row[2] for row in rows],
        "BYTES_WRITTEN": [row[3] for row in rows],
        "READS": [int(row[2] > 0) for row in rows],
        "WRITES": [int(row[3] > 0) for row in rows],
        "MAX_BYTE_READ": [row[2] - 1 for row in rows],
        "MAX_BYTE_WRITTEN": [row[3] - 1 for row in rows],
        "F_READ_TIME": [0.0] * len(rows),
    }
    numbers = sorted({row[0] for row in rows})
    processes = tuple(process(n, copy=0, pid=100 + n, parent=None) for n in numbers)
    return TraceTables("bpf", processes, pa.table(columns, schema=files_schema()))


def test_figures_and_files_are_those_below_the_path_and_the_rest_stands_apart() -> None:
    calls = traced(
        (1, "/mnt/fs/projects/deep/a", 0, 1000),
        (1, "/mnt/fs/projectsother/b", 0, 20_000),
        (2, "/srv/projects/c", 300, 0),
        (3, "/data/deep/a", 0, 4000),
        (4, "/mnt/fs/elsewhere", 7, 0),
        (4, "/mnt/fs/other/not-on-it", 0, 50_000),
        (4, "/etc/passwd", 60_000, 0),
    )
    found = watch_facts(
        seen(path="/mnt/fs/projects", calls=calls, processes=(), foreign={103: CONTAINER}, client=None)
    )
    files = {file.path: (file.pids, file.highest_byte) for file in found.files}
    assert files == {
        "/mnt/fs/projects/deep/a": ((101, 103), 4000),
        "/mnt/fs/projects/c": ((102,), 300),
    }
    assert found.values["written_bytes_per_s"] == 500
    assert found.values["read_bytes_per_s"] == 30
    assert found.values["users"] == 3
    assert found.rest is not None
    assert (found.rest.work.bytes_written, found.rest.work.bytes_read) == (20_000, 7)
    assert found.values["rest_written_bytes_per_s"] == 2000
    assert found.about == "below /mnt/fs/projects"


def test_a_program_whose_call_does_not_end_is_not_said_to_compute() -> None:
    plain = seen()
    process_of = replace(plain.processes[0], pid=101)
    busy = replace(plain, calls=traced(*[(1, "/mnt/fs/a", 0, MIB)] * 20), processes=(process_of,))
    assert limits(busy) == ["programs"]
    wait = SeenWait(101, "write", "/mnt/fs/a", 9.0, 9.0)
    found = replace(busy, waits=(wait,))
    assert limits(found) == ["stands", "one_at_a_time"]
    facts = watch_facts(found)
    assert facts.values["in_calls"] == pytest.approx(0.9)
    assert facts.values["longest_wait"] == "writer (pid 101) in write of a"
    assert facts.files[0].tally is not None
    assert facts.files[0].tally.work.write_s == pytest.approx(9.0)
    # Of a program that came and went, some calls were not seen: it is not said to compute, nor to wait alone.
    gone = (replace(process_of, ended=True),)
    assert limits(replace(found, processes=gone)) == ["stands"]
    assert limits(replace(found, processes=gone, waits=(replace(wait, stood_s=2.0, uncounted_s=2.0),))) == []
    # The tracer counts what it saw the end of.
    counted = watch_facts(replace(busy, waits=(replace(wait, uncounted_s=0.0),)))
    assert (counted.values["in_calls"], counted.values["longest_wait_s"]) == (0.0, 9.0)


def test_counters_of_a_whole_mount_are_not_said_of_a_path_in_it() -> None:
    whole, part = watch_facts(seen()), watch_facts(seen(path="/mnt/fs/projects"))
    assert whole.about == "below /mnt/fs"
    assert part.about == "on all of /mnt/fs"
    assert "whole mount" in part.not_seen["apart"]
    assert part.rest is None


def test_processes_that_could_not_be_looked_into_or_ended_are_named() -> None:
    gone = replace(seen().processes[0], ended=True)
    found = watch_facts(seen(unseen=("2 processes could not be looked into",), processes=(gone,)))
    assert "2 processes" in found.not_seen["processes"]
    assert "1 process that ended" in found.not_seen["ended"]
    words = unseen_words({7: "secret", 3: "init"})
    assert words.startswith("2 processes could not be looked into")
    assert "3 (init), 7 (secret)" in words
    assert ("root may" in words) == (os.geteuid() != 0)
    assert unseen_words({}) == ""


def test_a_rate_is_over_the_time_that_a_process_was_followed() -> None:
    """The first look takes its time: whom it comes to last is followed for less than all of it."""
    late = SeenProcess(101, "late", "alice", (), (), None, 5.0)
    calls = traced((1, "/mnt/fs/a", 0, 1000), (2, "/mnt/fs/a", 0, 1000))
    found = watch_facts(seen(calls=calls, processes=(late,), client=None))
    assert found.values["written_bytes_per_s"] == 1000 / 5 + 1000 / 10
    (file,) = found.files
    assert file.tally is not None
    assert (file.tally.work.bytes_written, file.tally.per_s.bytes_written) == (2000, 300)


def test_many_processes_of_one_program_are_one_row_behind_what_moves_more() -> None:
    """A crowd that sleeps does not push the one that writes off the screen."""

    def program(pid: int, name: str, written: int) -> SeenProcess:
        opened = SeenFile(f"/mnt/fs/{name}", True, written)
        return SeenProcess(pid, name, "alice", (opened,), (), {"wchar": written, "syscw": 10}, 10.0)

    crowd = tuple(program(pid, "sleep", 0) for pid in range(1, 77))
    workers = tuple(program(pid, "dask", 1024) for pid in (80, 81))
    found = seen(processes=(*crowd, *workers, program(90, "dd", 40960)))
    facts = watch_facts(found)
    groups = by_program(facts.processes)
    assert [(group[0].seen.name, len(group)) for group in groups] == [("dd", 1), ("dask", 2), ("sleep", 76)]
    stream = io.StringIO()
    show_sections(watch_sections(found, facts, judge(facts)), Console(file=stream, width=200))
    lines = stream.getvalue().splitlines()
    table = lines[next(place for place, line in enumerate(lines) if line.startswith("Who uses")) + 3 :][:3]
    assert [line.split()[:2] for line in table] == [["dd", "alice"], ["dask", "alice"], ["sleep", "alice"]]
    assert "pid 90" in table[0]
    assert re.search(r"alice +2 .* 205 B/s", table[1])
    assert re.search(r"alice +76 ", table[2])
