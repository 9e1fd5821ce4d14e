"""What a device says of its own health and firmware, by smartctl; a named gap where it says nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
