"""Pools for a study's files: how protected, and the layout of a directory that keeps its files in one."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadline.errors import TargetError
from leadline.observe.ceph.client import Cluster, NotObservableError, answered

_OSD = "osd"


@dataclass(frozen=True)
class PoolPlacement:
    """A pool's protection, and how many of its failure domains CRUSH can choose from; None is not known.

    `file_systems` are the cluster's with their data pools, `pools` all pools; `found`: it is among them.
    """

    found: bool
    pools: tuple[str, ...]
    file_systems: tuple[tuple[str, tuple[str, ...]], ...]
    protection: str | None = None
    size: int | None = None
    k: int | None = None
    m: int | None = None
    overwrites: bool = True
    failure_domain: str | None = None
    domains: int | None = None
    groups: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PoolPlacement:
        """The inverse of what `placement_of_pool` says."""
        systems = tuple((str(name), tuple(map(str, pools))) for name, pools in value["file_systems"])
        return cls(**{**value, "pools": tuple(value["pools"]), "file_systems": systems})


def protection_of_pool(
    conf: str | None, name: str | None, keyring: str | None, pool: str, deadline_s: float
) -> dict[str, Any]:
    """What CephAccess has of a pool, from `protection` to `groups`, as far as it is told; or the `reason`."""
    return answered(conf, name, keyring, deadline_s, lambda cluster: _protection(cluster, pool))


def _protection(cluster: Cluster, pool: str) -> dict[str, Any]:
    pools: Sequence[Mapping[str, Any]] = cluster.mon("osd dump")["pools"]
    found = next((entry for entry in pools if entry["pool_name"] == pool), None)
    if found is None:
        return {"reason": "the cluster has no such pool"}
    coded = bool(found.get("erasure_code_profile"))
    answer: dict[str, Any] = {"protection": "erasure" if coded else "replicated", "size": found["size"]}
    answer["groups"] = found.get("pg_num")
    if coded:
        with contextlib.suppress(NotObservableError, KeyError, ValueError):
            profile = cluster.mon("osd erasure-code-profile get", name=found["erasure_code_profile"])
            answer.update(k=int(profile["k"]), m=int(profile["m"]))
    with contextlib.suppress(NotObservableError, KeyError, TypeError):
        rules = {rule["rule_id"]: rule for rule in cluster.mon("osd crush rule dump")}
        answer["failure_domain"], _ = failure_domains(rules.get(found["crush_rule"]), ())
    return answer


def placement_of_pool(
    conf: str | None, name: str | None, keyring: str | None, pool: str, deadline_s: float
) -> dict[str, Any]:
    """A PoolPlacement as plain values, or the `reason` why nothing is known."""
    return answered(conf, name, keyring, deadline_s, lambda cluster: asdict(_placement(cluster, pool)))


def _placement(cluster: Cluster, pool: str) -> PoolPlacement:
    pools: Sequence[Mapping[str, Any]] = cluster.mon("osd dump")["pools"]
    names = tuple(str(one["pool_name"]) for one in pools)
    systems = tuple((str(one["name"]), tuple(one["data_pools"])) for one in cluster.mon("fs ls"))
    found = next((one for one in pools if one["pool_name"] == pool), None)
    if found is None:
        return PoolPlacement(False, names, systems)
    k = m = None
    profile = found.get("erasure_code_profile")
    if profile:
        answer = cluster.mon("osd erasure-code-profile get", name=profile)
        k, m = int(answer["k"]), int(answer["m"])
    rules = {rule["rule_id"]: rule for rule in cluster.mon("osd crush rule dump")}
    nodes = cluster.mon("osd tree")["nodes"]
    domain, domains = failure_domains(rules.get(found["crush_rule"]), nodes)
    return PoolPlacement(
        True,
        names,
        systems,
        protection="erasure" if profile else "replicated",
        size=int(found["size"]),
        k=k,
        m=m,
        overwrites=not profile or "ec_overwrites" in str(found.get("flags_names", "")),
        failure_domain=domain,
        domains=domains,
        groups=found.get("pg_num"),
    )


def failure_domains(
    rule: Mapping[str, Any] | None, nodes: Sequence[Mapping[str, Any]]
) -> tuple[str | None, int | None]:
    """The kind of place of which a rule puts each part into another, and how many of them hold an OSD.

    An OSD that is down or out for a while counts: the tree's shape is asked for, not its state.
    A rule of several steps, or of several roots, is not worked out.
    """
    steps = () if rule is None else rule.get("steps", ())
    chooses = [step for step in steps if str(step["op"]).startswith("choose")]
    takes = [step for step in steps if step["op"] == "take"]
    if len(chooses) != 1 or len(takes) != 1:
        return None, None
    domain = str(chooses[0]["type"])
    root, _, device_class = str(takes[0]["item_name"]).partition("~")
    by_id = {node["id"]: node for node in nodes}
    top = next((node for node in nodes if node["name"] == root), None)
    if top is None:
        return domain, None
    below = [node for node in _below(top, by_id) if node["type"] == domain]
    return domain, sum(_holds_osd(node, by_id, device_class) for node in below)


def _below(node: Mapping[str, Any], by_id: Mapping[int, Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    yield node
    for child in node.get("children", ()):
        if child in by_id:
            yield from _below(by_id[child], by_id)


def _holds_osd(node: Mapping[str, Any], by_id: Mapping[int, Mapping[str, Any]], device_class: str) -> bool:
    return any(
        one["type"] == _OSD
        and one.get("crush_weight", 0) > 0
        and (not device_class or one.get("device_class") == device_class)
        for one in _below(node, by_id)
    )


_OF_DIRECTORY = "ceph.dir.layout.pool"
_OF_FILE = "ceph.file.layout.pool"


def set_pool(descriptor: int, pool: str, words: str) -> None:
    """Files made in the open directory from now on are kept in `pool`. Raises TargetError."""
    try:
        os.setxattr(f"/proc/self/fd/{descriptor}", _OF_DIRECTORY, pool.encode())
    except OSError as error:
        raise _refused(error, pool, words) from None


def require_pool(path: Path, pool: str) -> None:
    """Raises TargetError where the file's data are not kept in `pool`."""
    try:
        found = os.getxattr(path, _OF_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise TargetError(
            f"{path}: its layout cannot be read: {error.strerror}", "nothing was prefilled; mount it anew"
        ) from None
    if found != pool:
        raise TargetError(
            f"{path} is kept in pool {found}, and pool {pool} was asked for",
            "nothing was prefilled; see what else sets layouts there: getfattr -n ceph.dir.layout DIRECTORY",
        )


def _refused(error: OSError, pool: str, words: str) -> TargetError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return TargetError(
            f"{words}: this client may not set layouts",
            "its MDS capability needs p, as ceph fs authorize FILE_SYSTEM client.NAME PATH rwp gives it to a"
            " new client; or let somebody set the layout of a directory, and name that as the target",
        )
    if error.errno == errno.EINVAL:
        return TargetError(
            f"{words}: the file system keeps no files in a pool {pool}",
            f"see its pools: ceph fs ls; one more: ceph fs add_data_pool FILE_SYSTEM {pool}",
        )
    if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY):
        return TargetError(
            f"{words} has no layouts: it is no directory of a mounted CephFS",
            "leave the pool out, or name a directory of one",
        )
    return TargetError(
        f"{words}: its layout cannot be set to pool {pool}: {error.strerror}", "see the file system's mount"
    )
