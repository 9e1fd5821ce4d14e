"""A result reads alike wherever it lies: no name of a directory is a pattern, a partition or an address."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_damaged_results import index_row, stored

from leadline.store.bundles import bundle_trials
from leadline.store.index import read_indexes, write_index
from leadline.store.reader import open_result

NAMES = st.text("[]*?{}=!%'\"\\;,:$~^- a1ä\n", min_size=1, max_size=12)


def _read(place: Path) -> tuple[object, ...]:
    """All that is read of a result's tables, from its own files, from bundles and from its summary."""
    own, bundled = open_result(place), open_result(place / "bundled")
    return tuple(
        (one.trials(), one.latency(), one.series(), one.series(["host"]), one.sample_lines("t0001"))
        for one in (own, bundled)
    ), list(read_indexes([place]).values())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = stored(tmp_path_factory.mktemp("plain") / "r")
    shutil.copytree(place, place / "bundled")
    assert bundle_trials(place / "bundled", open_result(place / "bundled").finished, 1)
    write_index(place, [index_row(place, value=2.0)])
    return place


@example("run[1]")
@example("block=1")
@example("value=7")
@example("state=VALID")
@example("trial=t0009")
@example("filename=x")
@example("**")
@example("file:")
@example("s3:")
@example("x.parquet?versionId=1")
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(NAMES)
def test_a_result_in_a_directory_of_any_name_reads_as_in_a_plain_one(plain: Path, name: str) -> None:
    decoy = plain.parent / "odd" / "run1" / "r"
    if not decoy.exists():
        stored(decoy)
        write_index(decoy, [index_row(decoy, value=666.0)])
        (decoy / "trials" / "t0001.parquet").write_bytes(b"no table")
    expected = _read(plain)
    place = decoy.parent.parent / name
    place.mkdir()
    shutil.move(plain, place / "r")
    try:
        with contextlib.chdir(place.parent):
            assert _read(Path(name) / "r") == expected
        assert _read(place / "r") == expected
    finally:
        shutil.move(place / "r", plain)
        place.rmdir()
