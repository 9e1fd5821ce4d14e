"""A Ceph cluster: release, flags, placement, pools and settings; file systems, their ranks and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from leadline.check.rows import Fact, told
from leadline.knowledge.releases import defects, release_in
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


_STOPPING = (
    "pausewr",
    "pauserd",
    "noup",
    "nodown",
    "noin",
    "noout",
    "nobackfill",
    "norebalance",
    "norecover",
)
_BLIND = ("noscrub", "nodeep-scrub", "notieragent", "nosnaptrim")
_POOL_GAPS = {"places_left": "its rule chooses more than once, or takes what the tree does not show"}
# 4 KiB writes a second that mClock takes for a device that was not measured, or whose measure was refused.
_MCLOCK_DEFAULTS = {"hdd": 315.0, "ssd": 21500.0}
# What differs between OSDs by nature.
_OF_ITS_OWN = (
    *("osd_memory_target", "osd_op_queue"),  # these have rows of their own
    *(
        "keyring",
        "admin_socket",
        "log_file",
        "pid_file",
        "public_addr",
        "cluster_addr",
        "crush_location",
        "host",
    ),
    *(
        "osd_uuid",
        "fsid",
        "bluestore_block_path",
        "osd_data",
        "osd_journal",
        "osd_mclock_max_capacity_iops_hdd",
    ),
    *("osd_mclock_max_capacity_iops_ssd", "osd_mclock_max_sequential_bandwidth_hdd", "run_dir", "crash_dir"),
    *("osd_mclock_max_sequential_bandwidth_ssd", "rbd_default_features", "daemonize", "monmap"),
)


def cluster_facts(cluster: Cluster) -> list[Fact]:
    """Every fact of the cluster, its pools and OSDs. What it does not answer is a fact without a value."""
    answers = _Answers(cluster)
    dump = answers.mon("osd dump")
    found = told("cluster", "cluster", _of_cluster(answers, dump), answers.reasons)
    pools: Sequence[Mapping[str, Any]] = dump.get("pools", ())
    rules = {rule["rule_id"]: rule for rule in answers.mon("osd crush rule dump") or ()}
    tree = answers.mon("osd tree").get("nodes", ())
    for pool in pools:
        values = _of_pool(answers, pool, rules)
        values["places_left"] = _places_left(pool, rules.get(pool["crush_rule"]), tree)
        found += told("pool", str(pool["pool_name"]), values, _POOL_GAPS | answers.reasons)
    return found + list(_osds(answers, dump))


class _Answers:
    """Asks questions; one that is not answered has an empty answer, and its reason is kept."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.reasons: dict[str, str] = {}

    def mon(self, prefix: str, **arguments: Any) -> Any:
        return self._ask(lambda: self._cluster.mon(prefix, **arguments), prefix)

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        return self._ask(lambda: self._cluster.osd(osd, prefix, **arguments), f"osd.{osd} {prefix}")

    def _ask(self, question: Callable[[], Any], what: str) -> Any:
        try:
            return question()
        except NotObservableError as error:
            self.reasons[what] = str(error)
            return {}


def _of_cluster(answers: _Answers, dump: Mapping[str, Any]) -> dict[str, Value]:
    status, versions = answers.mon("status"), answers.mon("versions")
    running = {release_in(words) for words in versions.get("overall", {})}
    releases = sorted(release for release in running if release is not None)
    pool_flags = {
        flag for pool in dump.get("pools", ()) for flag in str(pool.get("flags_names", "")).split(",")
    }
    flags = set(str(dump.get("flags", "")).split(","))
    osds = dump.get("osds", ())
    usage = answers.mon("osd df").get("nodes", ())
    groups = [node["pgs"] for node in usage if node.get("pgs") is not None and node.get("status") == "up"]
    mean = sum(groups) / len(groups) if groups else 0
    return {
        "health": _health(status),
        "flags_set": ", ".join(one for one in (*_STOPPING, *_BLIND) if one in flags) if dump else None,
        "releases": len(releases) or None,
        "release": ", ".join(releases) or None,
        "bad_release": defects(releases, pool_flags) if releases else None,
        "osds": len(osds) or None,
        "osds_away": sum(not (osd["up"] and osd["in"]) for osd in osds) if osds else None,
        "pgs_per_osd": round(mean) if groups else None,
        "pg_spread": max(groups) / mean if mean else None,
        "metadata_on_rotational": _metadata_rotates(answers, dump),
        "mds_standbys": _standbys(answers),
    }


def _health(status: Mapping[str, Any]) -> str | None:
    """`HEALTH_OK`, or the word with what each check says."""
    found = status.get("health", {})
    checks = [str(check["summary"]["message"]) for check in found.get("checks", {}).values()]
    return f"{found['status']} ({'; '.join(checks)})" if found and checks else found.get("status")


def _standbys(answers: _Answers) -> int | None:
    found = answers.mon("fs dump")
    if not found.get("filesystems"):
        return None
    followers = sum(
        str(one.get("state", "")).startswith("up:standby")
        for system in found["filesystems"]
        for one in system["mdsmap"]["info"].values()
    )
    return len(found.get("standbys", ())) + followers


def _metadata_rotates(answers: _Answers, dump: Mapping[str, Any]) -> bool | None:
    """Whether the metadata pool may lie on devices that turn while there are others."""
    systems = answers.mon("fs ls") or ()
    names = {str(one["metadata_pool"]) for one in systems}
    kinds = {str(one.get("rotational")) for one in answers.mon("osd metadata") or () if "rotational" in one}
    rules = {rule["rule_id"]: rule for rule in answers.mon("osd crush rule dump") or ()}
    pools = [pool for pool in dump.get("pools", ()) if pool["pool_name"] in names]
    if not pools or not kinds:
        return None
    if kinds != {"0", "1"}:
        return False  # nothing to choose from, or nothing that turns
    return any(not _class_of(rules.get(pool["crush_rule"])) for pool in pools)


def _class_of(rule: Mapping[str, Any] | None) -> str:
    """The device class that a rule takes: `default~ssd`."""
    steps = rule.get("steps", ()) if rule else ()
    return next((str(s["item_name"]).partition("~")[2] for s in steps if s.get("op") == "take"), "")


def _of_pool(answers: _Answers, pool: Mapping[str, Any], rules: Mapping[int, Any]) -> dict[str, Value]:
    lost = int(pool["min_size"])
    kept = 1
    profile = pool.get("erasure_code_profile")
    protection: str = f"{pool['size']}x"
    if profile:
        found = answers.mon("osd erasure-code-profile get", name=profile)
        kept = int(found.get("k", lost))
        protection = f"EC {found.get('k', '?')}+{found.get('m', '?')}"
    chosen = rules.get(pool["crush_rule"], {})
    domains = [
        str(step["type"]) for step in chosen.get("steps", ()) if str(step.get("op", "")).startswith("choose")
    ]
    return {
        "protection": protection,
        "spare_copies": lost - kept,
        "failure_domain": domains[-1] if domains else None,
        "pg_num": int(pool["pg_num"]),
    }


def _places_left(
    pool: Mapping[str, Any], rule: Mapping[str, Any] | None, tree: Sequence[Mapping[str, Any]]
) -> int | None:
    """Buckets of the rule's failure domain with an OSD that is up and in, beyond those that the pool needs.

    None where the rule chooses more than once, so that a domain may hold several parts.
    """
    steps = rule.get("steps", ()) if rule else ()
    chosen = [str(step["type"]) for step in steps if str(step.get("op", "")).startswith("choose")]
    taken = next((str(step["item_name"]) for step in steps if step.get("op") == "take"), "")
    root, _, kind = taken.partition("~")
    known = {int(node["id"]): node for node in tree}
    start = next((node for node in tree if node["name"] == root), None)
    if len(chosen) != 1 or start is None:
        return None

    def serves(node: Mapping[str, Any]) -> bool:
        if node["type"] != "osd":
            return any(serves(known[child]) for child in node.get("children", ()) if child in known)
        alike = not kind or node.get("device_class") == kind
        return alike and node.get("status") == "up" and float(node.get("reweight", 0)) > 0

    def below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield node
        for child in node.get("children", ()):
            yield from below(known[child]) if child in known else ()

    places: int = sum(node["type"] == chosen[0] and serves(node) for node in below(start))
    return places - int(pool["size"])


def _osds(answers: _Answers, dump: Mapping[str, Any]) -> Iterator[Fact]:
    usage = {node["id"]: node for node in answers.mon("osd df").get("nodes", ())}
    metadata = {one["id"]: one for one in answers.mon("osd metadata") or ()}
    settings: dict[int, dict[str, str]] = {}
    for osd in dump.get("osds", ()):
        number = int(osd["osd"])
        if osd["up"]:
            settings[number] = _settings(answers.osd(number, "config diff"))
    targets = {
        int(osd["osd"]): _effective(answers, int(osd["osd"]), "osd_memory_target", osd)
        for osd in dump.get("osds", ())
    }
    planned = _planned(targets, metadata)
    for osd in dump.get("osds", ()):
        number = int(osd["osd"])
        known = metadata.get(number, {})
        own = settings.get(number)
        used = usage.get(number, {}).get("utilization")
        values: dict[str, Value] = {
            "used_share": None if used is None else used / 100,
            "min_alloc_size": _number(known.get("bluestore_min_alloc_size")),
            "rotational": known.get("rotational"),
            "osd_memory_target": targets[number],
            "osd_op_queue": _effective(answers, number, "osd_op_queue", osd),
            "own_settings": None if own is None else _only(number, settings),
            "made_by_bad_release": _made_by(known),
            "memory_planned_share": planned.get(str(known.get("hostname"))),
            **_mclock(answers, number, osd, known),
        }
        gaps = {name: f"osd.{number} does not answer" for name in values}
        if number in usage:
            gaps["used_share"] = "`ceph osd df` has no number for it"
        yield from told("osd", f"osd.{number}", values, gaps)


def _effective(answers: _Answers, osd: int, option: str, entry: Mapping[str, Any]) -> Value:
    if not entry["up"]:
        return None
    found = answers.osd(osd, "config get", var=option).get(option)
    return int(found) if found is not None and str(found).isdigit() else found


def _made_by(known: Mapping[str, Any]) -> str | None:
    """What is known of the release that made this OSD; None where the OSD does not say which that was."""
    release = release_in(str(known.get("ceph_version_when_created", "")))
    return defects([release], (), made=True) if release else None


def _planned(targets: Mapping[int, Value], metadata: Mapping[int, Any]) -> dict[str, float]:
    """By host: what its OSDs may take by their targets, of its memory; only where all of them answer."""
    sums: dict[str, list[float]] = {}
    for number, known in metadata.items():
        target, total = targets.get(number), _number(known.get("mem_total_kb"))
        share = float(target) / (total * 1024) if isinstance(target, int) and total else float("nan")
        sums.setdefault(str(known.get("hostname")), []).append(share)
    return {host: sum(shares) for host, shares in sums.items() if not isnan(sum(shares))}


def _mclock(
    answers: _Answers, number: int, osd: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Value]:
    """What mClock believes that this OSD's device can do; nothing where another scheduler is in use."""
    if _effective(answers, number, "osd_op_queue", osd) != "mclock_scheduler" or "rotational" not in known:
        return {}
    kind = "hdd" if str(known["rotational"]) == "1" else "ssd"
    found = answers.osd(number, "config get", var=f"osd_mclock_max_capacity_iops_{kind}")
    try:
        capacity = float(found[f"osd_mclock_max_capacity_iops_{kind}"])
    except (KeyError, TypeError, ValueError):
        return {f"mclock_{kind}_iops": None}
    return {f"mclock_{kind}_iops": capacity, "mclock_measured": capacity != _MCLOCK_DEFAULTS[kind]}


def _settings(diff: Mapping[str, Any]) -> dict[str, str]:
    """Options that differ from their defaults, by `config diff`: name to the value in force."""
    return {
        name: str(value.get("final", ""))
        for name, value in diff.get("diff", {}).items()
        if isinstance(value, dict) and name not in _OF_ITS_OWN
    }


def _only(osd: int, settings: Mapping[int, Mapping[str, str]]) -> str:
    """What this OSD has set otherwise than most others: names with values."""
    others = [own for number, own in settings.items() if number != osd]
    if len(others) < 2:
        return ""
    found = []
    for name in sorted({name for own in settings.values() for name in own}):
        mine = settings[osd].get(name)
        usual, count = Counter(own.get(name) for own in others).most_common(1)[0]
        if mine != usual and 2 * count > len(others):
            found.append(f"{name}={mine if mine is not None else 'default'}")
    return ", ".join(found)


def _number(text: Any) -> int | None:
    return int(text) if str(text).isdigit() else None
