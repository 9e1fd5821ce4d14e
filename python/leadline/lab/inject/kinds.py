"""The table of every kind of fault, in the order in which they are listed."""

from __future__ import annotations

import difflib

from leadline.errors import UsageError
from leadline.lab.inject import clients, cluster, gateways, links, mds, monitors, osd
from leadline.lab.inject.fault import FaultKind

KINDS: tuple[FaultKind, ...] = (
    *links.KINDS,
    *osd.KINDS,
    *mds.KINDS,
    *monitors.KINDS,
    *gateways.KINDS,
    *clients.KINDS,
    *cluster.KINDS,
)


def find(name: str, kinds: tuple[FaultKind, ...] = KINDS) -> FaultKind:
    """The kind of this name. Raises UsageError that names those that come near it."""
    names = [kind.name for kind in kinds]
    if name in names:
        return kinds[names.index(name)]
    near = difflib.get_close_matches(name, names, n=3) or [item for item in names if name in item]
    hint = f"Near to it: {', '.join(near)}. " if near else ""
    raise UsageError(f"there is no fault {name!r}", f"{hint}`leadline lab inject --kinds` lists all.")
