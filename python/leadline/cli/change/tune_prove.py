"""`leadline tune prove`: a study in two states of one target, without settings and with them, in turns."""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from leadline.cli.change.own_mounts import (
    OwnMounts,
    made,
    mounts_of,
    on_mounts,
    only_planned,
    wanted_mounts,
)
from leadline.cli.change.tune_reach import (
    journal_of,
    named_lab,
    own_settings,
    settings_option,
    state_option,
    system_of,
    way_option,
)
from leadline.cli.console import echo
from leadline.cli.gate_options import AskedGates
from leadline.cli.machine.lab_faults import labs_at, labs_of, labs_of_result, refuse_faulted
from leadline.cli.measure.growth import make_growth
from leadline.cli.measure.run import RunChoices, make_options, run_and_conclude
from leadline.cli.measure.study_options import KnownServers, StudyRequest, load_plan, study_options
from leadline.cli.options import (
    AskedPath,
    complete_study,
    grace_option,
    ignore_health_option,
    out_option,
    place_for,
    quiet_option,
    require_trust,
    trust_option,
)
from leadline.cli.signals import StopRequest
from leadline.errors import UsageError
from leadline.tuning.settings import PriceKind
from leadline.units import format_count, quoted

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.run.model import Outcome, States
    from leadline.store.acting import SeenManifest
    from leadline.study.study import Study
    from leadline.study.target import Target, TargetFacts
    from leadline.tuning.proving.proof import DesignKind, ProofDesign, ProofJournal, ProvedSetting
    from leadline.tuning.proving.states import TargetClient
    from leadline.tuning.system import TuningSystem

_T = TypeVar("_T")
_VERB = "tune prove"  # goes on with what it began


@click.command(short_help="Measure a study with a setting and without it, in turns")
@click.argument("study", required=False, default="", shell_complete=complete_study)
@click.option(
    "--with",
    "words",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting to prove. Repeat for several: each gets its own effect.",
)
@click.option("--one-by-one", "kind", flag_value="one_by_one", help="Several settings: measure each alone.")
@click.option(
    "--together", "kind", flag_value="together", help="Several settings: measure all of them as one set."
)
@study_options
@way_option
@settings_option
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice(get_args(PriceKind)),
    help="Accept a setting's risk to integrity, durability or security while it is measured.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be measured, and how long it takes.")
@out_option()
@state_option
@click.option("--resume", type=AskedPath(), metavar="DIR", help="Continue this proof.")
@trust_option
@grace_option
@ignore_health_option
@quiet_option
def command(
    study: str,
    words: tuple[str, ...],
    kind: DesignKind | None,
    targets: tuple[str, ...],
    sets: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    lab: str | None,
    servers: KnownServers,
    ignored: tuple[str, ...],
    way: str | None,
    own: Path | None,
    allowed: tuple[str, ...],
    dry_run: bool,
    out: Path | None,
    state: Path | None,
    resume: Path | None,
    trusted: bool,
    grace: str,
    ignore_health: bool,
    quiet: bool,
) -> int:
    """Prove whether settings help the workloads of STUDY on one target.

    Each block measures every workload without and with the settings (A B B A). Settings are read back from
    every daemon before and after each trial, and reverted at the end; after a crash: leadline undo DIR.

    Several settings are measured in a fractional factorial design: ten settings need 32 of 1,024
    combinations.

    \b
    leadline tune prove streaming --lab --with client_readahead_max_bytes=4M
    leadline tune prove quick --target ceph=/mnt/cephfs --with osd_max_backfills=4
    leadline tune prove quick --target ceph=/mnt/cephfs --with A=1 --with B=2 --with C=3 --dry-run
    leadline tune prove --resume leadline-prove-quick-20260131-120000
    """
    if resume is not None:
        others = (study, words, targets, lab is not None, sets, blocks, seed, out, way, allowed, servers)
        if any((*others, kind, dry_run, own, state)):
            raise UsageError(
                "--resume goes on with a proof as it was planned: it takes no study, setting or target",
                f"write: leadline tune prove --resume {quoted(resume)}",
            )
        seen = require_trust(resume, "change the settings that it names", trusted=trusted)
        return run_and_conclude(resume, AskedGates(), lambda stop: _resume(resume, seen, stop, quiet), _VERB)
    if not study or not words:
        raise UsageError(
            "no study or no setting was named", "try: leadline tune prove quick --lab --with NAME=VALUE"
        )
    path = place_for(out, f"prove-{Path(study).stem}")
    if path.exists():
        raise UsageError(
            f"{path} exists already", f"another --out, or: leadline tune prove --resume {quoted(path)}"
        )
    base = f"compare.base={_without()}"
    asked = AskedProof(words, kind or "factorial", way, allowed, own, state)
    blocks = asked.blocks if blocks is None else blocks
    changed = (*sets, base)
    plan_of = StudyRequest(study, targets, changed, blocks, seed, lab=lab, servers=servers, ignored=ignored)
    if dry_run:
        with _planned(plan_of, asked, only=True) as planned:
            _say_states(planned, quiet=False)
        return 0
    choices = RunChoices(ignore_health=ignore_health, grace=grace)

    def execute(stop: StopRequest) -> Outcome:
        return _start(plan_of, asked, path, choices, stop, quiet)

    return run_and_conclude(path, AskedGates(), execute, _VERB)


def _without() -> str:
    from leadline.tuning.proving.proof import WITHOUT

    return WITHOUT


@dataclass(frozen=True)
class AskedProof:
    """What a command line asks to be proved, in which kind of design."""

    words: tuple[str, ...]
    kind: DesignKind
    way: str | None
    allowed: tuple[str, ...]
    own: Path | None = None
    state: Path | None = None

    @property
    def blocks(self) -> int | None:
        """How many blocks there are where nobody says; None: as the study has it."""
        from leadline.tuning.proving.request import FACTORIAL_BLOCKS

        return FACTORIAL_BLOCKS if self.kind == "factorial" and len(self.words) > 1 else None


@dataclass(frozen=True)
class _Planned:
    """A proof before anything is changed."""

    study: Study
    plan: Plan
    facts: dict[str, TargetFacts]
    design: ProofDesign
    system: TuningSystem
    client: TargetClient | None
    proved: tuple[ProvedSetting, ...]
    mounts: OwnMounts | None = None


def in_states(
    found: dict[str, Target], way: str | None, *, lab: bool, states: Collection[str]
) -> dict[str, Target]:
    """The one target that is meant, in each of the states. Raises UsageError."""
    from leadline.tuning.proving.proof import WITHOUT

    if lab:
        name = way or next(iter(found))
        if name not in found:
            raise UsageError(
                f"the lab has no access method {name!r}", f"--access takes one of: {', '.join(found)}"
            )
        target = found[name]
    elif way is not None:
        raise UsageError("--access names one of a lab", "leave it out, or add --lab")
    elif len(found) != 1:
        raise UsageError(
            f"settings are proved on one target at a time, and {len(found)} are named",
            "name one: --target ceph=/mnt/cephfs",
        )
    else:
        target = next(iter(found.values()))
    both = replace(target, files=WITHOUT)
    return {name: replace(both, name=name, state=name) for name in states}


def two_states(found: dict[str, Target], way: str | None, *, lab: bool) -> dict[str, Target]:
    """The same, without the settings and with all of them."""
    from leadline.tuning.proving.proof import WITH, WITHOUT

    return in_states(found, way, lab=lab, states=(WITHOUT, WITH))


@contextmanager
def _planned(plan_of: StudyRequest, asked: AskedProof, *, only: bool = False) -> Iterator[_Planned]:
    """Plan it and look at the settings; nothing is changed. What needs mounts of its own has them meanwhile,
    but where it is `only` planned."""
    from leadline.plan.check import check_space
    from leadline.tuning.proving.proof import WITHOUT
    from leadline.tuning.proving.request import design_of, mounted_settings, proved_settings, split_words
    from leadline.tuning.settings import settings_with

    values, lab = split_words(asked.words), plan_of.lab is not None
    design = design_of(asked.kind, tuple(values))
    found: list[OwnMounts] = []
    with ExitStack() as stack:

        def stated(targets: dict[str, Target]) -> dict[str, Target]:
            states = in_states(targets, asked.way, lab=lab, states=design.states)
            wanted = wanted_mounts(states, design, values, settings_with(asked.own))
            if wanted is None:
                return states
            found.append(only_planned(wanted) if only else stack.enter_context(made(wanted)))
            return states if only else on_mounts(states, wanted)

        study, plan, facts = load_plan(plan_of, before_looking=refuse_faulted, as_states=stated)
        check_space(plan, study, facts)
        client, mounts = client_of(facts[WITHOUT]), next(iter(found), None)
        with system_for(facts[WITHOUT], tuple(values), own=asked.own) as system:
            proved = (
                proved_settings(values, system, client, asked.allowed)
                if mounts is None
                else mounted_settings(values, system, mounts.present, mounts.wanted.present, asked.allowed)
            )
            yield _Planned(study, plan, facts, design, system, client, proved, mounts)


def _say_states(planned: _Planned, *, quiet: bool) -> None:
    """How many states, blocks and trials, and how long they take; where nobody waits for it, which states."""
    from itertools import pairwise

    from leadline.units import format_duration

    plan, design, count = planned.plan, planned.design, len(planned.proved)
    every = f" of {2**count:,} combinations" if design.kind == "factorial" else ""
    changes = sum(one.target != other.target for one, other in pairwise(plan.trials))
    echo(
        f"{format_count(count, 'setting')} in {len(design.states)} states{every}, "
        f"{format_count(plan.blocks, 'block')}, {format_count(len(plan.trials), 'trial')}:"
        f" about {format_duration(plan.seconds)}, and {format_count(changes, 'change')} of state,"
        " each until it is in force",
        err=True,
    )
    if quiet:
        return
    for one in planned.proved:
        before = ", ".join(dict.fromkeys(one.without.values()))
        echo(f"  {one.setting.name}: {before} -> {one.change.value}")
    for state, changed in design.states.items():
        echo(f"  {state}: {', '.join(changed) or 'none changed'}")


@contextmanager
def _kept(planned: _Planned, state: Path | None) -> Iterator[tuple[tuple[str, ...], ProofJournal]]:
    """The labs that it is on, and the journal of what it changes, which nobody else holds meanwhile."""
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.proving.proof import kept

    labs = labs_of(planned.plan.targets, planned.facts, under_fault=False)
    with kept(TuningJournal(journal_of(labs, state)), planned.system) as journal:
        yield labs, journal


def _start(
    plan_of: StudyRequest,
    asked: AskedProof,
    out: Path,
    choices: RunChoices,
    stop: StopRequest,
    quiet: bool,
) -> Outcome:
    from leadline.analysis.search import next_rate
    from leadline.cli.measure.progress import make_display
    from leadline.observe.host import host
    from leadline.run.model import RunRequest, Steering
    from leadline.run.session import new_run
    from leadline.tuning.proving.proof import as_manifest
    from leadline.tuning.surroundings import refuse_in_trouble

    with _planned(plan_of, asked) as planned, _kept(planned, asked.state) as (labs, journal):
        if any(one.setting.of_cluster for one in planned.proved) and planned.mounts is None:
            if not choices.ignore_health:
                refuse_in_trouble(planned.system.around)
            journal.hold_cluster()
        study, plan, facts = planned.study, planned.plan, planned.facts
        details = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "study": study.as_json(),
            "host": {**host.facts(), "python": platform.python_version()},
            "memory_bytes": host.memory_bytes(),
            "command": ["leadline", *sys.argv[1:]],
            **as_manifest(
                planned.proved,
                planned.design,
                journal.place,
                planned.mounts.wanted.as_json() if planned.mounts else None,
            ),
        }
        if not quiet:
            _say_states(planned, quiet=True)
        request = RunRequest(secrets.token_hex(4), plan, facts, make_options(study, facts, choices, labs))
        states = _states_of(planned, journal, stop)
        steering = Steering(next_rate, make_growth(out), states)
        with make_display(quiet) as display:
            return new_run(request, out, details, display, stop, steering)


def _states_of(planned: _Planned, journal: ProofJournal, stop: StopRequest) -> States:
    from leadline.tuning.proving.mounts import MountedStates
    from leadline.tuning.proving.states import SettingStates

    if (mounts := planned.mounts) is not None:
        return MountedStates(planned.proved, mounts.clients, mounts.wanted)
    return SettingStates(
        planned.system, planned.proved, planned.client, stop, design=planned.design, journal=journal
    )


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
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.proving.mounts import MountedStates
    from leadline.tuning.proving.proof import WITHOUT, design_of_manifest, kept, of_manifest
    from leadline.tuning.proving.states import SettingStates

    if "search" in seen.manifest:
        raise UsageError(f"{path} is a search", f"go on with: leadline tune search --resume {quoted(path)}")
    if "states" in seen.manifest:
        raise UsageError(
            f"{path} is the proof of a search",
            f"go on with: leadline tune search --resume {quoted(path.parent)}",
        )
    proved = of_manifest(seen.manifest)
    if not proved:
        raise UsageError(f"{path} proves no settings", f"go on with: leadline run --resume {quoted(path)}")
    if (wanted := mounts_of(seen.manifest)) is not None:
        with made(wanted) as mounts:
            return then(MountedStates(proved, mounts.clients, wanted))
    facts = TargetFacts.from_json(seen.manifest["targets"][WITHOUT])
    with system_for(facts, (), {one.setting.name: one.setting for one in proved}) as system:
        design, place = design_of_manifest(seen.manifest), seen.manifest["proof"].get("journal")
        with nullcontext() if place is None else kept(TuningJournal(Path(place)), system) as journal:
            return then(SettingStates(system, proved, client_of(facts), stop, design=design, journal=journal))


def system_for(
    facts: TargetFacts,
    names: tuple[str, ...],
    known: dict[str, Any] | None = None,
    own: Path | None = None,
) -> TuningSystem:
    """The host and the cluster behind a target, with `known` settings, or the table's, `own` and Ceph's."""
    from leadline.tuning.proving.request import known_settings

    ceph = facts.ceph
    conf = (ceph.conf if ceph else None) or os.environ.get("CEPH_CONF")
    place, name = Path(conf) if conf else None, (ceph.name if ceph else None) or ""
    # A lab's daemons may be restarted; where its hosts are does not matter: the target is reached from here.
    labs = labs_at([conf]) if conf else ()
    restart = named_lab(labs[0]).restart_daemon if labs else None
    if known is None:
        with system_of(place, name, known=None if own is None else own_settings(own)) as asking:
            known = dict(known_settings(names, asking))
    return system_of(place, name, known=known, restart=restart)


def client_of(facts: TargetFacts) -> TargetClient | None:
    """How the target's client is asked; None where it is none of Ceph's in user space."""
    from leadline.tuning.proving.states import TargetClient

    ceph = facts.ceph
    if ceph is None or ceph.kernel_client is not None:
        return None
    if facts.is_local and ceph.client_socket is None:
        return None
    return TargetClient(ceph.conf, ceph.name, ceph.keyring, ceph.client_socket, ceph.client_pid)


def put_back(path: Path, seen: SeenManifest) -> tuple[str, ...]:
    """Put back what a proof changed; what could not be, in words. Nothing where it proves no settings."""
    if "proof" not in seen.manifest or mounts_of(seen.manifest) is not None:
        return ()  # mounts of its own end with it
    left = with_states_of(path, seen, lambda: False, lambda states: states.leave())
    for one in left:
        echo(f"could not be put back: {one}", err=True)
    return left
