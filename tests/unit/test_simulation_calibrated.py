"""A calibration finds the figures that made its cells, says what it cannot tell, and refuses INVALID ones."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from host_studies import stored

from leadline.cli.main import run_command_line
from leadline.cli.predict.simulate import calibrated, parameters_text, usable_of
from leadline.errors import SpecError, UsageError
from leadline.simulation.calibrate import Calibration, ObservedCell, calibrate
from leadline.simulation.demands import demands
from leadline.simulation.model import SimulatedCluster, parse_work
from leadline.simulation.parameters import COMMON, Parameters, catalogue, read_own_parameters
from leadline.simulation.simulate import once, places

needs_crush = pytest.mark.skipif(shutil.which("crushtool") is None, reason="ceph-base is not installed")
NAMES = ("host0", "host1", "host2")
SHAPE = SimulatedCluster(
    {"core": "", **dict.fromkeys((*NAMES, "user"), "core")},
    dict.fromkeys((*NAMES, "user"), 125e6),
    NAMES,
    ("ssd",) * 3,
    ("user",),
    machine_cores=2.0,
)
TRUE = {(COMMON, "osd_write_s"): 800e-6, (COMMON, "osd_byte_s"): 3e-9, ("ssd", "flush_s"): 3e-3}
WORKS = ("rw=randwrite,bs=64k", "rw=randwrite,bs=64k,iodepth=4", "rw=write,bs=1M", "rw=write,bs=1M,iodepth=4")


def changed(values: dict[tuple[str, str], float]) -> Parameters:
    before = catalogue()
    found = {name: replace(before.sections[name[0]][name[1]], value=value) for name, value in values.items()}
    return before.with_values(found, "made")


def cell_of(text: str, parameters: Parameters, *, seen: bool = True) -> ObservedCell:
    """A cell as the model itself has it with these parameters."""
    work = parse_work(text, 1)
    map_of = places(SHAPE, [work], 1)
    rates, _ = once(SHAPE, [work], map_of, parameters)
    asked = demands(SHAPE, [work], map_of, parameters)[0]
    osd = sum(one for name, one in asked.seconds.items() if name.startswith("osd.") and "processor" in name)
    return ObservedCell(
        text,
        work,
        float(rates.each[0]),
        0.02,
        osd if seen else None,
        stored_bytes=asked.stored_bytes if seen else None,
        flush_s=parameters.value("ssd", "flush_s") if seen and work.bs_bytes <= 65536 else None,
    )


def calibration(values: dict[tuple[str, str], float]) -> Calibration:
    parameters = changed(values)
    return calibrate(SHAPE, [cell_of(text, parameters) for text in WORKS], catalogue(), "ssd", "made")


@needs_crush
def test_the_figures_that_made_the_cells_lie_in_the_intervals_that_are_found():
    found = calibration(TRUE)
    for (section, name), true in TRUE.items():
        one = found.parameters.sections[section][name]
        assert (section, name) in found.told
        assert one.kind == "measured"
        assert one.low < true < one.high
        assert one.value == pytest.approx(true, rel=0.3)
    assert all(abs(off - 1) < 0.15 for off in found.off.values())


@needs_crush
def test_what_no_cell_tells_keeps_the_interval_of_the_catalogue_and_says_so():
    found = calibration(TRUE)
    before = catalogue().sections[COMMON]["osd_read_s"]
    kept = found.parameters.sections[COMMON]["osd_read_s"]
    assert (COMMON, "osd_read_s") in found.untold
    assert (kept.value, kept.low, kept.high) == (before.value, before.low, before.high)
    assert kept.kind == before.kind
    assert kept.source.startswith("not measured by made")


@needs_crush
def test_rates_that_the_model_does_not_give_make_its_error_wider():
    parameters = changed(TRUE)
    cells = [cell_of(text, parameters) for text in WORKS]
    odd = [
        replace(one, operations_s=one.operations_s * (3 if place % 2 else 1 / 3))
        for place, one in enumerate(cells)
    ]
    widths = [
        calibrate(SHAPE, of, catalogue(), "ssd", "made").parameters.sections[COMMON]["model_error"].spread
        for of in (cells, odd)
    ]
    assert widths[1] > 2 * widths[0]


@needs_crush
def test_the_file_that_is_written_is_the_one_that_is_read():
    found = calibration(TRUE).parameters
    again = read_own_parameters(parameters_text(found), "own.yaml")
    for section, figures in found.sections.items():
        for name, one in figures.items():
            read = again.sections[section][name]
            assert np.isclose(
                [read.value, read.low, read.high], [one.value, one.low, one.high], rtol=1e-5
            ).all()
            assert (read.kind, read.source) == (one.kind, one.source)


def rate(_host: str, block: int, cell: str) -> float:
    return (300e6 if "1m" in cell else 20e6) * (1 + block / 100)


def test_cells_of_a_result_are_read_as_works_with_their_protection(tmp_path: Path):
    stored(tmp_path / "r", ["node1"], rate)
    cells = usable_of(tmp_path / "r", 1).cells
    works = {one.work.bs_bytes: one.work for one in cells}
    assert works[4096].rw == "randread"
    assert works[1 << 20].protection.copies == 3
    assert works[1 << 20].depth == 4
    by_size = {one.work.bs_bytes: one.operations_s for one in cells}
    assert by_size[1 << 20] == pytest.approx(300, rel=0.05)


def test_a_cell_of_more_clients_than_the_topology_has_is_left_out_with_the_reason(tmp_path: Path):
    stored(tmp_path / "r", ["node1", "node2"], rate)
    with pytest.raises(UsageError, match="more clients than the topology has"):
        calibrated(SHAPE, [tmp_path / "r"], catalogue(), "ssd")


TOPOLOGY = """
switches: {core: {}}
hosts: {"store[1-3]": {switch: core, link: 1Gbit, osds: 1}}
clients: {user1: {switch: core, link: 1Gbit}}
"""


def test_a_calibration_by_an_invalid_cell_is_refused_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    stored(tmp_path / "r", ["node1"], rate, unwritten_blocks=1)
    file = tmp_path / "centre.yaml"
    file.write_text(TOPOLOGY)
    assert run_command_line(["simulate", str(file), "--calibrate", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert "cell shared.randread_4k is INVALID" in said or "cell shared.seqread_1m is INVALID" in said
    assert "measure it again" in said


@needs_crush
def test_the_command_writes_parameters_and_says_what_is_measured_and_what_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    stored(tmp_path / "r", ["node1"], rate)
    file, out = tmp_path / "centre.yaml", tmp_path / "own.yaml"
    file.write_text(TOPOLOGY)
    words = ["simulate", str(file), "--calibrate", str(tmp_path / "r"), "-o", str(out)]
    assert run_command_line(words) == 0
    said = capsys.readouterr().out
    assert "model_error" in said
    assert "osd_write_s 0.0000930 0.0000400 0.000250 not measured" in " ".join(said.split())
    asked = ["simulate", str(file), "--parameters", str(out), "--work", "rw=read", "--draws", "20", "--json"]
    assert run_command_line(asked) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert figures["common"]["model_error"]["kind"] == "measured"
    assert figures["common"]["osd_write_s"]["kind"] == "catalogue"


def test_nothing_asked_and_a_file_without_a_calibration_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "centre.yaml"
    file.write_text(TOPOLOGY)
    assert run_command_line(["simulate", str(file)]) == 2
    assert "nothing to simulate" in capsys.readouterr().err
    assert run_command_line(["simulate", str(file), "--work", "rw=read", "-o", str(tmp_path / "p")]) == 2
    assert "--calibrate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("value: 6e-05", "value: 60us"), "plain numbers"),
        (("value: 6e-05", "value: 0"), "no range above 0"),
        (("value: 6e-05", "value: -6e-05"), "no range above 0"),
        (("value: 6e-05", "value: .inf"), "common.latency_s.value"),
        (("kind: assumed", "kind: guessed"), "is none"),
        (("  latency_s", "  latencies_s"), "no parameter 'latencies_s'"),
        (('"common":', '"floppy": 5\n"common":'), "parameters by name"),
    ],
)
def test_what_is_wrong_in_a_file_of_parameters_is_named(change, says):
    text = parameters_text(catalogue())
    assert change[0] in text
    with pytest.raises(SpecError, match=says):
        read_own_parameters(text.replace(change[0], change[1], 1), "own.yaml")


def test_a_parameter_that_is_missing_is_named():
    lines = parameters_text(catalogue()).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("  queue_spread"))
    with pytest.raises(SpecError, match="has no queue_spread"):
        read_own_parameters(text, "own.yaml")
