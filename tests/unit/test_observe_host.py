"""The host's counters: /proc in several shapes, control groups of both versions, rates between readings."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from socket import AF_INET, AF_INET6

import psutil
import pytest

from leadline.observe.host import host
from leadline.observe.host.proc_parse import (
    parse_diskstats,
    parse_io,
    parse_net_dev,
    parse_pressure,
    parse_stat,
    parse_task_stat,
)
from leadline.observe.host.reader import HostReading, host_rows
from leadline.observe.network.interfaces import (
    host_interfaces,
    interface_towards,
    parse_address,
    server_addresses,
)
from leadline.study.target import TargetFacts

STAT = "cpu  100 10 50 800 30 2 3 5 7 0\ncpu0 100 10 50 800 30 2 3 5 7 0\nintr 5\n"
DISKS = (
    "254 0 vda 100 1 2048 30 50 2 4096 40 3 70 80 0 0 0 0 9 9\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n8 0 short 1\n"
)
NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth0:5000 50 1 2 0 0 0 0 7000 70 3 4 0 0 0 0
"""


def reading(t_ns: int = 0, stat: str = STAT, disks: str = DISKS, net: str = NET) -> HostReading:
    return HostReading(
        t_ns,
        parse_stat(stat),
        {"io": {"some": 1000}},
        parse_diskstats(disks),
        parse_net_dev(net),
        throttled=4,
    )


def test_cpu_time_by_kind() -> None:
    cpu = parse_stat(STAT)["cpu0"]
    assert (cpu.user, cpu.system, cpu.idle, cpu.iowait, cpu.steal) == (110, 55, 800, 30, 5)
    assert cpu.total == 1000
    assert cpu.busy == 165


def test_old_kernels_stat_without_steal() -> None:
    assert parse_stat("cpu 1 2 3 4\n")["cpu"].steal == 0


def test_disks_in_bytes_and_short_lines_left_out() -> None:
    disks = parse_diskstats(DISKS)
    assert disks["vda"].read_bytes == 2048 * 512
    assert disks["vda"].written_bytes == 4096 * 512
    assert (disks["vda"].in_flight, disks["vda"].busy_ms, disks["vda"].waited_ms) == (3, 70, 80)
    assert "short" not in disks


def test_interfaces_with_and_without_a_space() -> None:
    found = parse_net_dev(NET)
    assert found["eth0"].received_bytes == 5000
    assert (found["eth0"].sent_errors, found["eth0"].sent_drops) == (3, 4)
    assert found["lo"].sent_packets == 10


def test_pressure_without_full() -> None:
    assert parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=123\n") == {"some": 123}
    assert parse_pressure("") == {}


def test_thread_with_an_odd_name() -> None:
    line = "42 (a) b (c) S 1 2 3 0 -1 0 0 0 0 0 11 22 0 0 20 0 5 0 777 1000 55 0\n"
    stat = parse_task_stat(line)
    assert stat is not None
    assert (stat.name, stat.cpu_ticks, stat.started_ticks, stat.resident_pages) == ("a) b (c", 33, 777, 55)
    assert parse_task_stat("") is None


def test_process_io() -> None:
    assert parse_io("rchar: 1\nread_bytes: 4096\nbroken\n") == {"rchar": 1, "read_bytes": 4096}


def test_rates_between_two_readings() -> None:
    later = reading(
        2_000_000_000,
        stat=STAT.replace("cpu0 100 10 50 800 30", "cpu0 150 10 50 850 30"),
        disks=DISKS.replace("2048 30", "6144 30").replace("3 70 80", "3 70 2080"),
        net=NET.replace("eth0:5000", "eth0:9000"),
    )
    rows = {(row[1], row[2]): row[3] for row in host_rows(reading(), later)}
    assert rows["cpu0", "busy"] == 0.5
    assert rows["vda", "read"] == 4096 * 512 / 2
    assert rows["vda", "queue"] == 1.0
    assert rows["eth0", "received"] == 2000
    assert rows["pressure", "io_some"] == 0
    assert rows["cgroup", "throttled"] == 0
    assert ("loop0", "read") not in rows  # never did any I/O


def test_absent_pressure_and_throttling_have_no_row() -> None:
    without = replace(reading(), pressure={}, throttled=None)
    rows = host_rows(without, replace(without, t_ns=1_000_000_000))
    assert {row[1] for row in rows} == {"vda", "lo", "eth0"}


def test_counter_that_went_backwards_has_no_row() -> None:
    rows = host_rows(reading(), reading(1_000_000_000, net=NET.replace("eth0:5000", "eth0:1")))
    assert ("eth0", "received") not in {(row[1], row[2]) for row in rows}


def _proc(root: Path, cgroup: str, mounts: str) -> tuple[Path, Path]:
    proc, sys = root / "proc", root / "sys"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(cgroup)
    (proc / "self" / "mountinfo").write_text(mounts)
    (proc / "meminfo").write_text("MemTotal:       8000000 kB\nHugePages_Total:       3\n")
    return proc, sys


def test_limits_of_version_1(tmp_path: Path) -> None:
    mounts = (
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    )
    proc, sys = _proc(tmp_path, "4:memory:/job\n1:cpu:/job\n0::/\n", mounts)
    memory, cpu = sys / "fs/cgroup/memory/job", sys / "fs/cgroup/cpu/job"
    memory.mkdir(parents=True)
    cpu.mkdir(parents=True)
    (memory / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (memory.parent / "memory.limit_in_bytes").write_text("1073741824\n")
    (cpu / "cpu.cfs_quota_us").write_text("150000\n")
    (cpu / "cpu.cfs_period_us").write_text("100000\n")
    (cpu / "cpu.stat").write_text("nr_periods 10\nnr_throttled 3\nthrottled_time 5000\n")
    limits = host.group_limits(proc, sys)
    assert limits == host.GroupLimits(1.5, 1073741824, 3, 5000, "v1")
    assert host.memory_bytes(proc, sys) == 1073741824


def test_limits_of_version_2(tmp_path: Path) -> None:
    proc, sys = _proc(tmp_path, "0::/a/b\n", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    inner = sys / "fs/cgroup/a/b"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text("2147483648\n")
    (inner / "cpu.max").write_text("max 100000\n")
    (inner.parent / "cpu.max").write_text("50000 100000\n")
    (inner / "cpu.stat").write_text("usage_usec 1\nnr_throttled 7\nthrottled_usec 9\n")
    assert host.group_limits(proc, sys) == host.GroupLimits(0.5, 2147483648, 7, 9000, "v2")


def test_no_control_groups_is_no_limit_and_throttling_not_observable(tmp_path: Path) -> None:
    proc, sys = _proc(tmp_path, "", "")
    assert host.group_limits(proc, sys) == host.GroupLimits(None, None, None, None, "none")
    assert host.memory_bytes(proc, sys) == 8000000 * 1024


def test_facts_of_this_host_are_text() -> None:
    facts = host.facts()
    assert int(facts["memory_bytes"]) > 0
    assert all(isinstance(value, str) and value for value in facts.values())


def test_own_address_is_reached_by_loopback() -> None:
    assert interface_towards("127.0.0.1", dict) == "lo"
    assert interface_towards("not an address", dict) is None


@pytest.mark.parametrize(
    ("access", "source", "options", "addresses"),
    [
        ("nfs", "server:/x", ("vers=4.2", "addr=10.0.0.9"), ("10.0.0.9",)),
        ("smb", "//server/x", ("addr=fd00::9",), ("fd00::9",)),
        ("ceph-kernel", "10.0.0.1:6789,10.0.0.2:6789:/", (), ("10.0.0.1", "10.0.0.2")),
        (
            "ceph-kernel",
            "admin@fsid.fs=/",
            ("mon_addr=10.0.0.1:6789/10.0.0.2:6789",),
            ("10.0.0.1", "10.0.0.2"),
        ),
        ("local", "/dev/vda", (), ()),
    ],
)
def test_servers_that_a_mount_names(
    access: str, source: str, options: tuple[str, ...], addresses: tuple[str, ...]
) -> None:
    facts = TargetFacts(access=access, file_system="", words="", source=source, options=options)  # type: ignore[arg-type]
    assert server_addresses(facts) == addresses


def test_addresses_of_this_hosts_interfaces_are_the_kernels() -> None:
    found = host_interfaces()
    assert "127.0.0.1" in found["lo"]
    theirs = {
        name: sorted(
            entry.address.partition("%")[0] for entry in entries if entry.family in (AF_INET, AF_INET6)
        )
        for name, entries in psutil.net_if_addrs().items()
    }
    assert {name: sorted(addresses) for name, addresses in found.items()} == {
        name: addresses for name, addresses in theirs.items() if addresses
    }


def test_an_address_of_a_point_to_point_link_is_this_ends() -> None:
    head = struct.pack("=BBBBI", AF_INET, 32, 0, 0, 7)
    there = struct.pack("=HH4s", 8, 1, bytes([10, 0, 0, 1]))
    here = struct.pack("=HH4s", 8, 2, bytes([10, 0, 0, 2]))
    assert parse_address(head + there + here) == (7, "10.0.0.2")
    assert parse_address(head + there) == (7, "10.0.0.1")
    assert parse_address(head) is None
    assert parse_address(head[:4]) is None
    assert parse_address(struct.pack("=BBBBI", 1, 0, 0, 0, 7)) is None
