"""Ceph's daemons of a host, as /proc has them: which are the target's, and what of them is sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import facts

from leadline.observe.host.daemon_reader import DaemonReader, cluster_of, daemons_here
from leadline.observe.host.processes import ProcessThreads
from leadline.observe.host.reader import TICK_NS
from leadline.study.target import CephAccess

FSID = "0f1e2d3c-0000-4000-8000-123456789abc"
TICKS = 100
S = 1_000_000_000


def stat(name: str, state: str, ticks: int) -> str:
    return f"11 ({name}) {state} 1 11 11 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 500 0 40 0 0"


class Proc:
    """One OSD with a thread, in a tree like /proc."""

    def __init__(self, place: Path) -> None:
        self.root, self.conf = place / "proc", place / "ceph.conf"
        self.own = self.root / "11"
        self.conf.write_text(f"[global]\n fsid = {FSID}\n")
        (self.own / "task" / "12").mkdir(parents=True)
        (self.own / "net").mkdir()
        (self.own / "ns").mkdir()
        (self.own / "ns" / "net").touch()
        (self.root / "self").mkdir()
        (self.own / "comm").write_text("ceph-osd\n")
        self.command("ceph-osd", "-f", "-c", str(self.conf), "--id=3")
        self.set("S", 0, "S", 0)
        (self.own / "cgroup").write_text("")

    def command(self, *words: str) -> None:
        (self.own / "cmdline").write_bytes(b"\0".join(map(str.encode, words)) + b"\0")

    def set(self, state: str, ticks: int, thread_state: str, written: int, resent: int = 0) -> None:
        (self.own / "stat").write_text(stat("ceph-osd", state, ticks))
        thread = self.own / "task" / "12"
        (thread / "comm").write_text("bstore_kv_sync\n")
        (thread / "stat").write_text(stat("bstore_kv_sync", thread_state, ticks))
        (thread / "schedstat").write_text(f"{ticks * TICK_NS} 0 0\n")
        (self.own / "io").write_text(f"read_bytes: 0\nwrite_bytes: {written}\n")
        (self.own / "net" / "snmp").write_text(f"Tcp: InSegs RetransSegs\nTcp: 7 {resent}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def reader(proc: Proc, conf: Path) -> DaemonReader:
    return DaemonReader({"a": facts(ceph=CephAccess(conf=str(conf)))}, proc.root)


def test_what_is_sampled_of_an_osd(proc: Proc) -> None:
    source = reader(proc, proc.conf)
    source.sample(1 * S)
    source.sample(2 * S)
    proc.set("T", TICKS, "D", 5 << 20, resent=30)
    found = {(subject, metric): value for _, subject, metric, value, _ in source.sample(4 * S)}
    assert found["osd.3", "stopped"] == 1.0
    assert found["osd.3", "cpu"] == pytest.approx(0.5)
    assert found["osd.3", "written"] == pytest.approx(2.5 * (1 << 20))
    assert found["osd.3", "blocked"] == 1.0
    assert found["osd.3", "resent_segments"] == pytest.approx(15)
    assert found["osd.3/bstore_kv_sync.12", "cpu"] == pytest.approx(0.5)


def test_another_file_of_the_same_cluster_is_that_cluster(proc: Proc, tmp_path: Path) -> None:
    client = tmp_path / "client.conf"
    client.write_text(f"[global]\nfsid={FSID}\n")
    assert reader(proc, client).sample(S) != []
    client.write_text(f"[global]\nfsid={FSID.replace('0f', 'ff')}\n")
    assert reader(proc, client).sample(S) == []
    assert cluster_of(str(tmp_path / "none.conf")) == str(tmp_path / "none.conf")


def test_whose_command_says_nothing_is_nobodys(proc: Proc) -> None:
    assert daemons_here({FSID}, proc.root) == {11: "osd.3"}
    proc.command("ceph-osd", "-f", "-c", str(proc.conf))
    assert daemons_here({FSID}, proc.root) == {}
    proc.command("ceph-osd", "-c", str(proc.conf), "-i", "3")
    (proc.own / "comm").write_text("bash\n")
    assert daemons_here({FSID}, proc.root) == {}


def test_one_that_ended_is_no_row(proc: Proc) -> None:
    source = reader(proc, proc.conf)
    source.sample(1 * S)
    (proc.own / "stat").unlink()
    (proc.own / "ns" / "net").unlink()
    (proc.own / "task").rename(proc.own / "gone")
    assert source.sample(2 * S) == []


def test_threads_are_looked_at_the_more_seldom_the_more_that_costs(
    proc: Proc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks(cost_s: float) -> list[int]:
        clock = iter(number * cost_s for number in range(100))
        monkeypatch.setattr("time.thread_time", lambda: next(clock))
        source = reader(proc, proc.conf)
        samples = []
        for at in range(13):
            proc.set("S", at * TICKS, "S", 0)
            samples.append(source.sample((at + 1) * S))
        assert all(any(row[2] == "blocked" for row in rows) for rows in samples)
        return [at for at, rows in enumerate(samples) if any("/" in row[1] for row in rows)]

    assert looks(0.001) == list(range(1, 13))
    assert looks(0.003) == [2, 4, 6, 8, 10, 12]
    assert looks(10.0) == [5, 10]


def test_threads_are_seen_without_what_some_kernels_lack(proc: Proc) -> None:
    (proc.own / "task" / "12" / "schedstat").unlink()
    proc.set("S", 3, "D", 0)
    (proc.own / "task" / "12" / "schedstat").unlink()
    threads = ProcessThreads(proc.own)
    assert list(threads.look()) == [("12", "bstore_kv_sync", 3 * TICK_NS)]
    assert threads.is_blocked(("bstore_",)) is True
    assert threads.is_blocked(("tp_osd_tp",)) is None
