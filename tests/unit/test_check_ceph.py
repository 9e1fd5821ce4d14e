"""`leadline check` of a cluster: known releases, what mClock believes, memory that was promised twice."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.check.judge import judge
from leadline.check.reading.cluster import cluster_facts, mds_facts
from leadline.check.rows import ROLES, Fact, rows
from leadline.knowledge.releases import bad_releases, defects, release_in
from leadline.observe.ceph.client import NotObservableError


class _Cluster:
    """Answers as a cluster of OSDs under mClock does: a capacity each, 4 GiB promised each of `total_kb`."""

    def __init__(
        self, capacities: tuple[float | None, ...], rotational: str = "1", total_kb: int = 1 << 26
    ) -> None:
        self.capacities, self.rotational, self.total_kb = capacities, rotational, total_kb
        self.flags, self.made, self.running = "", "18.2.7", "18.2.7"

    def mon(self, prefix: str, **_: Any) -> Any:
        numbers = range(len(self.capacities))
        made = f"ceph version {self.made} (0) name (stable)"
        answers: dict[str, Any] = {
            "versions": {"overall": {f"ceph version {self.running} (0) name (stable)": 3}},
            "osd dump": {
                "flags": "",
                "osds": [{"osd": number, "up": 1, "in": 1} for number in numbers],
                "pools": [{"pool_name": "p", "size": 3, "min_size": 2, "pg_num": 8, "crush_rule": 0,
                           "flags_names": self.flags}],
            },
            "osd metadata": [
                {"id": number, "rotational": self.rotational, "bluestore_min_alloc_size": "4096",
                 "hostname": "one", "mem_total_kb": str(self.total_kb), "ceph_version_when_created": made}
                for number in numbers
            ],
        }  # fmt: skip
        return answers.get(prefix, {})

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        option = arguments.get("var", "")
        if option.startswith("osd_mclock"):
            if self.capacities[osd] is None:
                raise NotObservableError("it hangs")
            return {option: str(self.capacities[osd])}
        values = {"osd_op_queue": "mclock_scheduler", "osd_memory_target": str(4 << 30)}
        return {option: values[option]} if prefix == "config get" else {"diff": {}}


def facts_of(cluster: _Cluster) -> list[Fact]:
    return cluster_facts(cluster)  # type: ignore[arg-type]


def out_of_line(cluster: _Cluster) -> set[tuple[str, str]]:
    checked = judge(facts_of(cluster), rows(), ROLES)
    names = ("mclock", "bad-release", "made-by", "planned-memory")
    return {
        (one.row.name, one.subject)
        for one in checked
        if one.state == "out_of_line" and one.row.name.startswith(names)
    }


@pytest.mark.parametrize(
    ("capacities", "rotational", "found"),
    [
        ((180.0, 200.0, 190.0), "1", set()),
        ((180.0, 20.0, 190.0), "1", {("mclock-hdd", "osd.1"), ("mclock-odd-hdd", "osd.1")}),
        ((180.0, 450.0, 190.0), "1", {("mclock-odd-hdd", "osd.1")}),
        ((180.0, 39000.0, 190.0), "1", {("mclock-hdd", "osd.1"), ("mclock-odd-hdd", "osd.1")}),
        ((315.0, 300.0, 310.0), "1", {("mclock-measured", "osd.0")}),
        ((30000.0, 900.0, 31000.0), "0", {("mclock-ssd", "osd.1"), ("mclock-odd-ssd", "osd.1")}),
        ((21500.0, 22000.0, 23000.0), "0", {("mclock-measured", "osd.0")}),
    ],
)
def test_what_mclock_believes_is_held_against_the_kind_of_device_and_the_others(
    capacities: tuple[float, ...], rotational: str, found: set[tuple[str, str]]
) -> None:
    assert out_of_line(_Cluster(capacities, rotational)) == found


def test_a_capacity_that_is_not_told_is_unknown() -> None:
    (fact,) = [one for one in facts_of(_Cluster((200.0, None))) if one.value is None and "mclock" in one.name]
    assert (fact.subject, fact.name) == ("osd.1", "mclock_hdd_iops")
    assert fact.missing


def test_memory_that_is_promised_twice_is_found() -> None:
    three = (200.0, 201.0, 202.0)  # 12 GiB
    assert out_of_line(_Cluster(three, total_kb=14 << 20)) == {
        ("planned-memory", f"osd.{number}") for number in range(3)
    }
    assert out_of_line(_Cluster(three, total_kb=16 << 20)) == set()


@pytest.mark.parametrize(
    ("running", "made", "flags", "found"),
    [
        ("16.2.6", "16.2.15", "", {"bad-release"}),
        ("16.2.7", "16.2.15", "", set()),
        ("17.2.8", "17.2.7", "", {"bad-release"}),
        ("18.2.6", "17.2.7", "", {"bad-release"}),
        ("20.2.0", "18.2.7", "hashpspool,ec_overwrites", set()),
        ("20.2.0", "18.2.7", "hashpspool,ec_overwrites,ec_optimizations", {"bad-release"}),
        ("19.2.3", "18.2.7", "", set()),
        ("19.2.4", "19.2.3", "", {"made-by-bad-release"}),
    ],
)
def test_a_known_release_is_named_where_its_defect_can_show(
    running: str, made: str, flags: str, found: set[str]
) -> None:
    cluster = _Cluster((200.0,))
    cluster.running, cluster.made, cluster.flags = running, made, flags
    assert {name for name, _ in out_of_line(cluster)} == found


def test_releases_that_nobody_tells_are_unknown_and_not_fine() -> None:
    cluster = _Cluster((200.0,))
    cluster.running = cluster.made = ""
    missing = {one.name for one in facts_of(cluster) if one.value is None}
    assert {"bad_release", "made_by_bad_release", "release"} <= missing


def test_each_entry_of_releases_has_words_and_a_source() -> None:
    for one in bad_releases():
        assert one.words
        assert "http" in one.source
        assert all(release_in(f"ceph version {release}-1 (0)") == release for release in one.releases)
    assert "tracker.ceph.com/issues/53062" in defects(["16.2.0"], ())


_DUMP = {
    "filesystems": [
        {"mdsmap": {"fs_name": "fs", "max_mds": 2, "damaged": [1], "failed": [],
                    "info": {"gid_1": {"name": "a", "state": "up:active"}}}}
    ]
}  # fmt: skip


def _mds(name: str, prefix: str, **_: Any) -> Any:
    assert name == "a"
    if prefix == "config get":
        return {"mds_cache_memory_limit": "1073741824"}
    versions = ("ceph version 16.2.15 (0)", "ceph version 18.2.1 (0)", "", "ceph version 16.2.15 (0)")
    return [{"client_metadata": {"ceph_version": one, "hostname": "old"}} for one in versions]


def test_ranks_cache_and_older_clients_of_a_file_system() -> None:
    facts = {(one.subject, one.name): one for one in mds_facts(_DUMP, _mds, "", "18.2.7")}
    assert facts["fs", "ranks_up_share"].value == 0.5
    assert facts["fs", "ranks_damaged"].value == 1
    assert facts["mds.a", "cache_limit_bytes"].value == 1 << 30
    assert facts["mds.a", "clients"].value == 4
    assert facts["mds.a", "other_clients"].value == "16.2.15 on old"
    bad = {one.row.name for one in judge(list(facts.values()), rows(), ROLES) if one.state == "out_of_line"}
    assert bad == {"ranks", "damaged-ranks", "small-cache", "older-clients"}


def test_a_metadata_server_that_does_not_answer_is_a_gap() -> None:
    facts = list(mds_facts(_DUMP, None, "libcephfs2 is not installed", None))
    gaps = {(one.name, one.missing) for one in facts if one.value is None}
    names = ("cache_limit_bytes", "clients", "other_clients")
    assert gaps == {(name, "libcephfs2 is not installed") for name in names}


def _placed(size: int, hosts: int, kind: str = "", down: int = 0, steps: int = 1) -> list[Fact]:
    """A pool on a tree of hosts with an OSD each, every second one of class ssd."""

    class Placed(_Cluster):
        def mon(self, prefix: str, **arguments: Any) -> Any:
            if prefix == "osd tree":
                nodes = [
                    {"id": -1, "name": "default", "type": "root", "children": [-2 - n for n in range(hosts)]}
                ]
                for number in range(hosts):
                    status = "down" if number < down else "up"
                    nodes += [
                        {"id": -2 - number, "name": f"h{number}", "type": "host", "children": [number]},
                        {
                            "id": number,
                            "name": f"osd.{number}",
                            "type": "osd",
                            "status": status,
                            "reweight": 1.0,
                            "device_class": "ssd" if number % 2 else "hdd",
                        },
                    ]
                return {"nodes": nodes}
            if prefix == "osd crush rule dump":
                take = {"op": "take", "item_name": f"default~{kind}" if kind else "default"}
                return [
                    {"rule_id": 0, "steps": [take, *[{"op": "chooseleaf_indep", "type": "host"}] * steps]}
                ]
            answer = super().mon(prefix, **arguments)
            if prefix == "osd dump":
                answer["pools"][0]["size"] = size
            return answer  # fmt: skip

    return [one for one in facts_of(Placed((200.0,))) if one.name == "places_left"]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"size": 3, "hosts": 3}, 0),
        ({"size": 6, "hosts": 4}, -2),
        ({"size": 3, "hosts": 3, "down": 1}, -1),
        ({"size": 3, "hosts": 4, "kind": "ssd"}, -1),
        ({"size": 3, "hosts": 3, "steps": 2}, None),
    ],
)
def test_a_pool_that_its_rule_cannot_place_is_named(asked: dict[str, Any], left: int | None) -> None:
    (fact,) = _placed(**asked)
    assert fact.value == left
    named = [one.row.name for one in judge([fact], rows(), ROLES) if one.state == "out_of_line"]
    assert named == (["places"] if left is not None and left < 0 else [])
    assert bool(fact.missing) == (left is None)
