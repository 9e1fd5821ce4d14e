"""A simulated cluster: bounds that arithmetic knows, Ceph's own placement, and clear words for bad input."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline.analysis.models.law import Station, operations
from leadline.analysis.models.simple import Protection
from leadline.cli.main import run_command_line
from leadline.errors import LeadlineError, SpecError, UsageError
from leadline.simulation.demands import Demand, max_min, solve
from leadline.simulation.model import SimulatedCluster, SimulatedWork, parse_work
from leadline.simulation.parameters import catalogue, read_parameters
from leadline.simulation.simulate import STANDING, placed, simulate

needs_crush = pytest.mark.skipif(shutil.which("crushtool") is None, reason="ceph-base is not installed")
REPLICATED = Protection(copies=3)


def cluster(
    hosts: int = 6, rate: float = 1.25e9, clients: int = 2, client_rate: float = 1.25e9
) -> SimulatedCluster:
    names = [f"host{number}" for number in range(hosts)]
    users = [f"client{number}" for number in range(clients)]
    above = {"core": "", **dict.fromkeys(names + users, "core")}
    rates = {**dict.fromkeys(names, rate), **dict.fromkeys(users, client_rate)}
    homes = tuple(name for name in names for _ in range(4))
    return SimulatedCluster(above, rates, homes, ("nvme",) * len(homes), tuple(users))


def of_one_station(depth: int, seconds: float, delay_s: float) -> Demand:
    found = Demand(SimulatedWork("w", "metadata", REPLICATED, depth=depth), 1)
    found.add("metadata server", seconds)
    found.delay_s = delay_s
    return found


@pytest.mark.parametrize("depth", [1, 4, 16, 64])
def test_queues_agree_with_the_exact_mean_value_analysis(depth):
    found = solve([of_one_station(depth, 1e-3, 5e-3)], {})
    exact = operations([Station("wire", 5e-3, 0), Station("server", 1e-3)], depth).computed[0].low
    assert found.each[0] == pytest.approx(exact, rel=0.06)


def test_queues_of_many_nearly_full_stations_settle():
    """As of many OSDs and hundreds of requests in flight, where plain steps swing for ever."""
    found = Demand(SimulatedWork("w", "randwrite", REPLICATED, bs_bytes=4096, depth=512, jobs=16), 17)
    for osd in range(60):
        found.add(f"osd.{osd} device", 1e-6 * (1 + osd / 200), 0.4)
    found.delay_s = 1e-4
    solved = solve([found], {})
    assert solved.settled
    assert 0.97 < max(solved.use.values()) <= 1.0


@needs_crush
def test_what_does_not_settle_is_an_error_and_a_draw_of_it_a_warning(monkeypatch):
    """Nobody reads rates whose queues do not agree with them as if they did."""
    work, solved = parse_work("rw=randwrite,iodepth=64,groups=2048", 1), []

    def swings(*given):
        solved.append(solve(*given))
        return replace(solved[-1], off=0.5 if len(solved) in (3, 7) else solved[-1].off)

    with monkeypatch.context() as patched:
        patched.setattr("leadline.simulation.simulate.solve", swings)
        found = simulate(cluster(), [work], catalogue(), draws=20)
    assert len(found.warnings) == 1
    assert "not settled: in 2 of 20 draws" in found.warnings[0]
    assert simulate(cluster(), [work], catalogue(), draws=20).warnings == ()
    monkeypatch.setattr("leadline.simulation.demands.ROUNDS", 1)
    with pytest.raises(LeadlineError, match="did not settle"):
        simulate(cluster(), [work], catalogue(), draws=20)


def test_what_the_command_says_of_published_rows_is_what_the_table_has():
    page = (Path(__file__).parents[2] / "bench" / "simulation.md").read_text(encoding="utf-8")
    rows = re.search(r"(\d+) of (\d+) inside; median of the absolute error (\d+)%", page)
    assert rows is not None
    inside, count, error = rows.groups()
    assert f"{inside} of {count} published rows inside" in STANDING
    assert f"median absolute error {error} %" in STANDING
    labs = re.search(r"first table: (\d+) points\s+Median of the absolute error \*\*([\d.]+)%", page)
    assert labs is not None
    points, lab_error = labs.groups()
    first = page[labs.start() : page.index("###", labs.end())]
    assert f"median error was {float(lab_error):.0f} % at {points} points of labs" in STANDING
    assert f"before, {int(points) - first.count('**outside** |')} inside" in STANDING


def test_a_full_station_is_shared_and_what_a_slow_one_leaves_goes_to_the_other():
    wanted, load, counts = np.array([2.0, 100.0]), np.array([[0.1], [0.1]]), np.ones((2, 1))
    rates = max_min(wanted, load, counts)
    assert rates == pytest.approx([2.0, 8.0])
    assert max_min(np.array([90.0, 100.0]), load, counts) == pytest.approx([5.0, 5.0])
    assert max_min(np.array([2.0, 3.0]), load, counts) == pytest.approx([2.0, 3.0])


@needs_crush
def test_placement_is_that_of_the_map_and_leaves_an_osd_that_is_out():
    shape = cluster()
    found = placed(shape, Protection(k=4, m=2), 64)
    hosts = [{shape.osd_hosts[osd] for osd in row} for row in found]
    assert found.shape == (64, 6)
    assert all(len(one) == 6 for one in hosts)
    without = placed(shape, Protection(k=4, m=2), 64, out=[3])
    assert 3 in found
    assert 3 not in without
    assert (placed(shape, Protection(k=4, m=2), 64, pool=2) != found).any()


@needs_crush
def test_slow_links_of_clients_bound_a_stream_at_their_rate():
    shape = cluster(client_rate=25e6)
    found = simulate(shape, [parse_work("rw=write,iodepth=16", 1)], catalogue(), draws=20)
    assert found.predicted[0].bound == "client link"
    assert found.predicted[0].bytes_s == pytest.approx(2 * 25e6, rel=0.06)
    assert found.predicted[0].low < found.predicted[0].high


@needs_crush
def test_erasure_coding_sends_less_between_hosts_and_reads_before_small_writes():
    shape = cluster(rate=50e6, clients=8)
    copies, coded = (
        simulate(shape, [parse_work(f"rw=write,iodepth=16,protection={one}", 1)], catalogue(), draws=20)
        for one in ("3", "4+2")
    )
    assert coded.predicted[0].bytes_s > copies.predicted[0].bytes_s
    shape = cluster(clients=8)
    small, coded_small = (
        simulate(shape, [parse_work(f"rw=randwrite,iodepth=64,protection={one}", 1)], catalogue(), draws=20)
        for one in ("3", "4+2")
    )
    assert coded_small.predicted[0].operations_s < small.predicted[0].operations_s / 2


@needs_crush
def test_the_server_of_metadata_is_named_where_it_is_full():
    found = simulate(cluster(), [parse_work("rw=metadata,numjobs=64", 1)], catalogue(), draws=20)
    assert found.predicted[0].bound == "metadata server"
    assert found.predicted[0].operations_s == pytest.approx(1 / 250e-6, rel=0.05)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bs=4k", "has no rw"),
        ("rw=write,bs=0", "moves nothing"),
        ("rw=write,iodepth=-1", "is no count"),
        ("rw=sideways", "not one of them"),
        ("rw=read,blocksize=4k", "no key 'blocksize'"),
        ("rw=read,protection=0+2", "no protection"),
        ("rw=read,rw=write", "given twice"),
    ],
)
def test_what_is_wrong_in_a_work_is_named(text, says):
    with pytest.raises(UsageError, match=says):
        parse_work(text, 1)


def test_too_few_osds_more_clients_than_there_are_and_unknown_classes_are_refused():
    work = parse_work("rw=write,protection=8+3", 1)
    with pytest.raises(UsageError, match="cannot hold 11"):
        simulate(cluster(hosts=2), [work], catalogue())
    with pytest.raises(UsageError, match="asks for 9 clients"):
        simulate(cluster(), [parse_work("rw=write,clients=9", 1)], catalogue())
    floppy = SimulatedCluster({"a": ""}, {}, ("a",) * 3, ("floppy",) * 3, ("a",))
    with pytest.raises(UsageError, match="called 'floppy'"):
        simulate(floppy, [work], catalogue())


def test_parameters_out_of_order_are_refused_with_their_line():
    with pytest.raises(SpecError, match="no range") as told:
        read_parameters("common:\n  latency_s: {value: 1, low: 2, high: 3, source: x}\n", "own.yaml")
    assert told.value.line == 2


TOPOLOGY = """
switches: {core: {}, rack: {uplink: UPLINK, rate: 1Gbit}}
hosts: {"store[1-3]": {switch: rack, link: 1Gbit, osds: 2}}
clients: {user1: {switch: core, link: 100Mbit}}
"""


@needs_crush
def test_the_command_names_the_link_of_a_client_and_refuses_uplinks_in_a_loop(tmp_path, capsys):
    file = tmp_path / "centre.yaml"
    file.write_text(TOPOLOGY.replace("UPLINK", "core"))
    words = ["simulate", str(file), "--work", "rw=write,iodepth=16", "--draws", "20", "--json"]
    assert run_command_line(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["format"] == "leadline.simulation/1"
    assert said["works"][0]["bound"] == "client link"
    assert said["standing"] == STANDING
    assert said["held_against_a_lab"] is True
    assert "catalogue" in said["parameters"]
    assert said["warnings"] == []
    assert said["figures"]["common"]["latency_s"]["kind"] == "assumed"
    assert run_command_line(words[:-1]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert STANDING in printed
    assert "Parameters: catalogue" in printed
    file.write_text(TOPOLOGY.replace("UPLINK", "rack"))
    assert run_command_line(words) == 2
    assert "make a loop" in capsys.readouterr().err
