"""Built-in studies and known caches: data sets pass them by, or the plan says what they measure."""

from __future__ import annotations

import pytest
from builders import facts

from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.study.library import load_study
from leadline.study.target import CephAccess, ServerAccess, Target, TargetFacts

MIB = 1 << 20
CLIENT_CACHE_BYTES = 200 * MIB  # client_oc_size, of ceph-fuse, libcephfs and gateways that use it
MEMORY = 24 << 30
LIBRARY = {"file_system": "x", "mount_point": None, "direct_io": True, "free_bytes": 1 << 40}
NFS = facts(access="libnfs", server=ServerAccess(memory_bytes=MEMORY), ceph=CephAccess(conf="/c"), **LIBRARY)
FUSE = facts(access="ceph-fuse", ceph=CephAccess(conf="/c"), direct_io=True, free_bytes=1 << 40)


def planned(study: str, target: TargetFacts, url: str = "nfs://server/export") -> Plan:
    return make_plan(load_study(study, {}, ()), {"a": Target("a", url)}, {"a": target}, Host(MEMORY), 1)


@pytest.mark.parametrize("study", ["quick", "reach", "render", "interference", "shared"])
def test_data_sets_of_built_in_studies_are_larger_than_the_caches_of_clients(study: str) -> None:
    plan = planned(study, FUSE, "/mnt/ceph")
    reading = [cell for cell in plan.cells if cell.job.reads and cell.kind == "io"]
    assert reading
    assert all(cell.job.data_set_bytes > CLIENT_CACHE_BYTES for cell in reading)


@pytest.mark.parametrize("study", ["quick", "reach", "render", "interference", "metadata"])
def test_where_a_servers_memory_may_hold_it_the_plan_says_so(study: str) -> None:
    for cell in planned(study, NFS).cells:
        answers = cell.job.reads and (cell.kind == "io" or "first_byte" in cell.job.operations)
        assert cell.measures_caches is bool(answers)
        said = [note for note in cell.notes if note.startswith("measures caches: the server may have")]
        assert bool(said) is bool(answers)
        assert all(
            "its memory of 24 GiB; the counters of the OSDs behind it show what it keeps" in note
            for note in said
        )


def test_a_data_set_larger_than_the_servers_memory_measures_no_cache() -> None:
    small = facts(access="libnfs", server=ServerAccess(memory_bytes=128 * MIB), **LIBRARY)
    cells = {cell.work: cell for cell in planned("reach", small).cells}
    assert not cells["read_4m"].measures_caches
    assert cells["first_byte"].measures_caches
    assert any("nothing is counted behind it" in note for note in cells["first_byte"].notes)


def test_no_cache_is_kept_out_that_does_not_exist() -> None:
    notes = [note for cell in planned("reach", NFS).cells for note in cell.notes]
    assert "direct true: what reaches the target has no cache on this host" in notes
    assert not any("client's cache" in note or "page cache" in note for note in notes)
