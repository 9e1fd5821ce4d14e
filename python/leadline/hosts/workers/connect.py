"""From what was asked to a crew: hosts reached by SSH, or the workers of a Dask scheduler that runs already.

Whoever reaches a Dask scheduler executes what it likes on every worker, and every account of a host reaches
its loopback. So traffic that nobody encrypts is refused unless it was asked for by name.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import UsageError
from leadline.hosts.workers.calls import Crew
from leadline.hosts.workers.request import HOSTS_MAX, HostsAsked

if TYPE_CHECKING:
    from distributed import Client, Security

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_POLL_S = 0.1
_CLOSE_S = 10.0
_CONNECT_S = 10.0
_LISTENS = "0A"  # include/net/tcp_states.h: TCP_LISTEN


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
    _make_room()
    if asked.scheduler is None:
        from leadline.hosts.workers.ssh import reached

        with reached(asked, say, gaps) as transport:
            yield _gathered(asked, Crew(transport), say, stopping, gaps)
        return
    check_plain(asked)
    check_listener(asked.scheduler)
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            f"--scheduler needs Dask, which is not here: {error}", "pip install 'leadline[hosts]'"
        ) from None
    from leadline.hosts.workers.dask import DaskTransport
    from leadline.hosts.workers.messages import guard

    _silence()
    guard()
    security = _security(asked, distributed)
    with _client(asked, asked.scheduler, security) as client:
        check_listener(asked.scheduler)  # nobody may have listened before
        yield _gathered(asked, Crew(DaskTransport(client, asked.scheduler)), say, stopping, gaps)


def _make_room() -> None:
    """A host reached by SSH takes three pipes, and by Dask a call that lasts has a connection of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * HOSTS_MAX if hard == resource.RLIM_INFINITY else min(hard, 4 * HOSTS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def check_plain(asked: HostsAsked) -> None:
    """Refuse what is not encrypted, unless that was asked for. Raises UsageError."""
    if asked.plain_tcp:
        return
    remedy = (
        "use TLS (docs/many-hosts.md has a recipe); where nobody else is on that network, and nobody else has"
        " an account: --plain-tcp, or `plain_tcp: true` in a hosts file"
    )
    if asked.scheduler is not None and asked.scheduler.startswith("tcp:"):
        who = "every account of this host" if is_here(host_of(asked.scheduler)) else "who is on the way"
        raise UsageError(
            f"{asked.scheduler} is not encrypted: {who} could do anything on every worker", remedy
        )


def check_listener(address: str, tables: Path = Path("/proc/net")) -> None:
    """Refuse plain TCP to a port of this host at which another account listens. Raises UsageError.

    Root may listen, which could do anything here anyway. Of other hosts nothing can be found out.
    """
    own = (
        {one for one in _resolved(host_of(address)) if _is_own(one)} if address.startswith("tcp:") else set()
    )
    port = int(address.rpartition(":")[2])
    found = {uid for table in ("tcp", "tcp6") for uid in _listeners(tables / table, own, port)}
    others = sorted(found - {0, os.geteuid()})
    if own and others:
        raise UsageError(
            f"another account (uid {others[0]}) listens at {address}",
            "give the address of your own scheduler, or use TLS (docs/many-hosts.md)",
        )


def _resolved(host: str) -> set[_Address]:
    with suppress(OSError, ValueError):  # whoever connects says why there is no such host
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return {_plain(ipaddress.ip_address(str(one[4][0]).partition("%")[0])) for one in found}
    return set()


def _is_own(address: _Address) -> bool:
    """Whether it is an address of this host, in this network namespace."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as tried:
        tried.bind((str(address), 0))
        return True
    return address.is_loopback


def _listeners(table: Path, own: set[_Address], port: int) -> Iterator[int]:
    """The accounts whose sockets take connections to a port of these addresses: proc(5), /proc/net/tcp."""
    try:
        lines = table.read_text(encoding="ascii", errors="replace").splitlines()[1:]
    except OSError:  # no such protocol here
        return
    for line in lines:
        words = line.split()
        written, _, number = words[1].partition(":")
        if words[3] == _LISTENS and int(number, 16) == port:
            address = _from_kernel(bytes.fromhex(written))
            if address.is_unspecified or address.is_loopback or address in own:
                yield int(words[7])


def _from_kernel(written: bytes) -> _Address:
    """Words of four bytes, each in the order of this machine."""
    step = -1 if sys.byteorder == "little" else 1
    words = (written[at : at + 4][::step] for at in range(0, len(written), 4))
    return _plain(ipaddress.ip_address(b"".join(words)))


def _plain(address: _Address) -> _Address:
    return getattr(address, "ipv4_mapped", None) or address


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
    assert asked.scheduler is not None  # noqa: S101 - hosts without one are reached by SSH
    tls, encrypted = asked.tls, asked.scheduler.startswith("tls:")
    if tls is None:
        found = Security(require_encryption=encrypted)
        if encrypted and not (found.tls_ca_file and found.tls_client_cert):
            raise UsageError(
                f"{asked.scheduler} needs TLS files, and none are named",
                "name them in a hosts file (`tls: {ca: …, cert: …, key: …}` next to `scheduler:`), or in"
                " Dask's configuration (distributed.comm.tls); see docs/many-hosts.md",
            )
        return found
    for path in filter(None, (tls.ca, tls.cert, tls.key)):
        if not os.access(Path(path), os.R_OK):
            raise UsageError(
                f"{asked.source}: {path} cannot be read here", "name a file that this account can read"
            )
    key = {"tls_client_key": tls.key} if tls.key else {}
    return Security(require_encryption=True, tls_ca_file=tls.ca, tls_client_cert=tls.cert, **key)


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
            serializers=["msgpack"],
            deserializers=["msgpack"],
            connection_limit=HOSTS_MAX + 64,  # a call that lasts has one
        )
    except Exception as error:  # whatever was sent in place of what a scheduler says
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
        if name.split(".")[0] in ("distributed", "tornado", "bokeh"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
