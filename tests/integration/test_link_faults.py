"""Faults of links act on packets, as counted outside of what injects them, and go without a trace.

On a lab's network alone, with no cluster in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bare_network import (
    GIGABIT,
    PORT,
    SOURCE,
    asked,
    clear,
    ended,
    everything,
    inject,
    made_lab,
    rate_bit_s,
    reaches,
    received,
    sink,
    started,
)

from leadline.errors import UsageError
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.inject import actions, engine, kinds, wires
from leadline.lab.journal import LabJournal
from leadline.lab.network import make
from leadline.lab.record import LabRecord, read_record
from leadline.observe.network.interfaces import LabPortReader

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces need root")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabRecord]:
    """A network whose links carry 1 Gbit/s."""
    with made_lab(tmp_path_factory.mktemp("links") / "lab", GIGABIT) as made:
        yield made


@pytest.fixture(scope="module")
def before(lab: LabRecord) -> dict[str, list[str]]:
    """The network as it was made."""
    return everything(lab)


@pytest.fixture(autouse=True)
def as_it_was(lab: LabRecord, before: dict[str, list[str]]) -> Iterator[None]:
    """After each test, every queue, filter and device is as the network was made."""
    yield
    assert engine.clear(lab.directory, os.environ)[1] == []
    assert everything(lab) == before


@pytest.fixture
def stream(lab: LabRecord) -> Iterator[None]:
    """As much TCP as goes, from client1 to host1."""
    assert lab.network is not None
    taker = sink(lab, "host1", "tcp")
    giver = started(lab, "client1", SOURCE, "tcp", lab.network.address("host1"), str(PORT), "0", "1048576")
    yield
    ended(giver, taker)


def sampled(lab: LabRecord, reader: LabPortReader) -> dict[str, dict[str, float]]:
    """What the observers say of each port: subject -> metric -> value, between this call and the last one."""
    found: dict[str, dict[str, float]] = {}
    for source, subject, metric, value, unit in reader.sample(time.monotonic_ns()):
        assert (source, unit) == ("wire", "count" if metric in ("osds", "clients") else "B/s")
        found.setdefault(subject, {})[metric] = value
    return found


@pytest.mark.usefixtures("stream")
def test_the_ports_of_a_stream_are_sampled_with_the_rate_in_force(lab: LabRecord) -> None:
    own = Path("/proc/thread-self/ns/net").stat()
    reader = LabPortReader([str(lab.directory)])
    assert sampled(lab, reader) == {}
    assert poll(lambda: sampled(lab, reader)["client1"]["tx_bytes_per_s"] > 80e6, 10.0)
    identifier = inject(lab, "link-rate", "host1", rate="100Mbit", direction="to")
    found: dict[str, dict[str, float]] = {}

    def is_slow() -> bool:
        found.update(sampled(lab, reader))
        return 11e6 < found["host1"]["rx_bytes_per_s"] < 12.5e6 and found["client1"]["tx_bytes_per_s"] > 10e6

    assert poll(is_slow, 10.0, interval_s=0.3)
    assert found["host1"]["rate_bytes_per_s"] == 12.5e6
    assert found["client1"]["rate_bytes_per_s"] == 125e6
    assert found["host1"]["tx_bytes_per_s"] < 2e6
    assert found["host2"]["rx_bytes_per_s"] < 1e6
    clear(lab, identifier)
    assert sampled(lab, reader)["host1"]["rate_bytes_per_s"] == 125e6
    assert os.path.samestat(own, Path("/proc/thread-self/ns/net").stat())


@pytest.mark.usefixtures("stream")
def test_a_link_slows_while_a_stream_runs_and_is_as_fast_as_before_afterwards(lab: LabRecord) -> None:
    assert poll(lambda: rate_bit_s(lab) > 800e6, 10.0)
    identifier = inject(lab, "link-rate", "host1", rate="100Mbit", direction="to")
    assert poll(lambda: 90e6 < rate_bit_s(lab) < 102e6, 5.0)
    clear(lab, identifier)
    assert poll(lambda: rate_bit_s(lab) > 800e6, 10.0)


@pytest.mark.usefixtures("stream")
def test_only_the_direction_that_was_named_slows(lab: LabRecord) -> None:
    assert poll(lambda: rate_bit_s(lab) > 800e6, 10.0)
    inject(lab, "link-rate", "host1", rate="100Mbit", direction="from")
    assert rate_bit_s(lab) > 800e6
    inject(lab, "link-rate", "host1", rate="100Mbit", direction="to")
    assert poll(lambda: 90e6 < rate_bit_s(lab) < 102e6, 5.0)


@pytest.mark.usefixtures("stream")
def test_an_uplink_without_a_limit_gets_one_and_has_none_afterwards(lab: LabRecord) -> None:
    identifier = inject(lab, "link-rate", "switch1", rate="200Mbit")
    assert poll(lambda: 180e6 < rate_bit_s(lab, "u-switch1", "rx") < 204e6, 10.0)
    clear(lab, identifier)
    assert poll(lambda: rate_bit_s(lab) > 800e6, 10.0)


def test_a_lossy_link_loses_its_share_of_small_packets(lab: LabRecord) -> None:
    assert received(lab, "client1", "host1", 20_000, 100) == 20_000
    inject(lab, "link-loss", "host1", share="10%", direction="to")
    found = received(lab, "client1", "host1", 20_000, 100)
    # Five standard deviations of a binomial: 5 * sqrt(20000 * 0.1 * 0.9) = 212.
    assert abs(found - 18_000) < 212
    assert received(lab, "host1", "client1", 2_000, 100) == 2_000


@pytest.mark.usefixtures("stream")
def test_streams_send_again_what_a_link_loses(lab: LabRecord) -> None:
    def again() -> int:
        text = asked(lab, "client1", "nstat", "--json", "--noupdate", "--ignore", "--zeros")
        return int(json.loads(text)["kernel"]["TcpRetransSegs"])

    inject(lab, "link-loss", "client1", share="1%", direction="from")
    before = again()
    assert poll(lambda: again() - before > 100, 10.0)


def test_a_port_of_another_mtu_drops_the_large_and_passes_the_small(lab: LabRecord) -> None:
    assert reaches(lab, "client1", "host1", 1400)
    inject(lab, "mtu-mismatch", "host1", mtu="1000")
    assert not reaches(lab, "client1", "host1", 1400)
    assert not reaches(lab, "host1", "client1", 1400)
    assert reaches(lab, "client1", "host1", 900)
    assert reaches(lab, "host2", "client1", 1400)


@pytest.mark.usefixtures("stream")
def test_a_stream_stands_still_before_a_port_of_another_mtu(lab: LabRecord) -> None:
    assert poll(lambda: rate_bit_s(lab) > 800e6, 10.0)
    inject(lab, "mtu-mismatch", "host1", mtu="1000")
    assert poll(lambda: rate_bit_s(lab) < 1e6, 10.0)
    assert poll(lambda: "backoff:" in asked(lab, "client1", "ss", "-tin"), 10.0)


def test_two_groups_do_not_hear_of_each_other_and_others_hear_both(lab: LabRecord) -> None:
    identifier = inject(lab, "partition", "switch1", **{"from": "host2"})
    assert not reaches(lab, "host1", "host2")
    assert not reaches(lab, "host2", "host1")
    assert reaches(lab, "client1", "host1")
    assert reaches(lab, "client1", "host2")
    clear(lab, identifier)
    # Who was not answered by ARP asks again after a second.
    assert poll(lambda: reaches(lab, "host1", "host2"), 5.0)


def test_a_link_that_is_down_has_no_carrier_at_either_end(lab: LabRecord) -> None:
    identifier = inject(lab, "link-down", "host1")
    assert poll(lambda: "NO-CARRIER" in asked(lab, "host1", "ip", "link", "show", "dev", "up0"), 5.0)
    assert not reaches(lab, "client1", "host1")
    clear(lab, identifier)
    assert reaches(lab, "client1", "host1")


def test_connections_are_ended_so_that_they_are_made_anew(lab: LabRecord, stream: None) -> None:
    variables = process.environment(lab.fsid, lab.directory, os.environ)

    def ports() -> list[str]:
        text = asked(lab, "client1", "ss", "--no-header", "-tn", "state", "established")
        return [line.split()[2] for line in text.splitlines()]

    assert poll(lambda: len(ports()) == 1, 5.0)
    wires.lose_connections(LabJournal(lab, variables), "client1")
    assert ports() == []


def test_the_kernels_netem_is_tried_and_not_believed(lab: LabRecord) -> None:
    done = subprocess.run(
        ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
        capture_output=True, check=False,
    )  # fmt: skip
    reason = kinds.find("link-delay").lacking(lab)
    assert ("sch_netem" in reason) == (done.returncode != 0)
    if reason:
        with pytest.raises(UsageError, match="sch_netem"):
            inject(lab, "link-delay", "host1")
        assert engine.in_force(lab.directory) == ()


def test_one_direction_of_a_link_has_one_rate_and_one_filter(lab: LabRecord) -> None:
    inject(lab, "link-rate", "host1", direction="to")
    with pytest.raises(UsageError, match="host1/queue/to is held"):
        inject(lab, "link-rate", "host1")
    inject(lab, "link-loss", "host1")
    with pytest.raises(UsageError, match="host1/packets/to is held"):
        inject(lab, "mtu-mismatch", "host1")


def test_undoing_does_nothing_where_the_network_is_gone(tmp_path: Path) -> None:
    with made_lab(tmp_path / "lab", replace(GIGABIT, mtu_bytes=9000)) as gone:
        inject(gone, "link-rate", "host1")
        inject(gone, "mtu-mismatch", "host1")
        inject(gone, "partition", "host1")
        inject(gone, "link-down", "host2")
        make.remove(gone.fsid, gone.paths, process.environment(gone.fsid, gone.directory, os.environ))
        undone, failures = engine.clear(gone.directory, os.environ)
        assert (len(undone), failures) == (4, [])


def test_links_are_whole_again_before_a_lab_is_taken_down(
    lab: LabRecord, before: dict[str, list[str]]
) -> None:
    """Else what is mounted through them waits for ever for its last answer."""
    inject(lab, "link-down", "host1")
    inject(lab, "partition", "client1")
    inject(lab, "mtu-mismatch", "switch1")
    inject(lab, "link-rate", "host2")
    actions.release(read_record(lab.directory), process.environment(lab.fsid, lab.directory, os.environ))
    assert everything(lab) == before
