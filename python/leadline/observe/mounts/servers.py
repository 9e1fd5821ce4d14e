"""Finds out about the server that a target is reached through: where it runs, and the cluster behind it.

A gateway's own configuration says which cluster it serves. What its process names is believed as far as root
and this account alone decide what stands there; where the user names a configuration, nothing is looked for.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from leadline import _core
from leadline.errors import UsageError
from leadline.observe.network.interfaces import host_interfaces, interface_towards, server_addresses
from leadline.observe.network.sockets import PROC, listeners
from leadline.study.target import CephAccess, ServerAccess, TargetFacts
from leadline.trusted import account_of_ceph, accounts_of, believed_accounts, why_not_file
from leadline.units import printable

_CONFIGURATION_BYTES_MAX = 1 << 20
_ADMIN = "client.admin"  # who may ask OSDs for their counters, unless the user names another
# How the configurations of servers name Ceph's: Ganesha's `Ceph_Conf`, Samba's `ceph:config_file`.
_NAMES_CEPH = re.compile(
    r"^[^#;\n]*?\bceph[_:](?:conf|config_file)\s*=\s*\"?([^\s\";]+)", re.IGNORECASE | re.MULTILINE
)
_IS_CEPHS = re.compile(r"^\s*mon[_ ]host\s*=", re.MULTILINE)


def with_server(
    facts: TargetFacts,
    url: str,
    conf: Path | None,
    memory_bytes: int,
    server_memory_bytes: int | None = None,
    listening: Callable[[int], frozenset[int]] = listeners,
) -> TargetFacts:
    """The same with its server, and with the cluster behind that where it is known.

    `conf` is one that the user named, `memory_bytes` this host's, `server_memory_bytes` what they said
    of the server's. Raises UsageError where `conf` cannot be read.
    """
    if not facts.behind_server:
        return facts
    here, port = _is_here(facts, url), _port(facts, url)
    pids = sorted(listening(port)) if here and port is not None else []
    memory = server_memory_bytes or (memory_bytes if here else None)
    server = ServerAccess(here, port, memory)
    if conf is not None:
        return replace(facts, server=server, ceph=_named(conf))
    found = (access for pid in pids for access in [cluster_of(pid)] if access is not None)
    return replace(facts, server=server, ceph=next(found, None))


def _named(conf: Path) -> CephAccess:
    path = conf.absolute()
    if not os.access(path, os.R_OK):
        raise UsageError(
            f"--conf {printable(str(conf))}: cannot be read", "name Ceph's configuration of the cluster"
        )
    return CephAccess(conf=str(path), name=_ADMIN)


def _endpoint(url: str) -> SplitResult | None:
    """The URL of a server: the target's own, or the endpoint among its options."""
    if "://" not in url:
        return None
    options = _core.parse_location(url)["options"]
    return urlsplit(options.get("endpoint") or url)


def _port(facts: TargetFacts, url: str) -> int | None:
    with suppress(ValueError):
        endpoint = _endpoint(url)
        if endpoint is not None:
            return endpoint.port
        mounted = dict(option.partition("=")[::2] for option in facts.options).get("port")
        return int(mounted) if mounted else None
    return None


def _is_here(facts: TargetFacts, url: str) -> bool:
    """True where the server's address is this host's own."""
    addresses = addresses_of(facts, url)
    return bool(addresses) and all(interface_towards(one, host_interfaces) == "lo" for one in addresses)


def addresses_of(facts: TargetFacts, url: str) -> tuple[str, ...]:
    """IP addresses of the server that a mount or a URL names; none if the name cannot be resolved."""
    addresses, endpoint = server_addresses(facts), _endpoint(url)
    if addresses or endpoint is None or not endpoint.hostname:
        return addresses
    return _resolved(endpoint.hostname)


def _resolved(name: str) -> tuple[str, ...]:
    try:
        return (str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]),)
    except OSError:
        return ()


def cluster_of(pid: int, proc: Path = PROC) -> CephAccess | None:
    """The cluster that a server's process was told of, by its environment or its configuration, if any."""
    place = proc / str(pid)
    try:
        if not accounts_of(place) <= believed_accounts() | account_of_ceph():
            return None
        variables = dict(item.partition("=")[::2] for item in _strings(place / "environ"))
        words = _strings(place / "cmdline")
    except OSError:
        return None
    named = [variables.get("CEPH_CONF", ""), *(word.rpartition("=")[2] for word in words)]
    for path in (one for one in named if one.startswith("/")):
        for conf in _ceph_configurations(path):
            return CephAccess(conf=conf, name=_ADMIN)
    return None


def _ceph_configurations(path: str) -> Iterator[str]:
    """The path itself where it is Ceph's configuration, else what it names as that."""
    if path in ("", "/") or why_not_file(path) or not Path(path).is_file():
        return
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            text = file.read(_CONFIGURATION_BYTES_MAX)
    except OSError:
        return
    if _IS_CEPHS.search(text):
        yield path
        return
    for conf in _NAMES_CEPH.findall(text):
        if conf.startswith("/") and not why_not_file(conf):
            yield conf


def _strings(path: Path) -> list[str]:
    return [os.fsdecode(part) for part in path.read_bytes().split(b"\0") if part]
