"""Real block devices of this host: scheduler, cache, PCI Express link, holders, and what SMART says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from leadline.check.reading.host import number_in, text_of
from leadline.check.rows import Fact, told
from leadline.foreign import parse_json
from leadline.knowledge.tables import Value

_MISSING = "smartctl (Debian: smartmontools) is not installed"
_ANSWER_S = 20.0  # a drive that sleeps has to turn first
_AT_ONCE = 8
# ATA attributes that count what was lost: reallocated, uncorrectable, pending, uncorrectable when not in use.
_LOST = (5, 187, 197, 198)
NAMES = ("smart_passed", "smart_lost", "smart_wear_share", "smart_critical")
_OPTIONAL = ("smart_wear_share", "smart_critical")


def smart_of(devices: Sequence[str]) -> dict[str, tuple[dict[str, Value], dict[str, str]]]:
    """By device: facts and the reasons of those without a value."""
    program = shutil.which("smartctl")
    if program is None:
        return {one: _gap(_MISSING) for one in devices}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return dict(zip(devices, threads.map(lambda one: _asked(program, one), devices), strict=True))


def _gap(why: str) -> tuple[dict[str, Value], dict[str, str]]:
    values: dict[str, Value] = {name: None for name in NAMES if name not in _OPTIONAL}
    return values, dict.fromkeys(values, why)


def _asked(program: str, device: str) -> tuple[dict[str, Value], dict[str, str]]:
    try:
        done = subprocess.run(
            [program, "-j", "-a", device],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_ANSWER_S,
        )  # fmt: skip
        answer = parse_json(done.stdout)
    except subprocess.TimeoutExpired:
        return _gap(f"smartctl did not end within {_ANSWER_S:g} s")
    except (OSError, ValueError) as error:
        return _gap(f"smartctl answers with no JSON: {type(error).__name__}")
    return smart_values(answer)


def smart_values(answer: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, str]]:
    """Facts of what smartctl printed; of a device that shows none its own words."""
    passed = answer.get("smart_status", {}).get("passed")
    if passed is None:
        messages = answer.get("smartctl", {}).get("messages", ())
        said = "; ".join(str(one.get("string", "")) for one in messages)
        return _gap(f"smartctl: {said}" if said else "the device shows no SMART")
    values: dict[str, Value] = {"smart_passed": bool(passed), "smart_lost": None}
    nvme = answer.get("nvme_smart_health_information_log")
    table = answer.get("ata_smart_attributes", {}).get("table")
    scsi = answer.get("scsi_grown_defect_list")
    if nvme is not None:
        values["smart_lost"] = nvme.get("media_errors")
        values["smart_critical"] = nvme.get("critical_warning")
        used = nvme.get("percentage_used")
        values["smart_wear_share"] = used / 100 if isinstance(used, int) else None
    elif table is not None:
        values["smart_lost"] = sum(int(one["raw"]["value"]) for one in table if one.get("id") in _LOST)
    elif scsi is not None:
        values["smart_lost"] = int(scsi)
    if answer.get("firmware_version"):
        values["firmware"] = str(answer["firmware_version"])
    kept = {name: value for name, value in values.items() if value is not None or name not in _OPTIONAL}
    return kept, {"smart_lost": "it counts no lost blocks"}


Smart = Callable[[Sequence[str]], Mapping[str, tuple[Mapping[str, Value], Mapping[str, str]]]]
_NOT_DEVICES = ("loop", "ram", "zram", "fd", "sr", "md", "dm-", "nbd")


def device_facts(host: str, sys: Path = Path("/sys"), smart: Smart = smart_of) -> list[Fact]:
    """Every fact of every device; those that are made of others are left out."""
    places = [
        place
        for place in sorted((sys / "class/block").glob("*"))
        if not (place / "partition").exists() and not place.name.startswith(_NOT_DEVICES)
    ]
    health = smart([f"/dev/{place.name}" for place in places])
    found: list[Fact] = []
    for place in places:
        values, reasons = health[f"/dev/{place.name}"]
        # A device that is on no PCI Express link of its own has no fact of one.
        own = {
            name: value
            for name, value in _values(place).items()
            if value is not None or not name.startswith("pcie")
        }
        found += told("device", f"{host}/{place.name}", own | dict(values), reasons)
    return found


def _values(place: Path) -> dict[str, Value]:
    queue = place / "queue"
    return {
        "size_bytes": _times(number_in(text_of(place / "size")), 512),
        "model": text_of(place / "device/model"),
        "firmware": text_of(place / "device/firmware_rev") or text_of(place / "device/rev"),
        "rotational": _flag(queue / "rotational"),
        "scheduler": _chosen(text_of(queue / "scheduler")),
        "read_ahead_bytes": _times(number_in(text_of(queue / "read_ahead_kb")), 1024),
        "write_cache": text_of(queue / "write_cache"),
        "fua": _flag(queue / "fua"),
        "requests": number_in(text_of(queue / "nr_requests")),
        "read_only": _flag(place / "ro"),
        "holders": ", ".join(sorted(one.name for one in (place / "holders").glob("*"))),
        "partitions": sum(1 for _ in place.glob(f"{place.name}*/partition")),
        "pcie_width_share": _share(place, "current_link_width", "max_link_width"),
        "pcie_speed_share": _share(place, "current_link_speed", "max_link_speed"),
    }


def _chosen(schedulers: str | None) -> str | None:
    """`none [mq-deadline] bfq`: the one in brackets; devices without a choice name one only."""
    if schedulers is None:
        return None
    return schedulers.partition("[")[2].partition("]")[0] or schedulers


def _flag(path: Path) -> bool | None:
    text = text_of(path)
    return None if text not in ("0", "1") else text == "1"


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _share(place: Path, now: str, most: str) -> float | None:
    """Of the nearest PCI function above the device: its link's figure now, of what it can."""
    folder = (place / "device").resolve()
    for parent in (folder, *folder.parents):
        current, best = text_of(parent / now), text_of(parent / most)
        if current and best:
            values = [
                float(text.split()[0])
                for text in (current, best)
                if text.split()[0].replace(".", "").isdigit()
            ]
            return values[0] / values[1] if len(values) == 2 and values[1] else None
    return None
