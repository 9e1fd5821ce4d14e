"""How many metadata servers are enough: held against arithmetic done here by hand."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from made_studies import random_io, store

from leadline.cli.main import leadline
from leadline.cli.predict.sources import MeasuredRates, add_ranks, measured_in
from leadline.errors import SpecError
from leadline.sizing.gateways import PerRankRate, busiest, rank_words, ranks_counted
from leadline.sizing.hardware import built_in
from leadline.sizing.moved import Inputs, changed
from leadline.sizing.request import AskedSizing, MetadataNeed
from leadline.verdict.diagnosis.judge import Diagnosed
from leadline.verdict.diagnosis.results import CellDiagnosed
from leadline.verdict.model import Cell, Quantity, Validity
from leadline.verdict.requirements import read_requirements
from leadline.workloads.metadata.job import FIRST_BYTE, OPERATIONS

_HEAD = "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['3']\n  clients:\n"
_JOBS = "    jobs: {clients: 1000, metadata: {create: 5, stat: 40}}\n"
RATES = {"create": (2000.0, 2500.0), "stat": (20000.0, 25000.0)}


def _asked(body: str = _JOBS) -> AskedSizing:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return found


def test_each_operation_takes_its_part_of_a_ranks_time() -> None:
    """5,000 of 2,000 creates a second are 2.5 ranks, 40,000 of 20,000 stats 2: 4.5. By the high ends 3.6."""
    (one,) = ranks_counted(_asked(), [PerRankRate("c", 2, RATES)])
    assert (one.enough, one.by_high) == (5, 4)
    said = list(rank_words(_asked(), [PerRankRate("c", 2, RATES)]))
    assert said[0] == "Asked of metadata servers: create 5,000/s, stat 40,000/s."
    assert "5 active ranks are enough (4 by the high ends of its rates)" in said[1]


def test_beyond_four_times_the_ranks_that_were_measured_they_are_measured_first() -> None:
    (one,) = ranks_counted(_asked(), [PerRankRate("c", 1, RATES)])
    assert one.enough is None
    assert "measure first with 2 active ranks or more; 5 are more than 4 times the 1" in one.why_not


def test_the_hour_that_needs_most_ranks_counts() -> None:
    """By day stats, by night creates: 2 ranks of stats, 5 of creates, though there are fewer of them."""
    night, day = (
        ", ".join(["1" if (hour >= 18) == one else "0.001" for hour in range(24)]) for one in (True, False)
    )
    asked = _asked(
        f"    a: {{clients: 1000, metadata: {{create: 9.9}}, active: [{night}]}}\n"
        f"    b: {{clients: 1000, metadata: {{stat: 40}}, active: [{day}]}}\n"
    )
    assert busiest(asked)[1] == 0
    (one,) = ranks_counted(asked, [PerRankRate("c", 2, RATES)])
    assert one.enough == 5  # 4.95, and 0.04/20 of stats


def test_without_a_measured_rate_the_answer_is_what_to_run() -> None:
    (asked, then) = rank_words(_asked(), [])
    assert "create 5,000/s" in asked
    assert "not known; measure first: leadline run metadata" in then
    (one,) = ranks_counted(_asked(), [PerRankRate("c", 2, {"stat": (1.0, 2.0)})])
    assert one.why_not == "it has no rate of create"
    assert list(rank_words(_asked("    a: {clients: 1, read: 1 MB/s}\n"), [])) == []


def test_twice_the_clients_ask_for_twice_the_operations() -> None:
    inputs = changed(Inputs(_asked(), built_in()), "clients=2x")
    assert busiest(inputs.asked)[0] == {"create": 10000, "stat": 80000}


def _diagnosed(ranks: tuple[float | None, ...] = (2.0, 2.0), **changes: Any) -> CellDiagnosed:
    metrics = {
        "create_iops": Quantity(4500.0, "1/s", 4000.0, 5000.0),
        "stat_iops": Quantity(45000.0, "1/s", 40000.0, 50000.0),
        "create_latency_p50": Quantity(1.0, "ns", 1.0, 1.0),
    }
    cell = replace(Cell("t.tree", "t", "tree", {}, {}, metrics, Validity("VALID")), **changes)
    return CellDiagnosed(cell, Diagnosed("cannot_tell", figures=tuple({"mds_ranks": one} for one in ranks)))


def test_a_cell_on_a_cluster_gives_the_rate_of_one_rank() -> None:
    """4,000 to 5,000 creates a second by two ranks."""
    found = MeasuredRates()
    add_ranks(found, _diagnosed(), {"t": {"lab": False}})
    assert found.ranks == [PerRankRate("t.tree", 2, RATES)]
    assert found.refused == []


@pytest.mark.parametrize(
    ("one", "clusters", "words"),
    [
        (_diagnosed(), {}, "no cluster of Ceph"),
        (_diagnosed(), {"t": {"lab": True}}, "a lab's metadata servers"),
        (_diagnosed(validity=Validity("INVALID")), {"t": {}}, "INVALID"),
        (_diagnosed((1.0, 2.0)), {"t": {}}, "was not seen, or changed"),
        (_diagnosed((None,)), {"t": {}}, "was not seen, or changed"),
        (_diagnosed(metrics={"create_iops": Quantity(4500.0, "1/s")}), {"t": {}}, "no confidence interval"),
    ],
)
def test_of_other_cells_it_is_said_why_they_give_none(
    one: CellDiagnosed, clusters: dict[str, dict[str, Any]], words: str
) -> None:
    found = MeasuredRates()
    add_ranks(found, one, clusters)
    assert found.ranks == []
    (said,) = found.refused
    assert words in said
    assert "t.tree" in said


@pytest.mark.parametrize(("body", "said"), [(_JOBS, 1), ("    a: {clients: 1, read: 1 MB/s}\n", 0)])
def test_a_stored_result_says_of_metadata_what_is_asked(tmp_path: Path, body: str, said: int) -> None:
    """This one has a tree of files on a lab."""
    store(random_io(random.Random(1)), tmp_path / "r")  # noqa: S311
    found = measured_in([tmp_path / "r"], _asked(body))
    assert len([line for line in found.refused if "metadata server" in line]) == said


def test_a_cell_without_metadata_says_nothing_of_it() -> None:
    found = MeasuredRates()
    add_ranks(found, _diagnosed(metrics={"read_iops": Quantity(1.0, "1/s", 1.0, 1.0)}), {"t": {}})
    assert (found.ranks, found.refused) == ([], [])


def test_operations_have_the_names_of_the_kind_of_work() -> None:
    """Each with a rate in its results; the wait for a first byte has none."""
    assert set(MetadataNeed.model_fields) == {*OPERATIONS} - {FIRST_BYTE}


@pytest.mark.parametrize(
    ("need", "words"),
    [
        ("{}", "no operation"),
        ("{stat: 0}", "out of range"),
        ("{stat: -1}", "out of range"),
        ("{stat: many}", "out of range"),
        ("{stats: 4}", "did you mean stat"),
        ("5", "a mapping is needed"),
    ],
)
def test_operations_that_are_none_are_refused_with_their_line(need: str, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        _asked(f"    a:\n      clients: 1\n      metadata: {need}\n")
    assert words in f"{refused.value.message} {refused.value.remedy}"
    assert refused.value.line == 8


def test_the_command_says_what_is_asked_of_metadata_servers(tmp_path: Path) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(_HEAD + _JOBS)
    said = CliRunner().invoke(leadline, ["size", str(file)], standalone_mode=False)
    assert "Asked of metadata servers: create 5,000/s, stat 40,000/s." in " ".join(said.output.split())
    found = CliRunner().invoke(leadline, ["size", str(file), "--json"], standalone_mode=False)
    metadata = json.loads(found.output)["metadata"]
    assert metadata["operations_s"] == {"create": 5000, "stat": 40000}
    assert metadata["ranks"] == []
