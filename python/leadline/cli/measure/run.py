"""`leadline run`: runs a study on targets, or goes on with an interrupted one."""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import make_console
from leadline.cli.gate_options import AskedGates, check_required, fail_if_option, require_option, required_of
from leadline.cli.machine.lab_faults import labs_of, labs_of_result, refuse_faulted, under_fault_option
from leadline.cli.main import EXIT_FAILED
from leadline.cli.measure.growth import make_growth
from leadline.cli.measure.hosts_options import (
    HostsOptions,
    Recruiting,
    hosts_options,
    implied,
    recruited_again,
    recruiting,
)
from leadline.cli.measure.labs import check_guest, with_guest
from leadline.cli.measure.study_options import (
    KnownServers,
    StudyRequest,
    application_options,
    asked_study,
    load_plan,
    needs_leadline,
    study_options,
)
from leadline.cli.options import (
    AskedPath,
    complete_study,
    drop_caches_option,
    grace_option,
    ignore_health_option,
    no_ceph_option,
    out_option,
    place_for,
    quiet_option,
    require_trust,
    trust_option,
)
from leadline.cli.signals import StopRequest, require_room
from leadline.errors import UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.run.model import Outcome, RunOptions
    from leadline.store.acting import SeenManifest
    from leadline.study.study import Study
    from leadline.study.target import TargetFacts
    from leadline.verdict.gates import Gate
    from leadline.verdict.requirements import Requirements


def make_films(plan: Plan, stop: StopRequest, quiet: bool) -> bool:
    """Make what is not there yet; True where something was made."""
    from leadline.cli.console import make_console
    from leadline.study.kinds import planned
    from leadline.workloads.pipeline.film import make_film
    from leadline.workloads.pipeline.job import FilmToMake

    made = False
    for wanted in (planned(cell.job).to_make(cell.job) for cell in plan.cells):
        if not isinstance(wanted, FilmToMake) or Path(wanted.path).is_file():
            continue
        place = Path(wanted.path)
        if not quiet:
            make_console(stderr=True).print(f"making a film to measure with: {place}", markup=False)
        make_film(wanted.film, place, stop)
        made = True
    return made


@dataclass(frozen=True)
class RunChoices:
    """How a study is run. `grace` is a time as it was written, `until` a share."""

    drop_caches: bool = False
    ignore_health: bool = False
    under_fault: bool = False
    degraded: bool = False
    ceph: bool = True
    grace: str = "60s"
    until: float | None = None
    budget_s: float | None = None
    gates: tuple[Gate, ...] = ()
    required: Requirements | None = None


@click.command(short_help="Run a study on one or more targets, or resume one")
@click.argument("study", required=False, default="", shell_complete=complete_study)
@study_options
@application_options
@out_option()
@click.option("--resume", type=AskedPath(), metavar="DIR", help="Continue this result.")
@trust_option
@drop_caches_option
@click.option("--clients", type=click.IntRange(1, 128), help="Number of clients of a pipeline.")
@click.option(
    "--max-rate", metavar="RATE", help="Limit of the transfer rate in bytes per second, for example 100M."
)
@grace_option
@ignore_health_option
@under_fault_option
@click.option(
    "--degraded",
    is_flag=True,
    help="Measure a degraded cluster on purpose. Trials during which it was clean are INVALID.",
)
@no_ceph_option
@click.option(
    "--until",
    metavar="PERCENT",
    help="Add blocks until the 95 % confidence intervals of each workload's main metrics are this "
    "narrow, for example 3%.",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="Spend this much time on more blocks where confidence intervals are widest, for example 30m.",
)
@click.option(
    "--guest", is_flag=True, help="With --lab: also run on the kernel clients, in an emulated guest."
)
@hosts_options
@require_option("They are stored with it. Exit code 4 if one is not met, 5 if one is inconclusive.")
@fail_if_option
@quiet_option
def command(
    study: str,
    targets: tuple[str, ...],
    sets: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    lab: str | None,
    servers: KnownServers,
    ignored: tuple[str, ...],
    guest: bool,
    input_path: str | None,
    program: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    trusted: bool,
    drop_caches: bool,
    clients: int | None,
    max_rate: str | None,
    grace: str,
    ignore_health: bool,
    under_fault: bool,
    degraded: bool,
    no_ceph: bool,
    until: str | None,
    budget: str | None,
    hosts: HostsOptions,
    require: tuple[str, ...],
    gates: AskedGates,
    quiet: bool,
) -> int:
    """Run STUDY, a built-in study's name, a YAML file or fio's job file, on one or more targets.

    leadline writes only in TARGET/leadline-<id>/ and removes that directory at the end. Each trial is stored
    as it ends. `leadline plan` with the same arguments shows all trials beforehand.

    \b
    leadline run quick --target here=/var/tmp --target ceph=/mnt/cephfs
    leadline run media --target local=/var/tmp --target fuse=/mnt/cephfs --source FILM
    leadline run analysis --target a=/mnt/a --target b=/mnt/b --input DIR -- PROGRAM WORDS
    leadline run jobs.fio --target here=/mnt/cephfs
    leadline run streaming --lab castor --hosts lab
    leadline run quick --target ceph=/mnt/cephfs --hosts hosts.yaml
    leadline run --resume leadline-quick-20260131-120000
    """
    if resume is not None:
        others = (study, targets, lab is not None, sets, blocks, seed, out, until, budget, program)
        _refuse_beside_resume(resume, (*others, input_path, clients, servers, ignored, require, degraded))
        seen = require_trust(resume, "go on with it", trusted=trusted)
        return run_and_conclude(
            resume, gates, lambda stop: _resume(resume, seen, hosts, under_fault, stop, quiet)
        )
    _check_new(study, trusted=trusted)
    sets = (*sets, *_changes({"clients": clients, "limits.max_rate": max_rate}))
    path = place_for(out, Path(study).stem)
    choices = RunChoices(drop_caches, ignore_health, under_fault, degraded, not no_ceph, grace)
    choices = replace(choices, until=_until(until), budget_s=_budget_s(budget))
    choices = replace(choices, gates=gates.gates, required=required_of(require))
    check_guest(lab, wanted=guest, many=bool(hosts))
    in_guest = _in_guest(seed, blocks, sets)
    asked = StudyRequest(study, targets, sets, blocks, seed, program, input_path, lab, servers, ignored)
    hosts = implied(hosts, lab, _saying(quiet))

    def execute(stop: StopRequest) -> Outcome:
        outcome = _start_on(hosts, asked, path, choices, stop, quiet)
        return with_guest(outcome, lab if guest else None, path, study, in_guest, stop)

    return run_and_conclude(path, gates, execute)


def _start_on(
    hosts: HostsOptions, asked: StudyRequest, out: Path, choices: RunChoices, stop: StopRequest, quiet: bool
) -> Outcome:
    """Plan and run on the hosts that were asked for, or on this one."""
    say = _saying(quiet)
    many = implied(hosts, asked.lab, say).asked_on(asked.lab)
    if many is None:
        return start_here(asked, out, choices, stop, quiet)
    if many.scheduler is None:
        many = replace(many, needs=needs_leadline(asked_study(asked)))
    with recruiting(many, hosts.lost, say, stop) as recruited:
        return start_here(asked, out, choices, stop, quiet, recruited)


def _check_new(study: str, *, trusted: bool) -> None:
    if trusted:
        raise UsageError("--trust-result is for --resume: a new run acts by no result", "leave it out")
    if not study:
        raise UsageError(
            "no study was named", "try: leadline run quick --target here=DIR; `leadline studies` lists them"
        )


def _saying(quiet: bool) -> Callable[[str], None]:
    """Says a line of what goes on before there is a display."""
    errors = make_console(stderr=True)
    return lambda text: None if quiet else errors.print(text, markup=False)


def _in_guest(seed: int | None, blocks: int | None, sets: Iterable[str]) -> list[str]:
    """The options of the study's run in a guest."""
    options = [f"--seed={seed}"] if seed is not None else []
    options += [f"--blocks={blocks}"] if blocks is not None else []
    return [*options, *(word for text in sets for word in ("--set", text))]


def _refuse_beside_resume(resume: Path, others: Iterable[object]) -> None:
    if any(others):
        raise UsageError(
            "--resume goes on with a result as it was planned: it takes no study, target or option",
            f"write: leadline run --resume {quoted(resume)}",
        )


def _changes(options: Mapping[str, object]) -> Iterator[str]:
    """Options that stand for a change of the study."""
    return (f"{key}={value}" for key, value in options.items() if value is not None)


def _until(text: str | None) -> float | None:
    from leadline import units

    if text is None:
        return None
    share = units.parse_percent(text) / 100
    if not 0.001 <= share <= 1:
        raise UsageError(
            f"--until {text}: from 0.1% to 100% can be asked for", "write for example: --until 3%"
        )
    return share


def _budget_s(text: str | None) -> float | None:
    from leadline import units

    if text is None:
        return None
    seconds = units.parse_duration(text) / 1e9
    if seconds <= 0:
        raise UsageError(f"--budget {text}: no time at all", "write for example: --budget 30m")
    return seconds


def start_here(
    asked: StudyRequest,
    out: Path,
    choices: RunChoices,
    stop: StopRequest,
    quiet: bool,
    recruited: Recruiting | None = None,
) -> Outcome:
    """Plan and run; on the hosts that were recruited, if any."""
    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.observe.host import host
    from leadline.plan.check import check_space
    from leadline.run.model import RunRequest, Steering
    from leadline.run.session import new_run

    if out.exists():
        raise UsageError(
            f"{out} exists already", f"name another --out, or: leadline run --resume {quoted(out)}"
        )
    refuse = (lambda _: None) if choices.under_fault else refuse_faulted
    study, plan, facts = load_plan(asked, before_looking=refuse, recruited=recruited)
    labs = labs_of(plan.targets, facts, under_fault=choices.under_fault)
    if make_films(plan, stop, quiet):
        study, plan, facts = load_plan(asked, recruited=recruited)  # sizes are known now
    check_space(plan, study, facts)
    _check_budget(plan, choices.budget_s)
    _check_until(plan, choices.until)
    for note in study.notes:
        _saying(quiet)(f"otherwise than in fio: {note}")
    if choices.gates:
        from leadline.verdict.gates import check_gates

        searched = {cell.search.metric for cell in plan.cells if cell.search}
        check_gates(choices.gates, [cell.id for cell in plan.cells], searched)
    check_required(required := choices.required, plan, _saying(quiet))
    options = make_options(study, facts, choices, labs)
    details = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "study": study.as_json(),
        "host": {**host.facts(), "python": platform.python_version()},
        "memory_bytes": host.memory_bytes(),
        "command": ["leadline", *sys.argv[1:]],
    }
    details |= {} if required is None else {"requirements": required.as_json()}
    request = RunRequest(secrets.token_hex(4), plan, facts, options)
    with make_display(quiet) as display:
        if recruited is not None:
            from leadline.hosts.workers.study import new_crew_run

            details |= recruited.details()
            return new_crew_run(
                request, out, details, recruited.study_hosts, display, stop, next_rate, make_growth(out)
            )
        return new_run(request, out, details, display, stop, Steering(next_rate, make_growth(out)))


def _check_until(plan: Plan, until: float | None) -> None:
    if until is not None and all(cell.swept for cell in plan.cells):
        raise UsageError(
            "--until narrows confidence intervals of workloads, but every workload of this study is a sweep",
            "a sweep ends when its knee is known: leave --until out, or set workloads.NAME.sweep.trials",
        )


def _check_budget(plan: Plan, budget_s: float | None) -> None:
    from leadline import units

    if budget_s is not None and plan.seconds > budget_s:
        raise UsageError(
            f"the {plan.blocks} planned blocks alone take about {units.format_duration(plan.seconds)},"
            f" the budget is {units.format_duration(budget_s)}",
            "give a larger --budget, or fewer --blocks: the budget is for what comes after them",
        )


def _resume(
    path: Path, seen: SeenManifest, hosts: HostsOptions, under_fault: bool, stop: StopRequest, quiet: bool
) -> Outcome:
    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.run.model import Steering
    from leadline.run.session import resume_run

    labs = labs_of_result(seen.manifest, under_fault=under_fault)
    growth = make_growth(path)
    if "crew" in seen.manifest:
        with recruited_again(seen.manifest, hosts, _saying(quiet), stop) as study_hosts:
            from leadline.hosts.workers.study import resume_crew_run

            with make_display(quiet) as display:
                faults = (labs, under_fault)
                return resume_crew_run(
                    path, seen, study_hosts, display, stop, next_rate, growth, under_fault=faults
                )
    if hosts:
        raise UsageError(f"{path} is of this host alone", f"write: leadline run --resume {quoted(path)}")
    with make_display(quiet) as display:
        steering = Steering(next_rate, growth)
        return resume_run(path, seen, display, stop, steering, labs=labs, under_fault=under_fault)


def make_options(
    study: Study, facts: dict[str, TargetFacts], choices: RunChoices, labs: tuple[str, ...]
) -> RunOptions:
    """How the study is executed; `labs` are those that its targets are on."""
    from leadline import units
    from leadline.plan.check import reserve_bytes
    from leadline.run.model import RunOptions

    if choices.drop_caches and os.geteuid() != 0:
        raise UsageError(
            "--drop-caches needs root", "run as root, or leave it out: direct I/O is used where it works"
        )
    return RunOptions(
        drop_caches=choices.drop_caches,
        ignore_health=choices.ignore_health,
        ceph=choices.ceph,
        grace_s=units.parse_duration(choices.grace) / 1e9,
        interval_s=study.observe.interval / 1e9,
        reserve_bytes={name: reserve_bytes(study, found) for name, found in facts.items()},
        layout_rate_bytes_per_s=study.limits.max_rate,
        until=choices.until,
        budget_s=choices.budget_s,
        labs=labs,
        under_fault=choices.under_fault,
        degraded=choices.degraded,
    )


def run_and_conclude(
    path: Path, gates: AskedGates, execute: Callable[[StopRequest], Outcome], verb: str = "run"
) -> int:
    """Run under a stop request, then say what came of it and return the exit code; `verb` resumes it."""
    require_room()
    with StopRequest() as stop:
        outcome = execute(stop)
    errors = make_console(stderr=True)
    for place in outcome.left_behind:
        errors.print(
            f"left behind: {place}; remove it later with: leadline undo {quoted(path)}", markup=False
        )
    if outcome.interrupted:
        errors.print(f"interrupted; go on with: leadline {verb} --resume {quoted(path)}", markup=False)
        return stop.exit_code
    if outcome.stopped:
        errors.print(
            f"stopped: {outcome.stopped}; go on with: leadline {verb} --resume {quoted(path)}", markup=False
        )
        return EXIT_FAILED
    return _conclude(path, gates)


def _conclude(path: Path, gates: AskedGates) -> int:
    from leadline.report.first_screen import show_screen
    from leadline.store.index import journal_size, write_index
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings
    from leadline.verdict.summary import index_rows

    size, result = journal_size(path), open_result(path)
    findings = build_findings(result, with_charts=False)
    write_index(path, index_rows(result, findings.cells, size))
    console = make_console()
    show_screen(findings, console, path)
    console.print(f"result: {path.resolve()}", markup=False)
    return gates.conclude(gates.judge(findings), findings.state, findings.required)
