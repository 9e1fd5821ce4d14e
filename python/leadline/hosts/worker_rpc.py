"""What a host's process does besides `hosts/procedures`: it looks at targets and hands over files.

`stdio`, or Dask's worker by `serve`, calls one of these functions or of `hosts/procedures`, and packs the
answer.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import LeadlineError
from leadline.hosts.replies import pack_reply
from leadline.observe import machine
from leadline.trusted import why_not_place

_SCRATCH = "dask-scratch-space"  # Dask's name for it, wherever it is
_AT_ONCE_BYTES = 16 << 20  # what comes with the answer to `begin`; the rest is asked for file by file


async def serve(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Call a function in a thread of its own, for as long as it takes; its answer, packed (`answers`).

    The thread keeps no process from its end: a worker that is told to end does not wait for a trial.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()

    def call() -> None:
        answer = pack_reply(answered(function, arguments))
        with suppress(RuntimeError):  # the worker has ended meanwhile
            loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(answer))

    threading.Thread(target=call, name=f"leadline-{function.__name__}", daemon=True).start()
    return await done


def answered(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What a function gives; an exception becomes words, and never crosses to the parent."""
    try:
        return function(*arguments)
    except LeadlineError as error:
        return {"refused": error.message, "remedy": error.remedy}
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:300]
        return {"refused": f"{type(error).__name__}: {first}" if first else type(error).__name__}


def probe(need: Mapping[str, Any]) -> dict[str, Any]:
    """What this host is (`procedures.probe`), and how it sees the targets of `need` (a path or URL by name).

    A target that cannot be measured has an `error` instead of facts.
    """
    from leadline.hosts import procedures
    from leadline.observe.host import host

    if why := why_not_own_modules(sys.path):
        return {
            "refused": f"Dask's directory for modules there is not this account's alone: {why}",
            "remedy": "remove it, and start Dask with DASK_TEMPORARY_DIRECTORY set to a private directory",
        }
    there = machine.other()
    if there is not None:
        there.refresh()
    found = procedures.probe(need)
    if "refused" in found:
        return found
    targets = {name: _target(url) for name, url in need.get("targets", {}).items()}
    places = () if there is None else (there.files / "proc", there.files / "sys")
    room = {"memory_bytes": host.memory_bytes(*places), "memory_room": host.memory_room(*places)}
    return {**found, **room, "facts": host.facts(), "targets": targets}


def why_not_own_modules(directories: Sequence[str]) -> str:
    """Why another account could put modules where a worker of Dask looks first; "" where none could."""
    scratch = [Path(one) for one in directories if _SCRATCH in Path(one).parts]
    return next(filter(None, map(why_not_place, scratch)), "")


def begin(attempt: str, start_unix_ns: int) -> dict[str, Any]:
    """Start a prepared attempt at that instant of this host's clock; how it ended, with its small files."""
    from leadline.hosts import procedures

    end = procedures.begin(attempt, start_unix_ns)
    left, chosen = _AT_ONCE_BYTES, dict[str, tuple[int, int]]()
    for path, size in sorted((end.get("files") or {}).items(), key=lambda one: (one[1], one[0])):
        left -= size
        if left < 0:
            break
        chosen[path] = (0, size)
    return {"end": end, "bytes": fetch(attempt, chosen)}


def fetch(attempt: str, pieces: Mapping[str, Sequence[int]]) -> dict[str, bytes]:
    """Pieces of files that this host keeps of an attempt: from where on, and how many bytes."""
    from leadline.hosts import procedures

    found = {}
    for path, (offset, size) in pieces.items():
        data = bytearray()
        while len(data) < size and (piece := procedures.fetch(attempt, path, offset + len(data))):
            data += piece
        found[path] = bytes(data[:size])
    return found


_PARTS = ("leadline", "leadline.check.measured.echoes", "leadline.check.measured.exchange")


def check_part(words: Sequence[str], limit_s: float) -> dict[str, Any]:
    """What a module of `leadline check` prints on this host, within so many seconds; else `refused`."""
    if words[0] not in _PARTS:
        return {"refused": f"{words[0]} is no part of a check"}
    return _printed(words, b"", limit_s, "a check")


def audit_part(asked: str, limit_s: float) -> dict[str, Any]:
    """What `leadline.tuning.remote_audit` prints on this host, asked so; else `refused`."""
    return _printed(["leadline.tuning.remote_audit"], asked.encode(), limit_s, "an audit")


def _printed(words: Sequence[str], given: bytes, limit_s: float, what: str) -> dict[str, Any]:
    from leadline.interpreter import module_command, module_environment

    if machine.other() is not None:
        return {"refused": f"{what} needs leadline on that host, and only its agent runs there"}
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
    from leadline.observe.mounts.mounts import inspect

    try:
        return inspect(url).as_json()
    except LeadlineError as error:
        return {"error": error.message, "remedy": error.remedy}


Function = Callable[..., Any]


@dataclass(frozen=True)
class Remote:
    """What can be called on a host, by name; arguments and results are plain values (see `procedures`)."""

    probe: Function
    clock: Function
    open_session: Function
    prepare: Function
    begin: Function
    cancel: Function
    renew: Function
    fetch: Function
    held: Function
    forget: Function
    close_session: Function
    undo: Function
    check_part: Function
    audit_part: Function


def remote() -> Remote:
    """Those of this version, which is also the hosts' (`checks`)."""
    from leadline.hosts import procedures

    own = {function.__name__: function for function in (probe, begin, fetch, check_part, audit_part)}
    names = ("clock", "open_session", "prepare", "cancel", "renew", "held", "forget", "close_session", "undo")
    return Remote(**own, **{name: getattr(procedures, name) for name in names})
