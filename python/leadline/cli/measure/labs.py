"""Studies on a lab's own clients: once more in an emulated guest, or on each of them through Dask."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import LabError, UsageError
from leadline.interpreter import module_command, module_environment

if TYPE_CHECKING:
    from leadline.cli.signals import StopRequest
    from leadline.hosts.workers.request import HostsAsked
    from leadline.lab import LabTarget
    from leadline.run.model import Outcome


_KINDS = {"kernel-ceph": "ceph", "kernel-nfs": "nfs", "kernel-smb": "smb"}
_POLL_S = 0.2
_END_GRACE_S = 30.0
NOT_DONE = "its client is a guest's kernel, and no guest measured it (--guest, of a lab with --bridge)"
KERNEL_WAYS = tuple(_KINDS)


def check_guest(lab: str | None, *, wanted: bool, many: bool = False) -> None:
    """Raises UsageError where a guest is asked for without a lab or its bridge, or beside many hosts."""
    if not wanted:
        return
    if many:
        raise UsageError("--guest is for a run on this host", "leave it out, or --hosts and --scheduler")
    if lab is None:
        raise UsageError("--guest runs the kernel's clients against a lab", "add --lab")
    from leadline import lab as labs

    record = labs.open(lab).record
    if record.bridge is None:
        raise UsageError(
            f"the guest cannot reach lab {record.name}: it has no bridge",
            "start one with: leadline lab up --bridge --gateways all",
        )


def run_in_guest(lab: str, out: Path, study: str, options: Sequence[str], stop: StopRequest) -> None:
    """Run the study on the guest's kernel mounts; its result lies in `out`, in the directory GUEST.

    What the guest prints goes to standard error: the report of the whole comes later.
    """
    from leadline.lab import open as open_lab
    from leadline.lab.cluster.cluster import REPLICATED_DIRECTORY
    from leadline.lab.guest.mounts import BASE
    from leadline.store.reader import GUEST

    record = open_lab(lab).record
    inside = f"/{REPLICATED_DIRECTORY}" if record.spec.mount else ""
    targets = [word for way, kind in _KINDS.items() for word in ("--target", f"{way}={BASE}/{kind}{inside}")]
    place = out.resolve()
    command = [
        *module_command("leadline", "lab", "guest", record.name),
        *("--kernel-mounts", ",".join(_KINDS.values()), "--results", str(place), "--"),
        *("leadline", "run", _absolute(study), *targets, *options),
        *("--out", str(place / GUEST), "--quiet"),
    ]
    process = subprocess.Popen(command, stdout=sys.stderr.fileno(), env=module_environment(), cwd=place)
    while process.poll() is None and not stop():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
    _end_guest(process)


def _end_guest(process: subprocess.Popen[bytes]) -> None:
    """A guest that does not end when asked is killed; `leadline lab down` removes what it leaves."""
    for ask in (process.terminate, process.kill):
        if process.poll() is None:
            ask()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_GRACE_S)


def _absolute(study: str) -> str:
    """A file is named so that the guest finds it; a built-in study keeps its name."""
    path = Path(study)
    return str(path.resolve()) if path.is_file() else study


def with_guest(
    outcome: Outcome, lab: str | None, out: Path, study: str, options: Sequence[str], stop: StopRequest
) -> Outcome:
    """The outcome of the host's run, once the guest has run as well; nothing where that one did not end."""
    if lab is not None and not outcome.interrupted and outcome.stopped is None:
        run_in_guest(lab, out, study, options, stop)
    return outcome


_READY_S, _END_S = 90.0, 30.0
_STARTS_S = 5.0  # more for each client: all of them start Python and Dask on this one machine


@contextmanager
def lab_hosts(name: str) -> Iterator[HostsAsked]:
    """A worker on every client of the lab of this name ("": the only one), for as long as this lasts.

    Raises UsageError where there is no such lab or it has no clients, LabError where Dask does not start.
    """
    from leadline import lab as labs
    from leadline.hosts.workers.request import HostAsked, HostsAsked, TlsFiles
    from leadline.lab import workers

    lab = labs.open(name)
    workers.clients_of(lab.record)
    command = module_command("leadline.lab.workers", str(lab.directory))
    # In a session of its own: an interrupt at the terminal is for this command, which ends it in its turn.
    keeper = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )
    try:
        said = _first_line(keeper)
        ways = lab.targets_from_all()
        hosts = tuple(HostAsked(client, targets=_targets(ways[client])) for client in said["clients"])
        wait_s = HostsAsked.wait_s + len(hosts) * _STARTS_S
        tls = TlsFiles(**said["tls"])
        yield HostsAsked(hosts, said["scheduler"], tls, workers=len(hosts), wait_s=wait_s)
    finally:
        _end_keeper(keeper)


def _targets(ways: Sequence[LabTarget]) -> dict[str, str]:
    return {way.name: way.where for way in ways if not way.reason}


def _first_line(keeper: subprocess.Popen[bytes]) -> Mapping[str, Any]:
    assert keeper.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
    ready, _, _ = select.select([keeper.stdout], [], [], _READY_S)
    line = keeper.stdout.readline() if ready else b""
    said: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
    if "scheduler" not in said:
        words = said.get("error", f"Dask did not start on the lab's clients within {_READY_S:.0f} s")
        raise LabError(words, said.get("remedy", "See the lab's logs."))
    return said


def _end_keeper(keeper: subprocess.Popen[bytes]) -> None:
    for stream in (keeper.stdin, keeper.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        keeper.wait(_END_S)
    except subprocess.TimeoutExpired:
        keeper.kill()  # all that it started ends with it
        keeper.wait()
