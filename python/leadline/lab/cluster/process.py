"""The lab's processes: who they are beyond doubt, how they are started, waited for and ended; logs and ports.

A pid alone is no identity: numbers are reused. A process is the one that was recorded only where its pid, its
start time and the boot match; and it is ended only where its environment carries the lab's mark besides, as a
record could be wrong.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leadline.errors import LabError
from leadline.faults import DIRECTORY
from leadline.trusted import accounts_of


@dataclass(frozen=True)
class Clock:
    """The time source and the pause between two polls; tests give their own."""

    now_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


SYSTEM_CLOCK = Clock()


def poll(
    condition: Callable[[], bool], deadline_s: float, *, interval_s: float = 0.1, clock: Clock = SYSTEM_CLOCK
) -> bool:
    """True as soon as `condition` holds, False where it did not within `deadline_s` seconds."""
    end_s = clock.now_s() + deadline_s
    while not condition():
        if clock.now_s() >= end_s:
            return False
        clock.pause(interval_s)
    return True


MARK = "LEADLINE_LAB"  # environment variable of every process of a lab; its value is the cluster's fsid
_PROC = Path("/proc")
_KILLED_S = 1.0
_CHECK_PACKAGES = "Check the installed Ceph packages with `leadline doctor`."
_FOREIGN = ("CEPH_ARGS", "CEPH_CONF", "CEPH_KEYRING", "CEPH_LIB", "NOTIFY_SOCKET")


@dataclass(frozen=True)
class ProcessIdentity:
    """One process. `start_ticks` is field 22 of /proc/PID/stat: clock ticks since the boot `boot_id`.

    `mark` is what its environment must say before it is ended.
    """

    name: str
    pid: int
    start_ticks: int
    boot_id: str
    mark: str = field(default="", compare=False)


def boot_id(proc: Path = _PROC) -> str:
    """This boot of this kernel; "" where the kernel does not tell."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def parse_stat(text: str) -> tuple[str, int]:
    """State letter and start time in clock ticks from /proc/PID/stat (proc(5), fields 3 and 22).

    The command (field 2) may itself hold spaces and parentheses, so fields are counted from the last one.
    """
    fields = text[text.rindex(")") + 1 :].split()
    return fields[0], int(fields[19])


def _stat(pid: int, proc: Path = _PROC) -> tuple[str, int] | None:
    try:
        return parse_stat((proc / str(pid) / "stat").read_text(errors="replace"))
    except (OSError, ValueError, IndexError):
        return None


def identify(name: str, pid: int, proc: Path = _PROC) -> ProcessIdentity | None:
    """The identity of the running process `pid`, None where there is none (a zombie does not run)."""
    stat = _stat(pid, proc)
    if stat is None or stat[0] in "ZX":
        return None
    return ProcessIdentity(name, pid, stat[1], boot_id(proc))


def is_running(process: ProcessIdentity, proc: Path = _PROC) -> bool:
    """True where exactly this process still runs, and not another that was given its pid."""
    with contextlib.suppress(OSError):  # not our child, or reaped already
        os.waitpid(process.pid, os.WNOHANG)
    return identify(process.name, process.pid, proc) == process


def find_marked(fsid: str, proc: Path = _PROC) -> list[ProcessIdentity]:
    """Running processes whose environment carries this lab's mark, sorted by pid.

    It finds what was started but not yet recorded when the starting program was killed.
    Processes of other users cannot be read and are not the lab's.
    """
    found = []
    for entry in sorted(int(item) for item in os.listdir(proc) if item.isdigit()):  # noqa: PTH208
        if entry != os.getpid() and _carries(entry, fsid, proc):
            identity = identify(command(entry, proc), entry, proc)
            found += [replace(identity, mark=fsid)] if identity else []
    return found


def find_in(directory: Path, proc: Path = _PROC) -> list[ProcessIdentity]:
    """Running processes of the labs in `directory` by their own word, sorted by pid: its file may be lost.

    They are all of this account's alone, and see this file system: elsewhere that path is another directory.
    """
    return [found for found, place in _placed(proc) if place == directory]


def directories(proc: Path = _PROC) -> set[Path]:
    """Where those processes say that their labs are."""
    return {place for _, place in _placed(proc)}


def _placed(proc: Path) -> Iterator[tuple[ProcessIdentity, Path]]:
    """Every process of a lab's that runs, and the lab's directory."""
    for pid in sorted(int(item) for item in os.listdir(proc) if item.isdigit()):  # noqa: PTH208
        variables = _variables(pid, proc)
        mark, directory = variables.get(MARK), variables.get(DIRECTORY)
        if pid == os.getpid() or not mark or not directory or not _is_ours(proc / str(pid), proc):
            continue
        identity = identify(command(pid, proc), pid, proc)
        if identity is not None:
            yield replace(identity, mark=mark), Path(directory)


def _is_ours(place: Path, proc: Path) -> bool:
    try:
        same = (place / "ns/mnt").readlink() == (proc / "self/ns/mnt").readlink()
        return same and accounts_of(place) == {os.geteuid()}
    except OSError:
        return False


def _variables(pid: int, proc: Path) -> dict[str, str]:
    try:
        words = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (os.fsdecode(word).partition("=") for word in words)}


def _carries(pid: int, mark: str, proc: Path = _PROC) -> bool:
    return bool(mark) and _variables(pid, proc).get(MARK) == mark


def words_of(process: ProcessIdentity, proc: Path = _PROC) -> list[str]:
    """Its command line; nothing where it has ended."""
    try:
        return [os.fsdecode(word) for word in (proc / str(process.pid) / "cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []


def is_own(process: ProcessIdentity) -> bool:
    """True where this process still runs and carries the lab's mark: only then is it ended."""
    return is_running(process) and _carries(process.pid, process.mark)


def command(pid: int, proc: Path = _PROC) -> str:
    """The name of the program that a process runs, as far as it tells."""
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "process"


def environment(fsid: str, directory: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a lab's process: the caller's without another cluster's settings, and the marks."""
    own = {MARK: fsid, DIRECTORY: str(directory)}
    return {key: value for key, value in inherited.items() if key not in _FOREIGN} | own


def start(name: str, command: Sequence[str], variables: Mapping[str, str], log: Path) -> ProcessIdentity:
    """Starts `command` in a session of its own with its output appended to `log`.

    Raises LabError where the program cannot be executed. A program that ends at once is returned all
    the same: who waits for it finds out.
    """
    program = shutil.which(command[0], path=variables.get("PATH"))
    if program is None:
        raise LabError(f"{name} could not be started: no program {command[0]} on PATH", _CHECK_PACKAGES)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        # posix_spawn and no Popen object: the daemon outlives this program, and nobody waits for it here.
        pid = os.posix_spawnp(
            "env",
            ["env", "--chdir=/", program, *command[1:]],  # the caller's directory must not stay in use
            dict(variables),
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP, signal.SIGCHLD),
        )
    except OSError as error:
        raise LabError(f"{name} could not be started: {error.strerror}", _CHECK_PACKAGES) from error
    identity = identify(name, pid) or ProcessIdentity(name, pid, 0, boot_id())
    return replace(identity, mark=variables.get(MARK, ""))


def ancestors(proc: Path = _PROC) -> set[int]:
    """Pids of this process and of those that it runs under, up to the first of the system."""
    found, pid = {1}, os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            text = (proc / str(pid) / "stat").read_text(errors="replace")
            pid = int(text[text.rindex(")") + 1 :].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def send(process: ProcessIdentity, number: signal.Signals) -> None:
    """Sends a signal to this process of the lab, and to no other that was given its pid meanwhile."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        # The descriptor holds the process that now has the pid: checked after opening, there is no race.
        if is_own(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise LabError(
            f"{process.name} (pid {process.pid}) belongs to another user",
            "Use the account that started the lab.",
        ) from error
    finally:
        os.close(handle)


def require_outside(processes: Sequence[ProcessIdentity]) -> None:
    """Raises LabError where this command or one that it runs under is among them."""
    above = ancestors()
    for process in processes:
        if process.pid in above:
            raise LabError(
                f"{process.name} (pid {process.pid}) is no process of the lab's: this command runs under it",
                f"nothing was ended; do this again where the environment has no {MARK}",
            )


def end(
    processes: Sequence[ProcessIdentity],
    *,
    grace_s: float,
    clock: Clock = SYSTEM_CLOCK,
) -> list[ProcessIdentity]:
    """Ends processes: SIGTERM, after `grace_s` seconds SIGKILL. Returns those that even that did not end.

    Only `send` looks at the lab's mark: a process that exits loses it before it has ended.

    Raises LabError, and ends nothing, where this command or one that it runs under is among them.
    """
    require_outside(processes)
    for number, deadline_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        remaining = [process for process in processes if is_running(process)]
        for process in remaining:
            send(process, number)
        if poll(lambda left=remaining: not any(map(is_running, left)), deadline_s, clock=clock):  # type: ignore[misc]
            return []
    return [process for process in processes if is_running(process)]


def run_tool(
    command: Sequence[str], variables: Mapping[str, str], *, deadline_s: float, text: str | None = None
) -> str:
    """Runs a short program to its end and returns what it printed.

    Raises LabError with its last words where it fails, is missing or takes longer than `deadline_s`.
    """
    words = " ".join([part for part in command if not part.startswith("-")][:6])
    try:
        child = subprocess.Popen(
            list(command), env=dict(variables), text=True, errors="replace",
            stdin=None if text is None else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise LabError(
            f"{command[0]} could not be run: {error.strerror}", "Run `leadline doctor`."
        ) from error
    try:
        printed, complained = child.communicate(text, timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"no answer within {deadline_s:.0f} s from: {words}", "See the lab's logs.") from error
    finally:
        _let_go(child)
    if child.returncode != 0:
        last = " | ".join(line.strip() for line in complained.strip().splitlines()[-4:])
        raise LabError(f"failed with exit code {child.returncode}: {words}: {last}", "See the lab's logs.")
    return printed


def _let_go(child: subprocess.Popen[str]) -> None:
    """Kills it where it runs still. One that waits in the kernel for I/O ends when that does: it is left."""
    if child.poll() is None:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_KILLED_S)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


LOG_BYTES_MAX = 8 << 20
_LOG_KEPT_BYTES = 1 << 20


def last_log_lines(log: Path, count: int = 4) -> list[str]:
    """The last lines of a log that say something; empty where there is no log. Long lines are cut."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 64 * 1024))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line if len(line) <= 300 else line[:297] + "..." for line in lines[-count:]]


def trim_logs(directory: Path) -> None:
    """Cuts every log above `LOG_BYTES_MAX` to its last mebibyte.

    The writers append, so that they go on at the new end.
    """
    for log in directory.glob("*.log"):
        with log.open("r+b") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > LOG_BYTES_MAX:
                stream.seek(size - _LOG_KEPT_BYTES)
                kept = stream.read(_LOG_KEPT_BYTES)
                stream.seek(0)
                stream.write(kept)
                stream.truncate(len(kept))


# Below Linux's ephemeral ports (32768 up) and above Ceph's own 6800 to 7300.
PORT_MIN, PORT_MAX = 10_000, 32_000
_PORTS_TRIED_MAX = 200
_ADDRESS_ERRORS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def is_free_port(address: str, port: int) -> bool:
    """True where a server could bind to `address`:`port` now. Raises LabError for a foreign address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As Ceph does it: a port in TIME_WAIT counts as free, a listening one does not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in _ADDRESS_ERRORS:
                raise LabError(
                    f"the address {address} is not this machine's: {error.strerror}",
                    "Use 127.0.0.1, or an address that `ip address` lists.",
                ) from error
            return False
    return True


def choose_port(address: str, chance: random.Random) -> int:
    """A port of `address` that is free now, drawn with `chance`. Raises LabError where none is found."""
    for _ in range(_PORTS_TRIED_MAX):
        port = chance.randint(PORT_MIN, PORT_MAX)
        if is_free_port(address, port):
            return port
    raise LabError(
        f"no free TCP port between {PORT_MIN} and {PORT_MAX} on {address} in {_PORTS_TRIED_MAX} attempts",
        "See `ss -ltn` for what holds them.",
    )
