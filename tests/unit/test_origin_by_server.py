"""Whose memory answered: gateways by their OSDs' counters, no cache that cannot exist. Recorded figures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import MIB, cell, facts, trial_row

from leadline.analysis.chain import Travel, travel_read, travel_written
from leadline.study.target import CephAccess, ServerAccess, TargetFacts
from leadline.verdict.cells import judge
from leadline.verdict.chains import chains_of
from leadline.verdict.codes.case import Case

CLUSTER = CephAccess(conf="/etc/ceph/ceph.conf", name="client.admin")
SILENT = json.dumps({"osd_read_bytes": "the target has no cluster"})


def reached(access: str, **changes: Any) -> TargetFacts:
    """A target that a library reaches."""
    return facts(access=access, file_system="x", mount_point=None, direct_io=True, **changes)


GATEWAY = reached("libnfs", ceph=CLUSTER, server=ServerAccess(here=True, port=2049, memory_bytes=1 << 34))


def row(**changes: Any) -> dict[str, Any]:
    """720 MiB were read; as the lab counted it of NFS unless it is said otherwise."""
    values: dict[str, Any] = {
        "total_read_bytes": 720 * MIB,
        "device_read_bytes": None,
        "wire_received_bytes": 671 * MIB,
        "osd_read_bytes": 0,
        "store_read_bytes": 0,
    }
    return {**values, **changes}


def found(target: TargetFacts, **changes: Any) -> dict[str, tuple[str, str]]:
    """State and evidence by code."""
    trials = tuple(trial_row(trial=f"t{n}", block=n, **row(**changes)) for n in (1, 2, 3))
    case = Case(cell(size=64 * MIB, rw="read", bs=4 * MIB), target, trials, 3, 1 << 34, None)
    return {code.code: (code.state, code.evidence) for code in judge(case).codes}


def shares(travel: Travel | None) -> dict[str, Any]:
    assert travel is not None
    return {place.name: pytest.approx(place.share, abs=0.01) for place in travel.places}


def test_what_no_osd_sent_came_from_the_gateways_cache() -> None:
    state, evidence = found(GATEWAY)["cached_reads"]
    assert state == "INVALID"
    assert evidence == "0 B came from the OSDs for 2.11 GiB read: 100 % from the gateway's cache"
    assert shares(travel_read([trial_row(**row())], GATEWAY, direct=True)) == {
        "gateway": 1.0,
        "osd_cache": 0.0,
        "store": 0.0,
    }


def test_a_part_from_the_gateways_cache_is_doubtful_and_all_from_the_osds_is_not() -> None:
    part = found(GATEWAY, osd_read_bytes=430 * MIB, store_read_bytes=430 * MIB)["cached_reads"]
    assert part[0] == "DOUBTFUL"
    assert "40 % from the gateway's cache" in part[1]
    assert "cached_reads" not in found(GATEWAY, osd_read_bytes=721 * MIB, store_read_bytes=720 * MIB)


def test_a_mount_of_a_gateway_has_a_page_cache_before_it() -> None:
    mounted = facts(access="nfs", file_system="nfs4", ceph=CLUSTER, server=ServerAccess(here=True))
    few = row(wire_received_bytes=36 * MIB, osd_read_bytes=36 * MIB, store_read_bytes=36 * MIB)
    evidence = found(mounted, **few)["cached_reads"][1]
    assert evidence.endswith("95 % from a cache of this host")
    travel = travel_read(
        [trial_row(**row(osd_read_bytes=360 * MIB, store_read_bytes=360 * MIB))], mounted, False
    )
    assert shares(travel) == {"page_cache": 0.07, "gateway": 0.43, "osd_cache": 0.0, "store": 0.5}


def test_what_came_over_the_wire_and_from_no_osd_was_the_gateways_and_not_this_hosts() -> None:
    mounted = facts(access="nfs", file_system="nfs4", ceph=CLUSTER, server=ServerAccess(here=True))
    state, evidence = found(mounted, wire_received_bytes=720 * MIB)["cached_reads"]
    assert state == "INVALID"
    assert evidence.endswith("100 % from the gateway's cache")


def test_written_bytes_wait_in_the_gateway() -> None:
    written = trial_row(
        total_read_bytes=0,
        total_write_bytes=100 * MIB,
        wire_sent_bytes=100 * MIB,
        osd_written_bytes=60 * MIB,
        store_written_bytes=200 * MIB,
    )
    assert shares(travel_written([written], GATEWAY, True, 3.0)) == {"gateway": 0.4, "osd": 0.0, "store": 0.6}


@pytest.mark.parametrize(
    ("memory", "fires", "words"),
    [(1 << 34, True, "its memory of 16 GiB"), (None, True, "not known here"), (32 * MIB, False, "")],
)
def test_where_nobody_counts_behind_a_server_its_cache_is_not_excluded(
    memory: int | None, fires: bool, words: str
) -> None:
    target = reached("libnfs", server=ServerAccess(memory_bytes=memory))
    codes = found(target, osd_read_bytes=None, store_read_bytes=None, reasons=SILENT)
    assert ("origin_unknown" in codes) is fires
    if fires:
        state, evidence = codes["origin_unknown"]
        assert state == "DOUBTFUL"
        assert "the server's cache is not excluded" in evidence
        assert words in evidence
        assert evidence.endswith("(nothing is counted behind the server: no cluster is known there)")


@pytest.mark.parametrize("access", ["rados", "radosstriper", "libnfs", "libsmbclient", "xrootd", "s3"])
def test_a_library_without_a_cache_is_never_accused_of_one(access: str) -> None:
    """First bytes through librados, 0.04 s: no look saw its sockets, and it has no cache."""
    target = reached(access, ceph=CLUSTER)
    counted = {"wire_received_bytes": 0, "osd_read_bytes": 720 * MIB, "store_read_bytes": 720 * MIB}
    assert "cached_reads" not in found(target, **counted)
    (chain,) = chains_of(cell(), target, [trial_row(**row(**counted))])
    assert not {"page_cache", "client_cache"} & {place.name for place in chain.places}
    # With half of it on the wire, the other half did not come out of a page cache that it does not have.
    half = trial_row(**row(wire_received_bytes=360 * MIB, osd_read_bytes=None, store_read_bytes=None))
    (chain,) = chains_of(cell(), reached(access), [half])
    assert not any("cache" in place.name and "osd" not in place.name for place in chain.places)


def test_a_client_of_the_clusters_file_system_has_a_cache_of_its_own() -> None:
    target = reached("libcephfs", ceph=CLUSTER)
    assert "a cache of this host" in found(target, osd_read_bytes=100 * MIB)["cached_reads"][1]
    (chain,) = chains_of(cell(), target, [trial_row(**row(osd_read_bytes=720 * MIB))])
    assert chain.places[0].name == "client_cache"


def test_reading_ahead_of_a_gateway_is_the_targets_and_not_other_load() -> None:
    ahead = found(GATEWAY, osd_read_bytes=2000 * MIB, store_read_bytes=2000 * MIB, read_operations=180)
    assert "other_load" not in ahead


def test_facts_of_a_server_come_back_from_a_manifest() -> None:
    assert TargetFacts.from_json(json.loads(json.dumps(GATEWAY.as_json()))) == GATEWAY
