"""Facts of a host that make requests slow, read from a made /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.observe.host.host import power_facts


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_the_kernel_does_not_show_is_said(tmp_path: Path) -> None:
    unseen = "not observable"
    found = {"cpu_governor": unseen, "cpu_wake_us": unseen, "numa_nodes": unseen, "iommu": "none"}
    assert power_facts(tmp_path) == found


@pytest.mark.parametrize(
    ("kinds", "words"), [(("identity",), "passed through"), (("DMA", "identity"), "translated")]
)
def test_each_is_read(tmp_path: Path, kinds: tuple[str, ...], words: str) -> None:
    cpu = tmp_path / "devices/system/cpu/cpu0"
    write(cpu / "cpufreq/scaling_governor", "powersave\n")
    for number, (latency, disabled) in enumerate(((0, 0), (2, 0), (133, 0), (890, 1))):
        write(cpu / f"cpuidle/state{number}/latency", f"{latency}\n")
        write(cpu / f"cpuidle/state{number}/disable", f"{disabled}\n")
    for node in ("node0", "node1"):
        write(tmp_path / "devices/system/node" / node / "cpulist", "0\n")
    write(tmp_path / "class/iommu/dmar0", "")
    for number, kind in enumerate(kinds):
        write(tmp_path / f"kernel/iommu_groups/{number}/type", kind)
    assert power_facts(tmp_path) == {
        "cpu_governor": "powersave",
        "cpu_wake_us": "133",
        "numa_nodes": "2",
        "iommu": words,
    }
