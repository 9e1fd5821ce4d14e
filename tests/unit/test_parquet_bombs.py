"""Parquet that unpacks to more than there is: bounded by what it claims, and by memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_damaged_results import index_row, stored

from leadline.errors import ResultError
from leadline.foreign import within_memory
from leadline.store import parquet
from leadline.store.index import INDEX, write_index
from leadline.store.reader import open_result
from leadline.store.tables import SeriesRow, schema

MIB = 1 << 20
LISTED_MAX_MIB = 256
_SAMPLE = SeriesRow("t0001", 5, "host", "cpu0", "busy", 0.5, "1")


def _repeated(row: object, name: str, text_bytes: int, rows: int) -> pa.Table:
    """A row so many times, with one long text in all of them: a page of that text, and a number a row."""
    wanted = schema(type(row))
    text = pa.array(["x" * text_bytes])
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), text)
        if field.name == name
        else pa.repeat(pa.scalar(getattr(row, field.name), field.type), rows)
        for field in wanted
    ]
    return pa.table(arrays, names=wanted.names)


def _texts(file: Path, row: object, name: str) -> None:
    """4 GiB of text, which is all there as long as nobody asks for it."""
    pq.write_table(_repeated(row, name, MIB, 4096), file, compression="zstd", store_schema=False)


def _dictionary(file: Path, row: object, name: str) -> None:
    """The same, and it is a dictionary that Arrow keeps as one."""
    pq.write_table(_repeated(row, name, MIB, 4096), file, compression="zstd")


def _lying(file: Path, row: object, name: str) -> None:
    """One text of 600 MiB in some kilobytes, of which the footer says that it is a byte long."""
    table = _repeated(row, name, 600 * MIB, 1)
    pq.write_table(table, file, compression="zstd", write_statistics=False)
    data = file.read_bytes()
    for size in {_group(file).total_byte_size, *_sizes(file)}:
        if size > MIB:
            assert _varint(size) in data
            data = data.replace(_varint(size), _varint(1))
    file.write_bytes(data)
    assert _group(file).total_byte_size + sum(_sizes(file)) < MIB


def _varint(number: int) -> bytes:
    """As Parquet's footer has a number, in five bytes whether it takes so many or not."""
    return bytes((number << 1 >> 7 * place & 0x7F) | (0x80 if place < 4 else 0) for place in range(5))


def _group(file: Path) -> pq.RowGroupMetaData:
    return pq.read_metadata(file).row_group(0)


def _sizes(file: Path) -> list[int]:
    group = _group(file)
    return [group.column(number).total_uncompressed_size for number in range(group.num_columns)]


BOMBS: dict[str, Callable[[Path, object, str], None]] = {
    "texts": _texts,
    "dictionary": _dictionary,
    "lying": _lying,
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by another process: what made them is no memory that this one has already when it reads them."""
    place = tmp_path_factory.mktemp("bombs")
    subprocess.run([sys.executable, __file__, str(place)], check=True, env=_environment())
    assert all(file.stat().st_size < MIB for file in place.iterdir())
    return place


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_table_that_unpacks_to_gigabytes_is_named(tmp_path: Path, bombs: Path, kind: str) -> None:
    path = stored(tmp_path / "r")
    shutil.copyfile(bombs / f"series-{kind}", path / "series" / "t0001.parquet")
    pa.default_memory_pool().release_unused()
    result = open_result(path)
    for read in (result.series, lambda: result.sample_lines("t0001")):
        with pytest.raises(ResultError, match=r"it needs more than [0-9]+ MiB of memory") as caught:
            read()
        assert str(path) in caught.value.message


def test_more_groups_of_rows_than_files_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(tmp_path / "r")
    monkeypatch.setattr(parquet, "_GROUPS_MAX", 3)
    pq.write_table(_repeated(_SAMPLE, "subject", 1, 4), path / "series" / "t0001.parquet", row_group_size=1)
    with pytest.raises(ResultError, match="it claims 4 groups of rows"):
        open_result(path).series()


def test_a_bound_within_another_never_widens_it_and_both_end() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with (
        pytest.raises(MemoryError, match="more than 32 MiB"),
        within_memory(32 * MIB),
        within_memory(MIB << 10),
    ):
        bytearray(256 * MIB)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(64 * MIB)) == 64 * MIB


def _deep(place: Path) -> None:
    (place / "manifest.json").write_text("[" * 10**6 + "]" * 10**6)


def _wide(place: Path) -> None:
    (place / "manifest.json").write_text(f"[{'[],' * (12 * MIB)}[]]")


def _long_journal(place: Path) -> None:
    (place / "events.jsonl").write_text('{"event": "x"}\n' * (4 * MIB))


def _long_texts(place: Path) -> None:
    value = json.loads((place / "manifest.json").read_text())
    value["plan"] |= {"study": "s" * (8 * MIB), "targets": [{"name": "t" * 1000}] * 2000}
    (place / "manifest.json").write_text(json.dumps(value))


# The command, and after it the most memory that its process had at once.
_LIST = """
import sys
from leadline.cli.main import run_command_line
code = run_command_line(sys.argv[1:])
(most,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(most, file=sys.stderr)
sys.exit(code)
"""
LEFT_OUT: dict[str, Callable[[Path], None]] = {"deep": _deep, "wide": _wide, "journal": _long_journal}


def test_a_shared_directory_is_listed_within_bounds_and_what_is_left_out_is_named(
    tmp_path: Path, bombs: Path
) -> None:
    place = tmp_path / "shared"
    for name in ("good", *LEFT_OUT, *BOMBS, *(f"texts-{number}" for number in range(12))):
        path = stored(place / name)
        write_index(path, [index_row(path)])
        if name in LEFT_OUT:
            (path / INDEX).unlink()
            LEFT_OUT[name](path)
        elif name in BOMBS:
            shutil.copyfile(bombs / f"index-{name}", path / INDEX)
        elif name != "good":
            (path / INDEX).unlink()
            _long_texts(path)
    done = subprocess.run(
        [sys.executable, "-c", _LIST, "list", "--json", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    *said, most_kib = done.stderr.splitlines()
    assert done.returncode == 1, said
    assert int(most_kib) <= LISTED_MAX_MIB << 10
    rows = {Path(row["path"]).name: row for row in json.loads(done.stdout)}
    assert {name for name, row in rows.items() if row["state"].startswith("unreadable")} == LEFT_OUT.keys()
    assert len(said) == len(LEFT_OUT)
    for name in LEFT_OUT:
        assert any(str(place / name) in line for line in said), said
    assert len(done.stdout) < MIB


if __name__ == "__main__":
    index_values = stored(Path(sys.argv[1]) / "r")
    for kind, make in BOMBS.items():
        make(Path(sys.argv[1]) / f"series-{kind}", _SAMPLE, "subject")
        make(Path(sys.argv[1]) / f"index-{kind}", index_row(index_values), "cell")
    shutil.rmtree(index_values)
