"""Studies on a lab's own clients: once more in an emulated guest, or on each of them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import UsageError
from leadline.interpreter import module_command, module_environment

if TYPE_CHECKING:
    from leadline.cli.signals import StopRequest
    from leadline.hosts.workers.request import HostsAsked
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


_STARTS_S = 5.0  # more for each client: all of them start Python on this one machine


def lab_hosts(name: str) -> HostsAsked:
    """The clients of the lab of this name ("": the only one), each asked by a process in its network.

    Raises UsageError where there is no such lab or it has no clients.
    """
    from leadline import lab as labs
    from leadline.hosts.workers.request import HostAsked, HostsAsked
    from leadline.lab.network.members import network_of

    lab = labs.open(name)
    if not network_of(lab.record).topology.clients:
        raise UsageError(f"lab {lab.record.name} has no clients", "Start one with: --clients 4")
    place, server = ("--dir", str(lab.directory)), module_command("leadline.hosts.stdio")
    hosts = tuple(
        HostAsked(
            client,
            targets={way.name: way.where for way in ways if not way.reason},
            through=tuple(module_command("leadline", "lab", "exec", client, *place, "--", *server)),
        )
        for client, ways in lab.targets_from_all().items()
    )
    return HostsAsked(hosts, workers=len(hosts), wait_s=HostsAsked.wait_s + len(hosts) * _STARTS_S)
