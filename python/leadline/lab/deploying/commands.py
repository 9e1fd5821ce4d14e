"""A lab's or topology's pools, rules, file system and layouts as the commands that make them. Pure.

cephadm's specifications end where pools begin. Each command may be given a second time: Ceph answers that
what it asks for is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.lab.cluster.cluster import (
    DATA_CLASS,
    DATA_POOL,
    ERASURE_DIRECTORY,
    ERASURE_POOL,
    FILE_SYSTEM,
    META_CLASS,
    META_POOL,
    OBJECT_POOL,
    REPLICATED_DIRECTORY,
    STRIPED_POOL,
)
from leadline.lab.network.placement import failure_domain
from leadline.lab.network.topology import REPLICAS, Topology

MOUNT_DEFAULT = "/mnt/cephfs"
_HEAD = """\
#!/bin/sh
# written by `leadline deploy emit --format commands`: run where `ceph` has an administrator's key, after the
# services are up (ceph orch apply -i FILE). It may be run again: what is there already stays as it is.
# How many placement groups a pool has is left to Ceph's autoscaler.
set -eu
"""


@dataclass(frozen=True)
class Made:
    """One thing that is made: why it is there, and the commands for it."""

    words: str
    commands: tuple[tuple[str, ...], ...]


def deeds(topology: Topology, erasure: tuple[int, int], mount: str = MOUNT_DEFAULT) -> Iterator[Made]:
    """In the order in which they can be done. `mount` is where the file system's root is mounted."""
    yield from _rules(topology)
    yield _profile(topology, erasure)
    yield from _pools(topology, erasure)
    yield Made(
        "the file system: metadata, then the pool that files without a layout go to",
        (
            ("ceph", "fs", "new", FILE_SYSTEM, META_POOL, DATA_POOL),
            ("ceph", "fs", "add_data_pool", FILE_SYSTEM, ERASURE_POOL),
        ),
    )
    for name, pool in ((REPLICATED_DIRECTORY, DATA_POOL), (ERASURE_DIRECTORY, ERASURE_POOL)):
        place = f"{mount.rstrip('/')}/{name}"
        yield Made(
            f"new files below {place} lie in pool {pool}; those that are there stay where they are",
            (("mkdir", "-p", place), ("setfattr", "-n", "ceph.dir.layout.pool", "-v", pool, place)),
        )


def _rules(topology: Topology) -> Iterator[Made]:
    domain = failure_domain(topology, REPLICAS)
    apart = (DATA_CLASS,) if topology.metadata else ()
    yield Made(
        f"copies on {REPLICAS} different {domain}s{_few(domain)}",
        (("ceph", "osd", "crush", "rule", "create-replicated", DATA_CLASS, "default", domain, *apart),),
    )
    if topology.metadata:
        homes = sum(host.osds > 0 for host in topology.hosts if host.name in topology.metadata)
        domain = "host" if homes >= topology.metadata_replicas else "osd"
        yield Made(
            f"the metadata pool on devices of its own class, on different {domain}s{_few(domain)}",
            (
                (
                    "ceph",
                    "osd",
                    "crush",
                    "rule",
                    "create-replicated",
                    META_CLASS,
                    "default",
                    domain,
                    META_CLASS,
                ),
            ),
        )


def _few(domain: str) -> str:
    return "" if domain == "host" else ": there are too few hosts, so one host's failure may stop it"


def _profile(topology: Topology, erasure: tuple[int, int]) -> Made:
    data, coding = erasure
    domain = failure_domain(topology, data + coding)
    apart = (f"crush-device-class={DATA_CLASS}",) if topology.metadata else ()
    command = (
        "ceph", "osd", "erasure-code-profile", "set", _profile_name(erasure),
        f"k={data}", f"m={coding}", f"crush-failure-domain={domain}", *apart,
    )  # fmt: skip
    return Made(
        f"{data} chunks of data and {coding} of coding on different {domain}s{_few(domain)}", (command,)
    )


def _profile_name(erasure: tuple[int, int]) -> str:
    return f"k{erasure[0]}m{erasure[1]}"


def _pools(topology: Topology, erasure: tuple[int, int]) -> Iterator[Made]:
    copies = topology.metadata_replicas
    meta_rule = META_CLASS if topology.metadata else DATA_CLASS
    yield Made(f"the file system's metadata, {copies} copies", (_replicated(META_POOL, meta_rule, copies),))
    yield Made(f"files, {REPLICAS} copies", (_replicated(DATA_POOL, DATA_CLASS, REPLICAS),))
    yield Made("files, erasure-coded", _coded(ERASURE_POOL, erasure))
    yield Made(
        "objects for measurements by rados://",
        (_replicated(OBJECT_POOL, DATA_CLASS, REPLICAS), _application(OBJECT_POOL)),
    )
    if topology.striped_erasure:
        striped = _coded(STRIPED_POOL, erasure)
    else:
        striped = (_replicated(STRIPED_POOL, DATA_CLASS, REPLICAS),)
    yield Made("striped objects of XRootD and libradosstriper", (*striped, _application(STRIPED_POOL)))


def _replicated(name: str, rule: str, copies: int) -> tuple[str, ...]:
    return ("ceph", "osd", "pool", "create", name, "replicated", rule, "--size", str(copies))


def _coded(name: str, erasure: tuple[int, int]) -> tuple[tuple[str, ...], ...]:
    return (
        ("ceph", "osd", "pool", "create", name, "erasure", _profile_name(erasure)),
        ("ceph", "osd", "pool", "set", name, "allow_ec_overwrites", "true"),
    )


def _application(name: str) -> tuple[str, ...]:
    return ("ceph", "osd", "pool", "application", "enable", name, "leadline")


def script(topology: Topology, erasure: tuple[int, int], mount: str = MOUNT_DEFAULT) -> str:
    """All of it as a text for `sh`, each part under the reason for it."""
    parts = [_HEAD]
    for made in deeds(topology, erasure, mount):
        lines = "".join(f"{shlex.join(command)}\n" for command in made.commands)
        parts.append(f"\n# {made.words}\n{lines}")
    return "".join(parts)
