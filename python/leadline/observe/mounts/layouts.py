"""Targets whose files are to be kept in another pool: what is wrong with that, before a plan.

The cluster is asked first, as it can say what would be right; then the layout is tried on a directory that is
removed again, as only the file system knows what this client may do.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import replace
from pathlib import Path

from leadline.errors import TargetError
from leadline.observe.ceph.pools import PoolPlacement, require_pool, set_pool
from leadline.observe.hang_guard import Doing, ask_child, in_fork
from leadline.observe.mounts.mounts import pool_words
from leadline.study.target import CephAccess, Target, TargetFacts
from leadline.study.yaml_source import suggest
from leadline.units import printable

_DEADLINE_S = 7.0
_CLUSTER_DEADLINE_S = 2.0


def with_layout(facts: TargetFacts, target: Target, *, tries: bool = True) -> TargetFacts:
    """The facts of a target with its own pool in the place of the directory's. Raises TargetError.

    Without `tries` nothing is set: the target is looked at on other hosts, which try it themselves.
    """
    pool = target.pool
    if pool is None:
        return facts
    if facts.ceph is None or not facts.on_cluster or not target.is_path:
        library = facts.ceph is not None and not target.is_path
        raise TargetError(
            f"target {target.name} can have no pool {printable(pool)}: it is {facts.words}",
            "a layout is set through a mount: mount this file system, or name a directory that has the layout"
            if library
            else "only a directory of a mounted CephFS has a layout: leave the pool out, or name one",
        )
    placement = _placement(facts.ceph, pool)
    if placement is not None:
        _refuse(placement, facts.ceph.pool, pool, target.name)
    if tries:
        in_fork(lambda doing: _try(Path(target.url), pool, doing), target.url, _DEADLINE_S)
    own = _own_access(facts.ceph, pool, placement)
    old, new = pool_words(facts.ceph), f"{pool_words(own)} by a layout of the study's own"
    words = facts.words.replace(old, new, 1) if old else f"{facts.words}{new}"
    return replace(facts, ceph=own, words=words)


def _own_access(ceph: CephAccess, pool: str, placement: PoolPlacement | None) -> CephAccess:
    if placement is None:
        placement = PoolPlacement(False, (), ())  # nothing is known of it
    return replace(
        ceph,
        pool=pool,
        protection=placement.protection,
        size=placement.size,
        k=placement.k,
        m=placement.m,
        failure_domain=placement.failure_domain,
        groups=placement.groups,
    )


def _placement(ceph: CephAccess, pool: str) -> PoolPlacement | None:
    """What the cluster says of the pool; None where it cannot be asked."""
    if ceph.distrusted:
        return None
    asked = [ceph.conf or "", ceph.name or "", ceph.keyring or "", pool, str(_CLUSTER_DEADLINE_S)]
    answer = ask_child("leadline.observe.probe", ["placement", *asked], 3 * _CLUSTER_DEADLINE_S)
    known = answer.lines[-1] if answer.lines else {}
    return PoolPlacement.from_json(known) if "found" in known else None


def _refuse(placement: PoolPlacement, present: str | None, pool: str, target: str) -> None:
    """Raises TargetError where the pool is not there, not of this file system, or cannot be placed."""
    shown, subject = printable(pool), f"target {target}"
    own = next(((name, pools) for name, pools in placement.file_systems if present in pools), None)
    if not placement.found:
        known = own[1] if own else placement.pools
        raise TargetError(
            f"{subject}: the cluster has no pool {shown}",
            f"{suggest(pool, map(printable, known))}; all of them: ceph osd pool ls",
        )
    if own is not None and pool not in own[1]:
        name = printable(own[0])
        raise TargetError(
            f"{subject}: pool {shown} is none of the data pools of file system {name}",
            f"add it: ceph fs add_data_pool {name} {shown}; its own are {', '.join(map(printable, own[1]))}",
        )
    if not placement.overwrites:
        raise TargetError(
            f"{subject}: pool {shown} is erasure-coded and takes no overwrites, which a file system needs",
            f"allow them: ceph osd pool set {shown} allow_ec_overwrites true",
        )
    parts, places = placement.size, placement.domains
    if parts is None or places is None or places >= parts:
        return
    coded = placement.protection == "erasure"
    how = f"erasure-coded {placement.k}+{placement.m}" if coded else f"kept in {parts} replicas"
    domain = placement.failure_domain
    raise TargetError(
        f"{subject}: pool {shown} cannot be placed: it is {how}, each part on another {domain}, and there are"
        f" {places} of the {parts} that it needs",
        f"name a pool of fewer parts, or add {parts - places} {domain}"
        f"{'' if parts - places == 1 else 's'}; or make a pool with a nearer failure domain",
    )


def _try(top: Path, pool: str, doing: Doing) -> None:
    """Set the layout on a directory and keep a byte by it, then remove both."""
    doing(str(top), f"setting a layout to pool {printable(pool)}")
    place = top / f".leadline-probe-{secrets.token_hex(8)}"
    place.mkdir(mode=0o700)
    file = place / "byte"
    try:
        directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            set_pool(directory, pool, str(top))
        finally:
            os.close(directory)
        _write(file, pool, top)
        require_pool(file, pool)
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
        place.rmdir()


def _write(file: Path, pool: str, top: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TargetError(
            f"{top}: nothing can be written into pool {printable(pool)}: {error.strerror}",
            "see that this client's OSD capability reaches it: ceph auth get client.NAME",
        ) from None
