"""A trial on many hosts: what they did is joined to what one host would have stored, and nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from builders import clock, job, manifest, trial_row

from leadline import _core
from leadline.counters.catalogue import trial_figures
from leadline.durable import unfinished
from leadline.errors import ResultError
from leadline.hosts.join import joined, joined_and_kept
from leadline.hosts.join_rows import RULES
from leadline.hosts.model import ClockOffset, HostTrial
from leadline.run.rows import latency_row
from leadline.store.by_host import BY_HOST, HOST_LOST, StoredRows, read_by_host, write_by_host
from leadline.store.reader import open_result
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow, to_arrow
from leadline.store.writer import create_result, reopen_result

S = 1_000_000_000
START = 1_700_000_000 * S
NO_CLOCK = ClockOffset(0, 100_000, START)


def summary(read: int, **changes: Any) -> dict[str, Any]:
    counts = {"read": {"bytes": read, "operations": read // 1000, "short": 0}}
    return {"state": "complete", "directions": counts, "total": counts, "engine": "psync", **changes}


def host(
    name: str,
    *,
    rates: Sequence[int] = (1000, 1000, 1000, 1000),
    starts_ns: int = START,
    clock: ClockOffset = NO_CLOCK,
    values_ns: Sequence[int] = (10_000, 20_000),
    machine: str = "",
    **row: Any,
) -> HostTrial:
    """A host that read so many bytes in each second; every second has the same latencies."""
    length_ns = len(rates) * S
    values = {
        "started_unix_ns": starts_ns,
        "measured_ns": length_ns,
        "first_done_ns": length_ns,
        "last_done_ns": length_ns,
        "read_bytes": sum(rates),
        "read_operations": sum(rates) // 1000,
        "total_read_bytes": sum(rates),
        "summary": json.dumps(summary(sum(rates))),
        **row,
    }
    blob = _core.histogram_of(list(values_ns))
    latency = [
        latency_row("t0001", "read", "total", index, (index * S, (index + 1) * S), True, blob)
        for index in range(len(rates))
    ]
    whole = _core.histogram_merge([blob] * len(rates))
    latency.append(latency_row("t0001", "read", "total", -1, (0, length_ns), True, whole))
    series = [
        SeriesRow("t0001", (index + 1) * S, "engine", "read", metric, rate / size, unit)
        for index, rate in enumerate(rates)
        for metric, size, unit in (("bandwidth", 1, "B/s"), ("iops", 1000, "1/s"))
    ]
    series.append(SeriesRow("t0001", S, "host", "cpu", "busy", 0.5, "1"))
    series.append(SeriesRow("t0001", S, "ceph", "cluster", "health", 0.0, "1"))
    series.append(SeriesRow("t0001", S, "wire", "switch1", "tx_bytes_per_s", 1e6, "B/s"))
    return HostTrial(name, trial_row(**values), latency, series, clock, machine)


def row_of(*hosts: HostTrial, **more: Any) -> TrialRow:
    return joined(hosts, "a1", **more)[0]


def test_every_column_has_a_rule() -> None:
    observed = {figure.name for figure in trial_figures()}
    assert {field.name for field in fields(TrialRow)} == RULES.keys() | observed


def test_counts_are_summed_and_hosts_counted() -> None:
    row = row_of(host("a"), host("b", rates=(3000, 3000, 3000, 3000)))
    assert (row.read_bytes, row.total_read_bytes, row.read_operations) == (16_000, 16_000, 16)
    assert (row.hosts, row.attempt, row.state, row.error) == (2, "a1", "complete", None)
    assert (row.measured_ns, row.ramp_ns, row.start_skew_ns, row.done_skew_ns) == (4 * S, 0, 0, 0)
    assert json.loads(row.summary)["directions"]["read"]["bytes"] == 16_000


def test_starts_are_compared_on_corrected_clocks() -> None:
    ahead = ClockOffset(5 * S, 2_000_000, START)
    row = row_of(host("a"), host("b", starts_ns=START + 5 * S + 3_000_000, clock=ahead))
    assert (row.started_unix_ns, row.start_skew_ns, row.done_skew_ns) == (START, 3_000_000, 3_000_000)
    assert row.clock_error_ns == 2_000_000


def test_the_rate_is_that_of_the_time_that_all_have_in_common() -> None:
    row = row_of(host("a"), host("b", starts_ns=START + S, rates=(2000, 2000)))
    assert (row.ramp_ns, row.measured_ns) == (S, 2 * S)
    assert row.read_bytes == 2 * 1000 + 2 * 2000
    assert row.total_read_bytes == 8000


def test_half_an_interval_counts_by_half() -> None:
    row = row_of(host("a", rates=(1000, 3000)), host("b", starts_ns=START + S // 2, rates=(1000, 1000)))
    assert (row.ramp_ns, row.measured_ns) == (S // 2, S + S // 2)
    assert row.read_bytes == (500 + 3000) + (1000 + 500)


def test_what_was_in_flight_at_the_end_counts_with_the_time_that_it_took() -> None:
    drained = host("a", measured_ns=4 * S + S // 4, last_done_ns=4 * S + S // 4, read_bytes=4100)
    drained = replace(drained, row=replace(drained.row, summary=json.dumps(summary(4100))))
    assert row_of(drained, host("b")).read_bytes == 8000


def test_hosts_without_a_common_time_are_no_trial() -> None:
    row = row_of(host("a"), host("b", starts_ns=START + 60 * S))
    assert row.state == "error"
    assert "never measured at the same time" in (row.error or "")
    assert (row.measured_ns, row.read_bytes) == (0, 0)


def test_programs_count_from_the_first_start_to_the_last_end() -> None:
    copies = [{"copy": 1, "wall_ns": S}, {"copy": 2, "wall_ns": S}]
    own = json.dumps(summary(4000, copies=copies))
    row = row_of(host("a", summary=own), host("b", summary=own, starts_ns=START + S))
    assert (row.ramp_ns, row.measured_ns, row.read_bytes) == (0, 5 * S, 8000)
    found = json.loads(row.summary)["copies"]
    assert [(one["copy"], one["host"]) for one in found] == [(1, "a"), (2, "a"), (3, "b"), (4, "b")]


def test_phases_are_as_long_as_the_slowest_hosts() -> None:
    def phases(ns: int) -> str:
        found = {"create": {"bytes": 0, "operations": 10, "elapsed_ns": ns, "cpu_ns": 1}}
        return json.dumps(summary(0, directions=found, total=found))

    row = row_of(host("a", summary=phases(S)), host("b", summary=phases(3 * S)))
    create = json.loads(row.summary)["directions"]["create"]
    assert create == {"bytes": 0, "operations": 20, "elapsed_ns": 3 * S, "cpu_ns": 2}


def test_a_trial_is_complete_only_where_all_hosts_are() -> None:
    row = row_of(host("a"), host("b", state="error", error="no space"), host("c", state="hung"))
    assert row.state == "error"
    assert row.error == "on b: no space; on c: hung"


def test_a_lost_host_is_named_and_marked() -> None:
    row = row_of(host("a"), lost={"b": "its worker ended"})
    assert (row.state, row.hosts) == ("error", 2)
    assert row.error == f"on b: its worker ended {HOST_LOST}"


def test_what_an_unmeasured_value_is_missing_from_is_no_sum() -> None:
    why = json.dumps({"wire_received_bytes": "no network in between"})
    row = row_of(host("a", wire_received_bytes=5, reasons="{}"), host("b", reasons=why))
    assert row.wire_received_bytes is None
    assert json.loads(row.reasons)["wire_received_bytes"] == "on b: no network in between"


def test_a_cluster_counts_once_and_a_machine_once() -> None:
    hosts = [
        host(name, machine=machine, osd_read_bytes=read, device_read_bytes=device, cpu_busy_share=busy)
        for name, machine, read, device, busy in (
            ("a", "m1", 900, 50, 0.1),
            ("b", "m1", 1000, 60, 0.4),
            ("c", "m2", 950, 7, 0.2),
        )
    ]
    row = row_of(*hosts)
    assert (row.osd_read_bytes, row.device_read_bytes, row.cpu_busy_share) == (1000, 67, 0.4)


def test_rates_asked_for_are_shares_of_the_whole() -> None:
    asked = json.dumps(job(rate_iops=250.0).as_json())
    row = row_of(host("a", job=asked), host("b", job=asked))
    assert json.loads(row.job)["rate_iops"] == 500.0


def test_hosts_that_did_something_else_are_refused_by_name() -> None:
    with pytest.raises(ResultError, match=r"t0001: block is on a: 1; on b: 2"):
        row_of(host("a"), host("b", block=2))
    other = json.dumps(job(bs=8192).as_json())
    with pytest.raises(ResultError, match="job is on a"):
        row_of(host("a"), host("b", job=other))
    with pytest.raises(ResultError, match="there twice"):
        row_of(host("a"), host("a"))


def test_an_unknown_figure_is_left_out_by_name() -> None:
    row = row_of(host("a", summary=json.dumps(summary(4000, odd=1))), host("b"))
    assert "odd" not in json.loads(row.summary)
    assert json.loads(row.reasons)["summary"] == "different on each host, see by_host/trials: odd"


def test_histograms_are_those_of_all_operations() -> None:
    values = {"a": (10_000, 20_000, 5_000_000), "b": (70_000,), "c": (900, 80_000_000)}
    hosts = [host(name, values_ns=found) for name, found in values.items()]
    latency = joined(hosts, "a1")[1]
    every = [value for found in values.values() for value in found]
    expected = Counter(dict(_core.histogram_buckets(_core.histogram_of(every))))
    assert [row.interval for row in latency] == [0, 1, 2, 3, -1]
    for row in latency:
        times = 4 if row.interval < 0 else 1
        found = Counter(dict(_core.histogram_buckets(row.histogram)))
        assert found == Counter({value: count * times for value, count in expected.items()})
    assert latency[-1].operations == sum(one.latency[-1].operations for one in hosts)


def test_intervals_of_who_began_late_count_where_they_were() -> None:
    latency = joined([host("a"), host("b", starts_ns=START + 2 * S)], "a1")[1]
    assert [(row.interval, row.operations) for row in latency] == [
        (0, 2), (1, 2), (2, 4), (3, 4), (4, 2), (5, 2), (-1, 16),
    ]  # fmt: skip


def test_engines_series_are_summed_and_samples_of_hosts_are_not() -> None:
    late = host("b", starts_ns=START + 2_000_000, rates=(500, 500, 500, 500))
    series = joined([host("a"), late], "a1")[2]
    bandwidth = [(row.t_ns, row.value) for row in series if row.metric == "bandwidth"]
    assert bandwidth == [(second * S + 2_000_000, 1500.0) for second in (1, 2, 3, 4)]
    assert [row.source for row in series if row.source != "engine"] == ["ceph", "wire"]


def test_tables_by_host_are_read_as_they_were_written(tmp_path: Path) -> None:
    hosts = [host("b", starts_ns=START + 7), host("a", clock=ClockOffset(-3, 4, START))]
    writer = create_result(tmp_path / "r", manifest(), clock())
    write_by_host(writer.path, "t0001", hosts)
    assert read_by_host(open_result(tmp_path / "r")) == {}, "before the trial counts nobody reads them"
    writer.write_trial(*joined(hosts, "a1"))
    writer.close()
    first, second = read_by_host(open_result(tmp_path / "r"))["t0001"]
    assert (first.host, second.host, first.began_ns, second.began_ns) == ("a", "b", 0, 4)
    assert (first.clock_offset_ns, first.clock_error_ns) == (-3, 4)
    assert (first.bytes, first.operations, first.p99_ns) == (4000, 4, hosts[1].latency[-1].p99_ns)
    table = pq.read_table(tmp_path / "r" / BY_HOST / "series" / "t0001.parquet")
    assert table.num_rows == sum(len(one.series) for one in hosts)
    assert set(table.column("host").to_pylist()) == {"a", "b"}
    assert pq.read_table(tmp_path / "r" / BY_HOST / "latency" / "t0001.parquet").num_rows == 2


def test_a_result_of_one_host_has_none(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), clock()).close()
    assert read_by_host(open_result(tmp_path / "r")) == {}


def test_hosts_tables_need_not_be_in_memory(tmp_path: Path) -> None:
    kept = [host("a"), host("b", rates=(1, 2, 3, 4))]
    stored = []
    for one in kept:
        found = {}
        for name, row_type in (("latency", LatencyRow), ("series", SeriesRow)):
            found[name] = StoredRows(tmp_path / f"{one.host}-{name}.parquet", row_type)
            pq.write_table(
                to_arrow(list(getattr(one, name)), row_type), tmp_path / f"{one.host}-{name}.parquet"
            )
            assert list(found[name]) == list(getattr(one, name))
        stored.append(replace(one, **found))
    assert joined(stored, "a1") == joined(kept, "a1")


def test_joining_and_keeping_at_once_gives_the_same(tmp_path: Path) -> None:
    hosts = [host("b"), host("a", starts_ns=START + 5)]
    for name in ("one", "two"):
        create_result(tmp_path / name, manifest(), clock()).close()
    write_by_host(tmp_path / "one", "t0001", hosts)
    assert joined_and_kept(tmp_path / "two", hosts, "a1") == joined(hosts, "a1")
    for table in ("trials", "latency", "series"):
        tables = [
            pq.read_table(tmp_path / name / BY_HOST / table / "t0001.parquet") for name in ("one", "two")
        ]
        assert tables[0].equals(tables[1])


def test_a_refused_join_keeps_no_tables(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), clock()).close()
    with pytest.raises(ResultError):
        joined_and_kept(tmp_path / "r", [host("a"), host("b", block=2)], "a1")
    assert not [path for path in (tmp_path / "r" / BY_HOST).rglob("*") if path.is_file()]


def test_what_a_killed_run_was_writing_by_host_is_removed(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    write_by_host(writer.path, "t0001", [host("a")])
    writer.close()
    partial = unfinished(tmp_path / "r" / BY_HOST / "series" / "t0002.parquet")
    partial.touch()
    reopen_result(tmp_path / "r", clock()).close()
    assert [path.name for path in (tmp_path / "r" / BY_HOST / "series").iterdir()] == ["t0001.parquet"]
