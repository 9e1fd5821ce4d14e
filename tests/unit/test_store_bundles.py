"""Rows of many trials in one file: as good as the trials' own files, and never instead of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders import clock, latency_row, manifest, trial_row

from leadline.cli.files import write_file
from leadline.errors import ResultError, UsageError
from leadline.store import bundles, reader
from leadline.store import parquet as stored_rows
from leadline.store.bundles import BUNDLES, FEW, bundle_trials, digest_of, read_bundles
from leadline.store.merge import check_whole, copy_result
from leadline.store.reader import Result, open_result
from leadline.store.tables import SeriesRow, TrialRow
from leadline.store.writer import create_result, reopen_result

TABLES = ("trials", "latency", "series")
NAMES = tuple(f"t{number:04d}" for number in range(1, 6))
WITHOUT_SAMPLES = "t0003"


def row_of(name: str, **changes: object) -> TrialRow:
    order = int(name[1:])
    return trial_row(trial=name, order=order, read_bytes=order << 20, **changes)


def samples_of(name: str) -> list[SeriesRow]:
    order = int(name[1:])
    if name == WITHOUT_SAMPLES:
        return []
    return [
        SeriesRow(name, at, source, "one", "busy", at * order / 7, "1")
        for source in ("host", "engine")
        for at in range(1, 4)
    ]


def store(path: Path, names: tuple[str, ...] = NAMES, *, at_least: int | None = 1) -> Path:
    """A result with a bundle of them, or without."""
    writer = create_result(path, manifest(), clock())
    for name in names:
        latency = [latency_row(trial=name, interval=number, p99_ns=int(name[1:])) for number in (-1, 0, 1)]
        writer.write_trial(row_of(name), latency, samples_of(name))
    if at_least is not None:
        writer.bundle(at_least)
    writer.close()
    return path


def said(result: Result) -> list[object]:
    """All that a result tells of its trials."""
    lines = [
        {key: tuple(map(tuple, line)) for key, line in result.sample_lines(name).items()}
        for name in sorted(result.finished)
    ]
    return [result.trials(), result.latency(), result.series(), result.series(["engine"]), *lines]


def own(path: Path) -> list[object]:
    return said(replace(open_result(path), bundled=False))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that rows, and lines of samples, are read from, without their directories."""
    found: list[str] = []
    opened_table, sample_lines_of = stored_rows.opened, reader.sample_lines_of

    def read(path: Path) -> object:
        found.append(path.name)
        return opened_table(path)

    def lines(path: Path, *rest: object) -> object:
        found.append(path.name)
        return sample_lines_of(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(stored_rows, "opened", read)
    monkeypatch.setattr(reader, "sample_lines_of", lines)
    return found


def trials_opened(opened: list[str]) -> set[str]:
    return {name.removesuffix(".parquet") for name in opened if name.startswith("t")}


def later(file: Path) -> None:
    """Another time than it had."""
    found = file.stat()
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 5_000_000_000))


def test_bundled_trials_are_read_equal_and_their_own_files_are_left_closed(
    tmp_path: Path, opened: list[str]
) -> None:
    path = store(tmp_path / "r")
    expected = own(path)
    opened.clear()
    assert said(open_result(path)) == expected
    assert set(opened) == {"0001.parquet"}
    assert (path / "trials" / "t0001.parquet").is_file()


def test_a_result_of_few_trials_has_no_bundle(tmp_path: Path) -> None:
    path = store(tmp_path / "r", at_least=FEW)
    assert not (path / BUNDLES).exists()


def test_bundles_are_split_and_the_rest_is_added_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    monkeypatch.setattr(bundles, "TRIALS_MAX", 2)
    path = store(tmp_path / "r", NAMES[:3])
    writer = reopen_result(path, clock())
    for name in NAMES[3:]:
        writer.write_trial(row_of(name), [], samples_of(name))
    writer.bundle(1)
    writer.close()
    assert [sorted(one.tables["trials"].trials) for one in reversed(read_bundles(path))] == [
        ["t0001", "t0002"],
        ["t0003"],
        ["t0004", "t0005"],
    ]
    assert said(open_result(path)) == own(path)
    opened.clear()
    open_result(path).trials()
    assert trials_opened(opened) == set()
    assert bundle_trials(path, NAMES, 1) == 0


def test_no_more_are_bundled_than_there_is_time_for(tmp_path: Path) -> None:
    path = store(tmp_path / "r", at_least=None)
    assert [bundle_trials(path, NAMES, 1, most=2) for _ in range(4)] == [2, 2, 1, 0]
    assert said(open_result(path)) == own(path)


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)


def _forged_list(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    file = path / BUNDLES / "0001.json"
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


def _swapped(path: Path) -> None:
    """A sound file of a bundle, with a sound digest, whose rows are of other trials."""
    file = path / BUNDLES / "trials" / "0001.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(0, table.schema.field(0), [["t0009"] * table.num_rows]), file)

    def change(value: dict[str, object]) -> None:
        value["tables"]["trials"] |= {  # type: ignore[index]
            "bytes": file.stat().st_size,
            "digest": digest_of(file),
        }

    _forged_list(path, change)


def _of_other_bytes(path: Path) -> None:
    """A sound file of the size that the list says, with other values than it was made with."""
    file = path / BUNDLES / "trials" / "0001.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index("read_bytes")
    pq.write_table(table.set_column(place, table.schema.field(place), [[5] * table.num_rows]), file)
    size = file.stat().st_size
    _forged_list(path, lambda value: value["tables"]["trials"].update(bytes=size))  # type: ignore[index]


def _every(name: str, change: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        for file in (path / BUNDLES).glob(name):
            change(file)

    return damage


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit of each table": _every("*/0001.parquet", _flip),
    "cut short": _every("*/0001.parquet", lambda file: os.truncate(file, 100)),
    "no tables": _every("*/0001.parquet", Path.unlink),
    "a directory": _every("*/0001.parquet", lambda file: (file.unlink(), file.mkdir())),
    "a FIFO": _every("*/0001.parquet", lambda file: (file.unlink(), os.mkfifo(file))),
    "no list": _every("*.json", Path.unlink),
    "half a list": _every("*.json", lambda file: os.truncate(file, file.stat().st_size // 2)),
    "a deep list": _every("*.json", lambda file: file.write_text("[" * 100_000)),
    "a list that is a FIFO": _every("*.json", lambda file: (file.unlink(), os.mkfifo(file))),
    "another version": lambda path: _forged_list(path, lambda it: it.update(format="leadline.bundle/2")),
    "another shape": lambda path: _forged_list(path, lambda it: it.update(tables={"trials": 5})),
    "no number": lambda path: _forged_list(
        path,
        lambda it: it["tables"]["trials"].update(bytes="many"),  # type: ignore[index]
    ),
    "rows of another trial": _swapped,
    "other values": _of_other_bytes,
    "a file in its place": lambda path: (shutil.rmtree(path / BUNDLES), (path / BUNDLES).touch()),
    "a link to itself": lambda path: (
        shutil.rmtree(path / BUNDLES),
        (path / BUNDLES).symlink_to(path / BUNDLES),
    ),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_wrong_with_a_bundle_changes_nothing(tmp_path: Path, kind: str, opened: list[str]) -> None:
    path = store(tmp_path / "r")
    expected = own(path)
    DAMAGE[kind](path)
    opened.clear()
    assert said(open_result(path)) == expected
    assert trials_opened(opened) == set(NAMES)


def test_a_trial_whose_own_file_is_another_now_is_read_from_it(tmp_path: Path, opened: list[str]) -> None:
    path = store(tmp_path / "r")
    for table in TABLES:
        file = path / table / "t0002.parquet"
        rows = pq.read_table(file)
        pq.write_table(rows, file, compression="none")
    changed = path / "trials" / "t0002.parquet"
    rows = pq.read_table(changed)
    place = rows.schema.get_field_index("read_bytes")
    pq.write_table(rows.set_column(place, rows.schema.field(place), [[77]]), changed)
    opened.clear()
    found = open_result(path)
    assert [row.read_bytes for row in found.trials()] == [1 << 20, 77, 3 << 20, 4 << 20, 5 << 20]
    assert said(found) == own(path)
    assert trials_opened(opened) >= {"t0002"}
    opened.clear()
    open_result(path).trials()
    assert opened == ["0001.parquet", "t0002.parquet"]


def test_of_the_same_size_and_another_time_the_bytes_decide(tmp_path: Path, opened: list[str]) -> None:
    path = store(tmp_path / "r")
    for table in TABLES:
        for name in NAMES:
            later(path / table / f"{name}.parquet")
    assert said(open_result(path)) == own(path)
    opened.clear()
    said(open_result(path))
    assert trials_opened(opened) == set()
    file = path / "trials" / "t0004.parquet"
    _flip(file)
    later(file)
    opened.clear()
    with suppress(ResultError):
        open_result(path).trials()
    assert trials_opened(opened) == {"t0004"}


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_file_of_a_trial_is_the_same_error_with_a_bundle_as_without(
    tmp_path: Path, table: str
) -> None:
    path = store(tmp_path / "r")
    (path / table / "t0003.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ResultError, match=f"table `{table}` of {path} is damaged"):
        getattr(open_result(path), table)()


def test_a_trial_whose_own_file_is_gone_does_not_count_whatever_is_bundled(tmp_path: Path) -> None:
    path = store(tmp_path / "r")
    (path / "latency" / "t0002.parquet").unlink()
    found = open_result(path)
    assert {row.trial for row in found.trials()} == set(NAMES) - {"t0002"}
    assert {row.trial for row in found.series(["host"])} == set(NAMES) - {"t0002", WITHOUT_SAMPLES}


def test_a_trial_that_was_measured_anew_is_read_anew_and_bundled_anew(
    tmp_path: Path, opened: list[str]
) -> None:
    path = store(tmp_path / "r")
    (path / "trials" / "t0002.parquet").unlink()
    writer = reopen_result(path, clock())
    assert "t0002" not in writer.finished()
    writer.write_trial(row_of("t0002", block=9), [], [])
    assert {row.trial: row.block for row in open_result(path).trials()}["t0002"] == 9
    assert said(open_result(path)) == own(path)
    writer.bundle(1)
    writer.close()
    opened.clear()
    assert said(open_result(path))[:2] == own(path)[:2]
    open_result(path).trials()
    assert list(read_bundles(path)[0].tables["trials"].trials) == ["t0002"]
    opened.clear()
    assert {row.trial: row.block for row in open_result(path).trials()}["t0002"] == 9
    assert opened == ["0002.parquet", "0001.parquet"]


def test_a_kill_before_the_list_leaves_no_bundle_and_the_next_run_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store(tmp_path / "r", at_least=None)
    expected = own(path)
    calls: list[Path] = []
    write_whole = bundles.write_whole
    for last in range(4):
        calls.clear()

        def killed(file: Path, data: bytes, last: int = last) -> None:
            calls.append(file)
            if len(calls) > last:
                (file.parent / f".leadline-{last:016x}").write_bytes(data[:50])
                raise KeyboardInterrupt
            write_whole(file, data)

        with monkeypatch.context() as patch:
            patch.setattr(bundles, "write_whole", killed)
            with pytest.raises(KeyboardInterrupt):
                bundle_trials(path, NAMES, 1)
        assert read_bundles(path) == []
        assert said(open_result(path)) == expected
    assert calls[-1].name == "0001.json"
    writer = reopen_result(path, clock())
    assert list(path.rglob(".leadline-*")) == []
    writer.bundle(1)
    writer.close()
    assert len(read_bundles(path)) == 1
    assert said(open_result(path)) == expected


def test_a_full_disk_makes_no_bundle_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(tmp_path / "r", at_least=None)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bundles, "write_whole", full)
    writer = reopen_result(path, clock())
    writer.bundle(1)
    writer.close()
    assert read_bundles(path) == []
    assert said(open_result(path)) == own(path)


def test_what_is_not_fit_for_a_bundle_stays_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    path = store(tmp_path / "r", at_least=None)
    monkeypatch.setattr(bundles, "_FILE_BYTES_MAX", 1 << 16)
    big = path / "series" / "t0001.parquet"
    many = [
        SeriesRow("t0001", at, "host", f"cpu{at * 7919 % 9973}", "busy", at / 3, "1") for at in range(20_000)
    ]
    pq.write_table(write_table_of(many), big, compression="none")
    assert big.stat().st_size > 1 << 16
    newer = path / "trials" / "t0002.parquet"
    pq.write_table(pq.read_table(newer).append_column("of_tomorrow", [[1]]), newer)
    stranger = path / "latency" / "t0004.parquet"
    rows = pq.read_table(stranger)
    pq.write_table(rows.set_column(0, rows.schema.field(0), [["t0005"] * rows.num_rows]), stranger)
    (path / "series" / "t0005.parquet").write_bytes(b"PAR1")
    assert bundle_trials(path, NAMES, 1) == 4
    tables = read_bundles(path)[0].tables
    assert set(NAMES) - set(tables["trials"].trials) == {"t0002"}
    assert set(NAMES) - set(tables["latency"].trials) == {"t0004"}
    assert set(NAMES) - set(tables["series"].trials) == {"t0001", "t0005"}
    alone = replace(open_result(path), bundled=False)
    assert open_result(path).trials() == alone.trials()
    assert open_result(path).sample_lines("t0001") == alone.sample_lines("t0001")
    assert open_result(path).sample_lines("t0002") == alone.sample_lines("t0002")
    with pytest.raises(ResultError, match="damaged"):
        open_result(path).sample_lines("t0005")
    (path / "series" / "t0005.parquet").unlink()
    assert open_result(path).series() == replace(open_result(path), bundled=False).series()


def write_table_of(rows: list[SeriesRow]) -> object:
    from leadline.store.tables import to_arrow

    return to_arrow(list(rows), SeriesRow)


def test_bundles_are_as_private_as_their_result(tmp_path: Path) -> None:
    path = store(tmp_path / "r", at_least=None)
    path.chmod(0o700)
    for table in TABLES:
        (path / table).chmod(0o700)
    assert bundle_trials(path, NAMES, 1) == len(NAMES)
    for place in (path / BUNDLES, *(path / BUNDLES).rglob("*")):
        assert place.stat().st_mode & 0o077 == 0, place


def test_a_checked_copy_rests_on_the_trials_own_files_and_has_bundles_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    monkeypatch.setattr("leadline.store.bundles.bundle_trials.__defaults__", (1, None))
    path = store(tmp_path / "r")
    (path / BUNDLES / "trials" / "0001.parquet").write_bytes(b"forged")
    copy = copy_result(check_whole(path), tmp_path / "into")
    assert {one.number for one in read_bundles(copy)} == {1}
    opened.clear()
    assert said(open_result(copy)) == own(path)
    assert set(opened[:1]) == {"0001.parquet"}
    damaged = store(tmp_path / "damaged")
    file = damaged / "trials" / "t0001.parquet"
    found = file.stat()
    file.write_bytes(b"\0" * found.st_size)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    open_result(damaged).trials()
    with pytest.raises(ResultError, match="damaged"):
        check_whole(damaged)


def test_a_report_does_not_take_the_place_of_a_bundle(tmp_path: Path) -> None:
    path = store(tmp_path / "r")
    files = [file for file in (path / BUNDLES).rglob("*") if file.is_file()]
    assert len(files) == 4
    for file in files:
        with pytest.raises(UsageError, match="is a file of the result"):
            write_file(file, b"report")
