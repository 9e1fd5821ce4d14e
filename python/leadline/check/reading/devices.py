"""Real block devices of this host: scheduler, read-ahead, cache, PCI Express link, holders, SMART."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from leadline.check.facts import Fact, told
from leadline.check.reading.smart import smart_of
from leadline.check.reading.texts import number_in, text_of
from leadline.knowledge.tables import Value

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
