"""`--hosts lab`: a study on the clients of a lab, each in its own network, through Dask as elsewhere.

Only here do the lab and a study's hosts meet.
"""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from leadline.errors import LabError
from leadline.interpreter import module_command, module_environment

if TYPE_CHECKING:
    from leadline.hosts.workers.request import HostsAsked
    from leadline.lab import LabTarget

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
        _end(keeper)


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


def _end(keeper: subprocess.Popen[bytes]) -> None:
    for stream in (keeper.stdin, keeper.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        keeper.wait(_END_S)
    except subprocess.TimeoutExpired:
        keeper.kill()  # all that it started ends with it
        keeper.wait()
