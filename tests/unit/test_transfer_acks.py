"""What acknowledgements did: found where it was put into made traces, and not in independent streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from transfer_traces import LATENCIES, MIB, ending_together, in_step, made_acks, put_off, stalled

from leadline.store.own import Acks
from leadline.workloads.transfer.acks import (
    bursts_of,
    bytes_outstanding,
    ends_of,
    late_of,
    stalls_of,
    streams_of,
)


def _acks(*requests: tuple[int, float, float]) -> Acks:
    """Of (stream, submitted, acknowledged), seconds."""
    stream, submitted, acked = (np.array(part) for part in zip(*requests, strict=True))
    count = len(requests)
    size = np.full(count, MIB)
    return Acks(
        stream=stream,
        host=np.zeros(count, np.int64),
        reads=np.zeros(count, bool),
        offset=size,
        length=size,
        submitted_ns=np.rint(submitted * 1e9).astype(np.int64),
        acked_ns=np.rint(acked * 1e9).astype(np.int64),
        result=size,
    )


def test_a_silence_counts_from_the_last_ack_or_from_the_next_request_where_nothing_was_outstanding() -> None:
    acks = _acks((3, 0.0, 1.0), (3, 0.5, 1.5), (3, 4.0, 6.0), (3, 6.0, 6.5), (7, 0.0, 9.0))
    third, seventh = streams_of(acks)
    assert (third.number, seventh.number) == (3, 7)
    assert third.silences_s.tolist() == [1.0, 0.5, 2.0, 0.5]
    assert third.starts_s.tolist() == [0.0, 1.0, 4.0, 6.0]
    assert (third.longest_s, third.drain_s, third.last_submitted_s) == (2.0, 0.5, 6.0)
    assert (seventh.longest_s, seventh.drain_s) == (0.0, 9.0)


def test_bytes_outstanding_are_those_submitted_and_not_yet_acknowledged() -> None:
    bin_s, found = bytes_outstanding(_acks((0, 0.0, 2.0), (1, 1.0, 4.0)), 4)
    assert bin_s == 1.0
    assert found.tolist() == pytest.approx([MIB, 2 * MIB, MIB, MIB])


def test_of_no_acknowledgement_nothing_is_known() -> None:
    none = np.zeros(0, np.int64)
    acks = Acks(none, none, none.astype(bool), none, none, none, none, none)
    assert streams_of(acks) == ()
    assert late_of(()) is None
    assert bytes_outstanding(acks, 4)[0] == 0.0


def test_a_stall_of_some_streams_is_one_stall_with_its_streams_time_and_place() -> None:
    acks = stalled(made_acks(1), 11.0, 3.1, range(12))
    (stall,) = stalls_of(streams_of(acks))
    assert [one.number for one in stall.streams] == list(range(12))
    assert (stall.under_way, stall.hosts) == (16, ())
    assert stall.seconds == pytest.approx(3.1, abs=0.1)
    assert stall.start_s == pytest.approx(11.0, abs=0.1)


def test_stalls_of_other_streams_at_other_times_are_several() -> None:
    acks = stalled(stalled(made_acks(2), 20.0, 2.0, range(16)), 8.0, 1.0, range(4, 12))
    first, second = stalls_of(streams_of(acks))
    assert (len(first.streams), len(second.streams)) == (8, 16)


def test_a_stall_names_the_hosts_whose_streams_stopped() -> None:
    acks = stalled(made_acks(3, streams=4, hosts=("a", "b", "c")), 9.0, 2.0, range(4), host=1)
    (stall,) = stalls_of(streams_of(acks))
    assert (stall.hosts, len(stall.streams), stall.under_way) == (("b",), 4, 12)


def test_a_stream_that_stops_alone_must_stop_for_longer() -> None:
    acks = made_acks(4, in_flight=8)
    assert stalls_of(streams_of(stalled(acks, 9.0, 3.0, [5])))
    slow = made_acks(4, latency_s=0.2, in_flight=4)
    assert not stalls_of(streams_of(stalled(slow, 9.0, 1.5, [5])))
    assert stalls_of(streams_of(stalled(slow, 9.0, 1.5, [5, 6, 7, 8])))


def test_a_stream_without_a_request_outstanding_is_silent_and_stalls_not() -> None:
    """It is the sender that waits: what follows is submitted late, too."""
    acks = made_acks(5, in_flight=1)
    later = acks.submitted_ns >= 10e9
    idle = replace(
        acks,
        submitted_ns=np.where(later, acks.submitted_ns + 5_000_000_000, acks.submitted_ns),
        acked_ns=np.where(later, acks.acked_ns + 5_000_000_000, acks.acked_ns),
    )
    assert not stalls_of(streams_of(idle))


def test_files_that_end_together_are_told_from_those_of_one_pace() -> None:
    paces = [0.6 + 0.05 * place for place in range(16)]
    acks = made_acks(6, by_size=400, paces=paces)
    apart = ends_of(streams_of(acks), by_size=True)
    together = ends_of(streams_of(ending_together(acks, 0.4)), by_size=True)
    alike = ends_of(streams_of(made_acks(6, by_size=400)), by_size=True)
    assert apart is not None
    assert together is not None
    assert alike is not None
    assert not apart.together
    assert together.together
    assert together.within_s == pytest.approx(0.4, abs=0.05)
    assert not alike.together
    timed = ends_of(streams_of(ending_together(acks, 0.4)), by_size=False)
    assert timed is not None
    assert (timed.chance, timed.together) == (None, False)


def test_one_stream_does_not_end_together_with_itself() -> None:
    assert ends_of(streams_of(made_acks(1, streams=1)), by_size=True) is None


def test_bursts_of_all_streams_at_once_are_found_and_those_of_each_by_itself_are_not() -> None:
    acks = made_acks(7)
    found = bursts_of(streams_of(in_step(acks, 0.5)))
    assert found is not None
    assert found.together
    alone = bursts_of(streams_of(acks))
    assert alone is not None
    assert not alone.together
    assert alone.times == pytest.approx(1.0, abs=0.5)


def test_acks_that_come_late_after_the_last_request_are_found() -> None:
    acks = made_acks(8)
    found = late_of(streams_of(put_off(acks, 20.0)))
    assert found is not None
    assert found.late
    assert found.drain_s == pytest.approx(20.0, abs=1.0)
    usual = late_of(streams_of(acks))
    assert usual is not None
    assert not usual.late


def test_one_request_that_takes_long_at_the_end_is_a_drain_and_not_late_acks() -> None:
    acks = made_acks(8)
    last = acks.acked_ns.argmax()
    later = acks.acked_ns.copy()
    later[last] += 5_000_000_000
    found = late_of(streams_of(replace(acks, acked_ns=later)))
    assert found is not None
    assert found.drain_s > 5.0
    assert not found.late


@pytest.mark.parametrize("latencies", [name for name in LATENCIES if name != "long_tail"])
@pytest.mark.parametrize(("streams", "in_flight", "latency_s"), [(1, 4, 0.05), (16, 1, 0.05), (16, 16, 0.2)])
def test_of_independent_streams_nothing_is_said(
    latencies: str, streams: int, in_flight: int, latency_s: float
) -> None:
    """Of ten each; `docs/transfer.md` has how often it happens of more."""
    for seed in range(10):
        acks = made_acks(
            seed, streams=streams, in_flight=in_flight, latency_s=latency_s, latencies=latencies, seconds=10.0
        )
        own = streams_of(acks)
        bursts, late = bursts_of(own), late_of(own)
        assert not stalls_of(own)
        assert bursts is None or not bursts.together
        assert late is not None
        assert not late.late


@pytest.mark.parametrize("latencies", [name for name in LATENCIES if name != "long_tail"])
def test_independent_files_of_several_paces_do_not_end_together(latencies: str) -> None:
    for seed in range(10):
        paces = np.random.default_rng(seed).uniform(0.7, 1.3, 16)
        ends = ends_of(
            streams_of(made_acks(seed, by_size=200, latencies=latencies, paces=paces)), by_size=True
        )
        assert ends is not None
        assert not ends.together
