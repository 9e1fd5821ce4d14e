"""The law of a study's threads, and which figures are given for each device."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy import optimize

from leadline.analysis.models.law import LawOfBlocks, ScalabilityLaw, fit_law, law_of_blocks
from leadline.verdict.diagnosis.causes import causes
from leadline.verdict.diagnosis.results import CellDiagnosed
from leadline.verdict.model import Cell, CellShown, Quantity, State, TargetView, Validity
from leadline.verdict.protections import PerDevice, per_device_of, protected_section, protections_of

NUMBERS = (1.0, 2.0, 4.0, 8.0)


def _blocks(law: ScalabilityLaw, noise: float, count: int = 4, seed: int = 1) -> list[dict[float, float]]:
    chance = random.Random(seed)  # noqa: S311 - data of a test
    return [{n: law.rate(n) * chance.lognormvariate(0, noise) for n in NUMBERS} for _ in range(count)]


def _law(law: ScalabilityLaw, noise: float = 0.005, seed: int = 1) -> LawOfBlocks:
    found = law_of_blocks(_blocks(law, noise, seed=seed))
    assert found is not None
    return found


def test_a_law_is_fitted_to_what_follows_it() -> None:
    asked = ScalabilityLaw(100.0, 0.1, 0.02)
    found, errors = fit_law({n: asked.rate(n) for n in NUMBERS})
    assert (found.one, found.contention, found.crosstalk) == pytest.approx((100.0, 0.1, 0.02), rel=1e-3)
    assert errors.contention < 1e-3


@pytest.mark.parametrize("law", [(0.0, 0.0), (0.05, 0.0), (0.3, 0.0001), (0.9, 0.2), (0.02, 0.01)])
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_the_fit_is_that_of_scipy(law: tuple[float, float], noise: float) -> None:
    def logarithm(n: Any, one: float, contention: float, crosstalk: float) -> Any:
        return np.log(one * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1)))

    for rates in _blocks(ScalabilityLaw(100.0, *law), noise):
        found, errors = fit_law(rates)
        values, covariance = optimize.curve_fit(
            logarithm,
            np.array(NUMBERS),
            np.log(list(rates.values())),
            p0=(rates[1.0], 0.01, 0.0001),
            bounds=((1e-12, 0.0, 0.0), (np.inf, 1.0, 1.0)),
            ftol=1e-15,
            xtol=1e-15,
            gtol=1e-15,
        )
        fitted = (found.one, found.contention, found.crosstalk)
        assert fitted == pytest.approx(values, rel=1e-4, abs=1e-5)
        of_errors = (errors.one, errors.contention, errors.crosstalk)
        assert of_errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-3)


def test_points_on_the_law_have_no_error() -> None:
    for law in ((0.0, 0.0), (0.02, 0.0001), (0.0, 0.0001)):
        asked = ScalabilityLaw(100.0, *law)
        found, errors = fit_law({n: asked.rate(n) for n in NUMBERS})
        assert (found.contention, found.crosstalk) == pytest.approx(law, abs=1e-6)
        assert max(errors.contention, errors.crosstalk) < 1e-6


def test_a_peak_within_what_was_measured_is_told_with_its_interval() -> None:
    found = _law(ScalabilityLaw(100.0, 0.05, 0.06))  # most at sqrt(0.95 / 0.06) = 3.98
    assert found.outcome == "peak"
    assert found.most_at[0] <= 3.98 <= found.most_at[1] <= 8


def test_what_still_rises_is_told() -> None:
    found = _law(ScalabilityLaw(100.0, 0.02, 0.0001), noise=0.0005)
    assert found.outcome == "rising"
    assert found.most_at[0] >= 8


def test_what_scatters_too_much_is_undecided() -> None:
    assert _law(ScalabilityLaw(100.0, 0.05, 0.01), noise=0.3).outcome == "undecided"


def test_the_interval_of_the_most_covers_it() -> None:
    law = ScalabilityLaw(100.0, 0.05, 0.05)
    top = (0.95 / 0.05) ** 0.5
    held = [_law(law, 0.02, seed).most_at for seed in range(100)]
    assert sum(low <= top <= high for low, high in held) >= 90


@pytest.mark.parametrize("blocks", [[], _blocks(ScalabilityLaw(1.0, 0.0, 0.0), 0.1, 2)])
def test_too_few_blocks_tell_nothing(blocks: list[dict[float, float]]) -> None:
    assert law_of_blocks(blocks) is None
    three = [{n: 1.0 for n in NUMBERS[:3]}] * 4
    assert law_of_blocks(three) is None


def _cell(work: str, bs: int, state: State = "VALID", target: str = "rep") -> Cell:
    rates = {
        "bandwidth": Quantity(1200.0, "B/s", 600.0, 2400.0, 3),
        "iops": Quantity(12.0, "1/s", 6.0, 24.0, 3),
    }
    shown = CellShown(pattern="random write", block_bytes=bs, in_flight=16)
    metrics = {**rates, "latency_mean": Quantity(5e6, "ns")}
    return Cell(f"{target}.{work}", target, work, {}, {"bs": bs}, metrics, Validity(state), shown=shown)


def _view(name: str = "rep", *, lab: bool = False, **ceph: Any) -> TargetView:
    facts = {"access": "ceph-fuse", "file_system": "x", "words": "x", "ceph": {"lab": lab, **ceph}}
    return TargetView(name, "/x", "ceph-fuse", "x", facts)


def _bound(cell: Cell, cause: str | None) -> CellDiagnosed:
    entry = next((one for one in causes() if one.name == cause), None)
    named = (SimpleNamespace(entry=entry, title=entry.title),) if entry else ()
    return CellDiagnosed(cell, cast("Any", SimpleNamespace(named=named)))


def _trial(cell: Cell, osds: int | None) -> Any:
    return SimpleNamespace(cell=cell.id, start_state=f'{{"osds_in": {osds}}}' if osds else "null")


def _judged(
    cause: str | None, *, state: State = "VALID", lab: bool = False, osds: int | None = 12
) -> PerDevice:
    cell = _cell("w", 4096, state)
    return per_device_of([cell], [_view(lab=lab)], [_bound(cell, cause)], [_trial(cell, osds)] * 2)


@pytest.mark.parametrize("cause", ["store_device", "store_flush"])
def test_what_the_devices_of_all_osds_bound_is_divided_by_them(cause: str) -> None:
    found, cell = _judged(cause), _cell("w", 4096)
    assert found.devices(cell) == 12
    assert not found.statements
    assert found.divided(cell, cell.metrics["bandwidth"]) == Quantity(100.0, "B/s", 50.0, 200.0, 3)


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (_judged("client_thread"), "1 with another bottleneck"),
        (_judged("osd_slow_device"), "1 with another bottleneck"),
        (_judged(None), "1 with an unknown bottleneck"),
        (_judged("store_device", state="INVALID"), "1 INVALID or not run"),
        (_judged("store_device", lab=True), "1 on a lab, whose OSDs share one disk"),
        (_judged("store_device", osds=None), "1 where the number of OSDs changed or was not seen"),
    ],
)
def test_what_they_do_not_bound_is_not_divided_and_why_is_said(judged: PerDevice, words: str) -> None:
    cell = _cell("w", 4096)
    assert judged.devices(cell) is None
    assert judged.divided(cell, cell.metrics["iops"]).value is None
    assert words in judged.statements[0].text


def test_the_table_has_protections_and_devices_only_where_they_are_known() -> None:
    cells = [
        _cell(f"w{bs}_{name}", bs, target=name) for bs in (4096, 65536) for name in ("rep", "ec", "here")
    ]
    views = [
        _view("rep", protection="replicated", size=3),
        _view("ec", protection="erasure", size=3, k=2, m=1),
        TargetView("here", "/x", "local", "ext4", {}),
    ]
    assert protections_of(views) == {"rep": "3x", "ec": "EC 2+1", "here": "\u2013"}
    plain = protected_section(cells, views, PerDevice({}))
    assert plain is not None
    (table,) = plain.tables
    assert [row.keys[1:] for row in table.rows[:3]] == [
        ("4 KiB", "16", "rep", "3x"),
        ("4 KiB", "16", "ec", "EC 2+1"),
        ("4 KiB", "16", "here", "\u2013"),
    ]
    assert len(table.columns) == 3
    divided = protected_section(cells, views, PerDevice({cells[0].id: 12}))
    assert divided is not None
    assert len(divided.tables[0].columns) == 5
    assert [row.values[4].value for row in divided.tables[0].rows[:2]] == [1.0, None]


def test_there_is_no_table_of_one_block_size() -> None:
    cells = [
        _cell("w", 4096),
        replace(_cell("v", 4096), shown=CellShown(pattern="random read", block_bytes=1)),
    ]
    assert protected_section(cells, [_view()], PerDevice({})) is None
