"""The file in which a lab says by which ports its traffic goes, and what each may carry; others only read it.

It lies in the directory of the lab. The ports are those of its switches, in a network namespace that a mount
holds; who reads their counters enters that for as long as a read takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from leadline.errors import ResultError
from leadline.foreign import parse_json, read_plain

FILE = "wires.json"
NEW = f"{FILE}.new"
FORMAT = "leadline.wires/1"
UPLINK, HOST, CLIENT = "uplink", "host", "client"
BACK = "-back"  # of a host's name: its port on a cluster network that is apart
_BYTES_MAX = 4 << 20


@dataclass(frozen=True)
class Wire:
    """One port: `kind` is uplink, host or client, `device` its name in `namespace`, a path.

    An uplink's device is at its lower switch; a host's or client's is at the switch above it, and sends what
    that receives. `rate_bits_per_s` is what it may carry each way, None where nothing limits it. `osds` are
    those for data on a host.
    """

    name: str
    kind: str
    device: str
    namespace: str
    rate_bits_per_s: int | None
    osds: int = 0


def write_wires(directory: Path, wires: Sequence[Wire]) -> None:
    """Say so in the lab's directory; who reads meanwhile finds the one or the other."""
    text = json.dumps({"format": FORMAT, "wires": [asdict(wire) for wire in wires]}, indent=1)
    new = directory / NEW
    new.write_text(text + "\n")
    new.replace(directory / FILE)


def read_wires(directory: Path) -> tuple[Wire, ...]:
    """The ports that the lab in `directory` has named; none where it has no network."""
    try:
        data = read_plain(directory / FILE, _BYTES_MAX)
    except FileNotFoundError:
        return ()
    try:
        return tuple(Wire(**one) for one in parse_json(data)["wires"])
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{directory / FILE} is damaged: {error}", "make the lab anew") from None
