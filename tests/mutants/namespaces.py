"""A function in a process that sees none of the host's: what it starts ends with it, and mounts are its own.

As `unshare --pid --fork --kill-child --mount --mount-proc` does, for what was loaded before.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_PR_SET_PDEATHSIG = 1
_POLL_S = 0.02
FAILED = 70


def alone(function: Callable[[], int], output: int, deadline_s: float) -> int:
    """Its exit code, with what it prints written to `output`; -9 where it was ended at the deadline.

    Where the namespaces cannot be made it is not called, and the code is FAILED.
    """
    pid = os.fork()
    if pid == 0:
        _leave(lambda: _enclosed(function, output))
    end = time.monotonic() + deadline_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL
        time.sleep(_POLL_S)


def _enclosed(function: Callable[[], int], output: int) -> int:
    """The namespaces begin with a child: the first process of them, with which they end."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    libc = ctypes.CDLL(None, use_errno=True)
    _called(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    _called(libc.unshare(_CLONE_NEWNS | _CLONE_NEWPID), "unshare")
    pid = os.fork()
    if pid == 0:
        _leave(lambda: _first(libc, function))
    return abs(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _first(libc: ctypes.CDLL, function: Callable[[], int]) -> int:
    _called(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    _called(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount --make-rprivate /")
    _called(libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount /proc")
    if os.getpid() != 1 or Path("/proc/self").readlink() != Path("1"):
        raise OSError("this is not a process namespace of its own")
    return function()


def _called(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _leave(function: Callable[[], int]) -> None:
    """Ends this process, a fork, with what the function says; nothing of its parent's runs."""
    code = FAILED
    try:
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
