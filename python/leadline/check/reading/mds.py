"""Metadata servers: ranks that are up, their cache, and which clients they serve, by whose releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from leadline.check.rows import Fact, told
from leadline.knowledge.releases import release_in
from leadline.knowledge.tables import Value
from leadline.observe.ceph.client import Cluster, MetadataServers, NotObservableError

_NAMED = 4  # clients that are named
AskMds = Callable[..., Any]


def mds_facts(dump: Mapping[str, Any], ask: AskMds | None, why: str, running: str | None) -> Iterator[Fact]:
    """Of each file system's ranks, of `fs dump`; `ask` puts a question to an MDS by its name, or is None.

    `running` is the release of the daemons, if all have one.
    """
    for system in dump.get("filesystems", ()):
        found = system["mdsmap"]
        name = str(found["fs_name"])
        up = [one for one in found["info"].values() if str(one.get("state")) == "up:active"]
        values: dict[str, Value] = {
            "ranks_up_share": len(up) / found["max_mds"] if found.get("max_mds") else None,
            "ranks_damaged": len(found.get("damaged", ())) + len(found.get("failed", ())),
        }
        yield from told("mds", name, values, {})
        for one in up:
            yield from _of_daemon(str(one["name"]), ask, why, running)


def facts_of_cluster(cluster: Cluster, running: str | None) -> list[Fact]:
    """What the monitors say of ranks, and each active metadata server of itself, by libcephfs."""
    try:
        dump = cluster.mon("fs dump")
    except NotObservableError as error:
        return [Fact("mds", "all", "ranks_up_share", None, str(error))]
    if not dump.get("filesystems"):
        return []
    try:
        servers = MetadataServers(cluster)
    except NotObservableError as error:
        return list(mds_facts(dump, None, str(error), running))
    try:
        return list(mds_facts(dump, servers.ask, "", running))
    finally:
        servers.close()


def _of_daemon(name: str, ask: AskMds | None, why: str, running: str | None) -> Iterator[Fact]:
    values: dict[str, Value] = {"cache_limit_bytes": None, "clients": None, "other_clients": None}
    reasons = dict.fromkeys(values, why)
    if ask is not None:
        try:
            limit = ask(name, "config get", var="mds_cache_memory_limit")["mds_cache_memory_limit"]
            values["cache_limit_bytes"] = int(limit)
            sessions = ask(name, "session ls")
            values["clients"] = len(sessions)
            values["other_clients"] = _others(sessions, running)
            reasons["other_clients"] = "the daemons are of several releases"
        except NotObservableError as error:
            reasons = dict.fromkeys(values, str(error))
        except (KeyError, TypeError, ValueError):
            reasons = dict.fromkeys(values, f"mds.{name} answers with other words than are known")
    yield from told("mds", f"mds.{name}", values, reasons)


def _others(sessions: list[Mapping[str, Any]], running: str | None) -> str | None:
    """User-space clients of an older series than the daemons; a kernel's has no release of Ceph."""
    if running is None:
        return None
    older: Counter[str] = Counter()
    for one in sessions:
        known = one.get("client_metadata", {})
        release = release_in(str(known.get("ceph_version", "")))
        if release is not None and _series(release) < _series(running):
            older[f"{release} on {known.get('hostname', 'a host without a name')}"] += 1
    words = sorted(older)
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _series(release: str) -> int:
    return int(release.partition(".")[0])
