"""Which rules a trace could not answer, and of what its causes are shares."""

from __future__ import annotations

from typing import Any

import pytest
from trace_tables import SECOND, file_row, files_table, process, tables

from leadline.tracing.figures import shares, speeds, wall_seconds
from leadline.tracing.files import views
from leadline.tracing.rules import apply, read_rules, rules, unasked
from leadline.tracing.tables import TraceTables

RULES = """
a: {of: files, thresholds: {calls: 10}, seen: READS >= $calls AND failed >= $calls, REST}
b: {of: files, thresholds: {calls: 99}, seen: READS >= $calls AND failed >= $calls, REST}
""".replace("REST", "title: t, cost: '1', at_most: '1', how: h, evidence: e, remedy: c")


def lacking(content: TraceTables, table: Any) -> dict[str, tuple[str, ...]]:
    wall_s = wall_seconds(content)
    with views(content, shares(content, wall_s), speeds(content, wall_s)) as connection:
        held = {item.rule for item in apply(connection, table)}
        return {one.rule: one.lacks for one in unasked(connection, table, held)}


def of_file(table: Any, **counters: Any) -> dict[str, tuple[str, ...]]:
    return lacking(tables(files=files_table([file_row(**counters)])), table)


def test_a_rule_is_open_only_where_what_is_known_does_not_settle_it() -> None:
    """Both lack the same column; of the second the number of reads says that it does not hold."""
    assert of_file(read_rules(RULES), READS=50) == {"a": ("failed",)}
    assert of_file(read_rules(RULES), READS=50, failed=0) == {}
    assert of_file(read_rules(RULES), READS=50, failed=20) == {}


def test_a_mean_of_no_reads_is_no_lack() -> None:
    assert "small_reads" not in of_file(rules(), READS=0, BYTES_READ=0, CONSEC_READS=0)


def test_the_end_of_what_was_never_read_is_no_lack() -> None:
    """Where nothing was moved no furthest byte is known, and none is needed."""
    idle = of_file(rules(), READS=0, BYTES_READ=0, WRITES=0, BYTES_WRITTEN=0)
    assert not {"reread", "rewritten"} & set(idle)
    assert of_file(rules(), READS=9, BYTES_READ=9 << 20)["reread"] == ("MAX_BYTE_READ",)


@pytest.mark.parametrize("sync", [None, 0.0])
def test_syncs_that_a_source_does_not_know_are_not_ruled_out(sync: float | None) -> None:
    seconds = {"read": 0.1, "write": 0.0, "meta": 0.0, "sync": sync}
    found = lacking(tables(processes=(process(seconds=seconds, ended_ns=SECOND),)), rules())
    assert ("sync_bound" in found) == (sync is None)
