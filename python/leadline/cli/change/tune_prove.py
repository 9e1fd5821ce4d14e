"""`leadline tune prove`: a study in two states of one target, without settings and with them, in turns."""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from leadline.cli.console import echo
from leadline.cli.machine.lab_faults import labs_of, labs_of_result, refuse_faulted
from leadline.cli.measure.gate_options import AskedGates
from leadline.cli.measure.growth import make_growth
from leadline.cli.measure.run import make_options, run_and_conclude
from leadline.cli.measure.study_options import KnownServers, load_plan, study_options
from leadline.cli.options import out_option
from leadline.cli.paths import AskedPath, place_for
from leadline.cli.signals import StopRequest
from leadline.cli.trust import require_trust, trust_option
from leadline.errors import UsageError
from leadline.tuning.settings import PriceKind

if TYPE_CHECKING:
    from leadline.run.model import Outcome, States
    from leadline.store.acting import SeenManifest
    from leadline.study.target import Target, TargetFacts
    from leadline.tuning.proving.clients import TargetClient
    from leadline.tuning.system import TuningSystem

_T = TypeVar("_T")
_VERB = "tune prove"  # goes on with what it began


@click.command(short_help="Measure a study with a setting and without it, in turns")
@click.argument("study", required=False, default="")
@click.option(
    "--with",
    "words",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting to prove; several are proved together, as one set.",
)
@study_options
@click.option(
    "--way",
    metavar="NAME",
    help="With --lab: which of its ways, as `leadline lab targets` names them.  [default: the first]",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice(get_args(PriceKind)),
    help="Take a setting's price in integrity, durability or security for as long as it is measured.",
)
@out_option()
@click.option("--resume", type=AskedPath(), metavar="DIR", help="Go on with this proof.")
@trust_option
@click.option("--grace", metavar="TIME", default="60s", show_default=True, help="How late a trial may be.")
@click.option("--ignore-health", is_flag=True, help="Go on in HEALTH_ERR or with slow operations.")
@click.option("--quiet", is_flag=True, help="No progress; errors still show.")
def command(
    study: str,
    words: tuple[str, ...],
    targets: tuple[str, ...],
    sets: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    lab: str | None,
    servers: KnownServers,
    ignored: tuple[str, ...],
    way: str | None,
    allowed: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    trusted: bool,
    grace: str,
    ignore_health: bool,
    quiet: bool,
) -> int:
    """Prove that settings help the works of STUDY on one target, do nothing there, or harm.

    Each block measures every work without the settings and with them (A B B A). They are read back at every
    daemon before and after each trial, and put back at the end; after a crash: leadline undo DIR.

    \b
    leadline tune prove streaming --lab --with client_readahead_max_bytes=4M
    leadline tune prove quick --target ceph=/mnt/cephfs --with osd_max_backfills=4
    leadline tune prove --resume leadline-prove-quick-20260131-120000
    """
    if resume is not None:
        if any((study, words, targets, lab is not None, sets, blocks, seed, out, way, allowed, servers)):
            raise UsageError(
                "--resume goes on with a proof as it was planned: it takes no study, setting or target",
                f"write: leadline tune prove --resume {resume}",
            )
        seen = require_trust(resume, "change the settings that it names", trusted=trusted)
        return run_and_conclude(resume, AskedGates(), lambda stop: _resume(resume, seen, stop, quiet), _VERB)
    if not study or not words:
        raise UsageError(
            "no study or no setting was named", "try: leadline tune prove quick --lab --with NAME=VALUE"
        )
    path = place_for(out, f"prove-{Path(study).stem}")
    if path.exists():
        raise UsageError(f"{path} exists already", f"another --out, or: leadline tune prove --resume {path}")
    plan_of = (
        study,
        targets,
        (*sets, f"compare.base={_without()}"),
        blocks,
        seed,
        (),
        None,
        lab,
        servers,
        ignored,
    )
    flags = {"drop_caches": False, "ignore_health": ignore_health, "ceph": True, "grace": grace}
    flags |= {"until": None, "budget_s": None, "under_fault": False}

    def execute(stop: StopRequest) -> Outcome:
        return _start(plan_of, way, words, allowed, path, flags, stop, quiet)

    return run_and_conclude(path, AskedGates(), execute, _VERB)


def _without() -> str:
    from leadline.tuning.proving.proof import WITHOUT

    return WITHOUT


def two_states(found: dict[str, Target], way: str | None, *, lab: bool) -> dict[str, Target]:
    """The one target that is meant, without the settings and with them. Raises UsageError."""
    from dataclasses import replace

    from leadline.tuning.proving.proof import WITH, WITHOUT

    if lab:
        name = way or next(iter(found))
        if name not in found:
            raise UsageError(f"the lab has no way {name!r}", f"--way takes one of: {', '.join(found)}")
        target = found[name]
    elif way is not None:
        raise UsageError("--way is one of a lab's", "leave it out, or add --lab")
    elif len(found) != 1:
        raise UsageError(
            f"settings are proved on one target at a time, and {len(found)} are named",
            "name one: --target ceph=/mnt/cephfs",
        )
    else:
        target = next(iter(found.values()))
    both = replace(target, files=WITHOUT)
    return {name: replace(both, name=name, state=name) for name in (WITHOUT, WITH)}


def _start(
    plan_of: tuple[Any, ...],
    way: str | None,
    words: tuple[str, ...],
    allowed: tuple[str, ...],
    out: Path,
    flags: dict[str, Any],
    stop: StopRequest,
    quiet: bool,
) -> Outcome:
    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.observe.host import host
    from leadline.plan.space import check_space
    from leadline.run.model import RunRequest, Steering
    from leadline.run.session import new_run
    from leadline.tuning.proving.asked import proved_settings, split_words
    from leadline.tuning.proving.proof import WITHOUT, as_manifest
    from leadline.tuning.proving.states import SettingStates

    asked, lab = split_words(words), plan_of[7] is not None
    study, plan, facts = load_plan(
        *plan_of, before_looking=refuse_faulted, as_states=lambda found: two_states(found, way, lab=lab)
    )
    labs = labs_of(plan.targets, facts, under_fault=False)
    check_space(plan, study, facts)
    client = client_of(facts[WITHOUT])
    with system_for(facts[WITHOUT], tuple(asked)) as system:
        proved = proved_settings(asked, system, client, allowed)
        details = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "study": study.as_json(),
            "host": {**host.facts(), "python": platform.python_version()},
            "memory_bytes": host.memory_bytes(),
            "command": ["leadline", *sys.argv[1:]],
            **as_manifest(proved),
        }
        request = RunRequest(secrets.token_hex(4), plan, facts, make_options(study, facts, flags, labs))
        steering = Steering(next_rate, make_growth(out), SettingStates(system, proved, client, stop))
        with make_display(quiet) as display:
            return new_run(request, out, details, display, stop, steering)


def _resume(path: Path, seen: SeenManifest, stop: StopRequest, quiet: bool) -> Outcome:
    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.run.model import Steering
    from leadline.run.session import resume_run

    labs = labs_of_result(seen.manifest, under_fault=False)

    def go_on(states: States) -> Outcome:
        steering = Steering(next_rate, make_growth(path), states)
        with make_display(quiet) as display:
            return resume_run(path, seen, display, stop, steering, labs=labs)

    return with_states_of(path, seen, stop, go_on)


def with_states_of(
    path: Path, seen: SeenManifest, stop: Callable[[], bool], then: Callable[[States], _T]
) -> _T:
    """What `then` does with the states of a proof that was started before. Raises ResultError, UsageError."""
    from leadline.study.target import TargetFacts
    from leadline.tuning.proving.proof import WITHOUT, of_manifest
    from leadline.tuning.proving.states import SettingStates

    proved = of_manifest(seen.manifest)
    if not proved:
        raise UsageError(f"{path} proves no settings", f"go on with: leadline run --resume {path}")
    facts = TargetFacts.from_json(seen.manifest["targets"][WITHOUT])
    with system_for(facts, (), {one.setting.name: one.setting for one in proved}) as system:
        return then(SettingStates(system, proved, client_of(facts), stop))


def system_for(
    facts: TargetFacts, names: tuple[str, ...], known: dict[str, Any] | None = None
) -> TuningSystem:
    """The host and the cluster behind a target, with `known` settings, or the table and Ceph's own."""
    from leadline.tuning.proving.asked import known_settings
    from leadline.tuning.system import TuningSystem

    ceph = facts.ceph
    conf = (ceph.conf if ceph else None) or os.environ.get("CEPH_CONF")
    place, name = Path(conf) if conf else None, ceph.name if ceph else None
    if known is None:
        with TuningSystem(conf=place, client_name=name) as asking:
            known = dict(known_settings(names, asking))
    return TuningSystem(conf=place, client_name=name, known=known)


def client_of(facts: TargetFacts) -> TargetClient | None:
    """How the target's client is asked; None where it is none of Ceph's in user space."""
    from leadline.tuning.proving.clients import TargetClient

    ceph = facts.ceph
    if ceph is None or ceph.kernel_client is not None:
        return None
    if facts.is_local and ceph.client_socket is None:
        return None
    return TargetClient(ceph.conf, ceph.name, ceph.keyring, ceph.client_socket, ceph.client_pid)


def put_back(path: Path, seen: SeenManifest) -> tuple[str, ...]:
    """Put back what a proof changed; what could not be, in words. Nothing where it proves no settings."""
    if "proof" not in seen.manifest:
        return ()
    left = with_states_of(path, seen, lambda: False, lambda states: states.leave())
    for one in left:
        echo(f"could not be put back: {one}", err=True)
    return left
