"""What a Dask worker's process does for the parent beside `hosts/onhost`: looks at targets, hands over files.

Called by Dask, in a thread of the worker. Arguments and results are plain values.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
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


_PARTS = ("leadline", "leadline.check.measured.echoes", "leadline.check.measured.exchange")


def check_part(words: Sequence[str], limit_s: float) -> dict[str, Any]:
    """What a module of `leadline check` prints on this host, within so many seconds; else `refused`."""
    if words[0] not in _PARTS:
        return {"refused": f"{words[0]} is no part of a check"}
    return _printed(words, b"", limit_s, "a check")


def audit_part(asked: str, limit_s: float) -> dict[str, Any]:
    """What `leadline.tuning.told` prints on this host, asked so; else `refused`."""
    return _printed(["leadline.tuning.told"], asked.encode(), limit_s, "an audit")


def _printed(words: Sequence[str], given: bytes, limit_s: float, what: str) -> dict[str, Any]:
    from leadline.interpreter import module_command, module_environment

    try:
        done = subprocess.run(
            module_command(*words),
            capture_output=True,
            input=given,
            env=module_environment(),
            check=False,
            timeout=limit_s,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"refused": f"{what} did not end there: {type(error).__name__}"}
    if not done.stdout:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return {"refused": f"{what} prints nothing there{f': {last[0][:200]}' if last else ''}"}
    return {"output": done.stdout}


def _target(url: str) -> dict[str, Any]:
    from leadline.errors import LeadlineError
    from leadline.observe.mounts.mounts import inspect

    try:
        return inspect(url).as_json()
    except LeadlineError as error:
        return {"error": error.message, "remedy": error.remedy}
