"""A worker process: does what touches a target, one command after another, while the parent keeps the time.

Commands come as JSON lines on standard input; answers and the engine's progress go out as JSON lines.
It ends when its input ends or its parent dies.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError
from leadline.run import volume_workspace, workspace
from leadline.study import schemes
from leadline.workloads.application import trial as application
from leadline.workloads.coherence.side import CoherenceSide
from leadline.workloads.pipeline import trial as pipeline

_PR_SET_PDEATHSIG = 1


def _layout(command: dict[str, Any]) -> dict[str, Any]:
    if application.is_application(command["job"]) or pipeline.is_pipeline(command["job"]):
        return application.stage(command["job"], _say_staged)
    answer: dict[str, Any] = _core.layout(json.dumps(command["job"]))
    return answer


def _forget_cached(command: dict[str, Any]) -> dict[str, Any]:
    job = command["job"]
    if application.is_application(job) or pipeline.is_pipeline(job):
        application.forget_input(job)
        return {}
    # Without an engine it is a job of metadata: opening its files here would warm them.
    # What a library reaches is in no page cache.
    if not job["direct"] and schemes.uses_storage(job.get("engine")) and not job.get("location"):
        workspace.forget_cached(Path(job["directory"]), job["prefix"])
    return {}


def _trial(command: dict[str, Any]) -> dict[str, Any]:
    """Run a job; with `start_at_ns` (CLOCK_MONOTONIC) not before then, its files forgotten beforehand."""
    job, start_at_ns = command["job"], command.get("start_at_ns")
    if start_at_ns is None:
        _forget_cached(command)
    else:
        time.sleep(max(0, start_at_ns - time.monotonic_ns()) / 1e9)
    if application.is_application(job):
        return application.run_trial(job)
    if pipeline.is_pipeline(job):
        return pipeline.run_trial(job)
    before = _own_io()
    summary: dict[str, Any] = _core.run_trial(json.dumps(job), command["record"])
    after = _own_io()
    if before is not None and after is not None:
        summary["process_read_bytes"] = after["read_bytes"] - before["read_bytes"]
        summary["process_written_bytes"] = after["write_bytes"] - before["write_bytes"]
    return summary


def _own_io() -> dict[str, int] | None:
    """What this process fetched from and sent to storage so far, bytes (proc(5), /proc/PID/io)."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


def _make_workspace(command: dict[str, Any]) -> dict[str, Any]:
    directory, location = command["directory"], command.get("location")
    if location is None:
        workspace.make_workspace(Path(directory), command["id"])
    else:
        volume_workspace.make_workspace(location, directory, command["id"])
    return {}


def _remove_workspace(command: dict[str, Any]) -> dict[str, Any]:
    directory, location, slice_s = command["directory"], command.get("location"), command["slice_s"]
    if location is None:
        more = workspace.remove_workspace(Path(directory), command["id"], slice_s)
    else:
        more = volume_workspace.remove_workspace(location, directory, command["id"], slice_s)
    return {"more": more}


def _remove_files(command: dict[str, Any]) -> dict[str, Any]:
    directory, location, slice_s = command["directory"], command.get("location"), command["slice_s"]
    if location is None:
        more = workspace.remove_files(Path(directory), command["prefix"], slice_s)
    else:
        more = volume_workspace.remove_files(location, directory, command["prefix"], slice_s)
    return {"more": more}


def _space(command: dict[str, Any]) -> dict[str, Any]:
    if command.get("location") is not None:
        volume = _core.Volume(command["location"])
        try:
            total_bytes, free_bytes = volume.space()
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            return {"free_bytes": None, "total_bytes": None}
        return {"free_bytes": free_bytes, "total_bytes": total_bytes}
    found = os.statvfs(command["directory"])
    return {"free_bytes": found.f_bavail * found.f_frsize, "total_bytes": found.f_blocks * found.f_frsize}


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


def _say_staged(size_bytes: int, elapsed_ns: int, share: float) -> None:
    _say(
        phase="staging", bytes=size_bytes, operations=0, elapsed_ns=elapsed_ns, share=share, event="progress"
    )


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _obey(line: str) -> None:
    command = json.loads(line)
    try:
        answer = _COMMANDS[command["command"]](command)
    except LeadlineError as error:
        _say(event="failed", message=error.message, remedy=error.remedy, errno=None)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        _say(event="failed", message=f"{error.strerror or error}{place}", remedy="", errno=error.errno)
    except KeyboardInterrupt:
        _say(event="failed", message="interrupted", remedy="", errno=None, interrupted=True)
    except (ValueError, RuntimeError) as error:
        _say(event="failed", message=str(error), remedy="", errno=None)
    else:
        _say(event="done", answer=answer)


def main() -> None:
    """Obey until standard input ends."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return  # the parent died before the line above took hold
    _COMMANDS.update(CoherenceSide(_say).commands)
    _say(event="ready", pid=os.getpid())
    while line := sys.stdin.readline():
        try:
            _obey(line)
        except KeyboardInterrupt:  # a second interrupt, in the middle of answering
            return


if __name__ == "__main__":
    main()
