"""Tables of traces as anybody may have written them: what would end a report is refused as damage."""

from __future__ import annotations

import pyarrow as pa
import pytest

from leadline.store.parquet import fitted

WANTED = pa.schema([pa.field("path", pa.string()), pa.field("read_s", pa.float64())])


def of(path: bytes, read_s: float | None) -> pa.Table:
    """One row, its text taken for UTF-8 as Parquet does."""
    binary = pa.array([path], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, binary.buffers())
    return pa.table({"path": text, "read_s": pa.array([read_s], pa.float64())})


@pytest.mark.parametrize("read_s", [0.0, 1.5, None])
def test_a_sound_table_is_as_it_was(read_s: float | None) -> None:
    assert fitted(of(b"a", read_s), WANTED).to_pylist() == [{"path": "a", "read_s": read_s}]


def test_text_that_is_no_utf_8_is_damage() -> None:
    with pytest.raises(ValueError, match="UTF8"):
        fitted(of(b"a\xff", 1.0), WANTED)


@pytest.mark.parametrize("read_s", [float("nan"), float("inf"), -float("inf"), 1e308])
def test_a_number_whose_sums_are_none_is_damage(read_s: float) -> None:
    with pytest.raises(ValueError, match="read_s holds what is no measured number"):
        fitted(of(b"a", read_s), WANTED)
