"""What `plan` and `run` share: their options, and the way from a study's name to a plan."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from leadline.cli.machine.lab_targets import lab_option
from leadline.cli.options import AskedPath, UntouchedPath

if TYPE_CHECKING:
    from leadline.cli.measure.hosts_options import Recruiting
    from leadline.plan.model import Plan
    from leadline.study.kind.lookups import (
        ApplicationFacts,
        Film,
        ProgramVersion,
        SourceFacts,
        SourceFile,
        Tracer,
    )
    from leadline.study.study import Study
    from leadline.study.target import LeftOut, Target, TargetFacts

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class KnownServers:
    """What the user says of targets beside where they are: Ceph's configuration behind their servers, these
    servers' memory, and the pools in which files are to be kept."""

    conf: Path | None = None
    memory: str | None = None
    layouts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True where something was said."""
        return self != KnownServers()


@dataclass(frozen=True)
class StudyRequest:
    """A study that was asked for, and on what; `sets` are its changes as KEY=VALUE."""

    study: str
    targets: tuple[str, ...]
    sets: tuple[str, ...] = ()
    blocks: int | None = None
    seed: int | None = None
    program: tuple[str, ...] = ()
    input_path: str | None = None
    lab: str | None = None
    servers: KnownServers = KnownServers()
    ignored: tuple[str, ...] = ()


def study_options(command: _Command) -> _Command:
    """Adds --target, --lab, --set, --blocks, --seed and --ignore (parameters `targets`, `ignored`, …).

    --bound is one of `sets`. And --layout, --conf and --server-memory, as one parameter `servers`.
    """
    return _with_options(command, (*_decorators(), _bound_option()))


def unbounded_study_options(command: _Command) -> _Command:
    """All of them but --bound, for a verb whose bounds are other ones."""
    return _with_options(command, _decorators())


def _with_options(command: _Command, decorators: Sequence[Callable[..., Any]]) -> _Command:
    @functools.wraps(command)
    def told(
        *,
        conf: Path | None,
        server_memory: str | None,
        engine: str | None,
        layouts: tuple[str, ...],
        sets: tuple[str, ...],
        search_bound: str | None = None,
        **others: Any,
    ) -> Any:
        # Before what is set, so that `--set workloads.NAME.search.low=…` is of the search that it makes.
        sets = sets if search_bound is None else (f"--bound {search_bound}", *sets)
        sets = sets if engine is None else (*sets, f"generator={engine}")
        return command(servers=KnownServers(conf, server_memory, layouts), sets=sets, **others)

    return cast(
        "_Command", functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), told)
    )


def _decorators() -> tuple[Callable[..., Any], ...]:
    """The options themselves, in the order of the help."""
    return (
        click.option(
            "--target",
            "targets",
            multiple=True,
            metavar="NAME=PATH",
            help="A directory on a mounted file system, or null://. Repeat for several targets. Replaces "
            "the study's targets.",
        ),
        click.option(
            "--layout",
            "layouts",
            multiple=True,
            metavar="TARGET=POOL",
            help="Store the study's files on TARGET in this CephFS data pool, for example an "
            "erasure-coded one. Several targets may share a path and differ in the pool.",
        ),
        lab_option(
            "Use every access method of a lab as a target, and this host's own disk. NAME is the "
            "lab; without it, the only one."
        ),
        click.option(
            "--conf",
            type=AskedPath(dir_okay=False),
            help="ceph.conf of the cluster behind NFS, SMB, S3 or XRootD servers. Its counters show what "
            "the servers cached.  [default: the one that a server on this host uses]",
        ),
        click.option(
            "--server-memory",
            metavar="SIZE",
            help="Memory of those servers: they may cache smaller data sets.",
        ),
        click.option(
            "--set",
            "sets",
            multiple=True,
            metavar="KEY=VALUE",
            help="Change the study: size=64M, works.NAME.bs=4M, factors.bs=[4k,64k], limits.reserve=10%.",
        ),
        click.option(
            "--engine",
            type=click.Choice(["leadline", "fio"]),
            help="Load generator for reads and writes: leadline's own, or fio.",
        ),
        click.option("--blocks", type=click.IntRange(1, 1000), help="Repetitions of every cell."),
        click.option("--seed", type=click.IntRange(min=0), help="Seed of the order and of the data."),
        click.option(
            "--ignore",
            "ignored",
            multiple=True,
            metavar="OPTION",
            help="Ignore this option of a fio job file. Repeat for several.",
        ),
    )


def _bound_option() -> Callable[..., Any]:
    return click.option(
        "--bound",
        "search_bound",
        metavar="LATENCY=TIME",
        help="Find the highest rate of each read or write workload that keeps this latency, measured "
        "from the intended start: for example p99=20ms; p50, p95, p99, p99.9, p100 or mean.",
    )


def application_options(command: _Command) -> _Command:
    """Adds --input and the words after `--` (parameters `input_path`, `program`)."""
    staged = click.option(
        "--input",
        "--source",
        "input_path",
        type=UntouchedPath(),
        metavar="PATH",
        help="Input directory or file of a study's command or pipeline. It is copied to each target.",
    )
    words = click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
    return words(staged(command))


def needs_leadline(study: Study) -> str:
    """Which workload of a study runs Python on its hosts, and what; "" where leadline's agent does all."""
    from leadline.study.kinds import asked_kind
    from leadline.study.study import expand

    for work in expand(study):
        kind = asked_kind(work.options)
        what = "" if kind is None else kind.needs_leadline(work.options)
        if what:
            return f"workload {work.base}, {what}"
    return ""


def asked_study(request: StudyRequest) -> Study:
    """The study of a request, with what the command line changes of it. Raises SpecError."""
    from leadline.observe.hang_guard import check_answers
    from leadline.observe.host.host import cpu_list
    from leadline.study.library import builtin_names, load_study

    if request.study not in builtin_names():
        check_answers([request.study])
    options = {"blocks": request.blocks, "seed": request.seed}
    changes = (*request.sets, *(f"{key}={value}" for key, value in options.items() if value is not None))
    return load_study(
        *(request.study, os.environ, changes),
        command=request.program,
        input_path=request.input_path,
        cpus=len(cpu_list()),
        ignored=request.ignored,
    )


def load_plan(
    request: StudyRequest,
    *,
    before_looking: Callable[[Collection[Target]], None] = lambda _: None,
    recruited: Recruiting | None = None,
    as_states: Callable[[dict[str, Target]], dict[str, Target]] = dict,
) -> tuple[Study, Plan, dict[str, TargetFacts]]:
    """The study with its overrides, the plan, and the facts of each target by name.

    Looks at every target, writes nothing that stays; `before_looking` is told the targets before that. Hosts
    that were recruited look for themselves, and are looked at. `as_states` has the targets that are asked for
    and returns those of the plan. Raises SpecError or TargetError.
    """
    from leadline.observe.host.host import memory_bytes
    from leadline.plan.make import Host, make_plan
    from leadline.study.target import parse_layouts, parse_targets, with_layouts

    lab, servers = request.lab, request.servers
    pools, named = parse_layouts(servers.layouts), parse_targets(request.targets)
    study = asked_study(request)
    chosen = named or study.own_targets()
    absent: tuple[LeftOut, ...] = ()
    confs: dict[str, Path] = {}
    if lab is not None:
        from leadline.cli.machine.lab_targets import ways_to_lab

        ways, absent = ways_to_lab(lab, on_hosts=recruited is not None)
        chosen = {**ways, **named}
        # The ways to a lab come with where its configuration is.
        confs = dict.fromkeys(ways.keys() - named.keys(), Path(os.environ["CEPH_CONF"]))
    chosen = as_states(with_layouts(chosen, pools))
    before_looking(tuple(chosen.values()))
    if recruited is None:
        facts, lost = _inspected(chosen, study.where_possible, servers, confs)
    else:
        facts, lost = recruited.look(chosen), []
    facts = _with_layouts(facts, chosen, tries=recruited is None)
    _check_metrics(study)
    plan = make_plan(
        study,
        {name: chosen[name] for name in facts},
        facts,
        Host(
            memory_bytes() if recruited is None else recruited.memory_bytes(),
            unavailable=_unavailable_engines() if recruited is None else recruited.unavailable(),
            lookups=_lookups(recruited),
            absent=(*absent, *lost) if as_states is dict else (),  # of a proof's one target nothing lacks
        ),
        study.seed,
    )
    return study, plan if recruited is None else recruited.for_all(plan), facts


def _with_layouts(
    facts: dict[str, TargetFacts], chosen: Mapping[str, Target], *, tries: bool
) -> dict[str, TargetFacts]:
    """The facts of targets whose files are to be kept in another pool, and of all others as they are."""
    if not any(chosen[name].pool for name in facts):
        return facts
    from leadline.observe.mounts.layouts import with_layout

    return {name: with_layout(found, chosen[name], tries=tries) for name, found in facts.items()}


def _lookups(recruited: Recruiting | None) -> tuple[object, ...]:
    """What kinds of work find out about this host, or about the least of those that take part."""
    from leadline.observe.host.host import memory_room
    from leadline.study.kind.lookups import FioLook, HostRoom, Look, Scout, SourceLook

    return (
        Look(functools.cache(_look)),
        Scout(functools.cache(_look_at_source), functools.cache(_look_at_version)),
        HostRoom(*memory_room()) if recruited is None else HostRoom(*recruited.memory_room()),
        SourceLook(functools.cache(_look_at_files)),
        *((FioLook(functools.cache(_look_at_generator)),) if recruited is None else ()),
    )


def _look_at_files(path: str) -> Sequence[SourceFile]:
    from leadline.observe.commands import find_sources

    return find_sources(path)


def _look_at_source(path: str | None, film: Film | None, video: bool) -> SourceFacts:
    """What is known of a pipeline's source: a file, or a film that was made before or is still to be made."""
    from leadline.observe.commands import film_path, look_at_file
    from leadline.observe.hang_guard import in_fork
    from leadline.study.kind.lookups import SourceFacts
    from leadline.workloads.pipeline.planner import film_bytes

    if path is not None or film is None:
        return look_at_file(path or "", video)
    place = film_path(film, os.environ)
    size = in_fork(lambda _: place.stat().st_size if place.is_file() else None, str(place))
    if size is not None:
        return SourceFacts(str(place), size, width=film.width, elements=film.elements)
    return SourceFacts(str(place), film_bytes(film), made=False, width=film.width, elements=film.elements)


def _look_at_version(program: str) -> ProgramVersion:
    from leadline.observe.commands import program_version

    return program_version(program)


def _look_at_generator(program: str) -> tuple[str | None, str]:
    """The version of a program that makes load, or why there is none."""
    from leadline.observe.commands import find_program, program_version

    executable, missing = find_program(program)
    return (None, missing) if executable is None else (f"{program} {program_version(executable).words}", "")


def _inspected(
    chosen: dict[str, Target], where_possible: bool, servers: KnownServers, confs: Mapping[str, Path]
) -> tuple[dict[str, TargetFacts], list[LeftOut]]:
    """The facts of every target; where the study says so, those that are not there are left out instead.

    `confs` are configurations of the cluster behind some targets, by their names.
    """
    from leadline import units
    from leadline.errors import TargetError
    from leadline.observe.host.host import memory_bytes
    from leadline.observe.mounts.mounts import inspect
    from leadline.observe.mounts.servers import with_server
    from leadline.study.target import LeftOut

    memory = units.parse_size(servers.memory) if servers.memory else None
    facts: dict[str, TargetFacts] = {}
    lost: list[LeftOut] = []
    for name, target in chosen.items():
        try:
            found = inspect(target.url)
            facts[name] = with_server(
                found, target.url, servers.conf or confs.get(name), memory_bytes(), memory
            )
        except TargetError as error:
            if not where_possible:
                raise
            lost.append(LeftOut(name, None, error.message, target.url))
    if not facts and lost:
        raise TargetError(f"no target can be reached: {lost[0].reason}", "see: leadline targets")
    return facts, lost


def _look(command: tuple[str, ...], input_path: str | None) -> ApplicationFacts:
    """What is known of a command on this host before it runs."""
    from leadline.observe.commands import find_program, look_at_input, words_here
    from leadline.study.kind.lookups import ApplicationFacts

    executable, missing = find_program(command[0])
    found = look_at_input(input_path) if input_path is not None and executable is not None else None
    untraceable = _untraceable(Path(executable)) if executable is not None else ()
    return ApplicationFacts(executable, missing, found, untraceable, words_here(command))


def _untraceable(executable: Path) -> tuple[tuple[Tracer, str], ...]:
    """The tracers that cannot follow a program here, each with the reason."""
    from leadline.errors import UsageError
    from leadline.tracing.sources import bpf, preload

    try:
        preload.library()
        unseen = preload.cannot_follow(executable)
    except UsageError as error:
        unseen = error.message
    found: tuple[tuple[Tracer, str | None], ...] = (("preload", unseen), ("bpf", bpf.unavailable()))
    return tuple((tracer, reason) for tracer, reason in found if reason)


def _check_metrics(study: Study) -> None:
    """`compare.metrics` are names that only the analysis knows."""
    from leadline.errors import SpecError
    from leadline.verdict.kinds import known_metrics
    from leadline.workloads.pipeline.tables import STAGE_TIME

    searched = (work.search.metric for work in study.workloads.values() if work.search)
    works = study.workloads.values()
    stages = (f"{STAGE_TIME}{one.stage}" for work in works for one in work.said().get("pipeline", ()))
    known = (*known_metrics(), *dict.fromkeys(searched), *dict.fromkeys(stages))
    for name in study.compare.metrics:
        if name not in known:
            raise SpecError(
                f"no metric is called {name!r}",
                f"use some of: {', '.join(known)}",
                source=f"study {study.name}",
                key="compare.metrics",
            )


def _unavailable_engines() -> dict[str, str]:
    """Engines that do not work on this host, with the reason."""
    from leadline import _core

    return {
        str(engine["name"]): str(engine["reason"] or "no reason is known")
        for engine in _core.engines()
        if not engine["available"]
    }
