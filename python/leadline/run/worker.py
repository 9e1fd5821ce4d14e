"""A worker process: does what touches a target, one command after another, while the parent keeps the time.

Commands come as JSON lines on standard input; answers and the engine's progress go out as JSON lines.
It is forked (`fork_helper`), and ends when its input ends or its parent dies.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError, shortage_of
from leadline.run import workspace
from leadline.run.kinds import CONDUCTED, conducted_kind, handed
from leadline.run.storage import Mounted, open_storage

_PR_SET_PDEATHSIG = 1


def _layout(command: dict[str, Any]) -> dict[str, Any]:
    return handed(command["job"]).lay_out(command["job"], _say)


def _forget_cached(command: dict[str, Any]) -> dict[str, Any]:
    handed(command["job"]).forget(command["job"])
    return {}


def _trial(command: dict[str, Any]) -> dict[str, Any]:
    """Run a job; one that `meets` others says that it is open, is told then when to start, and its files were
    forgotten beforehand.
    """
    job = command["job"]
    if not command.get("meets"):
        _forget_cached(command)
        return handed(job).run(job, command["record"], None)
    meeting = _core.Meeting()
    told = threading.Thread(target=_meet, args=(meeting,), daemon=True)
    told.start()
    try:
        return handed(job).run(job, command["record"], meeting)
    finally:
        meeting.end()
        told.join()  # what it was to be told is no command


def _meet(meeting: _core.Meeting) -> None:
    if meeting.wait_until_open():
        _say(event="open")
        meeting.tell(json.loads(sys.stdin.readline() or "{}").get("start_ns"))


def _place(command: dict[str, Any]) -> workspace.Workspace:
    return workspace.Workspace(command["directory"], command.get("location"))


def _make_workspace(command: dict[str, Any]) -> dict[str, Any]:
    workspace.make_workspace(_place(command), command["id"], command.get("pool"))
    return {}


def _remove_workspace(command: dict[str, Any]) -> dict[str, Any]:
    was = Mounted(*command["was"]) if command["was"] is not None else None
    place, study_id, begins = _place(command), command["id"], command["begins"]
    late = command.get("late", False)
    return {"more": workspace.remove_workspace(place, study_id, begins, was, command["slice_s"], late=late)}


def _remove_files(command: dict[str, Any]) -> dict[str, Any]:
    return {"more": workspace.remove_files(_place(command), command["prefix"], command["slice_s"])}


def _space(command: dict[str, Any]) -> dict[str, Any]:
    found = open_storage(command.get("location")).space(command["directory"])
    total_bytes, free_bytes = found or (None, None)
    return {"free_bytes": free_bytes, "total_bytes": total_bytes}


def _drop_caches(_command: dict[str, Any]) -> dict[str, Any]:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    return {}


_COMMANDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "layout": _layout,
    "trial": _trial,
    "forget_cached": _forget_cached,
    "make_workspace": _make_workspace,
    "remove_workspace": _remove_workspace,
    "remove_files": _remove_files,
    "space": _space,
    "drop_caches": _drop_caches,
}
# Of the kinds of work that were asked for; what they keep between two commands hangs on these.
_KINDS_COMMANDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _command(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What does a command; those of a kind of work begin with its name."""
    kind = name.partition("_")[0]
    if name not in _COMMANDS and name not in _KINDS_COMMANDS and kind in CONDUCTED:
        _KINDS_COMMANDS.update(conducted_kind(kind).commands(_say))
    return _KINDS_COMMANDS[name] if name in _KINDS_COMMANDS else _COMMANDS[name]


def _leave() -> None:
    """Let go of what kinds of work keep between commands: a fork ends without Python's own end, and a client
    that does not say goodbye keeps its locks and caches until the cluster misses it."""
    _KINDS_COMMANDS.clear()
    gc.collect()


def _obey(line: str) -> None:
    command = json.loads(line)
    try:
        answer = _command(command["command"])(command)
    except LeadlineError as error:
        file = getattr(error, "file", None)
        _say(event="failed", message=error.message, remedy=error.remedy, errno=None, file=file)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        words = f"{error.strerror or error}{place}"
        _say(event="failed", message=words, remedy="", errno=error.errno, file=str(error.filename or ""))
    except KeyboardInterrupt:
        _say(event="failed", message="interrupted", remedy="", errno=None, interrupted=True)
    except (ValueError, RuntimeError) as error:
        _say(event="failed", message=str(error), remedy="", errno=None)
    except Exception as error:  # of a kind's own doing: the trial fails, and the target is well
        defect = (f"internal error: {type(error).__name__}: {error}", "report this as a defect")
        words, remedy = shortage_of(error) or defect
        _say(event="failed", message=words, remedy=remedy, errno=None)
    else:
        _say(event="done", answer=answer)


def main(parent: int) -> None:
    """Obey until standard input ends, or the process that forked this one."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return  # the parent died before the line above took hold
    _say(event="ready", pid=os.getpid())
    try:
        while line := sys.stdin.readline():
            _obey(line)
    except KeyboardInterrupt:  # a second interrupt, in the middle of answering
        return
    finally:
        _leave()
