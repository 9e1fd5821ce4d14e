"""A guest: one command run under a kernel that has the clients which this host's kernel lacks.

It reads as the order of events. Whatever is started ends with it; nothing of the guest stays but its logs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.foreign import read_plain
from leadline.interpreter import script_command
from leadline.lab.bridge import find_bridge, tap_on
from leadline.lab.cluster import process
from leadline.lab.guest import agent as guest_agent
from leadline.lab.guest.initrd import SHARE_TAG, build_initrd
from leadline.lab.guest.kernel import cache_home, choose_modules, find_kernel
from leadline.lab.guest.machine import (
    PACKAGE,
    PROGRAM,
    Console,
    Deadline,
    Files,
    GuestSession,
    GuestState,
    Hardware,
    Lines,
    command_line,
)
from leadline.lab.guest.mounts import GuestMount
from leadline.lab.journal import LabJournal
from leadline.lab.lab import Lab
from leadline.lab.paths import GUEST_PREFIX
from leadline.lab.record import GUEST, LabRecord, locked, read_record
from leadline.trusted import why_not_file

HOST_NAME = "leadline-guest"
TIMED_OUT = 124  # as timeout(1) has it
_KVM = Path("/dev/kvm")
_KVM_DEADLINE_S = 8.0
_NOTE_BYTES_MAX = 1 << 10
_SIGNAL_GRACE_S = 20.0
_POWER_OFF_DEADLINE_S = 90.0
_SHARE_OPTIONS = "trans=virtio,version=9p2000.L,msize=512000,cache=mmap"


@dataclass(frozen=True)
class GuestRequest:
    """What to run in a guest, with what of this host, and how long each step may take.

    `share` is the one directory that the guest writes on this host; `directory` is where the command starts.
    """

    command: tuple[str, ...]
    mounts: tuple[GuestMount, ...]
    share: Path
    directory: Path
    variables: Mapping[str, str]
    memory_mib: int = 2048
    cpus: int = 2
    accelerator: str = "auto"
    boot_deadline_s: float = 180.0
    mount_deadline_s: float = 60.0
    command_deadline_s: float = 3600.0


@dataclass(frozen=True)
class GuestOutcome:
    """How it went. `unavailable` has the reason of each mount that was not there.

    Seconds are this host's: `boot_s` until the agent answered, `ready_s` until the command began.
    """

    exit_code: int
    why: str
    unavailable: dict[str, str]
    not_written_back: tuple[str, ...]
    accelerator: str
    kernel: str
    boot_s: float
    ready_s: float
    command_s: float
    total_s: float


@dataclass(frozen=True)
class GuestListener:
    """How this program hears of a guest: progress, the command's words by stream, and a signal to end."""

    say: Callable[[str], None]
    output: Callable[[str, bytes], None]
    stop: Callable[[], int]


def check(request: GuestRequest) -> None:
    """Raises UsageError or LabError for what could not work, before anything is started."""
    if not request.command:
        raise UsageError("no command was given", "Write: leadline lab guest -- COMMAND WORDS")
    if request.share == Path("/"):
        raise UsageError(
            "a guest may not write to the whole of this host", "Name a directory with --results DIR."
        )
    if shutil.which(PROGRAM) is None:
        raise LabError(
            f"{PROGRAM} is not installed",
            f"Run as root: apt-get install --no-install-recommends {PACKAGE} busybox-static",
        )
    if os.geteuid() != 0:
        raise LabError(
            "a guest needs root: it is given a tap on the lab's bridge, and every file of this host to read",
            "Run this command as root.",
        )


def run(lab: Lab, request: GuestRequest, host: GuestListener) -> GuestOutcome:
    """Boots a guest, mounts, runs the command, powers off. Raises LabError where it is lost on the way."""
    began_s = time.monotonic()
    check(request)
    record = _require_up(lab)
    bridge = find_bridge(record.spec.address, lab.variables)
    kernel = find_kernel(request.variables, host.say)
    names = tuple(mount.name for mount in request.mounts)
    chosen = choose_modules(kernel.tree(), names)
    request = replace(
        request,
        mounts=tuple(
            replace(mount, reason=chosen.lacking.get(mount.name, mount.reason)) for mount in request.mounts
        ),
    )
    with ExitStack() as stack:
        # Below the lab's directory: after a crash `lab down` removes it.
        temporary = tempfile.TemporaryDirectory(prefix=GUEST_PREFIX, dir=record.directory)
        work = Path(stack.enter_context(temporary))
        initrd = work / "initrd"
        agent = tuple(script_command("-S", guest_agent.__file__))
        initrd.write_bytes(build_initrd(chosen.files, bridge.guest(), agent, HOST_NAME))
        request.share.mkdir(parents=True, exist_ok=True)
        tap = stack.enter_context(tap_on(bridge, lab.variables))
        files = Files(kernel.image, initrd, request.share)
        machine = Machine(lab, request, host, files, tap)
        return machine.run(began_s)


def _require_up(lab: Lab) -> LabRecord:
    record = read_record(lab.directory)
    monitor = next((item for item in record.processes if item.name.startswith("mon.")), None)
    if record.state != "up" or monitor is None or not process.is_running(monitor):
        raise LabError(
            f"lab {record.name} is not up: a guest has nothing to mount",
            "See `leadline lab status`; start it with `leadline lab up --bridge`.",
        )
    return record


class Machine:
    """One run of a guest's machine: started, once more under emulation where KVM fails, and ended."""

    def __init__(self, lab: Lab, request: GuestRequest, host: GuestListener, files: Files, tap: int) -> None:
        self._lab, self._request, self._host, self._files, self._tap = lab, request, host, files, tap
        self._accelerator = ""

    def run(self, began_s: float) -> GuestOutcome:
        """From power on to power off."""
        for accelerator in self._accelerators():
            self._accelerator = accelerator
            console = Console(self._new_log())
            with Lines() as lines, self._started(lines):
                session = GuestSession(lines, console, self._host.output, self._host.stop)
                try:
                    if accelerator == "kvm" and not self._kernel_starts(session, console):
                        continue
                    return self._conduct(session, began_s)
                finally:
                    session.close()
        raise LabError("KVM does not start guests on this host", "Use --accel tcg or auto.")

    def _accelerators(self) -> tuple[str, ...]:
        asked = self._request.accelerator
        if asked != "auto":
            return (asked,)
        known_bad = _kvm_is_known_bad(self._request.variables)
        return ("tcg",) if known_bad or not os.access(_KVM, os.R_OK | os.W_OK) else ("kvm", "tcg")

    def _kernel_starts(self, session: GuestSession, console: Console) -> bool:
        """True once the kernel has spoken: a nested KVM may accept a guest and never run it."""
        try:
            session.wait(lambda: console.started, Deadline.of("start", _KVM_DEADLINE_S), stoppable=False)
        except (TimeoutError, LabError):
            self._host.say("KVM does not start guests on this host: emulating, which is slow")
            _note_kvm_is_bad(self._request.variables)
            return False
        return True

    def _new_log(self) -> Path:
        log = self._lab.record.paths.log("guest-console")
        log.unlink(missing_ok=True)
        return log

    @contextmanager
    def _started(self, lines: Lines) -> Iterator[None]:
        """QEMU, recorded in the lab's journal while it runs."""
        hardware = Hardware(self._accelerator, self._request.memory_mib, self._request.cpus)
        with locked(self._lab.directory):
            journal = self._journal()
            if any(item.name == GUEST and process.is_running(item) for item in journal.record.processes):
                raise UsageError(
                    f"a guest of lab {journal.record.name} runs already", "Wait for it, or start another lab."
                )
            journal.record.paths.log(GUEST).unlink(missing_ok=True)
            with lines.given([self._tap]) as given:
                identity = journal.start(GUEST, command_line(hardware, self._files, given, self._tap))
        try:
            yield
        finally:
            process.end([identity], grace_s=3.0)
            with suppress(UsageError, LabError, OSError), locked(self._lab.directory):  # removed meanwhile?
                journal = self._journal()
                journal.update(processes=tuple(item for item in journal.record.processes if item != identity))

    def _journal(self) -> LabJournal:
        return LabJournal(read_record(self._lab.directory), self._lab.variables)

    def _conduct(self, session: GuestSession, began_s: float) -> GuestOutcome:
        told, request, host = session.told, self._request, self._host
        started_s = time.monotonic()
        host.say(f"booting {'an emulated guest' if self._accelerator == 'tcg' else 'a guest with KVM'}")
        number = self._reach(session, "agent", "boot", request.boot_deadline_s)
        booted_s = time.monotonic()
        if not number:
            session.tell(self._job())
            tried = [mount for mount in request.mounts if not mount.reason]
            seconds = 30.0 + request.mount_deadline_s * len(tried)
            number = self._reach(session, "command", "mount its file systems", seconds)
        if number:
            return self._outcome(told, 128 + number, "interrupted", (began_s, started_s, booted_s, booted_s))
        ready_s = time.monotonic()
        host.say(f"the guest runs {told.kernel}, ready {ready_s - started_s:.0f} s after power on")
        code, why = self._await_command(session)
        session.drain(Deadline.of("power off", _POWER_OFF_DEADLINE_S))
        return self._outcome(told, code, why, (began_s, started_s, booted_s, ready_s))

    def _reach(self, session: GuestSession, where: str, what: str, seconds: float) -> int:
        try:
            return session.wait(lambda: where in session.told.uptime_s, Deadline.of(what, seconds))
        except TimeoutError as error:
            raise session.failure(str(error)) from error

    def _await_command(self, session: GuestSession) -> tuple[int, str]:
        """The command's exit code, and why it is not its own: not started, a signal, too long."""
        told = session.told

        def done() -> bool:
            return told.exit_code is not None

        seconds = self._request.command_deadline_s
        try:
            number = session.wait(done, Deadline.of("end", seconds))
            late = ""
        except TimeoutError:
            number, late = 15, f"the command did not end within {seconds:g} s"
        if not number:
            return told.exit_code or 0, told.why
        with suppress(TimeoutError, LabError):  # it may be ending already
            session.tell({"signal": number})
            session.wait(done, Deadline.of("end", _SIGNAL_GRACE_S), stoppable=False)
        return (TIMED_OUT, late) if late else (128 + number, "interrupted")

    def _job(self) -> dict[str, object]:
        request = self._request
        point = str(request.share)
        return {
            "command": list(request.command),
            "directory": str(request.directory),
            "variables": dict(request.variables),
            "share": {"source": SHARE_TAG, "point": point, "options": _SHARE_OPTIONS},
            "mounts": [mount.as_json() for mount in request.mounts if not mount.reason],
            "mount_deadline_s": request.mount_deadline_s,
        }

    def _outcome(
        self, told: GuestState, code: int, why: str, times: tuple[float, float, float, float]
    ) -> GuestOutcome:
        began_s, started_s, booted_s, ready_s = times
        now_s = time.monotonic()
        known = {mount.name: mount.reason for mount in self._request.mounts if mount.reason}
        uptime = told.uptime_s
        return GuestOutcome(
            exit_code=code,
            why=why,
            unavailable=known | {name: reason for name, reason in told.mounts.items() if reason},
            not_written_back=told.left,
            accelerator=self._accelerator,
            kernel=told.kernel,
            boot_s=booted_s - started_s,
            ready_s=ready_s - started_s,
            command_s=max(0.0, uptime.get("end", 0.0) - uptime.get("command", 0.0)),
            total_s=now_s - began_s,
        )


def _kvm_is_known_bad(variables: Mapping[str, str]) -> bool:
    """Whether a note says that KVM did not start guests since this host was booted."""
    with suppress(OSError, ValueError):
        return read_plain(_kvm_note(variables), _NOTE_BYTES_MAX, own=True).decode() == process.boot_id()
    return False


def _note_kvm_is_bad(variables: Mapping[str, str]) -> None:
    """Write the note, where the cache is there and no other account could have put a link into it."""
    note = _kvm_note(variables)
    if not why_not_file(str(note.parent)):
        with suppress(OSError):
            note.write_text(process.boot_id())


def _kvm_note(variables: Mapping[str, str]) -> Path:
    return cache_home(variables) / "kvm-does-not-start"
