"""Dask workers on hosts that are reached by SSH, by the classes of Dask's own SSHCluster, while a run lasts.

The scheduler is in this process, so that the workers end with it: each ends when its scheduler is gone, also
where this process was killed and nobody is left to tell them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.hosts.own.scratch import private_scratch
from leadline.hosts.workers.connect import tls_options
from leadline.hosts.workers.request import HostAsked, HostsAsked
from leadline.interpreter import remote_command, remote_python

if TYPE_CHECKING:
    from distributed import Security, SpecCluster

_CLOSE_S = 20.0
_NO_DASHBOARD = "127.0.0.1:0"  # Dask serves some pages even then: to nobody else
_SCRATCH = private_scratch.__module__
_THREADS = 1  # Dask is handed no tasks
# Workers inherit it. One that waits looks at itself a hundred times a second, unless it is told not to.
_CONFIGURATION = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}


@contextmanager
def started(
    asked: HostsAsked, security: Security, gaps: dict[str, str] | None = None
) -> Iterator[SpecCluster]:
    """A scheduler here and a worker on each host. Raises UsageError, with what SSH or Dask said.

    With `gaps` the hosts on which none can be started are named there instead, with the reason.
    """
    import dask
    from distributed import SpecCluster

    protocol = "tls://" if asked.tls is not None else "tcp://"
    kind = _worker_class(asked, gaps)
    workers = {host.name: {"cls": kind, "options": _worker(asked, host, protocol)} for host in asked.hosts}
    with private_scratch() as scratch:
        options = {
            "host": asked.listen or _listen(asked, gaps),
            "port": 0,
            "protocol": protocol,
            "security": security,
            "dashboard": False,
            "dashboard_address": _NO_DASHBOARD,
            "allowed_failures": 0,
            "local_directory": str(scratch),
        }
        scheduler = {"cls": scheduler_class(), "options": options}
        try:
            with dask.config.set(_CONFIGURATION):
                cluster = SpecCluster(
                    workers=workers,
                    scheduler=scheduler,
                    security=security,
                    name="leadline",
                    silence_logs=False,
                )
        except Exception as error:  # asyncssh, OSError and bare Exceptions of Dask
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise UsageError(
                f"the hosts of {asked.source} could not be started by SSH: {lines[0]}",
                "try `ssh HOST PYTHON -m leadline --version` for each; see docs/many-hosts.md",
            ) from error
        try:
            yield cluster
        finally:
            with suppress(Exception):
                cluster.close(timeout=_CLOSE_S)


# What workers, this command's own client and its cluster ask of the scheduler.
_OPERATIONS = frozenset(
    {
        *("broadcast", "check_idle", "echo", "get_metadata", "heartbeat_worker", "identity", "log_event"),
        *("register-client", "register-worker", "register_nanny", "retire_workers", "set_metadata"),
        *("subscribe_worker_status", "terminate", "unregister", "versions", "workers_to_close"),
    }
)
_NO_STREAM = ("update-graph", "update-data", "report-key")  # tasks: none is handed to Dask


def scheduler_class() -> Any:
    """Dask's scheduler without what it does in its own process for whoever asks: it is in the command's.

    Among the rest are functions that it runs, plug-ins that it loads and files that it writes.
    """
    from distributed import Scheduler

    class CrewScheduler(Scheduler):  # type: ignore[misc]
        """For the hosts of one command."""

        def __init__(self, *arguments: Any, local_directory: str, **options: Any) -> None:
            super().__init__(*arguments, local_directory=local_directory, **options)
            self.blocked_handlers = sorted(self.handlers.keys() - _OPERATIONS)
            for name in _NO_STREAM:
                self.stream_handlers.pop(name, None)

    return CrewScheduler


def private_nanny(*arguments: Any, **options: Any) -> Any:
    """Dask's nanny with a directory of its own for it and its worker: it is started on hosts by this name."""
    from distributed import Nanny

    stack = ExitStack()
    scratch = stack.enter_context(private_scratch())

    class PrivateNanny(Nanny):  # type: ignore[misc]
        """It removes the directory when its worker has ended."""

        async def close(self, *arguments: Any, **options: Any) -> Any:
            try:
                return await super().close(*arguments, **options)
            finally:
                stack.close()

    with stack:
        nanny = PrivateNanny(*arguments, **options, local_directory=str(scratch))
        stack = stack.pop_all()
    return nanny


def _worker_class(asked: HostsAsked, gaps: dict[str, str] | None) -> Any:
    """Dask's own with words for why it did not start; with `gaps` they are there, and the others start."""
    from distributed.deploy.ssh import Worker

    class TellingWorker(Worker):  # type: ignore[misc]
        """Its error has what the Python there says."""

        async def start(self) -> None:
            try:
                await super().start()
            except Exception as error:
                raise await _with_its_words(self, error) from error

    return TellingWorker if gaps is None else _left_out(asked, gaps, TellingWorker)


def _left_out(asked: HostsAsked, gaps: dict[str, str], worker_class: Any) -> Any:
    from distributed.core import Status

    class LeftOutWorker(worker_class):  # type: ignore[misc]
        """For its cluster it always starts."""

        async def start(self) -> None:
            try:
                await asyncio.wait_for(self._started(), asked.wait_s)
            except Exception as error:  # as in `started`
                gaps[str(self.name)] = _unreached(error, asked.wait_s)
                self.status = Status.running

        async def _started(self) -> None:
            self.connect_options.setdefault("connect_timeout", asked.answer_s)
            await super().start()

    return LeftOutWorker


def _unreached(error: Exception, limit_s: float) -> str:
    """Why, in words that follow a host's name."""
    if isinstance(error, TimeoutError) and not error.errno:
        return f"does not answer within {limit_s:g} s"
    if isinstance(error, OSError) and error.errno:
        named = os.strerror(error.errno) if error.errno > 0 else error.strerror  # of names they are negative
        return f"cannot be reached by SSH: {named}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"could not be started by SSH: {lines[0][:200]}"


async def _with_its_words(worker: Any, error: Exception) -> Exception:
    """Dask says that a worker failed to start, and not why: what the Python there says to our names."""
    if not worker.connection or "failed to start" not in str(error):
        return error
    for words in (("leadline", "--version"), (_SCRATCH,)):
        done = await worker.connection.run(remote_command(worker.remote_python, *words))
        said = str(done.stderr or "").strip().splitlines()
        if done.exit_status and said:
            break
    else:
        return error
    if said[0].startswith("unknown option -P"):
        return Exception("its Python is older than 3.11")
    raised = [line.partition("Error: ")[2] for line in said if "Error: " in line]  # of a traceback
    return Exception(raised[-1] if raised else said[-1])


def _worker(asked: HostsAsked, host: HostAsked, protocol: str) -> dict[str, Any]:
    """Options of Dask's SSH worker: a nanny starts it again, so that a trial can be tried again."""
    connect = {name: _expanded(name, value) for name, value in host.ssh.items()}
    options: dict[str, Any] = {
        "name": host.name,
        "nthreads": _THREADS,
        "memory_limit": 0,
        "protocol": protocol,
        "dashboard": False,
        "dashboard_address": _NO_DASHBOARD,
        "death_timeout": asked.answer_s,
    }
    known = _known_as(str(host.address))
    if known is not None:  # else Dask takes the address towards its default route, and 127.0.0.1 without one
        options["host"] = known
    if asked.tls is not None:
        options["security"] = {"require_encryption": True, **tls_options(asked, ("worker",))}
    return {
        "address": host.address,
        "connect_options": connect,
        "kwargs": options,
        "worker_class": f"{__name__}.{private_nanny.__name__}",
        "remote_python": remote_python(host.python),
    }


def _known_as(address: str) -> str | None:
    """The address of a host by the name that SSH takes; None for one that SSH's configuration alone knows."""
    import socket

    try:
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None


def _expanded(name: str, value: Any) -> Any:
    if name in ("client_keys", "config"):
        return [str(Path(one).expanduser()) for one in value]
    return str(Path(value).expanduser()) if name == "known_hosts" else value


def _listen(asked: HostsAsked, gaps: dict[str, str] | None) -> str:
    """The address of this host on the way to the first of the others; nothing is sent to find it.

    With `gaps` to the first that there is a way to.
    """
    import socket

    addresses = [str(host.address) for host in asked.hosts]
    problem = ""
    for address in addresses[:1] if gaps is None else addresses:
        try:
            family, _, _, _, place = socket.getaddrinfo(address, 22, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect(place)
                return str(way.getsockname()[0])
        except OSError as error:
            problem = problem or f"there is no way to {address}: {error.strerror}"
    raise UsageError(problem, "see its address in the hosts file")
