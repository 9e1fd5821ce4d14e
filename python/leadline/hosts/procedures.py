"""What a host of a study can be asked for: plain functions, called in a process of that host that stays.

That process is a worker of Dask, of which nothing here knows. What they take and return are plain values;
what cannot be done is answered by `{"refused": words, "remedy": words}`. A process has one session at a time,
which does not outlive it (`session`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError, ResultError
from leadline.hosts.channel import Channel, SessionLostError
from leadline.hosts.directory import (
    FORGOTTEN,
    attempts_of,
    files_of,
    finish_removal,
    host_id,
    place_of,
    places_below,
    places_in,
    read_piece,
    remove_all,
    remove_trials,
    require_private,
    state_home,
    tidy,
)
from leadline.hosts.model import AttemptEnd, as_json
from leadline.observe import machine
from leadline.run.session import undo_run
from leadline.store.acting import look_at
from leadline.store.files import MANIFEST
from leadline.store.writer import reopen_result

_QUICK_S = 30.0
_OPEN_S = 300.0  # targets are looked at, what a killed session left is removed first
_CLOSE_S = 900.0  # millions of files may lie in a workspace

Reply = dict[str, Any]


class _Here:
    """The session of this process, and where its host keeps its study."""

    lock = threading.Lock()
    session: Channel | None = None
    place: Path | None = None
    study = ""
    host = ""


# -- before a study ----------------------------------------------------------------------------------


def clock() -> int:
    """This host's time of day, unix ns."""
    there = machine.other()
    return time.time_ns() if there is None else there.clock()


def probe(need: Mapping[str, Any]) -> Reply:
    """What this host is and has. `need`: `directory` (or None), `programs` and `modules` to look for."""
    try:
        home = state_home(os.environ, need.get("directory"))
        free_bytes = shutil.disk_usage(next(one for one in (home, *home.parents) if one.exists())).free
    except (LeadlineError, OSError) as error:
        return _refused(error)
    there = machine.other()
    return {
        "python": platform.python_version(),
        "leadline": _core.version(),
        **(_identity() if there is None else there.identity()),
        "pid": os.getpid(),
        "uid": os.geteuid(),
        "directory": str(home),
        "free_bytes": free_bytes,
        "programs": {name: shutil.which(name) for name in need.get("programs", ())},
        "modules": {name: importlib.util.find_spec(name) is not None for name in need.get("modules", ())},
        "unix_ns": time.time_ns(),
    }


def _identity() -> dict[str, Any]:
    """What tells this host apart from others, and which libraries it has."""
    return {
        "hostname": socket.gethostname(),
        "machine_id": _text("/etc/machine-id"),
        "boot_id": _text("/proc/sys/kernel/random/boot_id"),
        "network": os.stat("/proc/self/ns/net").st_ino,  # noqa: PTH116 - one machine may be several hosts
        "cpus": len(os.sched_getaffinity(0)),
        "engines": {
            str(one["name"]): None if one["available"] else str(one["reason"]) for one in _core.engines()
        },
    }


# -- a study -----------------------------------------------------------------------------------------


def open_session(
    manifest: Mapping[str, Any], host: Mapping[str, Any], directory: str | None, lease_s: float
) -> Reply:
    """Open a study on this host, new or gone on with: `{"facts": {target: …}, "directory": …, "pid": …}`.

    `manifest` is the parent's, its plan and options as they are for this host: with its shares of rates, and
    `clusters` for one host only. `host` has `name`, `number` in the study (from 0, for ever the same) and,
    where they are elsewhere here, `targets`. The session ends by itself when nobody speaks to it for
    `lease_s`.
    """
    try:
        home = state_home(os.environ, directory)
        place = place_of(home, str(manifest["id"]), str(host["name"]))
        host_id(str(manifest["id"]), int(host["number"]))
    except LeadlineError as error:
        return _refused(error)
    with _Here.lock:
        if _Here.session is not None and _Here.session.alive and _Here.place != place:
            words = f"this host works for the study {_Here.study} already, as {_Here.host}"
            alone = "it ends by itself soon after its command is gone"
            return {"refused": words, "remedy": f"wait for its end ({alone}), or start another worker here"}
        if _Here.session is not None:  # of a parent that was lost: its trial, if any, is ended
            _Here.session.close()
        for other in places_below(home):  # of sessions that were killed together with their workers
            tidy(other)
        session = Channel(str(manifest["id"]), lambda: tidy(place))
        _Here.session, _Here.place = session, place
        _Here.study, _Here.host = str(manifest["id"]), str(host["name"])
    asked = {"manifest": dict(manifest), "host": dict(host), "directory": directory, "lease_s": lease_s}
    found = _ask("open", _OPEN_S, **asked)
    if "refused" in found:
        session.close()
        return found
    return {**found, "pid": session.pid}


def prepare(attempt: Mapping[str, Any]) -> Reply:
    """Have an attempt's slot ready: `{"prepared": True}`, or how it ended before (`AttemptEnd` as JSON).

    `attempt`: `id` (at most 200 characters), `trials` of one slot in the plan's order, `rates` that a search
    chose for this host, `grown`: the cells of every block that was added to the plan so far.
    """
    return _attempted(str(attempt["id"]), "prepare", attempt=dict(attempt))


def begin(attempt_id: str, start_unix_ns: int) -> Reply:
    """Start it at that instant of this host's clock; its `AttemptEnd` once its tables are on the disk here.

    `{"prepared": True}` where the next job of a sequence waits for its own start: call `begin` again.
    """
    return _attempted(attempt_id, "begin", attempt=attempt_id, start_unix_ns=start_unix_ns)


def cancel(attempt_id: str) -> Reply:
    """End an attempt, prepared or running: quick; who waits for it is told that it was interrupted."""
    return _ask("cancel", _QUICK_S, attempt=attempt_id)


def renew(study_id: str) -> Reply:
    """Say that this study's parent is alive: quick. It keeps no session of another, which may be alone."""
    if study_id != _Here.study:
        return {"refused": f"no session of the study {study_id} is open on this host", "remedy": ""}
    return _ask("renew", _QUICK_S)


def close_session(discard: bool = False) -> Reply:
    """Remove what was made below the targets and end the session: `{"left": [words, …]}`.

    With `discard`, once all is fetched and the study is over, what this host keeps of it goes too.
    """
    found = _ask("close", _CLOSE_S, discard=discard)
    with _Here.lock:
        session, _Here.session = _Here.session, None
    if session is not None and not session.close():
        found.setdefault("left", []).append(f"process {session.pid}, the session, had to be killed")
    return found


def leave() -> None:
    """End the session, if there is one, as at the end of this process: its trial ends, its workspaces go."""
    with _Here.lock:
        session, _Here.session = _Here.session, None
    if session is not None:
        session.close()


# -- what a host keeps -------------------------------------------------------------------------------


def held(study_id: str | None = None, host: str | None = None, directory: str | None = None) -> Reply:
    """What is kept here: `{attempt: {path: bytes}}`; also without a session, of the study and host named."""
    try:
        place = _place(study_id, host, directory)
        if not os.path.lexists(place / MANIFEST):
            return {}
        kept = attempts_of(place).held()
        return {attempt: files_of(place, trials) for attempt, trials in kept.items()}
    except (LeadlineError, OSError) as error:
        return _refused(error)


def fetch(
    attempt_id: str,
    path: str,
    offset: int = 0,
    study_id: str | None = None,
    host: str | None = None,
    directory: str | None = None,
) -> bytes:
    """A piece of a file that an attempt left, from `offset` on: 8 MiB at most, none at its end.

    Raises ResultError for what is not held.
    """
    place = _place(study_id, host, directory)
    trials = attempts_of(place).held().get(attempt_id, ())
    if path not in files_of(place, trials):
        raise ResultError(
            f"{path} is no file that attempt {attempt_id} left on this host", "see what is held"
        )
    return read_piece(place, path, offset)


def forget(
    attempt_id: str, study_id: str | None = None, host: str | None = None, directory: str | None = None
) -> Reply:
    """Remove the tables of an attempt here, once they are part of the study's result or are not to be."""
    try:
        place = _place(study_id, host, directory)
        if _Here.session is not None and _Here.session.alive and place == _Here.place:
            return _ask("forget", _QUICK_S, attempt=attempt_id)
        trials = attempts_of(place).held().get(attempt_id)
        if trials is not None:
            with contextlib.closing(reopen_result(place, time.time_ns, to_run=False)) as writer:
                writer.journal(FORGOTTEN, attempt=attempt_id)
                remove_trials(place, trials)
    except (LeadlineError, OSError) as error:
        return _refused(error)
    return {}


def undo(
    study_id: str, host: str | None = None, directory: str | None = None, stored: Sequence[str] = ()
) -> Reply:
    """Remove what a study left below the targets of this host, by what the host kept of it.

    `{"removed": [place, …], "left": {place: why}, "damage": words}`; of `host`, or of all that kept something
    in this directory. What is kept goes too, once nothing is left and each table here is of a `stored` trial,
    one that the study's result has.
    """
    removed: list[str] = []
    left: dict[str, str] = {}
    damages: list[str] = []
    try:
        here = _Here.place if directory is None and _Here.study == study_id else None
        home = here.parents[1] if here is not None else state_home(os.environ, directory)
        places = [place_of(home, study_id, host)] if host is not None else places_in(home, study_id)
    except (LeadlineError, OSError) as error:
        return _refused(error)
    for place in places:
        try:
            if os.path.lexists(place / MANIFEST):
                _undo_place(place, frozenset(stored), removed, left, damages)
            elif finish_removal(place):
                removed.append(str(place))
        except (LeadlineError, OSError) as error:
            left[str(place)] = _words(error)
    return {"removed": removed, "left": left, "damage": "; ".join(damages)}


def _undo_place(
    place: Path, stored: frozenset[str], removed: list[str], left: dict[str, str], damages: list[str]
) -> None:
    seen = look_at(place)
    for doubt in seen.doubts:
        raise ResultError(doubt, "nothing was done: others could have written what is kept here")
    gone, kept, damage = undo_run(place, seen)
    removed += gone
    left |= kept
    if damage:
        damages.append(damage)
    unfetched = {trial for trials in attempts_of(place).held().values() for trial in trials} - stored
    if not kept and not damage and not unfetched:
        with contextlib.closing(reopen_result(place, time.time_ns, to_run=False)) as writer:
            remove_all(writer)


# -- the session of this process ---------------------------------------------------------------------


def _place(study_id: str | None, host: str | None, directory: str | None) -> Path:
    """Where a host keeps a study: the one named, or that of this process."""
    if study_id is None and _Here.place is not None:
        return _Here.place
    if study_id is None or host is None:
        raise ResultError("the study and the host are not known", "name the study and the host")
    place = place_of(state_home(os.environ, directory), study_id, host)
    if os.path.lexists(place):
        require_private(place.parent)
    return place


def _ask(do: str, deadline_s: float | None, **arguments: Any) -> Reply:
    session = _Here.session
    if session is None:
        return {"refused": "no session is open on this host", "remedy": "open one first"}
    try:
        return session.ask(do, deadline_s, **arguments)
    except SessionLostError as error:
        return {"refused": str(error), "remedy": "see what is left on this host's targets: leadline undo"}
    except TimeoutError as error:
        return {"refused": str(error), "remedy": "look at the targets of this host: one may hang"}


def _attempted(attempt_id: str, do: str, **arguments: Any) -> Reply:
    """The end of an attempt, whatever becomes of the session."""
    session = _Here.session
    if session is None:
        return _end(attempt_id, "refused", "no session is open on this host")
    try:
        found = session.ask(do, **arguments)
    except SessionLostError as error:
        return _end(attempt_id, "lost", str(error))
    if "refused" in found:
        words = "; ".join(filter(None, (str(found["refused"]), str(found.get("remedy") or ""))))
        return _end(attempt_id, "refused", words)
    return found if "prepared" in found else {**_end(attempt_id, "refused", ""), **found}


def _end(attempt_id: str, state: Any, reason: str) -> Reply:
    return as_json(AttemptEnd(_Here.host, attempt_id, state, reason))


def _refused(error: Exception) -> Reply:
    return {"refused": _words(error), "remedy": getattr(error, "remedy", "")}


def _words(error: Exception) -> str:
    return error.message if isinstance(error, LeadlineError) else str(error)


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return ""
