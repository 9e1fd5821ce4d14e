"""Devices that are measured: what they hang on, what is comparable, and what is said of all at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline import _core
from leadline.check.storage import rounds
from leadline.check.storage.places import DevicePlace, link_bytes_s, shared_by
from leadline.check.storage.rounds import READS, WRITES, job_of

HBA = "0000:3b:00.0"


@pytest.fixture(autouse=True)
def idle_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Measurements of no time here: one tick of this host's own between two readings would be all of it."""
    (tmp_path / "stat").write_text("cpu  10 0 10 100 0 0 0 0 0 0\n")
    monkeypatch.setattr(rounds, "_STAT", tmp_path / "stat")


def place(name: str, *, media: str = "ssd", device: str = "", upstream: tuple[str, ...] = ()) -> DevicePlace:
    device = device or name
    return DevicePlace(Path("/dev", name), True, False, device, media, (device, *upstream))


@pytest.mark.parametrize("pattern", [*READS, *WRITES], ids=lambda one: one.fact)
@pytest.mark.parametrize("ring", [True, False])
def test_the_engine_takes_every_job(
    pattern: rounds.DevicePattern, ring: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "engines", lambda: [{"name": "io_uring", "available": ring}])
    text = job_of(pattern, 3, 64 << 20, 1)
    _core.check_job(text)
    job = json.loads(text)
    assert job["numjobs"] * job["iodepth"] == pattern.depth
    assert job["engine"] == ("io_uring" if ring else "psync")
    assert job["direct"]


def test_a_job_on_a_descriptor_makes_no_file() -> None:
    job = json.loads(job_of(WRITES[0], 3, 64 << 20, 1))
    with pytest.raises(ValueError, match="descriptor"):
        _core.check_job(json.dumps(job | {"overwrite": False}))
    with pytest.raises(ValueError, match="descriptor"):
        _core.layout(json.dumps(job))


def test_the_nearest_thing_that_all_go_through_is_named() -> None:
    assert shared_by([place("sda", upstream=(HBA, "0000:00:01.0")), place("sdb", upstream=(HBA,))]) == HBA
    assert shared_by([place("sda", upstream=(HBA,)), place("nvme0n1", upstream=("0000:5e:00.0",))]) == ""
    assert shared_by([place("loop0", upstream=("vda", HBA)), place("loop1", upstream=("vda", HBA))]) == "vda"


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [
        ("8.0 GT/s PCIe", "8", 8 * 984.6e6),
        ("2.5 GT/s", "1", 250e6),
        ("Unknown", "8", None),
        ("8.0 GT/s", "0", None),
    ],
)
def test_what_a_link_carries(tmp_path: Path, speed: str, width: str, expected: float | None) -> None:
    function = tmp_path / "bus/pci/devices" / HBA
    function.mkdir(parents=True)
    (function / "current_link_speed").write_text(speed + "\n")
    (function / "current_link_width").write_text(width + "\n")
    assert link_bytes_s(HBA, tmp_path) == expected


class Answering:
    """A child that answers with so many bytes a second, alone and beside others."""

    def __init__(self, at: DevicePlace, alone: float, beside: float) -> None:
        self.place = at
        self.answers = [alone, beside] * rounds.ROUNDS

    def tell(self, **_command: object) -> None:
        """Nothing to do."""

    def answer(self) -> dict[str, float]:
        return {"bytes": self.answers.pop(0), "operations": 0, "measured_ns": 10**9}


def facts_of(*children: Answering) -> dict[tuple[str, str], float]:
    found = rounds._pattern_facts("h", READS[0], children)  # type: ignore[arg-type]
    return {(fact.subject, fact.name): fact.value for fact in found}  # type: ignore[misc]


def test_devices_behind_one_controller_that_is_full() -> None:
    ones = [Answering(place(name, upstream=(HBA,)), 1000, 500) for name in ("sda", "sdb", "sdc")]
    found = facts_of(*ones)
    assert found[f"h: 3 at once, all through {HBA}", "read_1m_scaling"] == 0.5
    assert found["h:/dev/sda@ssd", "read_1m_of_others"] == 1


def test_the_slow_one_is_held_against_those_of_its_kind_only() -> None:
    slow, turning = Answering(place("sdc"), 100, 100), Answering(place("sdz", media="hdd"), 10, 10)
    found = facts_of(Answering(place("sda"), 1000, 1000), Answering(place("sdb"), 1000, 1000), slow, turning)
    assert found["h:/dev/sdc@ssd", "read_1m_of_others"] == 0.1
    assert found["h:/dev/sda@ssd", "read_1m_of_others"] == pytest.approx(1000 / 550, abs=1e-3)
    assert ("h:/dev/sdz@hdd", "read_1m_of_others") not in found


def test_two_directories_of_one_device_are_one_device() -> None:
    ones = [Answering(place(name, device="vda"), speed, 50) for name, speed in (("a", 100), ("b", 10))]
    assert {name for _, name in facts_of(*ones)} == {"read_1m_bytes_s"}
