"""From what was asked to a crew: a scheduler that runs already, or one made here for hosts reached by SSH.

Whoever reaches a Dask scheduler executes what it likes on every worker, so traffic that nobody encrypts is
refused unless it stays on this host or was asked for by name.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import UsageError
from leadline.hosts.crew.calls import Crew
from leadline.hosts.crew.written import HostsAsked

if TYPE_CHECKING:
    from distributed import Client, Security

_POLL_S = 0.1
_CLOSE_S = 10.0
_CONNECT_S = 10.0


@contextmanager
def connected(
    asked: HostsAsked,
    say: Callable[[str], None],
    stopping: Callable[[], bool],
    gaps: dict[str, str] | None = None,
) -> Iterator[Crew]:
    """The workers, once as many are there as were asked for; the connection lasts as long as the block.

    Raises UsageError where nobody answers, or less than was asked for is there in time. With `gaps` the hosts
    that cannot be reached are named there instead, each with the reason, and the others are taken.
    """
    check_plain(asked)
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            f"studies on many hosts need Dask, which is not here: {error}", "pip install 'leadline[hosts]'"
        ) from None
    _silence()
    security = _security(asked, distributed)
    if asked.scheduler is not None:
        with _client(asked, asked.scheduler, security) as client:
            yield _gathered(asked, Crew(client, asked.scheduler), say, stopping, gaps)
        return
    from leadline.hosts.crew.cluster import started

    with (
        started(asked, security, gaps) as cluster,
        _client(asked, cluster.scheduler_address, security) as client,
    ):
        yield _gathered(asked, Crew(client, cluster.scheduler_address), say, stopping, gaps)


def check_plain(asked: HostsAsked) -> None:
    """Refuse addresses of other hosts without encryption, unless that was asked for. Raises UsageError."""
    if asked.plain_tcp:
        return
    remedy = (
        "use TLS (docs/many-hosts.md has a recipe); where nobody else is on that network: --plain-tcp,"
        " or `plain_tcp: true` in a hosts file"
    )
    if asked.scheduler is not None:
        if asked.scheduler.startswith("tcp:") and not is_here(host_of(asked.scheduler)):
            raise UsageError(
                f"{asked.scheduler} is not encrypted: who is on the way could do anything on every worker",
                remedy,
            )
    elif asked.tls is None:
        away = [host.name for host in asked.hosts if not is_here(str(host.address))]
        if away:
            names = ", ".join(away[:3]) + (f" and {len(away) - 3} more" if len(away) > 3 else "")
            raise UsageError(f"{asked.source} names no TLS files, and {names} are other hosts", remedy)


def host_of(address: str) -> str:
    """Of `tls://HOST:PORT`."""
    return address.split("://", 1)[1].rsplit(":", 1)[0].strip("[]")


def is_here(host: str) -> bool:
    """Whether an address is of this host alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _security(asked: HostsAsked, distributed: object) -> Security:
    """TLS by the files that were named, else by those of Dask's own configuration."""
    from distributed import Security

    del distributed
    tls = asked.tls
    encrypted = asked.scheduler.startswith("tls:") if asked.scheduler is not None else tls is not None
    if tls is None:
        found = Security(require_encryption=True) if encrypted else Security(require_encryption=False)
        if encrypted and not (found.tls_ca_file and found.tls_client_cert):
            raise UsageError(
                f"{asked.scheduler} needs TLS files, and none are named",
                "name them in a hosts file (`tls: {ca: …, cert: …, key: …}` beside `scheduler:`), or in"
                " Dask's configuration (distributed.comm.tls); see docs/many-hosts.md",
            )
        return found
    for path in filter(None, (tls.ca, tls.cert, tls.key)):
        if not os.access(Path(path), os.R_OK):
            raise UsageError(
                f"{asked.source}: {path} cannot be read here", "name a file that this account can read"
            )
    return Security(require_encryption=True, **tls_options(asked, ("client", "scheduler", "worker")))


def tls_options(asked: HostsAsked, roles: tuple[str, ...]) -> dict[str, str]:
    """Dask's words for the TLS files, the same for each role."""
    if asked.tls is None:
        return {}
    options = {"tls_ca_file": asked.tls.ca}
    for role in roles:
        options |= {f"tls_{role}_cert": asked.tls.cert}
        options |= {f"tls_{role}_key": asked.tls.key} if asked.tls.key else {}
    return options


@contextmanager
def _client(asked: HostsAsked, address: str, security: Security) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(
            address,
            security=security,
            set_as_default=False,
            timeout=min(asked.answer_s, _CONNECT_S),
            name="leadline",
            direct_to_workers=False,
        )
    except (OSError, TypeError, RuntimeError, ImportError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(
            f"no Dask scheduler answers at {address}: {lines[0]}",
            "is it running, and is this the address that it printed? tls:// and tcp:// must be as there",
        ) from error
    try:
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone: there is nobody to say good-bye to
            client.close(timeout=_CLOSE_S)


def _gathered(
    asked: HostsAsked,
    crew: Crew,
    say: Callable[[str], None],
    stopping: Callable[[], bool],
    gaps: dict[str, str] | None,
) -> Crew:
    """Wait for as many workers as were asked for; without a number one is enough. Nobody waits for `gaps`."""
    wanted = asked.workers or 1
    end, said = time.monotonic() + asked.wait_s, -1
    while True:
        names = {worker.name for worker in crew.workers()}
        here = len(names & {host.name for host in asked.hosts}) if asked.hosts else len(names)
        if here != said:
            say(f"{here} of {wanted} hosts are there" if asked.workers else f"{here} hosts are there")
            said = here
        if here >= wanted - len(gaps or ()):
            return crew
        if stopping():
            raise KeyboardInterrupt
        if time.monotonic() > end:
            missing = sorted({host.name for host in asked.hosts} - names)
            if gaps is not None and missing and here:
                why = f"did not come within {asked.wait_s:g} s"
                gaps.update({name: why for name in missing if name not in gaps})
                return crew
            who = f": {', '.join(missing[:5])} did not come" if missing else ""
            raise UsageError(
                f"{here} of {wanted} hosts are there after {asked.wait_s:g} s{who}",
                "start more Dask workers, or ask for fewer with --workers; `wait: 10m` in a hosts file"
                " waits longer",
            )
        time.sleep(_POLL_S)


def _silence() -> None:
    """What Dask logs of lost workers and schedulers is said in words of ours."""
    if os.environ.get("LEADLINE_DEBUG"):
        return
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "asyncssh", "tornado", "bokeh"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
