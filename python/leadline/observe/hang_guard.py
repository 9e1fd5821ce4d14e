"""Work that may hang, in other processes with a deadline: forks of this one, or modules of this package.

A system call on a hung mount cannot be interrupted. So the command makes no call on a path before a fork has
answered; what takes longer than a look is a module in a Python of its own (`ask_child`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from leadline.errors import TargetError
from leadline.foreign import parse_json
from leadline.interpreter import module_command, module_environment
from leadline.observe import machine
from leadline.units import printable

_T = TypeVar("_T")


class Doing(Protocol):
    """A question says which path it touches next, and by which step, so that the error can name them."""

    def __call__(self, path: str, step: str = "") -> None:
        """Say it."""


ANSWER_S = 5.0
_REMEDY = "See whether its server or cluster is up. A mount that hangs can be detached with `umount -l`."
_REAP_S = 0.2  # what was killed is gone by then, unless the kernel holds it
_LENGTH = struct.Struct("I")
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def in_fork(question: Callable[[Doing], _T], about: str, deadline_s: float = ANSWER_S) -> _T:
    """What `question` returns or raises, asked in a fork. Raises TargetError where that does not answer.

    `about` is named then, or what the question said last that it does.
    """
    reading, writing = os.pipe()
    # A Ctrl-C amid the fork would be lost: Python drops what a handler raises in a library's hook there.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    if pid == 0:
        _answer(question, writing, before)
    os.close(writing)
    messages: list[Any] = []
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        answered = _read_until_last(reading, deadline_s, messages)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reading)
    if not answered:
        os.kill(pid, signal.SIGKILL)
    ended = _reap(pid)
    if not answered:
        path, step = messages[-1][1] if messages else (about, "")
        raise _no_answer(path, step, deadline_s, pid, stuck=not ended)
    kind, value = messages[-1]
    if kind == "error":
        raise _made_again(*value)
    found: _T = value
    return found


def check_answers(paths: Iterable[str | Path]) -> None:
    """Raises TargetError for the first path, or what is to hold it, on a file system that does not answer."""
    places = [os.fspath(path) for path in paths]
    there = machine.other()
    if there is not None:
        for place in places:
            there.check_answers(place)
        return

    def touch_all(doing: Doing) -> None:
        for place in places:
            doing(place)
            _touch(place)

    in_fork(touch_all, places[0])


def search_path() -> list[str]:
    """The directories that programs are looked for in."""
    return [directory or "." for directory in os.get_exec_path()]


def temporary_directory() -> str:
    """Where temporary files go; to find out, Python writes there. Raises TargetError where that hangs."""
    return in_fork(lambda _: tempfile.gettempdir(), os.environ.get("TMPDIR") or "the temporary directory")


def _no_answer(path: str, step: str, deadline_s: float, pid: int, *, stuck: bool) -> TargetError:
    """The error of a path that hangs, with the mount that holds it as far as its name tells."""
    from leadline.observe.mounts.mountinfo import mount_of, read_mounts

    mount = mount_of(os.path.abspath(path), read_mounts())  # noqa: PTH100 - resolves nothing
    inside = mount is not None and mount.mount_point != "/"
    where = f" ({mount.file_system} at {printable(mount.mount_point)})" if mount and inside else ""
    left = f"process {pid} is stuck there until that answers" if stuck else f"process {pid} was ended"
    doing = f" while {step}" if step else ""
    return TargetError(f"{printable(path)}{where}: no answer within {deadline_s:g} s{doing}; {left}", _REMEDY)


def _touch(place: str) -> None:
    """Ask the file system itself: what was looked at lately may be known without it."""
    while True:
        try:
            found = os.stat(place)  # noqa: PTH116 - bytes that are no text may be there
            os.statvfs(place)
            break
        except FileNotFoundError:
            above = os.path.dirname(place.rstrip("/")) or "."  # noqa: PTH120
            if above == place:
                return
            place = above
        except OSError:  # an answer too: whoever opens it says what is wrong
            return
    if stat.S_ISDIR(found.st_mode):
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            next(entries, None)


def _answer(question: Callable[[Doing], Any], writing: int, mask: set[signal.Signals | int]) -> NoReturn:
    """In the fork: answer and be gone, with nothing of the command's open meanwhile."""
    try:
        os.setsid()  # Ctrl-C is for the command, which then ends this
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.closerange(3, writing)  # locks and pipes of the command's would be held as long as this is stuck
        os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
        try:
            value = question(lambda path, step="": _write(writing, ("doing", (path, step))))
            _write(writing, ("value", value))
        except Exception as error:
            _write(writing, ("error", (type(error), error.args, error.__dict__)))
    finally:
        os._exit(0)


def _write(writing: int, message: tuple[str, Any]) -> None:
    data = pickle.dumps(message)
    data = _LENGTH.pack(len(data)) + data
    while data:
        data = data[os.write(writing, data) :]


def _read_until_last(reading: int, deadline_s: float, messages: list[Any]) -> bool:
    """Collects what the fork says; False where the deadline passes before its last word."""
    data, end, patient = b"", time.monotonic() + deadline_s, False
    while True:
        left = end - time.monotonic()
        if left <= 0 and not patient:
            from leadline.observe.host.host import patient_s

            end, patient = end + patient_s(deadline_s) - deadline_s, True
            continue
        if left <= 0:
            return False
        if not select.select([reading], [], [], left)[0]:
            continue
        more = os.read(reading, 1 << 16)
        if not more:  # it was killed
            return False
        data += more
        while len(data) >= _LENGTH.size:
            size = _LENGTH.size + _LENGTH.unpack_from(data)[0]
            if len(data) < size:
                break
            messages.append(pickle.loads(data[_LENGTH.size : size]))  # noqa: S301 - our own fork's words
            data = data[size:]
            if messages[-1][0] != "doing":
                return True


def _reap(pid: int) -> bool:
    end = time.monotonic() + _REAP_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def _made_again(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """An exception of the fork's, whatever its constructor asks for."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


@dataclass(frozen=True)
class ChildAnswer:
    """JSON objects that a child printed; `stuck_pid` is set when it did not end within its deadline.

    It was killed then, and `held` says that the kernel holds it even so.
    """

    lines: tuple[dict[str, Any], ...]
    stuck_pid: int | None
    exit_code: int | None
    stderr: str
    held: bool = False


@dataclass(frozen=True)
class Finished:
    """What a program printed; `exit_code` is None where it was killed at its deadline, `stuck` even so."""

    output: bytes
    errors: bytes
    exit_code: int | None
    pid: int
    stuck: bool = False


def finish(
    command: Sequence[str], deadline_s: float, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a program to its end, or kill it after `deadline_s`; unlike `subprocess.run` never waits longer."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as late:
        child.kill()
        stuck = False
        try:
            child.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            stuck = True
        return Finished(late.stdout or b"", late.stderr or b"", None, child.pid, stuck)
    except BaseException:
        child.kill()
        raise
    return Finished(output, errors, child.returncode, child.pid)


def ask_child(module: str, arguments: list[str], deadline_s: float) -> ChildAnswer:
    """Run a module to its end, or kill it after `deadline_s` and return what it said so far."""
    done = finish(module_command(module, *arguments), deadline_s, module_environment())
    late = done.pid if done.exit_code is None else None
    errors = done.errors.decode("utf-8", "replace").strip()
    return ChildAnswer(_json_lines(done.output), late, done.exit_code, errors, done.stuck)


def _json_lines(output: bytes) -> tuple[dict[str, Any], ...]:
    lines = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            value = parse_json(line)
            if isinstance(value, dict):
                lines.append(value)
    return tuple(lines)
