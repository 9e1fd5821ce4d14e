"""What a plateau is made of: the loads of its trials, against what each part can do."""

from __future__ import annotations

from builders import facts, trial_row

from leadline.store.tables import SeriesRow
from leadline.verdict.sweep.detection import parts_of_plateau

S = 1_000_000_000


def port(name: str, tx: float, rx: float, limit: float, at_s: float = 1.0) -> list[SeriesRow]:
    values = (("tx_bytes_per_s", tx), ("rx_bytes_per_s", rx), ("rate_bytes_per_s", limit))
    return [SeriesRow("t1", int(at_s * S), "wire", name, metric, value, "B/s") for metric, value in values]


def row(**changes: object) -> object:
    values = {"trial": "t1", "ramp_ns": 0, "measured_ns": 2 * S, "cpu_busy_share": 0.3, "busy_share_max": 0.5}
    return trial_row(**{**values, **changes})


def test_the_port_that_is_full_bounds_it_and_the_others_are_below() -> None:
    samples = {"t1": [*port("uplink-1", 9.8e8, 1e6, 1e9), *port("client", 1e6, 2e8, 1e9)]}
    found = parts_of_plateau([row()], samples, facts())  # type: ignore[list-item]
    assert [part.name for part in found.full] == ["port uplink-1"]
    assert found.full[0].words.startswith("port uplink-1 98 % of ")
    names = [part.name for part in found.seen]
    assert names.index("port client") > names.index("port uplink-1")
    assert "this host's processors" in names


def test_samples_from_before_the_measured_interval_do_not_count() -> None:
    samples = {"t1": [*port("up", 1e9, 0, 1e9, at_s=-1.0), *port("up", 1e8, 0, 1e9)]}
    found = parts_of_plateau([row()], samples, facts())  # type: ignore[list-item]
    assert [part.share for part in found.seen if part.name == "port up"] == [0.1]


def test_ports_that_are_full_by_turns_bound_it_together() -> None:
    turns = [("up-1", "up-2"), ("up-2", "up-1"), ("up-1", "up-2"), ("up-1", "up-2")]
    samples = [
        line
        for at_s, (full, other) in enumerate(turns, 1)
        for line in (*port(full, 9.5e8, 0, 1e9, at_s=at_s), *port(other, 3e8, 0, 1e9, at_s=at_s))
    ]
    found = parts_of_plateau([row(measured_ns=4 * S)], {"t1": samples}, facts())  # type: ignore[list-item]
    assert [part.name for part in found.full] == ["ports in turn"]
    assert found.full[0].words == "ports in turn 99 % (up-1, up-2)"


def test_ports_that_are_seldom_full_do_not() -> None:
    samples = [
        line
        for at_s, share in enumerate((0.95, 0.5, 0.6, 0.4), 1)
        for line in (*port("up-1", share * 1e9, 0, 1e9, at_s=at_s), *port("up-2", 5.5e8, 0, 1e9, at_s=at_s))
    ]
    found = parts_of_plateau([row(measured_ns=4 * S)], {"t1": samples}, facts())  # type: ignore[list-item]
    assert found.full == ()


def test_the_link_is_held_against_its_speed() -> None:
    one = row(interface_sent_bytes=2 * 10**9, interface_received_bytes=0, wire_limit_bytes_per_s=10**9)
    found = parts_of_plateau([one], {}, facts())  # type: ignore[list-item]
    assert [(part.name, part.share) for part in found.full] == [("the network link", 1.0)]


def test_nothing_is_made_up_where_nothing_was_observed() -> None:
    one = row(cpu_busy_share=None, busy_share_max=None)
    found = parts_of_plateau([one], {"t1": port("up", 1e9, 0, 0)}, facts())  # type: ignore[list-item]
    assert found.seen == ()
    assert found.full == ()
