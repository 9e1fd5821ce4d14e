"""The tables that a host hands over, whatever it wrote into them: used, or an error that names the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import trial_row
from host_studies import GOOD_CLOCK, S, summary

from leadline.errors import ResultError
from leadline.hosts.model import AttemptEnd
from leadline.hosts.workers import collector as collector_module
from leadline.hosts.workers.attempt_runner import AttemptResult
from leadline.hosts.workers.calls import CallResult, Order
from leadline.hosts.workers.collector import TableCollector
from leadline.plan.model import Trial
from leadline.store.files import write_table
from leadline.store.tables import TABLES, TrialRow, to_arrow

TRIAL = Trial("t0001", 1, 1, "seqread_1m", "ceph", 7)


class FetchedCrew:
    """Hosts that answer `fetch` with these files, `short` of so many bytes."""

    def __init__(self, files: Mapping[str, bytes], short: int = 0) -> None:
        self.files, self.short, self.asked = files, short, list[int]()

    def ask(self, order: Order) -> dict[str, CallResult]:
        said = {}
        for host, (_, pieces) in order.arguments.items():
            found = {
                path: self.files[path][offset : offset + size - self.short]
                for path, (offset, size) in pieces.items()
            }
            self.asked += [size for _, size in pieces.values()]
            said[host] = CallResult(found)
        return said


def taking(tmp_path: Path, crew: Any = None) -> TableCollector:
    clocks = SimpleNamespace(of=lambda _: GOOD_CLOCK)
    study_hosts: Any = SimpleNamespace(
        crew=crew, remote=SimpleNamespace(fetch=len, forget=len), clocks=clocks, machine=lambda _: ""
    )
    writer: Any = SimpleNamespace(path=tmp_path / "result")
    return TableCollector(study_hosts, writer)


def row(**values: Any) -> TrialRow:
    made = {
        "trial": TRIAL.id,
        "cell": TRIAL.cell,
        "state": "complete",
        "read_bytes": 1 << 20,
        "summary": summary(1 << 20, 1 << 20),
        "measured_ns": 4 * S,
        "last_done_ns": 4 * S,
    }
    return trial_row(**{**made, **values})


def staged(tmp_path: Path, host: str, found: TrialRow) -> None:
    place = tmp_path / "result" / "records" / "hosts-a1" / host
    for name, row_type in TABLES.items():
        (place / name).mkdir(parents=True)
        write_table(place / name, TRIAL.id, to_arrow([found] if name == "trials" else [], row_type))


def join(tmp_path: Path) -> Any:
    ends = {host: AttemptEnd(host, "a1", "finished") for host in ("alpha", "beta")}
    tried = AttemptResult("a1", ("alpha", "beta"), ends)
    cell: Any = None
    return taking(tmp_path).joined(tried, [TRIAL], [cell])


@pytest.mark.parametrize(
    "wrong",
    [
        {"summary": "{" * 100_000},
        {"summary": '{"x":' * 100_000},
        {"summary": "7"},
        {"trial": "../../x"},
        {"cell": "another"},
    ],
    ids=lambda wrong: ",".join(f"{name}={str(value)[:9]}" for name, value in wrong.items()),
)
def test_a_row_that_cannot_be_used_is_an_error_that_names_its_host(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    staged(tmp_path, "alpha", row())
    staged(tmp_path, "beta", replace(row(), **wrong))
    with pytest.raises(ResultError, match="host beta stored of trial t0001"):
        join(tmp_path)


def test_counts_whose_sum_no_column_holds_are_an_error_that_names_the_hosts(tmp_path: Path) -> None:
    for host in ("alpha", "beta"):
        staged(tmp_path, host, row(cpu_user_ns=(1 << 63) - 1))
    with pytest.raises(ResultError, match="hosts alpha, beta stored of trial t0001"):
        join(tmp_path)


def test_a_table_that_is_none_is_an_error_that_names_its_host(tmp_path: Path) -> None:
    staged(tmp_path, "alpha", row())
    staged(tmp_path, "beta", row())
    (tmp_path / "result/records/hosts-a1/beta/series/t0001.parquet").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(ResultError, match="host beta stored of trial t0001"):
        join(tmp_path)


def fetched(tmp_path: Path, crew: FetchedCrew, files: Mapping[str, int]) -> AttemptResult:
    tried = AttemptResult("a1", ("alpha",), {"alpha": AttemptEnd("alpha", "a1", "finished", files=files)})
    taking(tmp_path, crew).fetch(tried)
    return tried


def test_files_larger_than_a_message_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "_FETCH_BYTES", 1000)
    files = {"trials/t0001.parquet": bytes(range(256)) * 10, "output/t0001": b"", "series/x": b"abc"}
    crew = FetchedCrew(files)
    tried = fetched(tmp_path, crew, {path: len(data) for path, data in files.items()})
    assert not tried.lost
    assert max(crew.asked) == 1000
    place = tmp_path / "result/records/hosts-a1/alpha"
    assert {
        str(one.relative_to(place)): one.read_bytes() for one in place.rglob("*") if one.is_file()
    } == files


def test_a_host_that_hands_over_less_than_it_named_is_lost(tmp_path: Path) -> None:
    crew = FetchedCrew({"series/x": b"abc"}, short=1)
    tried = fetched(tmp_path, crew, {"series/x": 3})
    assert tried.lost == {"alpha": "series/x came with 2 bytes in place of 3"}


class DeafCrew:
    """Hosts of which `alpha` hears nothing at first, and then has no session once."""

    hosts = ("alpha", "beta")

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[str, ...]]] = []

    def tell(self, _function: object, attempt: str, hosts: list[str]) -> dict[str, CallResult]:
        self.told.append((attempt, tuple(hosts)))
        closed = CallResult(problem="no study is open in this session")
        answers = {"alpha": (None, closed, CallResult({}))[len(self.told) - 1], "beta": CallResult({})}
        return {host: one for host in hosts if (one := answers[host]) is not None}


def test_a_host_that_did_not_hear_that_it_may_forget_is_told_again(tmp_path: Path) -> None:
    crew = DeafCrew()
    hosts = taking(tmp_path, crew)
    hosts.done(AttemptResult("a1", ("alpha", "beta", "gamma")))  # gamma takes no part any more
    for _ in range(4):
        hosts.forget()
    assert crew.told == [("a1", ("alpha", "beta")), ("a1", ("alpha",)), ("a1", ("alpha",))]
