"""`python -m leadline.lab.workers DIRECTORY`: Dask's scheduler on a lab's network, a worker on each client.

It says in one line of JSON where they are, and ends them, and removes what they had, when its standard input
ends: with whoever started it, however that ended. The scheduler has the machine's own address in the lab's
network; a worker is in its client's network, behind the client's link. They speak by TLS with a key of this
run alone: every account of the machine reaches these addresses, and who speaks there runs programs as root.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from leadline.errors import LabError, LeadlineError, TargetError, UsageError
from leadline.foreign import parse_json
from leadline.interpreter import module_command, module_environment
from leadline.lab.cluster.process import environment, poll
from leadline.lab.network import members
from leadline.lab.paths import CREW_PREFIX
from leadline.lab.record import LabRecord, read_record
from leadline.removal import remove_tree

_FILES = {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
THREADS = 1  # Dask is handed no tasks
_SCHEDULER = "scheduler"
_PR_SET_PDEATHSIG = 1
_START_S, _END_S, _KILLED_S = 60.0, 10.0, 5.0
_STARTS_S = 5.0  # more for each client: all of them start Python and Dask on this one machine
_libc = ctypes.CDLL(None, use_errno=True)


def clients_of(lab: LabRecord) -> list[str]:
    """Where a study can be run. Raises UsageError where there is nothing of the kind."""
    found = [client.name for client in members.network_of(lab).topology.clients]
    if not found:
        raise UsageError(f"lab {lab.name} has no clients", "Start one with: --clients 4")
    return found


class LabCrew:
    """The processes; each ends with this one (PR_SET_PDEATHSIG) where it cannot be ended by `end`."""

    def __init__(self, lab: LabRecord, directory: Path) -> None:
        self._lab, self._directory = lab, directory
        self._file, self._parent = directory / "scheduler.json", os.getpid()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> dict[str, object]:
        """What the other side is told. Raises UsageError for a lab without clients, LabError."""
        clients, network = clients_of(self._lab), members.network_of(self._lab)
        self._write_key()
        address = network.console_address
        where = ("--host", address, "--port", "0", "--protocol", "tls", "--scheduler-file", str(self._file))
        self._run(_SCHEDULER, _dask("scheduler", *where, *self._tls(), *_NO_PAGES))
        scheduler = self._address()
        for client in clients:
            place = self._directory / client
            place.mkdir(mode=0o700)
            named = ("--name", client, "--host", network.address(client), "--local-directory", str(place))
            limit_s = _START_S + len(clients) * _STARTS_S
            bounds = ("--nthreads", str(THREADS), "--memory-limit", "0", "--death-timeout", f"{limit_s:.0f}")
            words = (scheduler, "--protocol", "tls", *named, *bounds, *self._tls(), *_NO_PAGES)
            dask = _dask("worker", *words)
            entered = ("lab", "exec", client, "--dir", str(self._lab.directory), "--")
            self._run(client, module_command("leadline", *entered, *dask))
        files = {name: str(self._directory / file) for name, file in _FILES.items()}
        return {"scheduler": scheduler, "clients": clients, "tls": files}

    def end(self) -> None:
        """Ends all of them, the scheduler last, and removes their directory."""
        children = list(reversed(self._running.values()))
        for number, wait_s in ((signal.SIGTERM, _END_S), (signal.SIGKILL, _KILLED_S)):
            for child in children:
                if child.poll() is None:
                    child.send_signal(number)
            if poll(lambda: all(child.poll() is not None for child in children), wait_s):
                break
        with suppress(OSError, TargetError):  # what is left goes with the lab
            remove_tree(self._directory)

    def _run(self, name: str, words: Sequence[str]) -> None:
        # Else Dask takes a directory in /tmp by a known name, which another account may have made first.
        dask = _CONFIGURATION | {"DASK_TEMPORARY_DIRECTORY": str(self._directory)}
        variables = environment(self._lab.fsid, self._lab.directory, module_environment() | dask)
        log = os.open(self._lab.paths.log(f"dask-{name}"), _APPEND, 0o600)
        try:
            self._running[name] = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                preexec_fn=self._die_with_parent,  # noqa: PLW1509 - no thread has been started
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _die_with_parent(self) -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != self._parent:
            os._exit(1)

    def _write_key(self) -> None:
        from distributed.security import Security

        made = Security.temporary()
        contents = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
        for name, text in contents.items():
            (self._directory / _FILES[name]).write_text(str(text))  # nobody else enters the directory

    def _tls(self) -> tuple[str, ...]:
        options = (("--tls-ca-file", "ca"), ("--tls-cert", "cert"), ("--tls-key", "key"))
        return tuple(
            word for option, name in options for word in (option, str(self._directory / _FILES[name]))
        )

    def _address(self) -> str:
        child = self._running[_SCHEDULER]
        poll(lambda: bool(self._said()) or child.poll() is not None, _START_S)
        said = self._said()
        if not said:
            raise LabError(
                f"Dask's scheduler did not start in lab {self._lab.name}",
                f"See {self._lab.paths.log(f'dask-{_SCHEDULER}')}.",
            )
        return said

    def _said(self) -> str:
        """What the scheduler has written of itself; "" until that is whole."""
        try:
            return str(parse_json(self._file.read_text())["address"])
        except (OSError, ValueError, KeyError):
            return ""


_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
# A worker that died is started anew by its nanny, a task that was lost with it is not; workers have children.
# One that waits looks at itself a hundred times a second, unless it is told not to (docs/many-hosts.md).
_CONFIGURATION = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
_NO_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


def _dask(kind: str, *words: str) -> list[str]:
    return module_command(f"distributed.cli.dask_{kind}", *words)


def _say(words: dict[str, object]) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def main(directory: str) -> int:
    """Serves until the end of standard input; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    signal.signal(signal.SIGTERM, _leave)
    lab = read_record(Path(directory))
    crew = LabCrew(lab, Path(tempfile.mkdtemp(prefix=CREW_PREFIX, dir=lab.directory)))
    try:
        _say(crew.start())
        while os.read(0, 1 << 10):
            pass
    except LeadlineError as error:
        _say({"error": error.message, "remedy": error.remedy})
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        crew.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
