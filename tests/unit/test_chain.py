"""Chains of bytes: shares that add up, places that cannot be told apart, amplification beside its model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import MIB, cell, facts, trial_row
from hypothesis import given
from hypothesis import strategies as st

from findings_examples import typical
from leadline.analysis.chain import Travel, travel_read, travel_written
from leadline.analysis.models.simple import Protection, small_write_amplification
from leadline.report.charts.ways import darkness
from leadline.report.format import NO_VALUE
from leadline.report.tables import chain_rows
from leadline.store.tables import TrialRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.verdict.cells import origin_of
from leadline.verdict.chains import chain_statements, chains_of, vocabulary
from leadline.verdict.codes.case import Case
from leadline.verdict.codes.load import unattributed
from leadline.verdict.model import Cell

LOCAL = facts(device="vda", direct_io=True)
FUSE = facts(
    access="ceph-fuse", direct_io=True, ceph=CephAccess(protection="erasure", k=2, m=1, size=3, pool="ec")
)


def fuse_row(**changes: Any) -> TrialRow:
    values: dict[str, Any] = {
        "device_read_bytes": None,
        "client_read_bytes": 60 * MIB,
        "wire_received_bytes": 42 * MIB,
        "osd_read_bytes": 40 * MIB,
        "store_read_bytes": 30 * MIB,
        "reasons": json.dumps({}),
    }
    return trial_row(**{**values, **changes})


def shares(travel: Travel | None) -> dict[str, float | None]:
    assert travel is not None
    return {
        place.name: None if place.share is None else pytest.approx(place.share) for place in travel.places
    }


def test_what_each_cache_answered_is_what_did_not_come_from_behind_it() -> None:
    found = travel_read([fuse_row()], FUSE, direct=False)
    assert shares(found) == {"page_cache": 0.4, "client_cache": 0.2, "osd_cache": 0.1, "store": 0.3}


def test_a_place_whose_way_in_was_not_counted_is_joined_with_the_one_before_and_says_why() -> None:
    reasons = json.dumps({"client_read_bytes": "no socket"})
    found = travel_read([fuse_row(client_read_bytes=None, reasons=reasons)], FUSE, direct=False)
    assert shares(found) == {"page_cache+client_cache": 0.6, "osd_cache": 0.1, "store": 0.3}
    assert found is not None
    assert found.places[0].reason == "no socket"


def test_where_nothing_was_counted_no_share_is_known() -> None:
    found = travel_read([trial_row(device_read_bytes=None)], facts(device=None), direct=False)
    assert shares(found) == {"page_cache+device": None}
    assert found is not None
    assert found.places[0].reason


def test_the_processs_own_count_is_taken_before_the_device_that_others_use_too() -> None:
    row = trial_row(process_read_bytes=25 * MIB, device_read_bytes=90 * MIB)
    assert shares(travel_read([row], LOCAL, direct=False)) == {"page_cache": 0.75, "device": 0.25}


def test_read_ahead_makes_no_share_negative_or_larger_than_one() -> None:
    row = fuse_row(client_read_bytes=130 * MIB, wire_received_bytes=150 * MIB, osd_read_bytes=150 * MIB)
    found = travel_read([row], FUSE, direct=False)
    assert shares(found) == {"page_cache": 0.0, "client_cache": 0.0, "osd_cache": 0.7, "store": 0.3}


@given(st.lists(st.one_of(st.none(), st.integers(0, 1 << 40)), min_size=4, max_size=4))
def test_shares_add_up_to_one_wherever_one_is_known(counts: list[int | None]) -> None:
    names = ("client_read_bytes", "wire_received_bytes", "osd_read_bytes", "store_read_bytes")
    found = travel_read([fuse_row(**dict(zip(names, counts, strict=True)))], FUSE, direct=False)
    assert found is not None
    known = [place.share for place in found.places if place.share is not None]
    assert known == [] or sum(known) == pytest.approx(1.0)
    assert len(known) in (0, len(found.places))


def written(**changes: Any) -> TrialRow:
    values: dict[str, Any] = {
        "total_read_bytes": 0,
        "total_write_bytes": 100 * MIB,
        "client_written_bytes": 100 * MIB,
        "wire_sent_bytes": 80 * MIB,
        "osd_written_bytes": 80 * MIB,
        "store_written_bytes": 90 * MIB,
    }
    return fuse_row(**{**values, **changes})


def test_writes_are_followed_to_where_they_had_got_counting_copies_once() -> None:
    found = travel_written([written()], FUSE, direct=False, copies=1.5)
    assert shares(found) == {"page_cache": 0.0, "client_cache": 0.2, "wire": 0.0, "osd": 0.2, "store": 0.6}


def test_what_the_osds_were_given_has_crossed_the_wire_whatever_was_counted_there() -> None:
    found = travel_written([written(wire_sent_bytes=10 * MIB)], FUSE, direct=False, copies=1.5)
    assert shares(found)["client_cache"] == 0.2


def test_without_knowing_the_pools_protection_the_stores_cannot_be_told_from_the_osds() -> None:
    found = travel_written([written()], FUSE, direct=False, copies=None)
    assert shares(found)["osd+store"] == 0.8


def test_jobs_that_ran_together_are_held_against_what_all_of_them_moved() -> None:
    row = fuse_row(total_read_bytes=10 * MIB, group="g", group_read_bytes=100 * MIB)
    found = travel_read([row], FUSE, direct=False)
    assert found is not None
    assert found.application == 100 * MIB
    assert found.together


@pytest.mark.parametrize(
    ("size", "protection", "expected"),
    [
        (4096, Protection(copies=3), 3.0),
        (1024, Protection(copies=3), 12.0),
        (4096, Protection(k=2, m=1), 3.0),
        (8192, Protection(k=2, m=1), 1.5),
        (12288, Protection(k=2, m=1), 2.0),
        (4096, Protection(k=8, m=3), 11.0),
        (1 << 20, Protection(k=8, m=3), 1.375),
    ],
)
def test_small_writes_fill_whole_stripes_on_all_shards(
    size: int, protection: Protection, expected: float
) -> None:
    assert small_write_amplification(size, protection) == pytest.approx(expected)


def chain(row: TrialRow, target: TargetFacts, **job: Any) -> Any:
    (found,) = chains_of(cell("a.w", **job), target, [row])
    return found


def test_direct_small_writes_are_held_against_whole_stripes() -> None:
    found = chain(written(), FUSE, rw="randwrite", bs=4096)
    store = found.places[-1]
    assert (store.name, store.model, store.bytes_per_byte) == ("store", 3.0, 0.9)
    assert "whole stripes of 8k: 3.00" in found.model
    assert found.acknowledged == "in the stores' logs of all copies or shards"


def test_buffered_writes_may_be_merged_and_are_acknowledged_in_memory() -> None:
    found = chain(written(), FUSE, rw="randwrite", bs=4096, direct=False)
    assert found.places[-1].model == 1.5
    assert "may be merged" in found.model
    assert found.acknowledged.startswith("in memory")


def judged_chain(row: TrialRow, target: TargetFacts, **job: Any) -> Any:
    """The chain as a report has it: what of everybody's counters was this run's is judged first."""
    own = cell("a.w", **job)
    (found,) = chains_of(own, target, [row], unattributed(Case(own, target, (row,), 1, 1 << 34, None)))
    return found


def local_write(**changes: Any) -> TrialRow:
    values: dict[str, Any] = {
        "total_read_bytes": 0,
        "total_write_bytes": 10 * MIB,
        "device_written_bytes": 11 * MIB,
        "own_written_bytes": 10 * MIB,
    }
    return trial_row(**{**values, **changes})


def test_bytes_that_others_wrote_to_the_device_give_no_ratio_but_a_reason() -> None:
    """ "Stored 46 times" stood beside "91 % of what was written to the device was not this run's"."""
    found = judged_chain(local_write(device_written_bytes=460 * MIB), LOCAL, rw="write", direct=True)
    (place,) = found.places
    assert (place.name, place.share) == ("page_cache+device", None)
    assert place.reason == ("460 MiB were written to the device by all, by this run 10 MiB at most")
    row = chain_rows(replace(typical(), cells=(with_chain(found),)))[0]
    assert (row.stored, row.ratio) == (NO_VALUE, NO_VALUE)
    assert row.places == f"page cache or device unknown ({place.reason})"
    assert any("written to the device by all" in note for note in row.notes)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"device_written_bytes": 12 * MIB}, True),
        ({"device_written_bytes": 15 * MIB}, False),
        ({"device_written_bytes": 40 * MIB}, False),  # within what `other_load` would blame nobody for
        ({"device_written_bytes": 40 * MIB, "sync_operations": 640}, True),  # a journal for each sync
        ({"own_written_bytes": None}, False),
    ],
)
def test_a_ratio_is_made_only_of_bytes_that_the_run_is_known_to_have_caused(
    changes: dict[str, Any], known: bool
) -> None:
    row = local_write(**changes)
    places = {place.name: place for place in judged_chain(row, LOCAL, rw="write", direct=True).places}
    assert ("device" in places) == known
    if known:
        stored = (row.device_written_bytes or 0) / (10 * MIB)
        assert places["device"].bytes_per_byte == pytest.approx(stored)


@pytest.mark.parametrize("source", ["messengers of ceph-fuse", "TCP sockets of process 7", ""])
def test_what_other_clients_wrote_to_the_cluster_gives_no_amplification(source: str) -> None:
    sources = json.dumps({"wire_sent_bytes": source, "wire_received_bytes": source})
    quiet = written(wire_sent_bytes=101 * MIB, osd_written_bytes=100 * MIB, sources=sources)
    assert judged_chain(quiet, FUSE, rw="write").places[-1].bytes_per_byte == 0.9
    busy = replace(quiet, osd_written_bytes=8570 * MIB, store_written_bytes=8570 * MIB)
    found = judged_chain(busy, FUSE, rw="write")
    assert not any((place.bytes_per_byte or 0) > 2 for place in found.places)
    assert "store" not in {place.name for place in found.places}
    assert "8.37 GiB were written to the OSDs by all" in str(found.places[-1].reason)


def test_an_interface_that_others_use_tells_nothing_of_a_cache() -> None:
    sources = json.dumps(
        dict.fromkeys(
            ("wire_sent_bytes", "wire_received_bytes"), "network interface eth0, everybody's traffic (x)"
        )
    )
    nfs = facts(access="nfs", direct_io=True)
    row = trial_row(
        device_read_bytes=None, wire_sent_bytes=MIB, wire_received_bytes=900 * MIB, sources=sources
    )
    assert judged_chain(row, nfs, rw="read", direct=False).places[0].share is None
    quiet = replace(row, wire_received_bytes=104 * MIB)
    assert judged_chain(quiet, nfs, rw="read", direct=False).places[0].share == 0.0


def test_a_reader_of_the_device_beside_the_run_is_no_origin_of_its_bytes() -> None:
    row = trial_row(process_read_bytes=None, own_read_bytes=5 * MIB, device_read_bytes=90 * MIB)
    found = judged_chain(row, LOCAL, rw="read", direct=False)
    assert found.places[0].share is None
    assert "read from the device by all" in str(found.places[0].reason)
    assert origin_of([row], {"device_read_bytes": "others"}).device_bytes is None


def test_what_may_have_come_from_the_stores_is_not_said_to_have_come_from_a_cache() -> None:
    """Places that nothing tells apart hold the end of the chain, too."""
    found = judged_chain(fuse_row(osd_read_bytes=9000 * MIB, sources="{}"), FUSE, rw="read", direct=False)
    assert [place.name for place in found.places][-1] == "osd_cache+store"
    (view,) = (one for one in typical().targets if one.name == with_chain(found).target)
    (said,) = chain_statements([view], [with_chain(found)])
    assert "stores" not in said.text
    assert "cache" in said.text


def with_chain(found: Any) -> Cell:
    return replace(typical().cells[0], chains=(found,), origin=None)


def test_no_storage_has_no_chain_and_memory_has_one_place() -> None:
    null = facts(access="null", file_system="null")
    assert chains_of(cell(), null, [trial_row()]) == ()
    found = chain(trial_row(), facts(in_memory=True, file_system="tmpfs"))
    assert [(place.name, place.share) for place in found.places] == [("memory", 1.0)]


def test_every_place_of_a_chain_can_be_drawn() -> None:
    assert all(0 < darkness(name) <= 1 for name in vocabulary()["places"])
