"""Figures and causes of `leadline watch`, on values made here."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import SpecError
from leadline.observe.mounts.mountinfo import parse_mountinfo
from leadline.observe.mounts.users import users_of
from leadline.watch.causes import judge, read_rules, rules
from leadline.watch.figures import watch_facts
from leadline.watch.store import Seen, SeenProcess

MIB = 1 << 20


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
    process = SeenProcess(77, "writer", "alice", 1, "/mnt/fs/a", (), {"wchar": 40960, "syscw": 10}, 40960)
    plain = Seen(
        path="/mnt/fs",
        words="CephFS through ceph-fuse",
        access="ceph-fuse",
        mount_point="/mnt/fs",
        elapsed_s=10.0,
        change=change,
        samples=(),
        processes=(process,),
        unseen=0,
        calls=None,
        calls_reason="not root",
        client=(dump(), dump()),
        client_reason="",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def loads(what: Seen) -> list[str]:
    return [cause.rule for cause in judge(watch_facts(what)).load]


def limits(what: Seen) -> list[str]:
    return [cause.rule for cause in judge(watch_facts(what)).limit]


def with_bytes(what: Seen, **amounts: int) -> Seen:
    return replace(what, change={**what.change, **amounts})


def test_an_idle_mount_is_called_so() -> None:
    assert loads(seen()) == ["nothing"]


def test_small_writes_are_named_from_the_client_s_own_counters() -> None:
    busy = seen(client=(dump(), dump(wrlat=(5000, 4.0))))
    assert loads(with_bytes(busy, client_written_bytes=5000 * 4096)) == ["small_writes"]


def test_a_storm_of_metadata_is_named() -> None:
    assert loads(seen(client=(dump(), dump(lat=(20_000, 9.0))))) == ["metadata"]


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


@pytest.mark.parametrize(("slow_ms", "expected"), [(60.0, ["slow_osd"]), (3.0, [])])
def test_an_osd_is_slow_only_by_a_wide_margin(slow_ms: float, expected: list[str]) -> None:
    commits = {"osd.0": 2.0, "osd.1": 2.0, "osd.2": slow_ms}
    rows = tuple(
        (at, "ceph", osd, "commit_latency", value, "ms") for at in range(8) for osd, value in commits.items()
    )
    assert limits(seen(samples=rows)) == expected


def test_an_osd_that_was_slow_once_is_not_blamed() -> None:
    rows = tuple(
        (at, "ceph", f"osd.{osd}", "commit_latency", 400.0 if (at, osd) == (0, 2) else 2.0 + osd % 2, "ms")
        for at in range(8)
        for osd in range(3)
    )
    assert limits(seen(samples=rows)) == []


def test_a_rule_without_evidence_is_refused() -> None:
    with pytest.raises(SpecError, match="evidence"):
        read_rules("odd: {asks: load, title: t, where: '1=1', weight: '1', change: c}")


def test_a_rule_that_asks_something_else_is_refused() -> None:
    with pytest.raises(SpecError, match="no question"):
        read_rules("odd: {asks: why, title: t, where: '1=1', weight: '1', evidence: e, change: c}")


def test_a_rule_over_a_figure_that_is_none_is_refused() -> None:
    table = read_rules(
        "odd: {asks: load, title: t, where: nonsense > 1, weight: '1', evidence: e, change: c}"
    )
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
    assert [(file.path, file.position, file.writing) for file in user.files] == [
        ("/mnt/fs/data with space", 4096, True)
    ]
    assert user.uses == ("working directory", "mapped files")
    assert os.getpid() not in [user.pid for user in users_of(mounts[0], mounts, proc=tmp_path).users]
