"""`leadline check` of drives' health, memory modules and what hosts of one processor model have alike."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from leadline.check.judge import judge
from leadline.check.reading.devices import smart_of, smart_values
from leadline.check.reading.host import MemoryModule, host_facts, memory_facts, module_in
from leadline.check.reading.interfaces import bond_values, one_receives
from leadline.check.rows import ROLES, Fact, rows, told

_NVME = {"critical_warning": 0, "media_errors": 0, "percentage_used": 3}


def bad(facts: list[Fact]) -> set[tuple[str, str]]:
    checked = judge(facts, rows(), ROLES)
    return {(one.row.name, one.subject) for one in checked if one.state == "out_of_line"}


def _nvme(passed: bool = True, **changed: int) -> dict[str, Any]:
    log = _NVME | changed
    return {
        "smart_status": {"passed": passed},
        "nvme_smart_health_information_log": log,
        "firmware_version": "1A",
    }


def _ata(**lost: int) -> dict[str, Any]:
    table = [{"id": 9, "raw": {"value": 40000}}]
    table += [{"id": int(name[1:]), "raw": {"value": value}} for name, value in lost.items()]
    return {"smart_status": {"passed": True}, "ata_smart_attributes": {"table": table}}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (_nvme(), set()),
        (_nvme(passed=False), {"smart"}),
        (_nvme(media_errors=2), {"smart-lost"}),
        (_nvme(percentage_used=91), {"smart-wear"}),
        (_nvme(critical_warning=4), {"smart-critical"}),
        (_ata(), set()),
        (_ata(_197=8), {"smart-lost"}),
        ({"smart_status": {"passed": True}, "scsi_grown_defect_list": 5}, {"smart-lost"}),
    ],
)
def test_what_a_drive_says_of_itself_is_held_against_what_is_expected(
    answer: dict[str, Any], found: set[str]
) -> None:
    values, reasons = smart_values(answer)
    facts = told("device", "a/sda", values, reasons)
    assert {name for name, _ in bad(facts)} == found
    assert all(fact.missing for fact in facts if fact.value is None)


def test_a_device_without_smart_is_a_gap_in_smartctl_s_words() -> None:
    answer = {"smartctl": {"messages": [{"string": "/dev/vda: Unable to detect device type"}]}}
    values, reasons = smart_values(answer)
    assert values == {"smart_passed": None, "smart_lost": None}
    assert set(reasons.values()) == {"smartctl: /dev/vda: Unable to detect device type"}


def test_without_smartctl_each_device_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (values, reasons) = smart_of(["/dev/sda"])["/dev/sda"]
    assert values["smart_passed"] is None
    assert "smartmontools" in reasons["smart_passed"]


def test_the_odd_firmware_is_that_of_one_model() -> None:
    drives = {"sda": ("M", "1"), "sdb": ("M", "1"), "sdc": ("M", "2"), "sdd": ("N", "7")}
    facts = [Fact("device", f"a/{name}", "model", model) for name, (model, _) in drives.items()]
    facts += [Fact("device", f"a/{name}", "firmware", firmware) for name, (_, firmware) in drives.items()]
    assert bad(facts) == {("firmware", "a/sdc")}


def _raw(size: int, rated: int, configured: int, extended_mib: int = 0) -> bytes:
    raw = bytearray(0x22)
    raw[0], raw[1] = 17, 0x22
    struct.pack_into("<H", raw, 0x0C, size)
    struct.pack_into("<H", raw, 0x15, rated)
    struct.pack_into("<I", raw, 0x1C, extended_mib)
    struct.pack_into("<H", raw, 0x20, configured)
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "module"),
    [
        (_raw(16 << 10, 3200, 2933), MemoryModule(16 << 30, 3200, 2933)),
        (_raw(0x7FFF, 4800, 4800, 64 << 10), MemoryModule(64 << 30, 4800, 4800)),
        (_raw(0, 0, 0), MemoryModule(0, 0, 0)),
        (_raw(0xFFFF, 0xFFFF, 0), MemoryModule(0, 0, 0)),
        (b"\x11\x05", None),
        (b"\x04" + bytes(0x40), None),
    ],
)
def test_a_memory_module_is_what_the_table_says(raw: bytes, module: MemoryModule | None) -> None:
    assert module_in(raw) == module


def _sys(tmp_path: Path, *modules: bytes, channels: int = 0) -> Path:
    for number, raw in enumerate(modules):
        place = tmp_path / f"firmware/dmi/entries/17-{number}"
        place.mkdir(parents=True)
        (place / "raw").write_bytes(raw)
    for number in range(channels):
        place = tmp_path / f"devices/system/edac/mc/mc0/dimm{number}"
        place.mkdir(parents=True)
        (place / "dimm_location").write_text(f"channel {number} slot 0\n")
    return tmp_path


def test_memory_that_is_unlike_or_slow_is_named(tmp_path: Path) -> None:
    sys = _sys(tmp_path, _raw(16384, 3200, 3200), _raw(8192, 3200, 2400), _raw(0, 0, 0), channels=2)
    values, _ = memory_facts(sys)
    assert (values["memory_modules"], values["memory_slots"], values["memory_channels"]) == (2, 3, 2)
    facts = [Fact("host", "a", name, value) for name, value in values.items()]
    assert {name for name, _ in bad(facts)} == {"memory-modules", "memory-speed"}


def test_memory_that_nobody_tells_of_is_a_gap(tmp_path: Path) -> None:
    values, reasons = memory_facts(tmp_path)
    assert set(values.values()) == {None}
    assert "SMBIOS" in reasons["memory_modules"]
    assert "EDAC" in reasons["memory_channels"]


def test_hosts_are_compared_with_those_of_the_same_processor() -> None:
    nodes = {"a": ("EPYC", 1), "b": ("EPYC", 1), "c": ("EPYC", 4), "d": ("Xeon", 2)}
    facts = [Fact("host", name, "cpu_model", model) for name, (model, _) in nodes.items()]
    facts += [Fact("host", name, "numa_nodes", count) for name, (_, count) in nodes.items()]
    assert bad(facts) == {("numa", "c")}


@pytest.mark.parametrize(("again", "sent", "value"), [(1000, 100_000, 0.01), (1000, 99_999, None)])
def test_segments_that_were_sent_again(tmp_path: Path, again: int, sent: int, value: float | None) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\n")
    (tmp_path / "net/snmp").write_text(
        f"Ip: Forwarding\nIp: 1\nTcp: OutSegs RetransSegs\nTcp: {sent} {again}\n"
    )
    facts = {one.name: one for one in host_facts("a", tmp_path, tmp_path)}
    assert facts["tcp_sent_again_share"].value == value
    assert bool(facts["tcp_sent_again_share"].missing) == (value is None)


_BOND = """Ethernet Channel Bonding Driver: v6.1
Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer2 (0)
MII Status: up

802.3ad info
Active Aggregator Info:
	Aggregator ID: 1
	Partner Mac Address: {partner}

Slave Interface: eth0
MII Status: up
Aggregator ID: 1

Slave Interface: eth1
MII Status: {second}
Aggregator ID: {aggregator}
"""


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, {"bond-hash"}),
        ({"second": "down"}, {"bond-hash", "bond"}),
        ({"aggregator": "2"}, {"bond-hash", "bond-aggregator"}),
        ({"partner": "00:00:00:00:00:00"}, {"bond-hash", "bond-partner"}),
    ],
)
def test_what_is_wrong_with_a_bond_is_named(changed: dict[str, str], found: set[str]) -> None:
    fine = {"partner": "aa:bb:cc:00:00:01", "second": "up", "aggregator": "1"}
    values = bond_values(_BOND.format(**fine | changed))
    assert {
        name for name, _ in bad([Fact("interface", "a/bond0", name, one) for name, one in values.items()])
    } == found


def test_no_bond_has_no_facts_of_one() -> None:
    assert set(bond_values(None).values()) == {None}


@pytest.mark.parametrize(
    ("speed", "queues", "rps", "address", "one"),
    [
        (25_000, 1, "00", "aa", True),
        (25_000, 1, "00000000,0000000f", "aa", False),
        (25_000, 2, "00", "aa", False),
        (1_000, 1, "00", "aa", None),
        (25_000, 1, "00", "of another network", None),
    ],
)
def test_a_fast_interface_with_one_processor(
    tmp_path: Path, speed: int, queues: int, rps: str, address: str, one: bool | None
) -> None:
    place = tmp_path / "class/net/eth0"
    for number in range(queues):
        (place / f"queues/rx-{number}").mkdir(parents=True)
        (place / f"queues/rx-{number}/rps_cpus").write_text(rps + "\n")
    (place / "ifindex").write_text("2\n")
    (place / "address").write_text(address + "\n")
    link = {"ifname": "eth0", "ifindex": 2, "address": "aa"}
    assert one_receives(link, speed, tmp_path) is one
