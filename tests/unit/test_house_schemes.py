"""Nobody but the engine's table knows a scheme by its name, and the documents have them all and no others."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline import _core
from leadline.study import schemes
from leadline.study.target import TargetFacts

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "house" / "schemes.py"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_OF_TARGETS = {"http", "https", "file", "tcp", "tls"}  # addresses of pages and services


def breaches_of(package: Path) -> list[str]:
    find: Callable[[Path], Iterator[str]] = TOOL["breaches"]
    return list(find(package))


def test_no_scheme_is_known_by_its_name() -> None:
    assert breaches_of(TOOL["PACKAGE"]) == []


@pytest.mark.parametrize(
    "code", ['if engine == "libnfs":\n    pass\n', 'WAYS = ("rados",)\n', 'url = "s3://bucket"\n']
)
def test_a_name_in_the_code_is_found_with_its_line(tmp_path: Path, code: str) -> None:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "model.py").write_text(f'"""Why."""\n{code}')
    (found,) = breaches_of(tmp_path)
    assert found.startswith(f"{tmp_path / 'plan' / 'model.py'}:2: ")


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("lab/gateways.py", 'KIND = "nfs"\n'),
        ("study/target.py", 'EXAMPLE = "write NAME=rados://POOL, or NAME=null://"\n'),
        ("observe/mounts/users.py", 'LINK = "root"\n'),
    ],
)
def test_the_lab_sentences_and_other_meanings_are_not(tmp_path: Path, place: str, code: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(code)
    assert breaches_of(tmp_path) == []


def test_the_documents_name_no_scheme_that_is_not_in_the_table() -> None:
    known = {scheme.name for scheme in schemes.table()} | NOT_OF_TARGETS
    for document in DOCUMENTS:
        for name in re.findall(r"\b([a-z][a-z0-9+.-]*)://", document.read_text(encoding="utf-8")):
            assert name in known, f"{document}: {name}://"


def test_the_document_of_targets_has_a_row_for_each_scheme_with_its_engine() -> None:
    rows = [line for line in (ROOT / "docs" / "targets.md").read_text().splitlines() if line.startswith("|")]
    for scheme in schemes.table():
        if scheme.storage == "mount":
            continue
        found = [row.split("|") for row in rows if row.startswith(f"| `{scheme.name}://")]
        assert len(found) == 1, scheme.name
        assert found[0][2].strip() == f"`{scheme.engines[0].name}`"


def facts(access: str) -> TargetFacts:
    return TargetFacts(access=access, file_system="x", words="x")


def test_what_a_target_is_made_of_follows_from_its_way() -> None:
    seen = {
        name: (one.has_storage, one.is_local, one.on_cluster, one.own_engine)
        for name in ("local", "null", "nfs", "ceph-fuse", "libcephfs", "xrootd", "of a later version")
        for one in [facts(name)]
    }
    assert seen == {
        "local": (True, True, False, None),
        "null": (False, False, False, "null"),
        "nfs": (True, False, False, None),
        "ceph-fuse": (True, False, True, None),
        "libcephfs": (True, False, True, "libcephfs"),
        "xrootd": (True, False, False, "xrootd"),
        "of a later version": (True, False, False, None),
    }


def test_the_words_on_a_location_have_a_place_for_the_pool() -> None:
    found: dict[str, Any] = _core.parse_location("rados://p/n?object_size=64K")
    assert found["words"] == ["RADOS through librados", None, ", namespace n", ", objects of ", 65536]
