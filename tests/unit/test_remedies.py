"""What a code advises can be done where it fires: no option of another kind of work, no tracer for a log."""

from __future__ import annotations

import re

import pytest

from leadline.study.kinds import ASKED
from leadline.tracing.messages import blind_words
from leadline.verdict.codes.catalogue import catalogue
from leadline.workloads.judge import KINDS

TRACERS = {"preload": "--via preload", "bpf": "--via bpf"}


@pytest.mark.parametrize("kind", [one.kind for one in KINDS])
def test_a_remedy_names_only_options_that_the_kind_of_work_has(kind: str) -> None:
    exempt = next(one.exempt for one in KINDS if one.kind == kind)
    known = set(ASKED[kind].model_fields) if kind in ASKED else set()
    advised = {
        name: entry.fire("", of=kind).remedy for name, entry in catalogue().items() if name not in exempt
    }
    foreign = {
        name: option
        for name, remedy in advised.items()
        for option in re.findall(r"--set ([a-z_]+)", remedy)
        if option not in known
    }
    assert foreign == {}


@pytest.mark.parametrize("code", ["few_blocks", "too_short", "not_run", "incomplete"])
def test_who_imported_a_result_is_not_advised_to_go_on_with_a_run_of_leadline(code: str) -> None:
    remedy = catalogue()[code].fire("", of="imported").remedy
    assert not re.search("--blocks|--resume|--set", remedy)


@pytest.mark.parametrize("maker", [*TRACERS, "import"])
@pytest.mark.parametrize(
    "code", ["events_lost", "not_followed", "bytes_unseen", "partly_seen", "mapped_files"]
)
def test_a_trace_is_not_advised_to_use_the_tracer_that_made_it_nor_an_import_any(
    code: str, maker: str
) -> None:
    remedy = catalogue()[code].fire("", of=maker).remedy
    assert TRACERS.get(maker, "--via") not in remedy


@pytest.mark.parametrize(
    ("note", "maker", "remedy"),
    [
        ("io_uring", "preload", "--via bpf"),
        ("io_uring", "bpf", None),
        ("io_uring", "import", None),
        ("static child /opt/tool", "preload", "--via bpf"),
        ("static child /sbin/ldconfig", "preload", None),
    ],
)
def test_a_doubt_is_stated_where_something_was_lost_with_what_counts_it(
    note: str, maker: str, remedy: str | None
) -> None:
    words = blind_words(note, 1, maker)
    assert words is None if remedy is None else remedy in (words or "")
