"""Runs in the guest, as the one program that the guest's start script calls: mounts, the command, the end.

It knows the standard library only, and nothing of leadline: it is started by its path, which takes an
emulated processor a second instead of many. It talks through ports of the virtual machine: `control`
carries a JSON line a message, in both directions; `stdout` and `stderr` carry the command's words.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PORTS = Path("/sys/class/virtio-ports")
_MESSAGES = Path("/dev/kmsg")
_READ_BYTES = 1 << 16
_PIPE_GRACE_S = 3.0
_OTHERS_GRACE_S = 1.0
_UNMOUNT_DEADLINE_S = 30.0
_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_RDONLY, _MS_NOSUID, _MS_NODEV = 1, 2, 4
_KERNEL_SAYS = ("ceph", "nfs", "cifs", "smb", "9p")


class Control:
    """The line to the host: messages there from any thread, the host's messages here."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock, self._rest = descriptor, threading.Lock(), b""

    def say(self, **message: Any) -> None:
        """One message to the host."""
        with self._lock:
            _write_all(self._descriptor, json.dumps(message).encode() + b"\n")

    def hear(self) -> dict[str, Any] | None:
        """The host's next message; None once the host has gone."""
        while b"\n" not in self._rest:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except OSError:
                data = b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def open_port(name: str) -> int:
    """The device of one of the machine's ports, by the name that the host gave it."""
    for entry in _PORTS.iterdir():
        if (entry / "name").read_text().strip() == name:
            return os.open(f"/dev/{entry.name}", os.O_RDWR | os.O_CLOEXEC)
    raise FileNotFoundError(f"the machine has no port {name}")


def mount(source: str, point: str, kind: str, flags: int, options: str) -> None:
    """mount(2): a key among the options is on no command line and in no file."""
    Path(point).mkdir(parents=True, exist_ok=True)
    if _LIBC.mount(source.encode(), point.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), point)


def in_child(work: Callable[[], None], deadline_s: float) -> str:
    """Does what may hang in a child; returns "" or why it could not be done in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
        except OSError as error:
            os.write(writer, (error.strerror or str(error)).encode())
        os._exit(0)
    os.close(writer)
    until = time.monotonic() + deadline_s
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(
                child, signal.SIGKILL
            )  # one that waits in the kernel is left behind: the guest ends anyway
            return f"no answer within {deadline_s:g} s"
        time.sleep(0.05)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode(errors="replace")


class KernelWords:
    """What the kernel said of its clients since this object was made: a mount's errno alone tells little."""

    def __init__(self) -> None:
        self._descriptor = os.open(_MESSAGES, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self._descriptor, 0, os.SEEK_END)

    def close(self) -> list[str]:
        """The last of its lines that are about a client."""
        found = []
        try:
            while True:
                text = os.read(self._descriptor, 8192).decode(errors="replace")
                found.append(text.partition(";")[2].partition("\n")[0])
        except OSError:
            pass
        os.close(self._descriptor)
        return [line for line in found if any(word in line.lower() for word in _KERNEL_SAYS)][-3:]


def mount_client(wanted: dict[str, Any], deadline_s: float) -> str:
    """Mounts one of the lab's file systems; returns "" or why it is not there."""
    words = KernelWords()
    point = str(wanted["point"])
    reason = in_child(
        lambda: mount(wanted["source"], point, wanted["kind"], _MS_NOSUID | _MS_NODEV, wanted["options"]),
        deadline_s,
    )
    said = words.close()
    return reason and "; ".join((reason, *said))


def main() -> int:
    """Everything that happens in the guest, in order."""
    control = Control(open_port("control"))
    control.say(reached="agent", uptime_s=time.clock_gettime(time.CLOCK_BOOTTIME), kernel=os.uname().release)
    job = control.hear()
    if job is None:
        return 1
    share = job.get("share")
    if share:
        mount(share["source"], share["point"], "9p", _MS_NOSUID | _MS_NODEV, share["options"])
    mounted = []
    for wanted in job["mounts"]:
        reason = mount_client(wanted, float(job["mount_deadline_s"]))
        control.say(mount=wanted["name"], reason=reason)
        if not reason:
            mounted.append(str(wanted["point"]))
    control.say(reached="command", uptime_s=time.clock_gettime(time.CLOCK_BOOTTIME))
    code, why = run_command(job, control)
    control.say(reached="end", uptime_s=time.clock_gettime(time.CLOCK_BOOTTIME))
    end_all_others()
    left = [f"{point}: {reason}" for point in reversed(mounted) if (reason := unmount(point))]
    if share and (reason := unmount(share["point"])):
        left.append(f"{share['point']}: {reason}")
    control.say(exit=code, why=why, left=left)
    return 0


def end_all_others() -> None:
    """Ends what the command left running: it would keep the mounts busy. The first process is not reached."""
    for number, grace_s in ((signal.SIGTERM, _OTHERS_GRACE_S), (signal.SIGKILL, 0.2)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)  # kill(2): every process but the first and this one
            time.sleep(grace_s)


def unmount(point: str) -> str:
    """Unmounts, which writes back what the client still holds; returns "" or why that could not be done."""

    def work() -> None:
        if _LIBC.umount2(point.encode(), 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), point)

    return in_child(work, _UNMOUNT_DEADLINE_S)


def run_command(job: dict[str, Any], control: Control) -> tuple[int, str]:
    """The command's exit code as shells have it, and why it could not be started."""
    streams = [(open_port(name), *os.pipe()) for name in ("stdout", "stderr")]
    try:
        command = subprocess.Popen(
            job["command"],
            cwd=job["directory"],
            env=job["variables"],
            stdin=subprocess.DEVNULL,
            stdout=streams[0][2],
            stderr=streams[1][2],
            start_new_session=True,
        )
    except OSError as error:
        return (127 if isinstance(error, FileNotFoundError) else 126), f"{error.strerror}: {error.filename}"
    pumps = []
    for port, reader, writer in streams:
        os.close(writer)
        pumps.append(threading.Thread(target=_pump, args=(reader, port), daemon=True))
        pumps[-1].start()
    threading.Thread(target=_obey, args=(control, command), daemon=True).start()
    code = command.wait()
    until = time.monotonic() + _PIPE_GRACE_S
    for pump in pumps:  # a grandchild that lives on may hold a pipe for ever
        pump.join(max(0.0, until - time.monotonic()))
    return (code if code >= 0 else 128 - code), ""


def _pump(reader: int, port: int) -> None:
    while data := os.read(reader, _READ_BYTES):
        _write_all(port, data)


def _obey(control: Control, command: subprocess.Popen[bytes]) -> None:
    """Hands the host's signals to the command's processes; a host that is gone ends everything."""
    while (message := control.hear()) is not None:
        number = int(message.get("signal", 0))
        if number:
            _signal(command, number)
    _signal(command, signal.SIGKILL)
    os._exit(1)


def _signal(command: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, number)


if __name__ == "__main__":
    sys.exit(main())
