"""`leadline simulate`: what a cluster that is only a topology file would do, also while OSDs fail.

Its parameters may be calibrated by the cells of results.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo_text
from leadline.cli.explain.model import cables_of
from leadline.cli.options import AskedPath, RenamedOption, WrittenPath, out_option
from leadline.errors import SpecError, UsageError
from leadline.simulation.model import SimulatedCluster
from leadline.units import parse_duration, parse_size
from leadline.yamlio.problems import suggest

if TYPE_CHECKING:
    from leadline.simulation.calibrate import Calibration, ObservedCell
    from leadline.simulation.model import SimulatedCluster
    from leadline.simulation.parameters import Parameters
    from leadline.simulation.phases import RecoveryAsked
    from leadline.store.tables import TrialRow
    from leadline.verdict.model import Cell


_DATA = ("read", "write", "randread", "randwrite")
_SMALL = 64 * 1024  # what flushes behind larger writes waits for their data, too
_SPREAD_ONE = 0.1  # of a single trial, which does not say how far it scatters


@dataclass(frozen=True)
class Usable:
    """Cells that a calibration takes, and why it does not take the others."""

    cells: tuple[ObservedCell, ...]
    left: tuple[str, ...]


def calibrated(
    cluster: SimulatedCluster, results: Sequence[Path], before: Parameters, device: str
) -> tuple[Calibration, tuple[str, ...]]:
    """Parameters of these results, and what was left out. Raises UsageError for an INVALID cell."""
    from leadline.simulation.calibrate import calibrate

    found = [usable_of(one, len(cluster.clients)) for one in results]
    cells = [cell for one in found for cell in one.cells]
    left = tuple(words for one in found for words in one.left)
    if not cells:
        raise UsageError(
            "nothing of these results calibrates a simulation" + "".join(f"; {words}" for words in left[:5]),
            "measure reads and writes of one block size on a Ceph pool",
        )
    names = ", ".join(str(one) for one in results)
    return calibrate(cluster, cells, before, device, names), left


def usable_of(path: Path, clients: int) -> Usable:
    """The cells of a result. Raises UsageError where one is INVALID."""
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.results import diagnose_result
    from leadline.verdict.model import UNUSABLE

    result = open_result(path)
    if result.published:
        raise UsageError(
            f"{path} has values of a document, and no counters", "give a result of `leadline run`"
        )
    targets: Mapping[str, Any] = result.manifest["targets"]
    trials = {one.trial: one for one in result.trials()}
    cells: list[ObservedCell] = []
    left: list[str] = []
    for one in diagnose_result(result):
        cell = one.cell
        if cell.validity.state in UNUSABLE:
            worst = [one.title for one in cell.validity.codes if one.state in UNUSABLE]
            codes = ", ".join(worst) or "it has no values"
            raise UsageError(
                f"{path}: cell {cell.id} is {cell.validity.state} ({codes}), and calibrates nothing",
                "measure it again, or give a result without it",
            )
        mine = [
            trials[view.trial]
            for view in cell.trials
            if view.trial in trials and trials[view.trial].state == "complete"
        ]
        why = _unfit(cell, targets[cell.target].get("ceph"), mine, clients)
        if why:
            left.append(f"{path}: cell {cell.id} is not used: {why}")
        else:
            cells.append(_observed(cell, targets[cell.target]["ceph"], mine, one.found.figures))
    return Usable(tuple(cells), tuple(left))


def _unfit(cell: Cell, ceph: Mapping[str, Any] | None, trials: Sequence[TrialRow], clients: int) -> str:
    job = cell.job
    if not ceph or not (ceph.get("size") or ceph.get("k")):
        return "its target names no pool of Ceph's"
    if job.get("rw") not in _DATA or not {"bs", "iodepth", "numjobs"} <= set(job) or job.get("bssplit"):
        return "it is not reads alone or writes alone, of one size"
    if job.get("rate_iops") or job.get("rate_bytes_per_s") or job.get("fsync") or not job.get("direct"):
        return "it is paced, buffered or syncs"
    if not trials:
        return "no trial of it ended well"
    if any((one.hosts or 1) > clients for one in trials):
        return "it ran on more clients than the topology has"
    return ""


def _observed(
    cell: Cell, ceph: Mapping[str, Any], trials: Sequence[TrialRow], figures: Sequence[Mapping[str, Any]]
) -> ObservedCell:
    from leadline.simulation.calibrate import ObservedCell
    from leadline.simulation.model import parse_work

    job = cell.job
    shards = f"{ceph['k']}+{ceph['m']}" if ceph.get("k") else str(ceph["size"])
    depth = 1 if job["engine"] in ("sync", "psync") else job["iodepth"]
    text = f"rw={job['rw']},bs={job['bs']},iodepth={depth},numjobs={job['numjobs']},protection={shards}"
    work = parse_work(f"{text},clients={trials[0].hosts or 1}", 1)
    requests = [(one.read_operations + one.write_operations) / (one.measured_ns / 1e9) for one in trials]
    pieces = max(job["bs"] / work.piece_bytes, 1.0)
    rate = fmean(requests) * pieces
    logs = [math.log(one) for one in requests]
    spread = max(logs) - min(logs) if len(logs) > 1 else _SPREAD_ONE
    writes = job["rw"] in ("write", "randwrite")
    cores = _mean(figures, "osd_cores")
    stored = [
        one.store_written_bytes / (one.write_operations * pieces)
        for one in trials
        if one.store_written_bytes and one.write_operations
    ]
    # What the load generator spends between trials is in neither; its ramp is.
    spent = [(one.cpu_user_ns + one.cpu_system_ns) / one.measured_ns for one in trials]
    return ObservedCell(
        f"{cell.id}",
        work,
        rate,
        spread / 2,
        None if not cores else cores / rate,
        fmean(spent) / rate if fmean(spent) else None,
        fmean(stored) if stored and writes else None,
        _mean(figures, "osd_kv_sync_s") if writes and job["bs"] <= _SMALL else None,
    )


def _mean(figures: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [value for one in figures if isinstance(value := one.get(name), float) and value > 0]
    return fmean(found) if found else None


def parameters_text(parameters: Parameters) -> str:
    """The file that `--parameters` reads."""
    return "\n".join(_lines(parameters)) + "\n"


def _lines(parameters: Parameters) -> Iterator[str]:
    yield f"# Parameters for `leadline simulate --parameters`: {json.dumps(parameters.source)}"
    yield "# Times in seconds, rates in bytes per second; low to high holds the value in 90 of 100 cases."
    for section, figures in parameters.sections.items():
        yield f"{json.dumps(section)}:"
        for name, one in figures.items():
            words = f"value: {one.value:.6g}, low: {one.low:.6g}, high: {one.high:.6g}, kind: {one.kind}"
            yield f"  {name}: {{{words}, source: {json.dumps(one.source)}}}"


_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")


@dataclass(frozen=True)
class FailureAsked:
    """The options as given."""

    lost_osds: tuple[int, ...]
    lost_hosts: tuple[str, ...]
    stored: str | None
    backfills: int | None
    profile: str | None
    down_out: str | None
    until: str | None

    def lost(self, cluster: SimulatedCluster) -> frozenset[int]:
        """OSDs by number. Raises UsageError for a host that has none."""
        found = set(self.lost_osds)
        homes = sorted(set(cluster.osd_hosts))
        for name in self.lost_hosts:
            mine = [osd for osd, home in enumerate(cluster.osd_hosts) if home == name]
            if not mine:
                raise UsageError(
                    f"--host-out: no host with OSDs is called {name[:60]!a}", suggest(name, homes)
                )
            found |= set(mine)
        return frozenset(found)

    def recovery(self) -> RecoveryAsked | None:
        """What is to be recovered, where --stored says how much there is."""
        from leadline.simulation.phases import BACKFILLS, DOWN_OUT_S, RecoveryAsked

        if self.stored is None:
            given = (self.backfills, self.profile, self.down_out, self.until)
            if any(one is not None for one in given):
                raise UsageError(
                    "limits and times are of recovery, and nobody knows how much there is",
                    "give the amount that users have stored: --stored 20T, with --osd-out or --host-out",
                )
            return None
        if not self.lost_osds and not self.lost_hosts:
            raise UsageError("nothing fails", "give --osd-out or --host-out with --stored")
        size = _read(parse_size, self.stored, "--stored")
        if size == 0:
            raise UsageError("--stored 0: nothing would move", "leave --stored out")
        down = None if self.down_out is None else _read(parse_duration, self.down_out, "--down-out") / 1e9
        return RecoveryAsked(
            size,
            self.backfills or BACKFILLS,
            self.profile or "balanced",
            DOWN_OUT_S if down is None else down,
        )

    @property
    def until_s(self) -> float:
        """How long is looked at."""
        if self.until is None:
            return float("inf")
        until = _read(parse_duration, self.until, "--until") / 1e9
        if until == 0:
            raise UsageError("--until 0: there is no time to look at", "give for example --until 1h")
        return until


def _read(reader: Callable[[str], int], text: str, option: str) -> int:
    try:
        return reader(text)
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", error.remedy) from None


def failure_options(command: _Decorated) -> _Decorated:
    """Their values arrive as fields of FailureAsked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--osd-out",
        "lost_osds",
        multiple=True,
        type=click.IntRange(0),
        metavar="OSD",
        help="Number of an OSD that is out. Repeat for several.",
    ),
    click.option(
        "--host-out", "lost_hosts", multiple=True, metavar="HOST", help="A host whose OSDs are all out."
    ),
    click.option(
        "--stored",
        metavar="SIZE",
        help="Stored user data: also simulate the recovery over time.",
    ),
    click.option(
        "--max-backfills",
        "backfills",
        type=click.IntRange(1, 64),
        help="Placement groups that an OSD recovers at once (osd_max_backfills).  [default: 1]",
    ),
    click.option(
        "--recovery-profile",
        "profile",
        type=click.Choice(_PROFILES),
        help="Share of the OSDs for recovery (osd_mclock_profile).  [default: balanced]",
    ),
    click.option(
        "--down-out",
        metavar="TIME",
        help="Time from down to out (mon_osd_down_out_interval).  [default: 10 minutes]",
    ),
    click.option("--until", metavar="TIME", help="Simulated time.  [default: until recovery ends]"),
)


def cluster_of(file: Path, device: str, machine_cores: float) -> SimulatedCluster:
    """Raises SpecError with file and line for what is wrong in it."""
    from leadline.lab.network.topology_file import load_topology

    shape = load_topology(file, os.environ, made_here=False).topology
    above, rates, behind = cables_of(shape)
    homes = tuple(
        host.name for host in shape.hosts if host.name not in shape.metadata for _ in range(host.osds)
    )
    return SimulatedCluster(
        above,
        rates,
        homes,
        (device,) * len(homes),
        tuple(client.name for client in shape.clients),
        behind,
        cores={host.name: host.limits.cpu for host in shape.hosts if host.limits.cpu},
        disks={
            host.name: (host.limits.disk_read_bytes_s, host.limits.disk_write_bytes_s)
            for host in shape.hosts
            if host.limits.disk_read_bytes_s or host.limits.disk_write_bytes_s
        },
        proxies={
            role: tuple(host.name for host in shape.hosts if role in host.runs) for role in shape.gateways
        },
        machine_cores=machine_cores,
    )


@click.command(short_help="Predict the rates of a cluster that exists only as a topology file")
@click.argument("topology", type=AskedPath(exists=True, dir_okay=False))
@click.option(
    "--workload",
    "works",
    cls=RenamedOption,
    former=("--work",),
    multiple=True,
    metavar="KEY=VALUE,...",
    help="Workload of the clients. Repeat for several at once.",
)
@click.option(
    "--device",
    default="ssd",
    show_default=True,
    help="Device class of the OSDs: hdd, ssd, nvme, or a class in --parameters.",
)
@click.option(
    "--parameters",
    type=AskedPath(exists=True, dir_okay=False),
    help="Parameters of your hardware (YAML).  [default: a catalogue of typical values]",
)
@click.option(
    "--calibrate",
    "results",
    multiple=True,
    type=AskedPath(exists=True, file_okay=False),
    metavar="RESULT",
    help="Take parameters from a result of this topology. Repeat for several.",
)
@out_option("Write the parameters of --calibrate, for --parameters.")
@failure_options
@click.option(
    "--one-machine",
    type=click.FloatRange(0.1, 1024),
    metavar="CORES",
    help="All daemons share the cores of one machine, as in a lab.",
)
@click.option(
    "--draws",
    type=click.IntRange(20, 5000),
    default=200,
    show_default=True,
    help="Parameter sets drawn for the 90 % intervals.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the draws.")
@click.option("--page", type=WrittenPath(dir_okay=False), metavar="FILE", help="Also write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.simulation/1.")
def command(
    topology: Path,
    works: tuple[str, ...],
    device: str,
    parameters: Path | None,
    results: tuple[Path, ...],
    out: Path | None,
    one_machine: float | None,
    draws: int,
    seed: int,
    page: Path | None,
    as_json: bool,
    **failing: Any,
) -> None:
    """Predict each workload's steady rate on a cluster, with a 90 % interval, and its bottleneck.

    Nothing is measured. Parameters come from a catalogue, or from --parameters (see --calibrate). Ceph's
    crushtool computes the placement. docs/simulation.md shows how predictions compare with measurements, and
    what the model leaves out.

    \b
    leadline simulate centre.yaml --workload rw=write,bs=4M,iodepth=16,protection=8+3
    leadline simulate centre.yaml --device nvme --workload rw=randread,bs=4k,iodepth=32,numjobs=16
    """
    from leadline.cli.answer import give
    from leadline.cli.predict.simulated import FORMAT, document, parameters_json, simulation_findings
    from leadline.simulation.model import parse_work
    from leadline.simulation.phases import Phase, failure
    from leadline.simulation.simulate import simulate

    if not works and not results:
        raise UsageError("there is nothing to simulate", "give --workload, or --calibrate RESULT")
    if out is not None and not results:
        raise UsageError("-o writes what --calibrate finds", "give --calibrate RESULT, or leave -o out")
    failed = FailureAsked(**failing)
    recovery = failed.recovery()
    asked = [parse_work(text, number + 1) for number, text in enumerate(works)]
    given = _parameters(parameters)
    cluster = cluster_of(topology, device, one_machine or 0.0)
    if results:
        given.require_class(device, "--device")
        given = _calibrated(cluster, results, given, device, out, quiet=as_json)
        if not works:
            if as_json:
                echo_text(json.dumps({"format": FORMAT, **parameters_json(given)}, indent=1))
            return
    lost = failed.lost(cluster)
    if recovery is None:
        found = simulate(cluster, asked, given, out=lost, draws=draws, seed=seed)
        phases: tuple[Phase, ...] = (Phase("", (0.0, 0.0, 0.0), None, found),)
    else:
        phases = failure(
            cluster, asked, given, lost, recovery, draws=draws, seed=seed, until_s=failed.until_s
        )
    give(simulation_findings(cluster, phases, topology.name), page, quiet=as_json)
    if as_json:
        echo_text(json.dumps(document(phases, str(topology)), indent=1))


def _parameters(file: Path | None) -> Parameters:
    from leadline.simulation.parameters import catalogue, read_own_parameters

    if file is None:
        return catalogue()
    try:
        return read_own_parameters(file.read_text(encoding="utf-8"), str(file))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {error}", "give a YAML file", source=str(file)) from None


def _calibrated(
    cluster: SimulatedCluster,
    results: tuple[Path, ...],
    before: Parameters,
    device: str,
    out: Path | None,
    *,
    quiet: bool,
) -> Parameters:
    from leadline.cli.files import write_file

    found, left = calibrated(cluster, results, before, device)
    if out is not None:
        write_file(out, parameters_text(found.parameters).encode(), "-o")
    if not quiet:
        from leadline.cli.answer import give
        from leadline.cli.predict.simulated import calibration_findings

        give(calibration_findings(found, left, out))
    return found.parameters
