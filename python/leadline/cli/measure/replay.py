"""`leadline replay`: repeats a traced program's calls on other targets, with files of its own."""

from __future__ import annotations

import platform
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import make_console
from leadline.cli.gate_options import AskedGates
from leadline.cli.machine.lab_faults import labs_of, refuse_faulted, under_fault_option
from leadline.cli.main import EXIT_GOOD
from leadline.cli.measure.run import RunChoices, make_options, run_and_conclude
from leadline.cli.options import (
    AskedPath,
    complete_result,
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
from leadline.cli.signals import StopRequest
from leadline.errors import TargetError, UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.run.model import Outcome
    from leadline.study.target import Target
    from leadline.workloads.replay.job import ReplayJob
    from leadline.workloads.replay.script import ReplayScript


@click.command(short_help="Repeat a trace's calls on any target")
@click.argument("trace", type=AskedPath(), shell_complete=complete_result)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=PATH",
    help="A directory on a mounted file system. Repeat for several targets.",
)
@click.option("--as-fast-as-possible", "fast", is_flag=True, help="Leave out the pauses between calls.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Replay only files whose path matches, for example '/data/*'.",
)
@click.option("--trial", help="The trial of the trace to replay.  [default: the first]")
@click.option(
    "--blocks", type=click.IntRange(1, 1000), default=3, show_default=True, help="Repetitions on each target."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of the order and of the data.",
)
@out_option()
@trust_option
@click.option("--dry-run", is_flag=True, help="Show what would be replayed and what not. Nothing is run.")
@drop_caches_option
@grace_option
@ignore_health_option
@under_fault_option
@no_ceph_option
@quiet_option
def command(
    trace: Path,
    targets: tuple[str, ...],
    fast: bool,
    only: tuple[str, ...],
    trial: str | None,
    blocks: int,
    seed: int,
    out: Path | None,
    trusted: bool,
    dry_run: bool,
    drop_caches: bool,
    grace: str,
    ignore_health: bool,
    under_fault: bool,
    no_ceph: bool,
    quiet: bool,
) -> int:
    """Repeat the calls of TRACE, a result of `leadline trace --segments`, on each target.

    Threads, calls, their order, offsets and pauses are those of the trace. The files are new, in
    TARGET/leadline-<id>/, and are removed afterwards. Calls that cannot be replayed are listed.

    \b
    leadline trace --segments -o t -- ./analyse input.root
    leadline replay t --target old=/mnt/a --target new=/mnt/b
    """
    if not targets and not dry_run:
        raise UsageError("no target was named", "add --target NAME=PATH, for example --target local=/var/tmp")
    if not dry_run:
        require_trust(trace, "repeat its calls", trusted=trusted)
    title, script = _script(trace, trial, only)
    if dry_run:
        _say(title, script)
        return EXIT_GOOD
    path = place_for(out, "replay")
    choices = RunChoices(drop_caches, ignore_health, under_fault, ceph=not no_ceph, grace=grace)
    job = _job(script, fast)
    return run_and_conclude(
        path,
        AskedGates(),
        lambda stop: _start(title, job, script, targets, (blocks, seed), path, choices, stop, quiet),
    )


def _script(trace: Path, trial: str | None, only: tuple[str, ...]) -> tuple[str, ReplayScript]:
    from leadline.store.reader import open_result
    from leadline.tracing.store import read_trace
    from leadline.workloads.replay.script import make_script

    result = open_result(trace)
    title = str(result.manifest.get("title") or result.manifest.get("plan", {}).get("title") or trace.name)
    return title, make_script(read_trace(result, trial), only)


def _job(script: ReplayScript, fast: bool) -> ReplayJob:
    from leadline.store.files import SCRIPT
    from leadline.workloads.replay.job import ReplayJob

    return ReplayJob(
        script=SCRIPT,
        pace="fast" if fast else "recorded",
        numjobs=len(script.threads),
        calls=len(script.calls),
        calls_of_trace=script.coverage.calls,
        read_bytes=script.read_bytes,
        write_bytes=script.write_bytes,
        bytes_of_trace=script.coverage.bytes,
        files=len(script.sizes),
        layout_bytes=script.layout_bytes,
        cold_bytes=script.cold_bytes,
        runtime_ns=script.duration_ns,
    )


def _refuse_urls(named: Mapping[str, Target]) -> None:
    for target in named.values():
        if target.location is not None:
            raise UsageError(
                f"a replay makes the calls of a mounted file system, and {target.url} is none",
                "mount it and give the path of a directory on it",
            )


def _say(title: str, script: ReplayScript) -> None:
    """What would be replayed, and what not."""
    from dataclasses import asdict

    from leadline import units
    from leadline.workloads.replay.judge import skipped_words

    console, coverage = make_console(), script.coverage
    lines = [
        title,
        f"{coverage.calls_replayed:,} of {coverage.calls:,} calls,"
        f" {units.format_size(coverage.bytes_replayed)} of {units.format_size(coverage.bytes)},"
        f" {units.format_count(len(script.threads), 'thread')},"
        f" {units.format_count(len(script.sizes), 'file')},"
        f" {units.format_duration(script.duration_ns / 1e9)}",
        f"prefilled before each trial: {units.format_size(script.layout_bytes)}",
        *(f"not replayed: {skipped_words(asdict(item))}" for item in coverage.skipped),
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _start(
    title: str,
    job: ReplayJob,
    script: ReplayScript,
    targets: tuple[str, ...],
    repeats: tuple[int, int],
    out: Path,
    choices: RunChoices,
    stop: StopRequest,
    quiet: bool,
) -> Outcome:
    from dataclasses import asdict

    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.observe.host import host
    from leadline.observe.mounts.mounts import inspect
    from leadline.plan.check import check_space
    from leadline.run.model import RunRequest, Steering
    from leadline.run.session import new_run
    from leadline.store.files import write_script
    from leadline.study.target import parse_targets
    from leadline.workloads.replay.plan import replay_plan, replay_study

    if out.exists():
        raise UsageError(
            f"{out} exists already", f"name another --out, or: leadline run --resume {quoted(out)}"
        )
    named = parse_targets(targets)
    _refuse_urls(named)
    if not choices.under_fault:
        refuse_faulted(named.values())
    facts = {name: inspect(target.url) for name, target in named.items()}
    labs = labs_of(named.values(), facts, under_fault=choices.under_fault)
    study = replay_study(f"Replay of {title}", "", *repeats)
    plan = replay_plan(study, job, named, facts)
    try:
        check_space(plan, study, facts)
    except TargetError as error:
        raise TargetError(error.message, "free space, or replay a part: --only '/data/*'") from None
    details = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "study": study.as_json(),
        "host": {**host.facts(), "python": platform.python_version()},
        "memory_bytes": host.memory_bytes(),
        "command": ["leadline", *sys.argv[1:]],
        "replay": {
            "title": title,
            "pace": job.pace,
            "threads": job.numjobs,
            "coverage": asdict(script.coverage),
        },
    }
    request = RunRequest(secrets.token_hex(4), plan, facts, make_options(study, facts, choices, labs))
    with make_display(quiet) as display:
        return new_run(
            request,
            out,
            details,
            display,
            stop,
            Steering(next_rate),
            add_files=lambda path: write_script(
                path, script.calls, script.threads, script.sizes, script.flags
            ),
        )
