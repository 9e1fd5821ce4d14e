"""What links, devices and control groups let through: recorded trees of /sys, and what binds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.observe.host import host
from leadline.observe.network.interfaces import (
    DEVICE_LIMITS,
    WIRE_LIMIT,
    device_limits,
    interface_speed,
    wire_limit,
)

REAL = "model name\t: Xeon\nflags\t\t: fpu sse2\n"
VIRTUAL = "model name\t: Xeon\nflags\t\t: fpu hypervisor\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    place = tmp_path / "proc"
    (place / "self").mkdir(parents=True)
    (place / "cpuinfo").write_text(REAL)
    return place


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    return tmp_path / "sys"


def interface(
    sys: Path, name: str, speed: str, *, physical: bool = True, below: tuple[str, ...] = ()
) -> None:
    base = sys / "class" / "net" / name
    base.mkdir(parents=True)
    (base / "speed").write_text(f"{speed}\n")
    if physical:
        (base / "device").mkdir()
    for one in below:
        (base / f"lower_{one}").symlink_to(f"../{one}")


def test_a_physical_link_carries_its_speed(proc: Path, sys: Path) -> None:
    interface(sys, "eth0", "25000")
    found = wire_limit(["eth0"], proc, sys)
    assert found.values == {WIRE_LIMIT: 3_125_000_000}
    assert "25 Gbit/s" in found.sources[WIRE_LIMIT]


def test_a_vlan_on_a_bond_carries_what_the_links_below_carry(sys: Path) -> None:
    interface(sys, "eth0", "10000")
    interface(sys, "eth1", "10000")
    interface(sys, "bond0", "20000", physical=False, below=("eth0", "eth1"))
    interface(sys, "bond0.7", "20000", physical=False, below=("bond0",))
    assert interface_speed("bond0.7", sys) == 2_500_000_000


@pytest.mark.parametrize(
    ("speed", "physical", "below"),
    [("-1", True, ()), ("10000", False, ()), ("0", True, ()), ("10000", False, ("eth9", "veth0"))],
)
def test_a_speed_that_binds_nothing_is_not_known(
    proc: Path, sys: Path, speed: str, physical: bool, below: tuple[str, ...]
) -> None:
    """A veth names a speed, and so does a bridge with one below it."""
    interface(sys, "eth9", "10000")
    interface(sys, "veth0", "10000", physical=False)
    interface(sys, "x", speed, physical=physical, below=below)
    found = wire_limit(["x"], proc, sys)
    assert found.values == {WIRE_LIMIT: None}
    assert found.reasons[WIRE_LIMIT]


def test_no_link_of_a_virtual_machine_binds(proc: Path, sys: Path) -> None:
    interface(sys, "eth0", "10000")
    (proc / "cpuinfo").write_text(VIRTUAL)
    assert wire_limit(["eth0"], proc, sys).values == {WIRE_LIMIT: None}


def nvme(sys: Path) -> None:
    """A partition on an NVMe device with four lanes of PCI Express 3."""
    device = sys / "devices" / "pci" / "nvme" / "nvme0"
    disk = device / "nvme0n1"
    (disk / "nvme0n1p2").mkdir(parents=True)
    (disk / "nvme0n1p2" / "partition").write_text("2\n")
    (disk / "dev").write_text("259:0\n")
    (disk / "device").symlink_to(device)
    (device / "device").mkdir()
    (device / "device" / "current_link_speed").write_text("8.0 GT/s PCIe\n")
    (device / "device" / "current_link_width").write_text("4\n")
    block = sys / "class" / "block"
    block.mkdir(parents=True)
    (block / "nvme0n1").symlink_to(disk)
    (block / "nvme0n1p2").symlink_to(disk / "nvme0n1p2")


def test_a_device_carries_what_its_lanes_carry(proc: Path, sys: Path) -> None:
    nvme(sys)
    found = device_limits("nvme0n1p2", proc, sys)
    assert found.values == dict.fromkeys(DEVICE_LIMITS, 3_938_461_538)
    assert found.sources[DEVICE_LIMITS[0]] == "the link of nvme0n1"


@pytest.mark.parametrize("version", [1, 2])
def test_the_control_groups_limit_is_the_tighter_one(proc: Path, sys: Path, version: int) -> None:
    nvme(sys)
    group = sys / "fs" / "cgroup" / "job"
    group.mkdir(parents=True)
    controller, kind = ("1:blkio", "cgroup cgroup rw,blkio") if version == 1 else ("0:", "cgroup2 cgroup2 rw")
    (proc / "self" / "cgroup").write_text(f"{controller}:/job\n")
    (proc / "self" / "mountinfo").write_text(f"32 31 0:29 / /sys/fs/cgroup rw - {kind}\n")
    if version == 1:
        (group / "blkio.throttle.read_bps_device").write_text("8:0 1\n259:0 1048576\n")
        (group / "blkio.throttle.write_bps_device").write_text("\n")
    else:
        (group / "io.max").write_text("8:0 rbps=1 wbps=1\n259:0 rbps=1048576 wbps=max riops=max wiops=max\n")
    found = device_limits("nvme0n1", proc, sys)
    assert found.values == {DEVICE_LIMITS[0]: 1 << 20, DEVICE_LIMITS[1]: 3_938_461_538}
    assert "control group" in found.sources[DEVICE_LIMITS[0]]


def test_a_target_without_a_device_has_no_limit(proc: Path, sys: Path) -> None:
    found = device_limits(None, proc, sys)
    assert found.values == dict.fromkeys(DEVICE_LIMITS)
    assert "no single block device" in found.reasons[DEVICE_LIMITS[0]]


@pytest.mark.parametrize(
    ("cpuinfo", "vendor", "clocks", "words"),
    [
        ("model name\t: QEMU TCG CPU version 2.5+\nflags\t\t: hypervisor\n", "QEMU", "tsc", "TCG"),
        (
            "model name\t: QEMU Virtual CPU version 2.5+\nflags\t\t: hypervisor\n",
            "",
            "tsc hpet",
            "no clock of KVM",
        ),
        (VIRTUAL, "QEMU", "hpet acpi_pm", "no clock of KVM"),
    ],
)
def test_qemu_without_kvm_is_emulation(
    proc: Path, sys: Path, cpuinfo: str, vendor: str, clocks: str, words: str
) -> None:
    recorded_machine(proc, sys, cpuinfo, vendor, clocks)
    assert words in host.emulation(proc, sys, {})


@pytest.mark.parametrize(
    ("cpuinfo", "vendor", "clocks"),
    [
        (REAL, "Dell Inc.", "tsc hpet"),
        (VIRTUAL, "QEMU", "kvm-clock tsc"),
        (VIRTUAL, "Amazon EC2", "tsc"),
        ("CPU part\t: 0xd0c\n", "QEMU", "arch_sys_counter"),
    ],
)
def test_what_may_be_real_or_kvm_is_not_called_emulated(
    proc: Path, sys: Path, cpuinfo: str, vendor: str, clocks: str
) -> None:
    recorded_machine(proc, sys, cpuinfo, vendor, clocks)
    assert host.emulation(proc, sys, {}) == "none seen"


def recorded_machine(proc: Path, sys: Path, cpuinfo: str, vendor: str, clocks: str) -> None:
    (proc / "cpuinfo").write_text(cpuinfo)
    for path, text in (
        ("class/dmi/id/sys_vendor", vendor),
        ("devices/system/clocksource/clocksource0/available_clocksource", clocks),
    ):
        (sys / path).parent.mkdir(parents=True)
        (sys / path).write_text(text + "\n")


def test_who_starts_an_emulated_machine_can_say_so(proc: Path, sys: Path) -> None:
    assert (
        host.emulation(proc, sys, {"LEADLINE_EMULATED_HOST": "a guest"})
        == "LEADLINE_EMULATED_HOST says: a guest"
    )
