"""What a Dask worker's process does for the parent beside `hosts/onhost`: looks at targets, hands over files.

Called by Dask, in a thread of the worker. Arguments and results are plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AT_ONCE_BYTES = 16 << 20  # what comes with the answer to `begin`; the rest is asked for file by file


def probe(need: Mapping[str, Any]) -> dict[str, Any]:
    """What this host is (`onhost.probe`), and how it sees the targets of `need` (a path or URL by name).

    A target that cannot be measured has an `error` instead of facts.
    """
    from leadline.hosts import onhost
    from leadline.observe.host import host

    found = onhost.probe(need)
    if "refused" in found:
        return found
    targets = {name: _target(url) for name, url in need.get("targets", {}).items()}
    room = {"memory_bytes": host.memory_bytes(), "memory_room": host.memory_room()}
    return {**found, **room, "facts": host.facts(), "targets": targets}


def begin(attempt: str, start_unix_ns: int) -> dict[str, Any]:
    """Start a prepared attempt at that instant of this host's clock; how it ended, with its small files."""
    from leadline.hosts import onhost

    end = onhost.begin(attempt, start_unix_ns)
    left, chosen = _AT_ONCE_BYTES, {}
    for path, size in sorted((end.get("files") or {}).items(), key=lambda one: (one[1], one[0])):
        left -= size
        if left < 0:
            break
        chosen[path] = size
    return {"end": end, "bytes": fetch(attempt, chosen)}


def fetch(attempt: str, files: Mapping[str, int]) -> dict[str, bytes]:
    """Files that this host keeps of an attempt, of so many bytes each."""
    from leadline.hosts import onhost

    found = {}
    for path, size in files.items():
        data = bytearray()
        while len(data) < size and (piece := onhost.fetch(attempt, path, len(data))):
            data += piece
        found[path] = bytes(data)
    return found


def _target(url: str) -> dict[str, Any]:
    from leadline.errors import LeadlineError
    from leadline.observe.mounts.mounts import inspect

    try:
        return inspect(url).as_json()
    except LeadlineError as error:
        return {"error": error.message, "remedy": error.remedy}
