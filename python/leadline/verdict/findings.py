"""From a stored result to everything that reports say: the only way between the two.

A study's result is read, its cells are judged, what they say is put into sentences and sections.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.plan.model import Plan, PlannedCell
from leadline.registry import offered
from leadline.store.reader import Result, refuse_search
from leadline.store.tables import TrialRow
from leadline.study.study import Study, deciding_works
from leadline.study.target import LeftOut
from leadline.units import format_count
from leadline.verdict import messages
from leadline.verdict.answers.compose import JudgedStudy, answer_of
from leadline.verdict.cells import judge_cells
from leadline.verdict.certainty import weighed
from leadline.verdict.comparisons.comparisons import (
    changes_over_time,
    compare_beside,
    compare_targets,
    compare_within,
)
from leadline.verdict.comparisons.deciding import more_statements
from leadline.verdict.degraded import asked_degraded, fault_statements, faults_section, unclean_statements
from leadline.verdict.diagnosis.results import CellDiagnosed, diagnose_cells
from leadline.verdict.diagnosis.section import bounds_section
from leadline.verdict.hosts import host_line, host_statements, hosts_section
from leadline.verdict.inputs import Material, read_material
from leadline.verdict.interface import OwnCells
from leadline.verdict.kinds import kinds
from leadline.verdict.limits import (
    requirement_line,
    requirement_statements,
    requirements_section,
    search_statements,
    searches_section,
)
from leadline.verdict.model import (
    Cell,
    Comparison,
    FigureTable,
    Findings,
    JudgedRequirement,
    Statement,
    TargetView,
    worst,
)
from leadline.verdict.private import PRINTED, private_texts
from leadline.verdict.proofs.detection import ProofFound, find_proof
from leadline.verdict.proofs.effects import stored_design
from leadline.verdict.proofs.messages import proof_answer, proof_section, proof_statements
from leadline.verdict.protections import PerDevice, compared_sizes, per_device_of, protected_section
from leadline.verdict.scaling import (
    Scaled,
    find_scaled,
    scaling_answer,
    scaling_section,
    scaling_statements,
)
from leadline.verdict.sections.section import PROOF_FRAME, STUDY_FRAME, Section, StudyAnswer
from leadline.verdict.sweep.detection import SweepFound, find_sweeps
from leadline.verdict.sweep.messages import sweep_statements, sweeps_answer, sweeps_section
from leadline.verdict.ways import (
    EMULATED,
    MeasuredWay,
    WayColumn,
    columns_of,
    way_statements,
    ways_of,
    ways_section,
    ways_table,
)

if TYPE_CHECKING:
    from leadline.verdict.requirements import Requirements


def build_findings(
    result: Result,
    *,
    with_charts: bool = True,
    base: str | None = None,
    explained: bool | None = None,
    required: Requirements | None = None,
) -> Findings:
    """Judge a whole result, comparing with `base` (None: the study's base, or its first target).

    Without charts no curve and no series is read, which is quicker; `explained` (where it is not said: with
    charts) has what bounds each cell, for which all samples are read. `required` stands in the place of the
    requirements that the run was started with. Raises ResultError where its files do
    not hold together.
    """
    with reading(result.path, UNTOUCHED):
        if required is not None and (result.published or result.workflows or result.traced):
            raise UsageError("requirements are held against results of studies", "leave --require out")
        if result.published:
            if base is not None:
                raise UsageError("published values have no base to compare with", "leave --base out")
            return _offered("findings of published values", result)
        if result.workflows:
            return _offered("findings of workflows", result)
        if result.traced:
            return _offered("findings of a trace", result, with_charts=with_charts, base=base)
        if "search" in result.manifest:
            from leadline.verdict.searches import search_findings  # no study shall wait for it

            if required is not None:
                refuse_search(result.path, result.manifest)
            return search_findings(result, _judged_proof, base)
        explained = with_charts if explained is None else explained
        return _study_findings(result, with_charts, base, explained, required)


def _offered(what: str, result: Result, **options: Any) -> Findings:
    """The findings of a result that is no study's, by whoever judges those."""
    found: Findings = offered(what)(result, **options)
    return found


def proof_of(result: Result) -> ProofFound | None:
    """What a study's result proves of settings, without all else that is said; None where it is no proof."""
    with reading(result.path, UNTOUCHED):
        if result.published or result.workflows or result.traced:
            return None
        refuse_search(result.path, result.manifest)
        read = read_material(result, with_charts=False)
        if "proof" not in read.manifest:
            return None
        found = _judged(read, result.guest(), None, with_charts=False)
        return find_proof(result, read, found.cells, found.comparisons)


def _judged_proof(
    result: Result,
) -> tuple[ProofFound | None, tuple[Cell, ...], Callable[[str], tuple[Comparison, ...]]]:
    """The proof of a search: its verdict, its cells, and its comparisons to another base."""
    read = read_material(result, with_charts=False)
    found = _judged(read, None, None, with_charts=False)
    proof = find_proof(result, read, found.cells, found.comparisons)
    return proof, found.cells, lambda base: _judged(read, None, base, with_charts=False).comparisons


@dataclass(frozen=True)
class _Judgement:
    """What was read of a study's result, and what it was found to be.

    `own` has the cells of each kind of work, `guest` what was measured inside a guest, where something was.
    """

    read: Material
    targets: tuple[TargetView, ...]
    cells: tuple[Cell, ...]
    anchor: str
    comparisons: tuple[Comparison, ...]
    beside: tuple[Comparison, ...]
    within: tuple[tuple[Comparison, ...], str]
    own: Mapping[str, OwnCells]
    guest: Findings | None
    left_out: tuple[LeftOut, ...]
    sweeps: tuple[SweepFound, ...]
    scaled: tuple[Scaled, ...]
    proof: ProofFound | None = None
    asked: Requirements | None = None
    required: tuple[JudgedRequirement, ...] = ()

    @property
    def plain(self) -> tuple[PlannedCell, ...]:
        """The planned cells that are in no sweep: these are compared one by one."""
        return tuple(cell for cell in self.read.plan.cells if cell.swept is None)


def _study_findings(
    result: Result, with_charts: bool, base: str | None, explained: bool, required: Requirements | None
) -> Findings:
    read = read_material(result, with_charts=with_charts)
    found = _judged(read, result.guest(), base, with_charts=with_charts)
    found = replace(found, proof=find_proof(result, read, found.cells, found.comparisons))
    found = _with_requirements(found, required)
    diagnosed = diagnose_cells(result, found.read, found.cells) if explained else ()
    sized = compared_sizes(found.cells) if explained else []
    devices = per_device_of(sized, found.targets, diagnosed, read.trials)
    return replace(
        _summed_up(result, found),
        required=found.required,
        statements=(*_said(found, result.complete), *weighed(devices.statements, found.cells)),
        sections=_sections(found, diagnosed, devices),
        answer=_answer(result, found),
    )


def _with_requirements(found: _Judgement, required: Requirements | None) -> _Judgement:
    """Hold it against what was required, now or when the run was started."""
    read, stored = found.read, found.read.manifest.get("requirements")
    if required is None and stored is None:
        return found
    from leadline.verdict.requirements import MeasuredCells, Requirements, judge_requirements

    asked = required or Requirements.from_json(stored)
    hosts = {
        cell: max((len(read.hosts.rows.get(trial.trial, ())) for trial in table.good), default=0) or 1
        for cell, table in read.tables.items()
    }
    measured = MeasuredCells(found.cells, read.tables, hosts, read.alpha)
    return replace(found, asked=asked, required=judge_requirements(asked, measured))


def _answer(result: Result, found: _Judgement) -> StudyAnswer:
    read = found.read
    return answer_of(
        JudgedStudy(
            study=read.study,
            plan=read.plan,
            block_s=read.block_s,
            done=read.done,
            targets=found.targets,
            cells=found.cells,
            tables=read.tables,
            comparisons=found.comparisons,
            beside=found.beside,
            within=found.within[0],
            within_what=found.within[1],
            anchor=found.anchor,
            alpha=read.alpha,
            left_out=found.left_out,
            own=(
                *(kind.answer(found.own[kind.kind]) for kind in kinds()),
                sweeps_answer(found.sweeps),
                scaling_answer(found.scaled, found.cells),
                proof_answer(found.proof),
            ),
            complete=result.complete,
            said=(
                *((requirement_line(found.required),) if found.required else ()),
                *(one.text for one in search_statements(found.cells, found.read.tables)),
                *(one.text for one in fault_statements(read.trials)),
                *host_line(read.hosts, read.trials),
            ),
        )
    )


def _judged(read: Material, in_guest: Result | None, base: str | None, *, with_charts: bool) -> _Judgement:
    """Cells and comparisons, each with its validity."""
    plan, tables, asked = read.plan, read.tables, read.study.compare
    guest = build_findings(in_guest, with_charts=False) if in_guest else None
    left_out = _left_out(plan, in_guest, guest)
    cells = judge_cells(read, with_charts=with_charts)
    states = {cell.id: cell.validity.state for cell in cells}
    anchor = _anchor(base, read.study, plan)
    decides = {one.work for one in plan.cells} if "proof" in read.manifest else deciding_works(read.study)
    plain = [cell for cell in plan.cells if cell.swept is None]
    design = stored_design(read.manifest)
    # States in which several settings are changed at once stand for no setting: effects do, found later.
    compared = [] if design is not None and design.fraction else plain
    comparisons = compare_targets(
        compared, tables, states, anchor, asked.metrics, asked.margin, read.alpha, decides
    )
    within = compare_within(plain, tables, states, asked.metrics, asked.margin, read.alpha)
    targets = tuple(
        TargetView(t.name, t.url, facts.access, facts.words, facts.as_json())
        for t, facts in ((t, read.facts[t.name]) for t in plan.targets)
    )
    return _Judgement(
        read=read,
        targets=targets,
        cells=cells,
        anchor=anchor,
        comparisons=comparisons,
        beside=compare_beside(plain, tables, states, asked.metrics, asked.margin, read.alpha),
        within=within,
        own={kind.kind: _own(kind.kind, read, cells, comparisons, within[0], left_out) for kind in kinds()},
        guest=guest,
        left_out=left_out,
        sweeps=find_sweeps(read, cells),
        scaled=find_scaled(plan.cells, cells, tables, read.alpha),
    )


def _own(
    kind: str,
    read: Material,
    cells: Sequence[Cell],
    comparisons: tuple[Comparison, ...],
    within: tuple[Comparison, ...],
    left_out: tuple[LeftOut, ...],
) -> OwnCells:
    """What one kind of work has in this result."""
    grouped: dict[str, list[tuple[PlannedCell, Cell]]] = {}
    for planned, cell in zip(read.plan.cells, cells, strict=True):
        grouped.setdefault(planned.kind, []).append((planned, cell))
    pairs = grouped.get(kind, [])
    return OwnCells(
        manifest=read.manifest,
        planned=tuple(planned for planned, _ in pairs),
        cells=tuple(cell for _, cell in pairs),
        tables=read.tables,
        comparisons=comparisons,
        left_out=left_out,
        extra=read.extras.get(kind),
        within=within,
        alpha=read.alpha,
    )


def _summed_up(result: Result, found: _Judgement) -> Findings:
    """All but what is said of it."""
    read, plan = found.read, found.read.plan
    absent = ("NOT_RUN",) if any(one.work is None for one in found.left_out) else ()
    return Findings(
        id=str(read.manifest["id"]),
        kind=str(read.manifest["kind"]),
        title=plan.title or plan.study,
        about=plan.about,
        created=str(read.manifest.get("created", "")),
        state=worst([*(cell.validity.state for cell in found.cells), *absent]),
        targets=found.targets,
        cells=found.cells,
        comparisons=found.comparisons + found.beside,
        statements=(),
        host={str(k): str(v) for k, v in read.manifest.get("host", {}).items()},
        cluster=_cluster(result.trials()),
        itself=_itself(result, read),
        study=read.manifest["study"],
        reproduce=_reproduce(read.manifest, plan),
        version=str(read.manifest.get("version", "")),
        complete=result.complete,
        private=_private(found),
        frame=PROOF_FRAME if "proof" in read.manifest else STUDY_FRAME,
    )


def _private(found: _Judgement) -> dict[str, str]:
    """What tells of the site, a guest's result included."""
    trials = (trial for table in found.read.tables.values() for trial in table.trials)
    texts = private_texts(found.read.manifest, trials)
    names = sorted({row.host for rows in found.read.hosts.rows.values() for row in rows})
    texts |= {name: f"<host {place}>" for place, name in enumerate(names, start=1)}
    for kind in kinds():
        texts |= dict.fromkeys(kind.private(found.read.extras.get(kind.kind)), PRINTED)
    return {**(found.guest.private if found.guest else {}), **texts}


def _said(found: _Judgement, complete: bool) -> tuple[Statement, ...]:
    """Every sentence: on all cells and targets, of each kind of work, and on what changed meanwhile."""
    read = found.read
    states = {cell.id: cell.validity.state for cell in found.cells}
    said = [
        *requirement_statements(found.required),
        *search_statements(found.cells, found.read.tables),
        *sweep_statements(found.sweeps),
        *scaling_statements(found.scaled),
        *proof_statements(found.proof),
        *messages.statements(found.targets, found.cells, found.comparisons, complete, found.beside),
        *more_statements((*_decided(found), *found.beside), read.block_s),
        *_way_statements(found),
        *(statement for kind in kinds() for statement in kind.statements(found.own[kind.kind])),
        *fault_statements(read.trials),
        *unclean_statements(read.trials, asked=asked_degraded(read.manifest)),
        *host_statements(read.hosts, states),
        *messages.time_off(read.taken),
        *changes_over_time(found.plain, read.tables, states, found.anchor, read.study.compare.metrics),
    ]
    said = [*weighed(said, found.cells)]
    if any(kind.findings_first and found.own[kind.kind].cells for kind in kinds()):
        ranks = {"headline": 0, "finding": 1, "caution": 2}
        said.sort(key=lambda one: ranks[one.tone])
    return tuple(said)


def _decided(found: _Judgement) -> tuple[Comparison, ...]:
    """The comparisons of targets, or what a proof found in their place."""
    if found.proof is not None and found.proof.design is not None and found.proof.design.fraction:
        return found.proof.comparisons
    return found.comparisons


def _left_out(plan: Plan, in_guest: Result | None, guest: Findings | None) -> tuple[LeftOut, ...]:
    """What was left out here and not measured in a guest either; a guest's own reasons count there."""
    if guest is None or in_guest is None:
        return plan.left_out
    measured = {target.name for target in guest.targets}
    reasons = {one.target: one for one in Plan.from_json(in_guest.manifest["plan"]).left_out}
    whole = [one for one in plan.left_out if one.work is None and one.target not in measured]
    parts = [one for one in plan.left_out if one.work is not None]
    parts += [one for one in reasons.values() if one.target in measured]
    return (*(reasons.get(one.target, one) for one in whole), *parts)


def _anchor(base: str | None, study: Study, plan: Plan) -> str:
    names = [target.name for target in plan.targets]
    if base is not None and base not in names:
        raise UsageError(f"the result has no target {base!r}", f"use one of: {', '.join(names)}")
    return base or study.compare.base or names[0]


def _cluster(trials: Sequence[TrialRow]) -> dict[str, str]:
    """The cluster as it was when the last trial that saw it began, as flat facts."""
    for trial in reversed(trials):
        state = json.loads(trial.start_state)
        if state:
            pgs = ", ".join(f"{count} {name}" for name, count in state["pgs"].items())
            facts = {
                "health": state["health"],
                "health checks": "; ".join(f"{k}: {v}" for k, v in state["checks"].items()) or "none",
                "placement groups": pgs,
                "OSDs": f"{state['osds_up']} up, {state['osds_in']} in, of {state['osds']}",
                "flags": ", ".join(state["flags"]) if state["flags"] else "none",
            }
            if state["used_share"] is not None:
                facts["used"] = f"{100 * state['used_share']:.1f} %"
            return facts
    return {}


def _itself(result: Result, read: Material) -> dict[str, str]:
    """What leadline itself cost: the engine without storage, the observers, and time beside the plan's."""
    found: dict[str, str] = {}
    for event in result.events:
        if event.event == "self_measured":
            cost = event.details.get("null_ns_per_operation")
            found["engine without storage (null, 4 KiB, queue depth 32)"] = (
                f"{cost:.0f} ns per operation" if cost else f"not measured: {event.details.get('reason')}"
            )
    trials = read.trials
    cpu = [trial.observer_cpu_ns for trial in trials if trial.observer_cpu_ns is not None]
    seconds = sum(trial.ramp_ns + trial.measured_ns for trial in trials) / 1e9
    if cpu and seconds > 0:
        found["observers"] = f"{100 * (sum(cpu) / 1e9 / seconds):.2f} % of one CPU during trials"
    if read.taken is not None:
        found["time"] = messages.time_words(read.taken)
    return found


def _reproduce(manifest: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    command = manifest.get("command")
    lines = [shlex.join(command)] if isinstance(command, list) and command else []
    blocks, trials = format_count(plan.blocks, "block"), format_count(len(plan.trials), "trial")
    return (*lines, f"seed {plan.seed}, {blocks}, {trials}")


def _way_statements(found: _Judgement) -> tuple[Statement, ...]:
    """What the table of all targets says, where there is one."""
    if not found.read.study.compare.table or _pair_tables(found):
        return ()
    ways, columns = _ways(found)
    return way_statements(ways, columns, found.read.tables, found.read.alpha, found.left_out)


def _ways(found: _Judgement) -> tuple[tuple[MeasuredWay, ...], tuple[WayColumn, ...]]:
    guest = found.guest
    in_guest = (guest.targets, guest.cells) if guest else ((), ())
    ways = ways_of(found.targets, found.cells, found.left_out, in_guest)
    return ways, columns_of(ways)


def _pair_tables(found: _Judgement) -> tuple[FigureTable, ...]:
    """Tables of what is between two targets: they stand where that of all targets would."""
    return tuple(table for kind in kinds() for table in kind.pair_tables(found.own[kind.kind]))


def _way_tables(found: _Judgement) -> tuple[FigureTable, ...]:
    of_pairs = _pair_tables(found)
    if of_pairs:
        of_guest = _tables_of_guest(found.guest)
        return (*of_pairs, *(replace(one, title=f"{one.title} (in a guest, {EMULATED})") for one in of_guest))
    if not found.read.study.compare.table:
        return ()
    table = ways_table(*_ways(found), found.read.tables, found.read.alpha, found.comparisons)
    return (table,) if table else ()


def _tables_of_guest(guest: Findings | None) -> Iterator[FigureTable]:
    for section in guest.sections if guest else ():
        if section.name == "ways":
            yield from section.tables


def _sections(
    found: _Judgement, diagnosed: Sequence[CellDiagnosed], devices: PerDevice
) -> tuple[Section, ...]:
    """What the report has besides cells, in its order: a verdict that makes a section is listed here."""
    bounds = bounds_section(diagnosed)
    sizes = protected_section(found.cells, found.targets, devices)
    own = (kind.section(found.own[kind.kind]) for kind in kinds())
    faults = faults_section(found.read.trials, found.read.faults)
    states = {cell.id: cell.validity.state for cell in found.cells}
    hosts = hosts_section(found.read.hosts, found.read.tables, states)
    ways = ways_section(_way_tables(found))
    searches = searches_section(found.read.plan.cells, found.cells, found.read.tables)
    required = requirements_section(found.asked, found.required)
    growth = scaling_section(found.scaled)
    first = (proof_section(found.proof), required, sizes, growth, searches, sweeps_section(found.sweeps))
    sections = (*first, *own, ways, bounds, faults, hosts)
    return tuple(section for section in sections if section is not None)
