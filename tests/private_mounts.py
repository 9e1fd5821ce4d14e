"""What a test does with mounts of its own, or as another user: in a fork, whose mounts end with it."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18


def _call(name: str, *arguments: object) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def bind(source: Path, place: Path) -> None:
    """`source` is also seen at `place`."""
    _call("mount", os.fsencode(source), os.fsencode(place), None, ctypes.c_ulong(_MS_BIND), None)


def unbind(place: Path) -> None:
    """No longer."""
    _call("umount2", os.fsencode(place), 0)


def mount_dead_fuse(place: Path, kind: str) -> None:
    """A FUSE file system of this kind, `fuse.NAME`, whose server is gone."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    _call("mount", b"none", os.fsencode(place), kind.encode(), ctypes.c_ulong(0), options)
    os.close(device)


def in_child(action: Callable[[], None]) -> None:
    """Do something in a fork of this process; its failure is a failure here."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "see above what failed in the other process"


def with_private_mounts(action: Callable[[], None]) -> None:
    """The same where mounts are the child's own. Needs root."""

    def alone() -> None:
        _call("unshare", _CLONE_NEWNS)
        _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
        action()

    in_child(alone)


def as_user(uid: int, action: Callable[[], None]) -> None:
    """The same as another user. Needs root."""

    def other() -> None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        action()

    in_child(other)
