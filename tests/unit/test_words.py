"""Sentences: no claim without its interval, no interval without its number of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leadline.units import whole_percent
from leadline.verdict.messages import statements
from leadline.verdict.model import Cell, Chain, ChainPlace, Code, Comparison, Quantity, TargetView, Validity

LOCAL = TargetView("local", "/x", "local", "ext4 on vda")
CEPH = TargetView(
    "ceph", "/y", "ceph-fuse", "CephFS", {"ceph": {"protection": "erasure", "k": 2, "m": 1, "size": 3}}
)


def comparison(work: str, low: float, high: float, verdict: Any, **changes: Any) -> Comparison:
    values: dict[str, Any] = {"blocks": 6, "margin": 0.05, "validity": "VALID", **changes}
    return Comparison(
        work=work,
        metric="iops",
        base="local",
        other="ceph",
        ratio=(low * high) ** 0.5,
        low=low,
        high=high,
        verdict=verdict,
        **values,
    )


def cell(target: str, work: str, **changes: Any) -> Cell:
    values: dict[str, Any] = {"job": {"rw": "randwrite"}, "validity": Validity("VALID"), "metrics": {}}
    return Cell(id=f"{target}.{work}", target=target, work=work, factors={}, **{**values, **changes})


def texts(*comparisons: Comparison, cells: tuple[Cell, ...] = (), complete: bool = True) -> list[str]:
    return [s.text for s in statements((LOCAL, CEPH), cells, comparisons, complete)]


def test_a_slower_target_is_said_as_times_with_interval_and_blocks() -> None:
    (said,) = texts(comparison("randread_4k", 0.25, 0.25, "slower"))
    assert said == (
        "ceph (CephFS) compared with local (ext4 on vda):"
        " 4.0x slower in randread_4k (95 % CI 4.0 to 4.0, 6 blocks)."
    )


def test_several_works_give_the_range_from_least_to_most() -> None:
    (said,) = texts(comparison("a", 0.1, 0.1, "slower"), comparison("b", 0.5, 0.5, "slower"))
    assert "slower in 2 workloads, from 2.0x slower in b" in said
    assert "to 10x slower in a" in said


def test_same_and_undecided_are_said_and_nothing_is_claimed_of_invalid_figures() -> None:
    (said,) = texts(
        comparison("a", 0.98, 1.02, "same"),
        comparison("b", 0.8, 1.3, "undecided"),
        comparison("c", 0.1, 0.2, "undecided", validity="INVALID"),
    )
    assert "equivalent within 5 % in 1 workload" in said
    assert "inconclusive in 1 workload (b)" in said
    assert "not comparable in 1 workload: a value is INVALID" in said
    assert "slower" not in said


def test_one_target_alone_shows_its_best_figures_with_intervals() -> None:
    metrics = {"iops": Quantity(1000.0, "1/s", 900.0, 1100.0, 5)}
    found = statements((LOCAL,), (cell("local", "w", metrics=metrics),), (), True)
    assert "highest rate 1,000 IOPS (95 % CI 900 to 1,100 IOPS, 5 blocks) in w" in found[0].text


def chain(direction: Any, *places: tuple[str, float], **store: Any) -> Chain:
    found = [ChainPlace(name, name, share, 1, share) for name, share in places]
    if store:
        found[-1] = replace(found[-1], **store)
    return Chain(direction, 100, tuple(found), model="erasure coding 2+1: 1.50")


def test_amplification_is_held_against_the_model_of_that_size() -> None:
    cells = tuple(
        cell("ceph", work, chains=(chain("write", ("store", 1.0), bytes_per_byte=measured, model=model),))
        for work, measured, model in (("large", 1.6, 1.5), ("small", 20.0, 3.0))
    )
    said = texts(cells=cells)
    assert (
        "ceph: the OSDs' stores wrote 20.0 bytes for each byte written in small, 6.7x the model. The model"
        " gives 3.00 (erasure coding 2+1: 1.50)." in said
    )


def test_reads_out_of_caches_are_said_with_their_shares_and_never_without_the_word() -> None:
    places = (("page_cache", 0.43), ("client_cache", 0.02), ("store", 0.55))
    cells = (
        cell("ceph", "some", chains=(chain("read", *places),), validity=Validity("INVALID")),
        cell("ceph", "none", chains=(chain("read", ("page_cache", 0.01), ("store", 0.99)),)),
    )
    said = texts(cells=cells)
    assert "ceph: of the bytes read in some, 43 % came from the page cache (INVALID)." in said


def test_writes_that_stayed_in_memory_are_said() -> None:
    cells = (cell("local", "w", chains=(chain("write", ("page_cache", 0.99), ("device", 0.01)),)),)
    (said,) = texts(cells=cells)
    assert "99 % had reached only this host's memory" in said


def test_no_share_is_rounded_to_all_or_nothing() -> None:
    found = [whole_percent(share) for share in (0.0, 1.0, 0.43, 0.9999, 0.001, 0.00001, None)]
    assert found == ["0 %", "100 %", "43 %", "above 99.5 %", "below 0.5 %", "below 0.01 %", "unknown"]


def test_cells_in_doubt_are_counted_with_their_reasons() -> None:
    code = Code("errors", "INVALID", "errors", "t0001: Input/output error", "mend it")
    found = statements((LOCAL,), (cell("local", "w", validity=Validity("INVALID", (code,))),), (), False)
    said = [s.text for s in found]
    assert "1 of 1 cell is INVALID: do not use the values (errors)." in said
    assert any(text.startswith("The run did not finish") for text in said)
    assert found[-1].evidence == ("local.w: t0001: Input/output error",)


def test_a_lab_is_called_one() -> None:
    lab = TargetView("ceph", "/y", "ceph-fuse", "CephFS", {"ceph": {"lab": True}})
    assert "ceph is on a lab cluster: " in statements((lab,), (), (), True)[-1].text
