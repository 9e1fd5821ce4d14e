"""Other load, implausible figures, lost samples, emulation: when they are said, and when they must not be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import MIB, cell, cluster_state, facts, trial_row

from findings_examples import small
from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.report.redact import redacted
from leadline.study.target import CephAccess, ServerAccess
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case
from leadline.verdict.codes.implausible import outrunning, overtaking
from leadline.verdict.model import Validity

MESSENGERS = json.dumps({"wire_received_bytes": "messengers of the client daemon, process 7"})
CEPH: dict[str, Any] = {
    "device_read_bytes": None,
    "device_written_bytes": None,
    "wire_received_bytes": 102 * MIB,
    "wire_sent_bytes": 2 * MIB,
    "osd_read_bytes": 100 * MIB,
    "osd_written_bytes": 0,
    "sources": MESSENGERS,
}
WRITES = {
    "read_bytes": 0,
    "read_operations": 0,
    "total_read_bytes": 0,
    "write_bytes": 100 * MIB,
    "write_operations": 1600,
    "total_write_bytes": 100 * MIB,
    "device_read_bytes": 0,
    "device_written_bytes": 101 * MIB,
    "own_read_bytes": 0,
    "own_written_bytes": 100 * MIB,
    "dirty_at_start_bytes": 0,
}


def check(
    job: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    emulation: str | None = None,
    outran: str | None = None,
    **row: Any,
) -> Validity:
    rows = tuple(trial_row(trial=f"t000{i}", block=i, **row) for i in (1, 2, 3))
    case = Case(
        cell(**(job or {})),
        facts(**(target or {})),
        rows,
        3,
        1 << 34,
        None,
        emulation=emulation,
        outran=outran,
    )
    return judge(case)


def evidence(found: Validity) -> dict[str, str]:
    return {code.code: code.evidence for code in found.codes}


@pytest.mark.parametrize(("share", "fires"), [(None, False), (0.24, False), (0.26, True)])
def test_cpus_that_others_use(share: float | None, fires: bool) -> None:
    found = evidence(check(other_cpu_share=share, sources='{"busiest_other": "make (process 9)"}'))
    assert ("other_load" in found) is fires
    assert not fires or found["other_load"].startswith(
        "other processes used 26 % of this host's CPUs, most of it make (process 9) in t0003 (3 of 3 trials)"
    )


def test_redaction_hides_whose_process_it_was() -> None:
    text = "other processes used 50 % of this host's CPUs, most of it acme-trader (process 4711) in t0001"
    cleaned = redacted(replace(small(), about=text))
    assert cleaned.about == "other processes used 50 % of this host's CPUs, most of it <process> in t0001"


@pytest.mark.parametrize(("device", "fires"), [(120, False), (160, True)])
def test_reads_of_the_device_that_the_run_did_not_make(device: int, fires: bool) -> None:
    found = evidence(check(device_read_bytes=device * MIB, own_read_bytes=100 * MIB))
    assert ("other_load" in found) is fires


def test_a_few_bytes_of_others_are_no_load() -> None:
    row = {"read_bytes": MIB, "total_read_bytes": MIB, "own_read_bytes": MIB, "device_read_bytes": 2 * MIB}
    assert "other_load" not in evidence(check(**row))


def test_write_back_of_what_was_dirty_before_is_not_held_against_others() -> None:
    row = {"own_read_bytes": 100 * MIB, "own_written_bytes": 0, "device_written_bytes": 80 * MIB}
    assert "other_load" not in evidence(check(**row, dirty_at_start_bytes=90 * MIB))
    assert "other_load" in evidence(check(**row, dirty_at_start_bytes=10 * MIB))


def test_a_journal_for_each_sync_is_not_held_against_others() -> None:
    job = {"rw": "write", "fsync": 1}
    row = {**WRITES, "write_bytes": MIB, "total_write_bytes": MIB, "own_written_bytes": MIB}
    assert "other_load" not in evidence(
        check(job, **{**row, "device_written_bytes": 20 * MIB}, sync_operations=256)
    )
    assert "other_load" in evidence(
        check(job, **{**row, "device_written_bytes": 40 * MIB}, sync_operations=256)
    )


def test_without_the_runs_own_count_nobody_is_accused() -> None:
    assert "other_load" not in evidence(check(device_read_bytes=900 * MIB, own_read_bytes=None))


def test_cached_reads_are_seen_though_a_neighbour_reads_the_device() -> None:
    found = evidence(check(device_read_bytes=900 * MIB, own_read_bytes=10 * MIB))
    assert "were fetched by this run's processes" in found["cached_reads"]


def test_another_client_of_the_cluster() -> None:
    quiet = evidence(check(**CEPH, target={"access": "ceph-fuse"}))
    assert "other_load" not in quiet
    busy = evidence(check(**{**CEPH, "osd_written_bytes": 50 * MIB}, target={"access": "ceph-fuse"}))
    assert "96 % of what was written to the OSDs was not this run's" in busy["other_load"]


def test_traffic_of_others_on_the_way_to_the_servers() -> None:
    row = {**CEPH, "interface_sent_bytes": 30 * MIB, "interface_received_bytes": 110 * MIB}
    fuse = {"access": "ceph-fuse"}
    assert "other_load" not in evidence(check(**row, read_operations=25_600, target=fuse))
    found = evidence(check(**{**row, "interface_received_bytes": 400 * MIB}, target=fuse))
    assert "received by the network interface" in found["other_load"]


def test_buffered_reads_over_a_shared_interface_accuse_nobody() -> None:
    """What read-ahead fetched is the run's own, and not counted."""
    row = {**CEPH, "sources": "{}", "interface_received_bytes": 900 * MIB, "interface_sent_bytes": 0}
    assert "other_load" not in evidence(check({"direct": False}, **row, target={"access": "nfs"}))
    assert "other_load" in evidence(check({"direct": True}, **row, target={"access": "nfs"}))


LINK = {
    "wire_limit_bytes_per_s": 40 * MIB,
    "sources": '{"wire_limit_bytes_per_s": "the link of eth0 (1 Gbit/s)"}',
}


def test_a_figure_above_the_link_is_invalid() -> None:
    """100 MiB in 2 s over a link of 40 MiB/s."""
    found = check(**LINK, target={"access": "nfs"})
    assert found.state == "INVALID"
    assert evidence(found)["implausible"] == (
        "50 MiB/s read in t0003, the link of eth0 (1 Gbit/s) allows at most 40 MiB/s:"
        " what explains it was not seen"
    )
    cached = check(**LINK, target={"access": "nfs"}, wire_received_bytes=25 * MIB)
    assert evidence(cached)["implausible"].endswith(": 75 % came from the page cache")
    assert "implausible" not in evidence(check(**{**LINK, "wire_limit_bytes_per_s": 45 * MIB}))


def test_data_that_the_wire_may_compress_is_not_held_against_the_link() -> None:
    assert "implausible" not in evidence(check({"incompressible": False}, **LINK))


def test_a_trial_too_short_for_a_rate_is_not_held_against_a_limit() -> None:
    assert "implausible" not in evidence(check(**LINK, measured_ns=400_000_000))


def test_buffered_writes_are_not_held_against_the_device() -> None:
    row = {**WRITES, "device_write_limit_bytes_per_s": 10 * MIB}
    assert "implausible" in evidence(check({"rw": "write", "direct": True}, **row))
    assert "implausible" not in evidence(check({"rw": "write", "direct": False}, **row))


@pytest.mark.parametrize(
    ("missed", "due", "fires"), [(2, 4, False), (3, 40, False), (4, 40, True), (None, None, False)]
)
def test_samples_that_were_not_taken(missed: int | None, due: int | None, fires: bool) -> None:
    found = evidence(check(samples_missed=missed, samples_due=due))
    assert ("events_lost" in found) is fires
    assert not fires or found["events_lost"] == "the observers took 36 of 40 samples that were due in t0001"


SMALL, LARGE = {"rw": "randread", "bs": 4096}, {"rw": "read", "bs": 1 << 20}


def outran(
    small: dict[str, Any], large: dict[str, Any], times: float, spread: float = 0.01
) -> dict[str, str]:
    """What is said of a cell that moves so many times as much as the other one, block by block."""
    cells = (cell("a.small", **small), cell("a.large", **large))
    tables = {
        one.id: CellTable(
            one.id, (), {b: Measured({"bandwidth": rate * (1 + spread * b)}, {}) for b in range(6)}
        )
        for one, rate in zip(cells, (times * 1e8, 1e8), strict=True)
    }
    return outrunning(cells, tables, {"a": facts()})


def test_small_random_reads_that_outrun_large_sequential_ones_are_doubtful() -> None:
    found = outran(SMALL, LARGE, 3.0)
    assert "random reads of 4 KiB moved 3 times as much" in found["a.small"]
    judged = check(outran=found["a.small"])
    assert [(code.code, code.state) for code in judged.codes] == [("implausible", "DOUBTFUL")]


@pytest.mark.parametrize(
    ("small", "large", "times"),
    [
        (SMALL, LARGE, 1.4),
        ({**SMALL, "iodepth": 32}, LARGE, 3.0),
        ({**SMALL, "numjobs": 4}, LARGE, 3.0),
        ({**SMALL, "direct": False}, LARGE, 3.0),
        (SMALL, {**LARGE, "bs": 8192}, 3.0),
        (SMALL, {**LARGE, "rate_iops": 10.0}, 3.0),
        ({**SMALL, "rw": "randwrite"}, {**LARGE, "rw": "write"}, 3.0),
    ],
)
def test_what_may_be_so_is_not_doubted(small: dict[str, Any], large: dict[str, Any], times: float) -> None:
    assert outran(small, large, times) == {}


def overtakes(times: float, osds: int | None = 0, **changes: Any) -> dict[str, str]:
    """What is said of reads through NFS that are so many times as quick as RADOS."""
    ceph, server = CephAccess(conf="/c"), ServerAccess(here=True)
    library = {"file_system": "x", "mount_point": None, "direct_io": True}
    ways = {
        "nfs": facts(access="libnfs", ceph=ceph, server=server, **library),
        "rados": facts(access="rados", ceph=ceph, **library),
        "fuse": facts(access="ceph-fuse", ceph=ceph),
        **changes,
    }
    cells = tuple(cell(f"{name}.read", rw="read", bs=1 << 22) for name in ways)
    rates = {"nfs.read": times * 1e8, "rados.read": 1e8, "fuse.read": 3e7}
    row = trial_row(wire_received_bytes=101 * MIB, osd_read_bytes=osds, store_read_bytes=osds)
    tables = {
        one.id: CellTable(
            one.id, (row,), {b: Measured({"bandwidth": rates[one.id] * (1 + 0.01 * b)}, {}) for b in range(6)}
        )
        for one in cells
    }
    return overtaking(cells, tables, ways)


def test_a_gateway_that_is_quicker_than_its_own_cluster_is_doubtful_with_what_explains_it() -> None:
    found = overtakes(2.0)
    assert list(found) == ["nfs.read"]
    assert found["nfs.read"] == (
        "2 times as quick as rados.read, which goes to the same cluster without the gateway"
        " (at least 2 times, 6 blocks): 100 % came from the gateway's cache"
    )
    assert overtakes(2.0, osds=None)["nfs.read"].endswith("what explains it was not seen")


def test_a_gateway_is_not_doubted_that_reads_ahead_is_slower_or_serves_another_cluster() -> None:
    assert overtakes(2.0, osds=100 * MIB) == {}
    assert overtakes(1.1) == {}
    other = facts(access="libnfs", ceph=CephAccess(conf="/other"), mount_point=None)
    assert overtakes(2.0, nfs=other) == {}
    assert overtakes(2.0, nfs=facts(access="libnfs", mount_point=None)) == {}


def test_an_emulated_host_is_doubtful() -> None:
    assert evidence(check(emulation="the processor is QEMU TCG CPU"))["emulated_host"]


def test_what_samples_saw_between_two_marks_counts() -> None:
    row = {"start_state": cluster_state(), "end_state": cluster_state()}
    found = evidence(check(**row, pgs_scrubbing_max=2, pgs_not_clean_max=0))
    assert found["scrub_or_recovery"] == "during t0001: 2 PGs scrubbing"
    assert "cluster_not_clean" not in found
    assert "cluster_not_clean" in evidence(check(**row, pgs_not_clean_max=1))


def test_one_full_osd_is_enough_to_be_nearly_full() -> None:
    state = cluster_state(checks={"OSD_NEARFULL": "1 nearfull osd(s)"})
    assert evidence(check(end_state=state))["nearly_full"] == (
        "at the end of t0001: OSD_NEARFULL: 1 nearfull osd(s)"
    )
