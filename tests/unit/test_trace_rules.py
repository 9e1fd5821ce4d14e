"""The table of rules: each holds where it should, costs at most what was measured, and can be extended."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from trace_tables import SECOND, file_row, files_table, process, tables

from leadline.errors import SpecError
from leadline.tracing.figures import shares, speeds, wall_seconds
from leadline.tracing.files import views
from leadline.tracing.model import TraceFinding
from leadline.tracing.rules import apply, read_rules, rules
from leadline.tracing.tables import TraceTables, files_schema

MIB = 1 << 20
# For each rule a file, or processes, on which it holds.
FILES: dict[str, dict[str, Any]] = {
    "small_reads": {"READS": 2000, "BYTES_READ": 2000 * 512, "CONSEC_READS": 1999, "SEQ_READS": 1999},
    "small_writes": {"WRITES": 2000, "BYTES_WRITTEN": 2000 * 512, "CONSEC_WRITES": 1999, "SEQ_WRITES": 1999},
    "random_reads": {
        "READS": 500,
        "BYTES_READ": 500 * 65536,
        "CONSEC_READS": 0,
        "SEQ_READS": 250,
        "MAX_BYTE_READ": 1 << 40,
    },
    "read_ahead_defeated": {
        "READS": 500,
        "BYTES_READ": 500 * 65536,
        "CONSEC_READS": 10,
        "SEQ_READS": 500,
        "MAX_BYTE_READ": 500 * 65536,
    },
    "random_writes": {"WRITES": 500, "BYTES_WRITTEN": 500 * 65536, "CONSEC_WRITES": 0, "SEQ_WRITES": 100},
    "misaligned": {
        "READS": 500,
        "CONSEC_READS": 500,
        "SEQ_READS": 500,
        "BYTES_READ": 500 * 65536,
        "FILE_NOT_ALIGNED": 490,
        "FILE_ALIGNMENT": 4096,
    },
    "rewritten": {"WRITES": 10, "BYTES_WRITTEN": 10 * MIB, "MAX_BYTE_WRITTEN": 5 * MIB - 1},
    "reread": {"READS": 10, "BYTES_READ": 10 * MIB, "MAX_BYTE_READ": 2 * MIB - 1},
    "repeated_opens": {"OPENS": 500, "STATS": 1},
    "repeated_stats": {"OPENS": 1, "STATS": 5000},
    "failed_lookups": {"OPENS": 0, "STATS": 150, "failed": 150},
}
# What else of files a rule of the trial looks at.
OF_TRIAL: dict[str, list[dict[str, Any]]] = {
    "end_probes": [
        file_row(n, READS=2, BYTES_READ=MIB, OPENS=1, SIZE_READ_0_100=1, empty_reads=1, F_READ_TIME=0.006)
        for n in range(60)
    ],
    "serial_reads": [file_row(READS=40, BYTES_READ=40 * 65536, F_READ_TIME=0.4, OPENS=1)],
    "mostly_reads": [file_row(READS=3, BYTES_READ=3 * MIB, F_READ_TIME=0.4, OPENS=1)],
    "mostly_writes": [file_row(WRITES=3, BYTES_WRITTEN=3 * MIB, F_WRITE_TIME=0.4, OPENS=1)],
    "many_small_files": [
        file_row(n, READS=2, BYTES_READ=3000, OPENS=1, F_READ_TIME=0.002, F_META_TIME=0.001)
        for n in range(100)
    ],
    "library_cost": [
        file_row(n, path=f"/opt/env/lib/python3.12/site-packages/m{n}.py", READS=2, BYTES_READ=3000, OPENS=1,
                 F_READ_TIME=0.002, F_META_TIME=0.001)
        for n in range(60)
    ] + [file_row(n + 60, path=f"/opt/env/m{n}.so", failed=1, F_META_TIME=0.001) for n in range(60)],
}  # fmt: skip
REST = "title: t, cost: '1', at_most: '1', how: h, evidence: e, remedy: c"
TIMES = {"F_READ_TIME": 0.2, "F_WRITE_TIME": 0.1, "F_META_TIME": 0.05}


def quiet(number: int = 0, **changes: Any) -> Any:
    seconds = {"read": 0.05, "write": 0.05, "meta": 0.01, "sync": 0.0}
    return process(number, **{"seconds": seconds, "ended_ns": SECOND // 2, **changes})


# What looks from outside saw of half a second without a CPU.
WAITS = {
    "waiting_for_pages": {"seconds": {"page": 0.5}},
    "unseen_calls": {"seconds": {"file": 0.5}},
    "waiting_asleep": {"seconds": {"asleep": 0.5}},
    "waiting_for_locks": {"seconds": {"lock": 0.5}},
    "waiting_for_others": {"seconds": {"peer": 0.5}},
    "waiting_for_cpus": {"seconds": {"page": 0.01}, "queued_s": 0.5},
}
# Beyond rows, of a rule that looks at CPU time.
EXTRA: dict[str, dict[str, Any]] = {
    "bound_by_compute": {"cpu_user_ns": SECOND // 2, "cpu_system_ns": 0},
    **{
        name: {"cpu_user_ns": 0, "cpu_system_ns": 0, "waits": {"looks": 20, "watched_s": 0.5, **waits}}
        for name, waits in WAITS.items()
    },
}
PROCESSES: dict[str, Sequence[Any]] = {
    "end_probes": [quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})],
    "serial_reads": [quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})],
    "mostly_reads": [quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})],
    "mostly_writes": [quiet(seconds={"read": 0, "write": 0.4, "meta": 0, "sync": 0})],
    "many_small_files": [quiet(seconds={"read": 0.2, "write": 0, "meta": 0.1, "sync": 0})],
    "library_cost": [quiet(seconds={"read": 0.2, "write": 0, "meta": 0.1, "sync": 0})],
    "mostly_metadata": [quiet(seconds={"read": 0.01, "write": 0, "meta": 0.3, "sync": 0})],
    "sync_bound": [quiet(seconds={"read": 0.1, "write": 0.1, "meta": 0, "sync": 0.2})],
    "imbalance_copies": [quiet(0), quiet(1, copy=1, ended_ns=SECOND)],
    "imbalance_processes": [
        quiet(0),
        quiet(1),
        quiet(2, seconds={"read": 0.45, "write": 0, "meta": 0, "sync": 0}),
    ],
    "bound_by_compute": [quiet(seconds={"read": 0.001, "write": 0, "meta": 0, "sync": 0})],
    **{name: [quiet(seconds={"read": 0.001, "write": 0, "meta": 0, "sync": 0})] for name in WAITS},
}


def found(content: TraceTables, table: Any = None) -> dict[str, TraceFinding]:
    wall_s = wall_seconds(content)
    with views(content, shares(content, wall_s), speeds(content, wall_s)) as connection:
        return {item.rule: item for item in apply(connection, rules() if table is None else table)}


def of_file(**counters: Any) -> dict[str, TraceFinding]:
    return found(tables(processes=(quiet(),), files=files_table([file_row(**TIMES, **counters)])))


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_rule_of_files_finds_its_file_and_no_other_rule_does(name: str) -> None:
    held = of_file(**FILES[name])
    assert list(held) == [name]
    assert 0 < held[name].cost_s <= max(TIMES.values()) * 2
    assert held[name].examples[0].startswith("/data/0: ")
    assert "unknown" not in held[name].examples[0]


def test_first_writes_in_random_order_are_not_rewritten() -> None:
    """All but the first of them lie below the furthest, and each byte was written once."""
    count = {"WRITES": 500, "BYTES_WRITTEN": 500 * 65536, "CONSEC_WRITES": 0, "SEQ_WRITES": 100}
    held = of_file(**count, MAX_BYTE_WRITTEN=500 * 65536 - 1, rewritten_bytes=400 * 65536)
    assert list(held) == ["random_writes"]


def test_all_accesses_in_no_order_cost_time_and_not_only_those_that_go_back() -> None:
    reads = of_file(**FILES["random_reads"])["random_reads"]  # half of them went forward
    writes = of_file(**FILES["random_writes"])["random_writes"]
    assert (reads.cost_s, writes.cost_s) == (TIMES["F_READ_TIME"], TIMES["F_WRITE_TIME"])


def test_processes_that_each_read_a_file_once_do_not_read_it_again() -> None:
    rows = [
        file_row(n, process=n, path="/data/x", READS=8, BYTES_READ=8 * MIB, MAX_BYTE_READ=8 * MIB - 1)
        for n in range(3)
    ]
    each = tuple(quiet(n) for n in range(3))
    assert "reread" not in found(tables(processes=each, files=files_table(rows)))
    again = [{**row, "BYTES_READ": 16 * MIB} for row in rows]
    assert "reread" in found(tables(processes=each, files=files_table(again)))


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_a_rule_of_the_trial_holds(name: str) -> None:
    rows = OF_TRIAL.get(name, [])
    extra = {"wall_s": 0.5, "copies": [{"copy": 0, "wall_s": 0.5, "faults_major": 7, **EXTRA.get(name, {})}]}
    content = tables(processes=tuple(PROCESSES[name]), files=files_table(rows))
    held = found(replace(content, extra=extra) if name in EXTRA else content)
    assert name in held
    assert set(held) & {*EXTRA} == {name} & {*EXTRA}
    assert held[name].cost_s is not None
    assert "unknown" not in held[name].examples[0]


def test_a_few_slow_reads_are_named_with_how_long_each_took() -> None:
    content = tables(processes=tuple(PROCESSES["mostly_reads"]), files=files_table(OF_TRIAL["mostly_reads"]))
    held = found(content)
    assert list(held) == ["mostly_reads"]
    assert held["mostly_reads"].examples == ("400 milliseconds in 3 reads of 1 MiB on average, 133 ms each",)


@pytest.mark.parametrize(
    "changes", [{"threads": 4}, {"notes": ["asynchronous I/O"]}, {"threads": None}], ids=str
)
def test_reads_that_may_be_several_at_once_are_not_said_to_be_one_after_another(
    changes: dict[str, Any],
) -> None:
    reading = quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0}, **changes)
    rows = files_table(OF_TRIAL["serial_reads"])
    assert set(found(tables(processes=(reading,), files=rows))) == {"mostly_reads"}


def test_small_files_that_are_read_whole_at_once_have_no_reads_for_their_ends() -> None:
    reading = quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})
    rows = [{**row, "READS": 1, "BYTES_READ": 90, "empty_reads": None} for row in OF_TRIAL["end_probes"]]
    assert "end_probes" not in found(tables(processes=(reading,), files=files_table(rows)))


@pytest.mark.parametrize(
    ("empty_reads", "brought"),
    [
        pytest.param(1, "60 of 120 reads returned nothing", id="counted"),
        pytest.param(None, "60 of 120 reads returned at most 100 B", id="not counted, as by Darshan"),
        pytest.param(0, "", id="small reads that brought something"),
    ],
)
def test_reads_for_the_end_of_files_are_those_that_brought_nothing(
    empty_reads: int | None, brought: str
) -> None:
    reading = quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})
    rows = [{**row, "empty_reads": empty_reads} for row in OF_TRIAL["end_probes"]]
    held = found(tables(processes=(reading,), files=files_table(rows))).get("end_probes")
    evidence = held.examples[0] if held else ""
    assert evidence.partition(",")[0] == brought


def test_waiting_for_reads_is_not_said_beside_what_makes_them_slow() -> None:
    reading = quiet(seconds={"read": 0.4, "write": 0, "meta": 0, "sync": 0})
    row = file_row(**{**FILES["small_reads"], "F_READ_TIME": 0.4})
    assert list(found(tables(processes=(reading,), files=files_table([row])))) == ["small_reads"]
    beside = [row | {"F_READ_TIME": 0.1}, file_row(1, READS=3, BYTES_READ=3 * MIB, F_READ_TIME=0.3)]
    assert set(found(tables(processes=(reading,), files=files_table(beside)))) == {
        "small_reads",
        "mostly_reads",
    }


def test_what_libraries_cost_is_apart_from_the_users_files() -> None:
    content = tables(processes=tuple(PROCESSES["library_cost"]), files=files_table(OF_TRIAL["library_cost"]))
    cost = found(content)["library_cost"]
    assert cost.cost_s == pytest.approx(0.24)
    assert "120 libraries" in cost.examples[0]
    assert "many_small_files" not in found(content)


def test_every_rule_has_an_example_here() -> None:
    assert {rule.name for rule in rules()} == {*FILES, *PROCESSES}


def test_a_trace_without_times_has_findings_of_unknown_cost() -> None:
    content = tables(processes=(quiet(),), files=files_table([file_row(**FILES["repeated_stats"])]))
    assert found(content)["repeated_stats"].cost_s is None


def test_counters_that_are_not_known_find_nothing() -> None:
    assert found(tables(processes=(quiet(),), files=files_table([file_row()]))) == {}


def test_a_cost_never_exceeds_the_time_that_was_measured() -> None:
    table = read_rules(
        "wild: {of: files, title: wild, seen: READS > 0, cost: 1e9 * READS, at_most: F_READ_TIME,"
        " how: wildly, evidence: '{READS:count}', remedy: nothing}"
    )
    content = tables(
        processes=(quiet(),), files=files_table([file_row(n, READS=5, **TIMES) for n in range(2)])
    )
    assert found(content, table)["wild"].cost_s == pytest.approx(0.4)
    assert found(content, table)["wild"].count == 2


def test_no_finding_exceeds_the_run_whatever_its_files_took() -> None:
    table = read_rules(
        "wild: {of: files, title: wild, seen: READS > 0, cost: F_READ_TIME, at_most: F_READ_TIME,"
        " how: wildly, evidence: '{READS:count}', remedy: nothing}"
    )
    rows = [file_row(n, process=n % 4, READS=5, F_READ_TIME=0.4) for n in range(20)]
    alone = found(tables(processes=(quiet(),), files=files_table(rows)), table)["wild"]
    assert (alone.cost_s, alone.saves_s) == (pytest.approx(0.5), pytest.approx(0.5))
    beside = tables(processes=tuple(quiet(n) for n in range(4)), files=files_table(rows))
    four = found(beside, table)["wild"]
    assert (four.cost_s, four.saves_s) == (pytest.approx(2.0), pytest.approx(0.5))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_trace_holds_no_finding_exceeds_the_run_and_counts_are_the_tables(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - data of a test
    rows = [
        file_row(
            number,
            process=chance.randrange(3),
            **{name: chance.randrange(5000) for name in ("READS", "WRITES", "OPENS", "STATS", "failed")},
            **{name: chance.randrange(1 << 22) for name in ("BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ")},
            **{name: chance.randrange(5000) for name in ("CONSEC_READS", "SEQ_READS", "CONSEC_WRITES")},
            **{name: 10 ** chance.uniform(-3, 2) for name in TIMES},
        )
        for number in range(30)
    ]
    seconds = {kind: 10 ** chance.uniform(-3, 1) for kind in ("read", "write", "meta", "sync")}
    content = tables(processes=tuple(quiet(n, seconds=seconds) for n in range(3)), files=files_table(rows))
    wall_s = wall_seconds(content)
    assert wall_s is not None
    whole = shares(content, wall_s).whole
    held = found(content)
    assert held
    for item in held.values():
        assert item.saves_s is not None
        assert item.cost_s is not None
        assert item.saves_s <= wall_s
        assert item.cost_s <= (wall_s if item.time == "run" else whole.base_s)
    if "mostly_metadata" in held:
        opens, stats = (sum(row[name] for row in rows) for name in ("OPENS", "STATS"))
        assert f"{opens:,} opens and {stats:,} stats on 30 paths" in held["mostly_metadata"].examples[0]


def test_the_same_bytes_at_two_layers_are_found_once() -> None:
    rows = [
        file_row(0, **FILES["small_reads"]),
        file_row(1, module="MPI-IO", path="/data/0", **FILES["small_reads"]),
    ]
    assert found(tables(processes=(quiet(),), files=files_table(rows)))["small_reads"].count == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: {of: nowhere, title: t, seen: w, cost: c, at_most: m, how: h, evidence: e, remedy: c}",
            "of: .nowhere. is not one of them",
        ),
        ("a: {of: files}", "missing"),
        (
            f"a: {{of: files, seen: NO_SUCH > 1, {REST}}}",
            "NO_SUCH",
        ),
        (
            f"a: {{of: files, seen: READS > $no_such, {REST}}}",
            "no threshold 'no_such'",
        ),
    ],
)
def test_a_wrong_rule_is_named(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        found(tables(), read_rules(text))
    assert "a" in caught.value.key


def test_costs_are_the_same_to_the_last_digit_however_often_they_are_asked_for() -> None:
    """Sums of files, and of what their processes add up, in parts that threads could share out."""
    chance = np.random.default_rng(1)
    count = 300_000
    kept = {
        field.name: np.zeros(count) if pa.types.is_floating(field.type) else np.full(count, 5000)
        for field in files_schema()
        if not pa.types.is_string(field.type)
    }
    kept |= {"F_META_TIME": chance.exponential(1e-6, count), "process": np.arange(count) % 2}
    names = {"module": ["POSIX"] * count, "path": [f"/data/{n % 20_000}" for n in range(count)]}
    whole = pa.table({**kept, **names, "copy": np.zeros(count)}).select(files_schema().names)
    parts = [whole.slice(begin, 20_000).cast(files_schema()) for begin in range(0, count, 20_000)]
    content = tables(processes=(quiet(0), quiet(1)), files=pa.concat_tables(parts))
    costs = [{name: item.cost_s for name, item in found(content).items()} for _ in range(3)]
    assert costs[0]["repeated_stats"]
    assert costs == [costs[0]] * 3


def test_an_example_has_what_its_evidence_names_and_the_file() -> None:
    text = (
        "one: {of: files, title: t, seen: READS > 1, cost: F_READ_TIME, at_most: '9', how: h, remedy: c,"
        " evidence: '{READS:count} in {cost_s:seconds}, {mean_read_bytes:size} each'}"
    )
    content = tables(files=files_table([file_row(READS=2, BYTES_READ=8192, F_READ_TIME=0.5)]))
    assert found(content, read_rules(text))["one"].examples == ("/data/0: 2 in 500 milliseconds, 4 KiB each",)


def test_a_rule_cannot_reach_files_of_this_machine() -> None:
    table = read_rules(
        f"spy: {{of: files, seen: \"(SELECT count(*) FROM read_text('/etc/passwd')) > 0\", {REST}}}"  # noqa: S608 - to be refused
    )
    with pytest.raises(SpecError):
        found(tables(), table)
