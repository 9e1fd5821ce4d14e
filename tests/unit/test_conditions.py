"""Results that are held against each other ran the same jobs; what else differs is said before any ratio."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from builders import cell, clock, facts, trial_row

from leadline.cli.main import run_command_line
from leadline.imported.job import ImportedJob
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.store.writer import create_result
from leadline.study.study import STUDY_FORMAT, Study
from leadline.study.target import CephAccess, Target
from leadline.verdict.comparisons.conditions import conditions_of, differences_of

WORK = "a.randread_4k"
HOST = {"host": "node-a", "kernel": "6.1.0", "cpus_usable": "0,1", "memory_bytes": str(8 << 30)}


def plan_of(cells: Sequence[PlannedCell], blocks: int = 3) -> Plan:
    trials = [
        Trial(f"t{place:04d}", place, block, one.id, one.target, place)
        for place, (block, one) in enumerate(
            ((block, one) for block in range(1, blocks + 1) for one in cells), start=1
        )
    ]
    targets = tuple(Target(name, "/x") for name in dict.fromkeys(one.target for one in cells))
    return Plan("s", "s", "", 7, blocks, targets, tuple(cells), tuple(trials), 1.0, {"a": 0})


def stored(
    path: Path, *cells: PlannedCell, slower: float = 1.0, access: dict[str, Any] | None = None, **details: Any
) -> str:
    """A result of these cells at a day and with an id of its own."""
    plan = plan_of(cells or [cell(WORK)])
    works = {one.work: {"rw": "randread", "bs": "4k", "size": "1M"} for one in plan.cells}
    study = Study.model_validate(
        {"format": STUDY_FORMAT, "name": "s", "title": "s", "blocks": plan.blocks, "works": works}
    )
    number = crc32(path.name.encode())
    manifest = {
        "kind": "study",
        "id": f"{number:08x}",
        "created": f"2026-01-0{1 if path.name == 'old' else 2}T00:00:00+00:00",
        "version": "1",
        "plan": plan.as_json(),
        "targets": {target.name: facts(**access or {}).as_json() for target in plan.targets},
        "options": {},
        "study": study.as_json(),
        "host": HOST,
        **details,
    }
    writer = create_result(path, manifest, clock())
    for trial in plan.trials:
        planned = plan.cell(trial.cell)
        row = trial_row(
            trial=trial.id,
            cell=trial.cell,
            target=trial.target,
            work=planned.work,
            block=trial.block,
            order=trial.order,
            started_unix_ns=number * 10**9 + trial.order,
            measured_ns=int(2e9 * slower * (1 + 0.001 * trial.block)),
            job=json.dumps(planned.job.as_json()),
        )
        writer.write_trial(row, [], [])
    writer.journal("study_finished", failed=[], not_run={})
    writer.close()
    return str(path)


def ran(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(list(arguments))
    out = capfd.readouterr()
    return code, " ".join(out.out.split()), out.err


VERBS = {
    "compare": lambda old, new: ("compare", old, new, "--metric", "iops"),
    "gate": lambda old, new: ("gate", new, "--baseline", old, "--metric", "iops"),
    "hosts": lambda old, new: ("hosts", old, new, "--metric", "iops"),
    "trend": lambda old, _: ("trend", f"{WORK}.iops", str(Path(old).parent)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_different_jobs_under_one_name_are_refused_with_the_list_of_differences(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    """4k at depth 4 against 64k at depth 1 was called a loss of 81.3 %."""
    old = stored(tmp_path / "old", cell(WORK, iodepth=4))
    new = stored(
        tmp_path / "new", cell(WORK, bs=65536, rate_iops=100.0), slower=5, host={**HOST, "host": "node-b"}
    )
    words = VERBS[verb](old, new)
    code, said, problem = ran(capfd, *words)
    assert (code, said) == (2, "")
    for part in ("iodepth: 4", "bs: 4k", "64k", "rate_iops: none", "100.0", "--across-jobs"):
        assert part in problem, problem
    code, said, problem = ran(capfd, *words, "--across-jobs")
    assert code in (0, 4), problem
    assert said.index("DIFFERENT JOBS") < said.index("iops" if verb != "trend" else "results")
    assert "rate_iops" in said
    as_json = json.loads(ran(capfd, *words, "--across-jobs", "--json")[1])
    notes = as_json["series"][0]["notes"] if verb == "trend" else as_json["notes"]
    assert any("DIFFERENT JOBS" in note for note in notes)


@pytest.mark.parametrize("verb", VERBS)
def test_seed_blocks_and_places_are_no_differences(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    old = stored(tmp_path / "old")
    new = stored(tmp_path / "new", host={**HOST, "host": "node-b"})
    manifest = json.loads(Path(new, "manifest.json").read_text())
    manifest["plan"] |= {"seed": 99, "blocks": 7}
    manifest["plan"]["targets"][0]["url"] = "/elsewhere"
    Path(new, "manifest.json").write_text(json.dumps(manifest))
    code, said, problem = ran(capfd, *VERBS[verb](old, new))
    assert code == 0, problem
    assert "DIFFERENT JOBS" not in said
    assert ("NOTE: host: node-a" in said) == (verb != "hosts")  # which hosts it compares says every line


@pytest.mark.parametrize("verb", VERBS)
def test_access_methods_and_releases_are_held_against_each_other_and_said(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    fuse = {"access": "ceph-fuse", "file_system": "fuse.ceph-fuse", "ceph": CephAccess(client_version="18")}
    kernel = {"access": "ceph-kernel", "file_system": "ceph", "ceph": CephAccess(client_version="19")}
    old = stored(tmp_path / "old", cell(WORK, direct=False), access=fuse)
    new = stored(tmp_path / "new", access=kernel, host={**HOST, "host": "node-b"})
    code, said, problem = ran(capfd, *VERBS[verb](old, new))
    assert code == 0, problem
    for part in ("access method: ceph-fuse", "release of the Ceph client: 18", "direct: false"):
        assert f"NOTE: {part}" in said
    assert "DIFFERENT JOBS" not in said


def differences(base: dict[str, Any], other: dict[str, Any], *cells: PlannedCell) -> tuple[str, ...]:
    """Those of two results of the same cells, with other manifests, in the jobs."""
    plan = plan_of(cells or [cell(WORK)])
    sides = [
        conditions_of({"targets": {"a": facts().as_json()}, **manifest}, plan) for manifest in (base, other)
    ]
    return differences_of([(one.work, sides[0][one.id], sides[1][one.id]) for one in plan.cells]).job_words()


def test_the_number_of_clients_and_cold_caches_are_of_the_job() -> None:
    assert differences({}, {"hosts": [{}]}) == ()
    assert differences({"hosts": [{}]}, {"hosts": [{}, {}]}) == ("clients: 1 in A, 2 in B",)
    dropped = {"options": {"drop_caches": True}}
    assert differences({}, dropped) == ()  # it goes past them
    assert differences({}, dropped, cell(WORK, direct=False)) == ("caches dropped: no in A, yes in B",)


def imported(**changes: Any) -> PlannedCell:
    values = {"program": "fio-3.33", "rw": "read", "bs": 4096, "numjobs": 1, "engine": "libaio"}
    values |= {"direct": True, "reads": True, "writes": False, **changes}
    planned = cell(WORK)
    return PlannedCell(**{**vars(planned), "job": ImportedJob(**values)})


def test_of_an_import_its_own_words_count_and_places_names_and_times_do_not() -> None:
    def between(**changes: Any) -> tuple[str, ...]:
        base = imported(options={"fsync": "1", "filename": "/a/x"}, runtime_ns=5)
        other = imported(**{"options": {"fsync": "1", "filename": "/b/y"}, "runtime_ns": 7, **changes})
        sides = [conditions_of({"targets": {}}, plan_of([one]))[WORK] for one in (base, other)]
        return differences_of([("w", *sides)]).job_words()

    assert between(program="fio-3.40") == ()
    assert between(options={"rate_iops": "100"}) == (
        "fsync: 1 in A, not set in B",
        "rate_iops: not set in A, 100 in B",
    )


def test_one_difference_of_several_cells_is_said_once_with_their_names() -> None:
    names = [f"a.w{place}" for place in range(5)]
    plans = [plan_of([cell(name, bs=bs if name != "a.w4" else 512) for name in names]) for bs in (4096, 8192)]
    sides = [conditions_of({"targets": {}}, plan) for plan in plans]
    found = differences_of([(name, sides[0][name], sides[1][name]) for name in names])
    assert found.job_words() == ("bs: 4k in A, 8k in B (a.w0, a.w1, a.w2, …)",)
