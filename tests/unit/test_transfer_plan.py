"""Transfers as a study asks for them: what contradicts itself, what is chosen, what fits; what is kept."""

from __future__ import annotations

import struct
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from transfer_traces import MIB, made_acks, transfer_job

from leadline import units
from leadline.errors import ResultError, SpecError, TargetError
from leadline.observe.commands import find_sources
from leadline.observe.host.host import memory_room
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.store.own import Acks, acks_of, join_acks, read_ack_log, write_acks
from leadline.study.kind.lookups import HostRoom, SourceFile, SourceLook
from leadline.study.kinds import planned
from leadline.study.study import parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study
from leadline.workloads.transfer.job import TransferJob
from leadline.workloads.transfer.planner import BESIDE_BYTES, largest_share, needed_bytes

LOCAL = TargetFacts("local", "ext4", "ext4 on vda", "/x", free_bytes=1 << 40, direct_io=True)
PATH = Target("disk", "/x")


def _plan(
    work: str,
    facts: TargetFacts = LOCAL,
    target: Target = PATH,
    lookups: tuple[object, ...] = (),
    study: str = "",
) -> Plan:
    text = f"format: leadline.study/1\nworks:\n  w: {{{work}}}\nblocks: 1\n{study}"
    asked = parse_study(read_study(text, "made", {}))
    host = Host(16 << 30, lookups=lookups)
    return make_plan(asked, {target.name: target}, {target.name: facts}, host, 1)


def _job(work: str, **where: object) -> TransferJob:
    job = _plan(work, **where).cells[0].job  # type: ignore[arg-type]
    assert isinstance(job, TransferJob)
    return job


@pytest.mark.parametrize(
    ("work", "key", "words"),
    [
        ("transfer: write, readers: 2, streams: 4", "readers", "all streams do the same"),
        ("transfer: duplex", "streams", "one stream that reads and one that writes"),
        ("transfer: duplex, streams: 4, readers: 4", "readers", "none writes"),
        ("transfer: read, end_sync: true", "end_sync", "sends nothing"),
        ("transfer: read, input: /x", "input", "sends nothing"),
        ("transfer: write, input: /x, incompressible: true", "incompressible", "names files"),
        ("transfer: write, time_based: true", "time_based", "needs a runtime"),
        ("transfer: write, ramp_time: 1s", "ramp_time", "needs time_based"),
        ("transfer: write, buffer: 5000", "buffer", "multiples of 4k"),
        ("transfer: write, buffer: 2g", "buffer", "up to 1g"),
        ("transfer: write, buffer: 4M, size: 1M", "size", "does not hold one buffer"),
        ("transfer: write, engine: psync, in_flight: 4", "in_flight", "one operation at a time"),
        ("transfer: write, engine: mmap, direct: true", "direct", "page cache"),
        ("transfer: write, source: 'root://h//f'", "source", "means nothing"),
        ("transfer: copy, size: 1M", "source", "needs the one that sends"),
        ("transfer: copy, size: 1M, source: 'root://h//f', buffer: 4M", "buffer", "servers choose"),
        ("transfer: copy, source: 'root://h//f'", "size", "is missing"),
        ("transfer: write, iodepth: 4", "iodepth", "transfer"),
        ("transfer: write, search: {bound: 5ms}", "search", "not of transfers"),
        ("transfer: write, clients: 4", "clients", "this host alone takes part"),
        ("transfer: copy, size: 1M, source: 'root://h//f'", "transfer", "no copy between each other"),
    ],
)
def test_what_contradicts_itself_is_refused(work: str, key: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as refused:
        _plan(work)
    assert (refused.value.key or "").rpartition(".")[2] == key
    assert refused.value.remedy


def test_what_is_not_said_is_chosen_and_given_a_reason() -> None:
    cell = _plan("transfer: duplex, streams: 5").cells[0]
    job = cell.job
    assert isinstance(job, TransferJob)
    assert (job.readers, job.writers, job.buffer, job.in_flight) == (2, 3, MIB, 4)
    assert (job.direct, job.engine, job.end_sync, job.checksum) == (True, "io_uring", False, None)
    assert job.size * 5 <= 1 << 30
    for option in ("readers 2", "buffer 1m", "in_flight 4", "size ", "direct true", "engine io_uring"):
        assert any(note.startswith(option) for note in cell.notes), option
    assert any("20 MiB outstanding" in note for note in cell.notes)


def test_buffered_writes_are_synced_at_the_end_and_direct_ones_are_not() -> None:
    assert _job("transfer: write, direct: false").end_sync
    assert not _job("transfer: write, direct: true").end_sync
    assert not _job("transfer: read, direct: false").end_sync
    assert not _job("transfer: write, direct: false, end_sync: false").end_sync


def test_an_engine_that_does_one_operation_at_a_time_has_one_in_flight() -> None:
    assert _job("transfer: write, engine: psync").in_flight == 1


def test_only_files_that_are_read_are_laid_out_and_those_of_a_duplex_are_its_own() -> None:
    face = planned(transfer_job())
    assert face.layout(_job("transfer: write")) is None
    read = face.layout(_job("transfer: read, streams: 4, size: 8M"))
    duplex = face.layout(_job("transfer: duplex, streams: 4, size: 8M"))
    assert read is not None and duplex is not None  # noqa: PT018
    assert (read.total_bytes, duplex.total_bytes) == (32 * MIB, 32 * MIB)
    assert read.key != duplex.key


def test_the_space_that_is_needed_counts_all_streams() -> None:
    assert _plan("transfer: write, streams: 16, size: 64M").bytes_needed == {"disk": 1 << 30}


def test_what_does_not_fit_in_memory_is_refused_by_the_plan_with_the_figures() -> None:
    work = "transfer: write, streams: 16, buffer: 64M, in_flight: 8, size: 64M"
    room = HostRoom(4 << 30, "memory that the control group job leaves")
    with pytest.raises(
        SpecError, match=r"16 x 64m x 8, are 8 GiB.*4 GiB of memory that the control group job"
    ) as no:
        _plan(work, lookups=(room,))
    assert no.value.key == "in_flight"
    fitting = HostRoom(needed_bytes(_job(work)))
    assert _job(work, lookups=(fitting,)).streams == 16
    with pytest.raises(SpecError):
        _plan(work, lookups=(replace(fitting, available_bytes=fitting.available_bytes - 1),))


def test_levels_that_do_not_fit_are_left_out_where_the_study_says_so() -> None:
    factors = "where_possible: true\nfactors: {in_flight: [1, 16]}\n"
    plan = _plan("transfer: write, buffer: 64M, size: 64M", lookups=(HostRoom(400 * MIB),), study=factors)
    assert [cell.job.in_flight for cell in plan.cells if isinstance(cell.job, TransferJob)] == [1]
    (left,) = plan.left_out
    assert "1 x 64m x 16" in left.reason


def test_memory_is_the_buffers_and_a_hundred_mebibytes_at_most() -> None:
    job = transfer_job()
    assert job.bytes_in_flight == 64 * MIB
    assert 64 * MIB < needed_bytes(job) <= 64 * MIB + BESIDE_BYTES


def test_the_room_of_a_host_is_what_its_control_group_leaves(tmp_path: Path) -> None:
    proc, group = tmp_path / "proc", tmp_path / "sys/fs/cgroup/job"
    (proc / "self").mkdir(parents=True)
    group.mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    (proc / "self/cgroup").write_text("0::/job\n")
    (proc / "self/mountinfo").write_text("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    assert memory_room(proc, tmp_path / "sys") == (4 << 30, "memory that is available")
    (group / "memory.max").write_text(str(1 << 30))
    (group / "memory.current").write_text(str(600 * MIB))
    (group / "memory.stat").write_text(f"anon {200 * MIB}\nfile {400 * MIB}\n")
    assert memory_room(proc, tmp_path / "sys") == (
        (1 << 30) - 200 * MIB,
        "memory that the control group job leaves",
    )


def test_more_clients_than_hosts_are_refused_and_fewer_are_kept() -> None:
    hosts = HostRoom(8 << 30, hosts=4)
    with pytest.raises(SpecError, match="4 hosts take part"):
        _plan("transfer: write, clients: 5", lookups=(hosts,))
    job = _job("transfer: write, clients: 2", lookups=(hosts,))
    assert planned(job).hosts_wanted(job) == 2


def test_the_users_files_are_dealt_out_and_size_follows_the_largest_share(tmp_path: Path) -> None:
    for name, size in (("a", 3), ("b", 1), ("c", 2), ("empty", 0)):
        (tmp_path / name).write_bytes(b"x" * size * MIB)
    files = find_sources(str(tmp_path))
    assert [(Path(file.path).name, file.bytes // MIB) for file in files] == [("a", 3), ("b", 1), ("c", 2)]
    look = SourceLook(lambda _: files)
    job = _job(f"transfer: write, streams: 2, buffer: 2M, input: {tmp_path}", lookups=(look,))
    assert job.size == 6 * MIB  # of a and c: 5 MiB, in whole buffers
    assert job.sources == tuple(file.path for file in files)
    assert largest_share([SourceFile("a", 1)], 8) == 1


def test_files_that_are_not_there_are_refused_with_words(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such file"):
        find_sources(str(tmp_path / "none"))


def _log(records: list[tuple[int, ...]], claimed: int | None = None) -> bytes:
    count = len(records) if claimed is None else claimed
    head = b"LLACKS\x01\0" + struct.pack("<IIQQ", 48, 2, count, 0)
    return head + b"".join(struct.pack("<IB3xQQQQq", *record) for record in records)


def test_the_engines_log_is_read_and_one_that_is_cut_is_not(tmp_path: Path) -> None:
    log = tmp_path / "acks"
    log.write_bytes(_log([(1, 1, 0, 4096, 10, 30, 4096), (0, 0, 4096, 4096, 20, 25, -5)]))
    acks = read_ack_log(log, lost=3)
    assert (acks.stream.tolist(), acks.reads.tolist(), acks.lost) == ([1, 0], [False, True], 3)
    assert (acks.submitted_ns.tolist(), acks.acked_ns.tolist(), acks.result.tolist()) == (
        [10, 20],
        [30, 25],
        [4096, -5],
    )
    for damaged in (_log([(0, 0, 0, 1, 1, 2, 1)], claimed=2), b"no log of ours", _log([])[:20]):
        log.write_bytes(damaged)
        with pytest.raises(ValueError, match="it "):
            read_ack_log(log)


def _same(one: Acks, other: Acks) -> bool:
    names = (field.name for field in fields(Acks)[:8] if field.name != "host")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_a_table_of_acks_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    acks = replace(made_acks(1, seconds=2.0), lost=7)
    write_acks(tmp_path, "t0001", acks)
    found = acks_of(tmp_path / "acks" / "t0001.parquet")
    assert _same(acks, found)
    assert (found.lost, [found.hosts[place] for place in set(found.host.tolist())]) == (7, [None])
    size = (tmp_path / "acks" / "t0001.parquet").stat().st_size
    assert size < 30 * len(acks)


def test_acks_of_many_hosts_are_one_table_with_their_names(tmp_path: Path) -> None:
    hosts = {name: tmp_path / name for name in ("a", "b", "gone")}
    for number, path in enumerate(hosts.values()):
        path.mkdir()
        if path.name != "gone":
            write_acks(path, "t0001", made_acks(number, streams=2, seconds=1.0))
    result = tmp_path / "result"
    result.mkdir()
    join_acks(result, "t0001", hosts)
    found = acks_of(result / "acks" / "t0001.parquet")
    assert sorted(
        {(found.hosts[host], stream) for host, stream in zip(found.host, found.stream, strict=True)}
    ) == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


def test_what_is_beyond_the_bound_counts_as_lost() -> None:
    acks = made_acks(1, streams=2, seconds=2.0)
    first = acks.first(100)
    assert (len(first), first.lost) == (100, len(acks) - 100)
    assert first.submitted_ns.max() <= np.sort(acks.submitted_ns)[100]


def test_a_table_in_which_an_ack_precedes_its_request_is_refused(tmp_path: Path) -> None:
    from leadline.foreign import reading

    acks = made_acks(1, streams=1, seconds=0.5)
    write_acks(tmp_path, "t0001", replace(acks, acked_ns=acks.submitted_ns - 1))
    file = tmp_path / "acks" / "t0001.parquet"
    with pytest.raises(ResultError, match="precedes"), reading(file):
        acks_of(file)


def test_a_job_says_the_engine_what_it_knows_and_no_more() -> None:
    told = planned(transfer_job()).told_engine(transfer_job(clients=3))
    assert told is not None
    assert not {"clients", "source"} & set(told)
    assert planned(transfer_job()).told_engine(transfer_job(transfer="copy", source="root://h//f")) is None
    assert units.exact_size(told["buffer"]) == "1m"
