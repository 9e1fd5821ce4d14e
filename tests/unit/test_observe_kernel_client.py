"""What the kernel's CephFS client says is read as it is; what it does not say is not made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.observe import probe
from leadline.observe.agent import Agent
from leadline.observe.mounts import mounts
from leadline.observe.mounts.kernel_client import (
    KernelClientReader,
    KernelDump,
    dump_rows,
    mean_between_ms,
    parse_data_in_flight,
    parse_metadata_in_flight,
    parse_metrics,
    read_dump,
)
from leadline.observe.mounts.mountinfo import parse_mountinfo
from leadline.observe.reading import Request
from leadline.study.target import CephAccess, TargetFacts

DATA = Path(__file__).parents[1] / "data/observe"
CLIENT = "linux61_ceph"


def test_metrics_of_linux_6_1_are_read_by_item_and_column() -> None:
    found = read_dump(DATA / CLIENT).metrics
    assert found["read", "total_sz(bytes)"] == 77594624
    assert found["write", "total_sz(bytes)"] == 100663574
    assert found["metadata", "total"] == 412
    assert found["metadata", "avg_lat(us)"] == 7923
    assert found["pinned i_caps", "total"] == 87
    assert (found["caps", "miss"], found["caps", "hit"]) == (1, 3021)


def test_one_file_with_all_tables_as_older_kernels_have_it_is_read_the_same() -> None:
    texts = [(DATA / CLIENT / "metrics" / name).read_text() for name in ("file", "latency", "size", "caps")]
    assert parse_metrics("\n\n".join(texts)) == read_dump(DATA / CLIENT).metrics


@pytest.mark.parametrize("text", ["", "item\n", "read 1 2 3\n", "item total\nread\n", "item total\nread x\n"])
def test_what_is_no_table_gives_no_figure(text: str) -> None:
    assert parse_metrics(text) == {}


def test_requests_in_flight_are_those_that_wait_for_an_answer() -> None:
    found = read_dump(DATA / CLIENT)
    assert found.data_in_flight == 4
    assert (DATA / CLIENT / "mdsc").read_text().count("(unsafe)") == 5
    assert found.metadata_in_flight == 0
    assert parse_metadata_in_flight("17\tmds0\tgetattr\t#10000000000\n") == 1
    assert parse_data_in_flight("") is None


def dump(at_s: float, **figures: int) -> KernelDump:
    columns = {
        "reads": ("read", "total"),
        "mean": ("read", "avg_lat(us)"),
        "bytes": ("read", "total_sz(bytes)"),
    }
    return KernelDump(at_s, {columns[name]: value for name, value in figures.items()}, 2, 0)


def test_rates_and_latency_are_of_what_happened_between_two_dumps() -> None:
    before, now = dump(10.0, reads=100, mean=1000, bytes=0), dump(12.0, reads=200, mean=2000, bytes=2000)
    rows = {metric: (value, unit) for metric, value, unit in dump_rows(before, now)}
    assert rows["operations_read"] == (50.0, "1/s")
    assert rows["fetched"] == (1000.0, "B/s")
    assert rows["read_latency"] == (3.0, "ms")  # (200 x 2 ms - 100 x 1 ms) / 100
    assert rows["operations_active"] == (2.0, "count")


def test_the_first_dump_has_no_rates() -> None:
    assert [row[0] for row in dump_rows(None, dump(1.0, reads=5, mean=7))] == [
        "operations_active",
        "metadata_active",
    ]


def test_a_mean_that_the_kernels_rounding_hides_is_not_told() -> None:
    long_life, later = dump(0.0, reads=1_000_000, mean=500), dump(1.0, reads=1_000_010, mean=500)
    assert mean_between_ms(long_life.metrics, later.metrics, "read") is None
    assert mean_between_ms(later.metrics, later.metrics, "read") is None


def test_a_mark_has_the_bytes_sent_on_and_says_what_the_kernel_does_not_count() -> None:
    found = KernelClientReader(CLIENT, DATA).counters(Request("a", None))
    assert found.values["client_flushed_bytes"] == 100663574
    assert found.values["client_read_bytes"] is None
    assert "does not count" in found.reasons["client_read_bytes"]
    assert CLIENT in found.sources["client_flushed_bytes"]


def test_without_debugfs_there_is_a_reason_and_no_sample(tmp_path: Path) -> None:
    reader = KernelClientReader("fsid.client1", tmp_path)
    assert reader.sample(0) == []
    found = reader.counters(Request("a", None))
    assert found.values["client_flushed_bytes"] is None
    assert "cannot be read" in found.reasons["client_flushed_bytes"]


def test_samples_name_the_kernels_client() -> None:
    reader = KernelClientReader(CLIENT, DATA)
    rows = reader.sample(0)
    assert {row[0] for row in rows} == {"client"}
    assert {row[1] for row in rows} == {f"kernel.{CLIENT}"}


@pytest.mark.parametrize("clusters", [True, False])
def test_a_kernels_client_is_asked_through_debugfs_where_another_host_asks_its_cluster_too(
    clusters: bool,
) -> None:
    class Mute:
        def say(self, value: object) -> None:
            raise AssertionError(value)

        def sample(self, now_ns: int, rows: object) -> None:
            raise AssertionError(now_ns, rows)

    facts = TargetFacts("ceph-kernel", "ceph", "", ceph=CephAccess(kernel_client="fsid.client1"))
    config = {"targets": {"a": facts.as_json()}, "clusters": clusters}
    asked = [thread.name for thread in Agent(config, Mute())._of_target["a"]]  # type: ignore[arg-type]
    assert "the kernel's CephFS client" in asked
    assert ("the cluster" in asked) == clusters


def test_a_kernel_mount_is_known_by_its_clients_name_as_debugfs_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"ceph.cluster_fsid": b"the-fsid", "ceph.client_id": b"client4217"}
    monkeypatch.setattr(probe.os, "getxattr", lambda _, name: values[name])
    assert probe._kernel_client("/mnt") == {"kernel_client": "the-fsid.client4217"}
    mount = next(
        item
        for item in parse_mountinfo((DATA / "linux61_guest_mountinfo.txt").read_text())
        if item.file_system == "ceph"
    )
    found = mounts._ceph_access(mount, {"kernel_client": "the-fsid.client4217"})
    assert (found.name, found.kernel_client) == ("client.admin", "the-fsid.client4217")


def test_other_file_systems_have_no_such_client(tmp_path: Path) -> None:
    assert probe._kernel_client(str(tmp_path)) == {}
