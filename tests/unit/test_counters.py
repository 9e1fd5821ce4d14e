"""The list of counters: what is made from it agrees with what was stored before, and it holds no slip."""

from __future__ import annotations

import ast
import dataclasses
import typing
from pathlib import Path

import pytest

from leadline.counters import observed
from leadline.counters.catalogue import (
    PLACES,
    How,
    TrialFigure,
    described,
    marked,
    trial_figures,
)
from leadline.observe.ceph import parse
from leadline.observe.host.proc_parse import Disk
from leadline.observe.reading import Mark, delta
from leadline.store.tables import TrialRow, schema

# The columns of the first results, in their order: name, type, and whether it may be null.
STORED = Path(__file__).parents[1] / "data" / "trial_columns.txt"


def test_the_columns_of_stored_trials_keep_their_order_names_and_types() -> None:
    stored = [tuple(line.split()) for line in STORED.read_text().splitlines()]
    found = [
        (column.name, str(column.type), "null" if column.nullable else "always")
        for column in schema(TrialRow)
    ]
    assert [column for column in found if column in stored] == stored
    for name, _, _ in set(found) - set(stored):
        assert {field.name: field.default for field in dataclasses.fields(TrialRow)}[name] is None


def test_what_code_names_is_in_the_list_with_its_type() -> None:
    tree = ast.parse(Path(observed.__file__).read_text())
    declared = {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
    }
    made = {field.name: field.type for field in dataclasses.fields(observed.ObservedFigures)}
    assert {name: made.get(name) for name in declared} == declared


@pytest.mark.parametrize("figure", trial_figures(), ids=lambda figure: figure.name)
def test_each_figure_says_what_its_kind_needs(figure: TrialFigure) -> None:
    assert figure.unit in ("B", "B/s", "ns", "count", "share")
    assert figure.how in typing.get_args(How)
    assert bool(figure.part and figure.of) == (figure.how == "share") == (figure.unit == "share")
    assert (len(figure.sample) == 3) == (figure.how == "largest_sample")
    assert all(name for names in figure.places.values() for term in names for name in term)
    for term in figure.places.get("device", ()):
        assert set(term) <= {field.name for field in dataclasses.fields(Disk)}


def test_names_are_given_once_and_every_row_has_its_words() -> None:
    names = [figure.name for figure in trial_figures()]
    assert len(names) == len(set(names))
    assert all(row.figures and row.read_from for row in described())
    assert [figure.since for figure in trial_figures()] == sorted(figure.since for figure in trial_figures())
    assert {place for figure in trial_figures() for place in figure.places} <= set(PLACES)


def test_every_column_of_observers_comes_from_the_difference_of_marks() -> None:
    counters = dict.fromkeys(marked(), 100)
    start = Mark("s", 0, dict.fromkeys(marked(), 10), cpu_ns=1)
    change = delta(start, Mark("e", 1, counters, cpu_ns=3))
    expected = {"difference": 90, "larger": 100, "at_start": 10, "cost": 2}
    for figure in trial_figures():
        value = getattr(change, figure.name)
        if figure.how in expected:
            assert value == expected[figure.how], figure.name
        elif figure.how == "share":
            assert value == (0.0 if figure.less else 1.0)
        else:
            assert value is None
    assert set(change.figures()) == {f.name for f in trial_figures() if f.how != "largest_sample"}


def test_paths_into_perf_dumps_find_plain_numbers_averages_and_sums_over_sections() -> None:
    dump = {
        "a": {"n": 5, "lat": {"avgcount": 4, "sum": 1.5}},
        "w-0": {"b": 1},
        "w-1": {"b": 2},
        "off": {"b": True},
    }
    assert parse.number(dump, ("a.old", "a.n")) == 5
    assert parse.number(dump, ("w-*.b",)) == 3
    assert parse.number(dump, ("x-*.b",)) is None
    assert parse.number(dump, ("off.b",)) is None
    assert parse.number(dump, ("a.lat",)) is None
    waited = TrialFigure("waited_ns", "ns", "difference", 3, {"osds": (("a.lat.sum",),)})
    assert parse.figure_in(dump, waited, "osds") == 1_500_000_000
    both = TrialFigure("both", "count", "difference", 3, {"mds": (("a.n",), ("a.lat.avgcount",))})
    assert parse.figure_in(dump, both, "mds") == 9
    assert parse.figure_in({"a": {"n": 5}}, both, "mds") is None
