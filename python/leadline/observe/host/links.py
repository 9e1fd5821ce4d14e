"""This host's network links, for a manifest: a slow one beside a fast one is not meant, nor half duplex."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_NETWORK = Path("/sys/class/net")


def link_facts(network: Path = _NETWORK) -> dict[str, str]:
    """`links`: name, speed (Mbit/s) and duplex of each that is up and says its speed; "none" of none."""
    found = []
    for place in sorted(network.glob("*")):
        # What is down, and what has no speed, such as a loopback, answers with an error or -1.
        with suppress(OSError, ValueError):
            speed = int((place / "speed").read_text())
            duplex = (place / "duplex").read_text().strip()
            if speed > 0 and (place / "operstate").read_text().strip() == "up":
                found.append(f"{place.name} {speed} {duplex}")
    return {"links": ", ".join(found) or "none"}
