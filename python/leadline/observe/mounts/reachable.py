"""Lists what this host can reach: its mounts, and the pools and file systems of a cluster.

Each is looked at in a child with a deadline, all at the same time: one that hangs delays none of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from leadline import units
from leadline.errors import TargetError
from leadline.observe.hang_guard import ask_child
from leadline.observe.mounts.mountinfo import Mount
from leadline.observe.mounts.mounts import inspect
from leadline.study import schemes
from leadline.study.schemes import Reaches
from leadline.study.target import TargetFacts
from leadline.units import printable

# Kernel interfaces that look like file systems and keep nobody's files.
_PSEUDO = frozenset(
    (
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts"),
        *("devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "pipefs", "proc", "pstore"),
        *("ramfs", "rpc_pipefs", "securityfs", "selinuxfs", "sockfs", "squashfs", "sysfs", "tracefs"),
        *("iso9660", "erofs", "fuse.lxcfs", "fuse.portal", "fuse.gvfsd-fuse"),
    )
)
_SYSTEM = ("/proc/", "/sys/", "/run/")  # what is mounted below is the system's own
_ROOT_PLACE = "/var/tmp"  # noqa: S108 - a directory that measurements may be made in, where / itself may not
_AT_ONCE = 16
_MOUNT_DEADLINE_S = 5.0
_CLUSTER_DEADLINE_S = 5.0
_MANAGERS = frozenset({"mgr", "mgr_devicehealth"})
_NAMESPACE = "leadline"  # within pools that are somebody's, so that objects are never mixed
_NAME_MAX = 40


@dataclass(frozen=True)
class Reachable:
    """One place: `name` and `where` as `--target` takes them, `words` what it is.

    `reason` says why it cannot be a target as it is; "" where it can.
    """

    name: str
    where: str
    words: str
    reason: str = ""


@dataclass(frozen=True)
class ClusterAccess:
    """How a cluster is asked; empty is Ceph's own default."""

    conf: str = ""
    user: str = ""
    keyring: str = ""


def _look(path: str, deadline_s: float) -> TargetFacts:
    return inspect(path, deadline_s, writes=False)


def reachable_mounts(
    mounts: Sequence[Mount], look: Callable[[str, float], TargetFacts] = _look
) -> tuple[Reachable, ...]:
    """Every mounted file system that holds files, with what became of looking at it."""
    places = places_of(mounts)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda place: _look_at(place, look), places))
    return _with_names(found)


def places_of(mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Where each file system can be measured; a mount that a later one hides is left out."""
    visible = {mount.mount_point: mount for mount in mounts}
    places = [
        mount.mount_point
        for mount in visible.values()
        if mount.file_system not in _PSEUDO and not mount.mount_point.startswith(_SYSTEM)
    ]
    return tuple(dict.fromkeys(_ROOT_PLACE if place == "/" else place for place in places))


def _look_at(place: str, look: Callable[[str, float], TargetFacts]) -> Reachable:
    try:
        facts = look(place, _MOUNT_DEADLINE_S)
    except TargetError as error:
        return Reachable(_short(place), place, "", error.message)
    free = "" if facts.free_bytes is None else f", {units.format_size(facts.free_bytes)} free"
    return Reachable(_short(place), place, f"{facts.words}{free}")


def _short(text: str) -> str:
    """The last part of a path, or all of it, as a target's name."""
    last = [part for part in text.split("/") if part][-1:] or ["root"]
    plain = re.sub(r"[^a-z0-9_-]+", "-", last[0].lower()).strip("-_")
    return plain[: _NAME_MAX - 4] or "target"


def _with_names(found: Iterable[Reachable]) -> tuple[Reachable, ...]:
    """Each with a name of its own."""
    taken: set[str] = set()
    named = []
    for item in found:
        name, number = item.name, 2
        while name in taken:
            name, number = f"{item.name}-{number}", number + 1
        taken.add(name)
        named.append(Reachable(name, item.where, item.words, item.reason))
    return tuple(named)


def reachable_in_cluster(access: ClusterAccess) -> tuple[Reachable, ...]:
    """The pools and file systems of a cluster. Raises TargetError where it does not answer."""
    asked = [access.conf, f"client.{access.user}" if access.user else "", access.keyring]
    answer = ask_child(
        "leadline.observe.probe", ["cluster", *asked, str(_CLUSTER_DEADLINE_S)], 2 * _CLUSTER_DEADLINE_S
    )
    found = answer.lines[-1] if answer.lines else {}
    if "pools" not in found:
        late = f"no answer within {2 * _CLUSTER_DEADLINE_S:g} s"
        last = answer.stderr.splitlines()[-1] if answer.stderr else late
        raise TargetError(
            f"the cluster cannot be asked: {printable(str(found.get('reason') or last))}",
            "See whether its monitors run; --conf, --user and --keyring say how it is reached.",
        )
    return _with_names([*_file_systems(found, access), *_pools(found, access)])


def _that_reach(what: str) -> list[tuple[str, Reaches]]:
    found = [(scheme.name, scheme.reaches) for scheme in schemes.located()]
    return [(name, reaches) for name, reaches in found if reaches is not None and reaches.what == what]


def _file_systems(found: Mapping[str, Any], access: ClusterAccess) -> list[Reachable]:
    return [
        Reachable(
            _short(f"{scheme}-{one['name']}"),
            _url(f"{scheme}:///", access, fs=one["name"]),
            f"CephFS {printable(one['name'])} through libcephfs,"
            f" pools {', '.join(map(printable, one['pools']))}",
        )
        for scheme, _ in _that_reach("file_system")
        for one in found["file_systems"]
    ]


def _pools(found: Mapping[str, Any], access: ClusterAccess) -> list[Reachable]:
    places = []
    names = {one["metadata_pool"] for one in found["file_systems"]}
    for pool in found["pools"]:
        own = set(pool["applications"])
        if own & _MANAGERS or pool["name"] in names:  # nobody's place to write to
            continue
        kept = f", used by {', '.join(sorted(own))}: in a namespace of its own" if own else ""
        for scheme, reaches in _that_reach("pool"):
            if pool["erasure"] and not reaches.erasure:
                continue
            path = f"{scheme}://{quote(pool['name'], safe='')}"
            inside = f"/{_NAMESPACE}" if own and reaches.namespaces else ""
            words = f"pool {printable(pool['name'])} ({pool['protection']}){kept if inside else ''}"
            places.append(
                Reachable(_short(f"{scheme}-{pool['name']}"), _url(f"{path}{inside}", access), words)
            )
    return places


def _url(place: str, access: ClusterAccess, **more: str) -> str:
    options = {"conf": access.conf, "user": access.user, "keyring": access.keyring, **more}
    said = urlencode({name: value for name, value in options.items() if value}, safe="/", quote_via=quote)
    return f"{place}?{said}" if said else place
