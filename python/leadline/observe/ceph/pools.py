"""What a cluster says of a pool in which a study is to keep its files: how protected, and whether it can be.

Asked once before a plan, in a child with a deadline; the sentences are made in `observe.mounts.layouts`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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
