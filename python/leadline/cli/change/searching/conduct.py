"""Conducts a search from its words to its proof: new, or from what a result says of it.

Puts back what a search, or its proof, left changed: whatever it ever proposed is known from its result.

`--space audit`: the settings that `leadline tune audit --for` recommends for this work, and values about
what is in force and what is recommended.
"""

from __future__ import annotations

import functools
import platform
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.analysis.proposing import SearchLimits
from leadline.cli.change.searching.course import (
    SIDES,
    STATES,
    ProofValues,
    ProposalBook,
    SearchCourse,
    SearchTime,
    block_s,
    make_search_growth,
    planned_block_s,
)
from leadline.cli.change.searching.proof import (
    BLOCKS_MIN,
    facts_of_states,
    fresh_proof,
    plan_of_states,
    proof_blocks,
    proof_states,
)
from leadline.cli.change.tune_prove import client_of, system_for, two_states
from leadline.cli.change.tune_reach import journal_of
from leadline.cli.console import echo, make_console
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
from leadline.cli.signals import StopRequest
from leadline.errors import RefusedChangeError, ResultError, UsageError
from leadline.store.files import PROOF
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.proving.proof import WITHOUT, kept
from leadline.tuning.searching.request import SearchedSettings, searched_settings
from leadline.tuning.searching.space import SpaceWords, split_space
from leadline.tuning.surroundings import refuse_in_trouble
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.cli.measure.study_options import StudyRequest
    from leadline.plan.model import Plan
    from leadline.run.model import Display, Outcome, RunRequest, States
    from leadline.store.acting import SeenManifest
    from leadline.tuning.audit import AuditRow
    from leadline.tuning.proving.proof import ProofJournal
    from leadline.tuning.searching.sampler import StateValues, ValueStates
    from leadline.tuning.system import TuningSystem


_AROUND = 4.0  # beyond what is in force and what is recommended


def audited_space(system: TuningSystem, work: str) -> tuple[SpaceWords, ...]:
    """Raises RefusedChangeError where nothing is recommended that can be changed while it is measured."""
    from leadline.cli.change.audit_view import work_of
    from leadline.tuning.audit import AuditAsked, audit
    from leadline.tuning.settings import ROLES
    from leadline.tuning.surroundings import holds
    from leadline.tuning.system import read_settings_here

    asked_work, versions = work_of(work), system.versions()
    state = functools.cache(lambda name, place: holds(name, system.around, place))
    asked = AuditAsked(versions, ROLES, asked_work.directions, asked_work.causes, state)
    seen = read_settings_here(system, list(system.known.values()), versions)
    rows = [row for row in audit(system.known, seen, asked).rows if row.kind == "recommended" and row.value]
    found = {row.setting.name: words for row in rows if (words := _around(row)) is not None}
    if not found:
        raise RefusedChangeError(
            f"--space audit: nothing is recommended for {work} that can be searched",
            "name settings: --space NAME=lo..hi; after a run, see `leadline tune audit --for RESULT`",
        )
    return tuple(found.values())


def _around(row: AuditRow) -> SpaceWords | None:
    """A range that has both values and some room; None of what is set by no number, or not while it runs."""
    setting, now = row.setting, row.value or ""
    if setting.access.kind not in ("ceph_config", "sysctl", "fuse") or setting.parts != 1 or setting.grave:
        return None
    if setting.needs not in ("live", "reopen", "reconnect", "remount"):
        return None
    if setting.unit in ("switch", "word"):
        return SpaceWords(setting.name, choices=setting.one_of or (now, row.to))
    try:
        low, high = sorted((float(now), float(row.to)))
    except ValueError:
        return None
    if low <= 0:
        return SpaceWords(setting.name, choices=(now, row.to))
    low, high = low / _AROUND, high * _AROUND
    low = low if setting.at_least is None else max(low, setting.at_least)
    high = high if setting.at_most is None else min(high, setting.at_most)
    return SpaceWords(setting.name, f"{round(low)}", f"{round(high)}")


def put_back_search(path: Path, seen: SeenManifest) -> tuple[str, ...]:
    """Put back; what could not be, in words. Raises ResultError."""
    from leadline.study.target import TargetFacts
    from leadline.tuning.searching.sampler import ValueStates

    searched = SearchedSettings.from_json(seen.manifest["search"])
    facts = TargetFacts.from_json(seen.manifest["targets"][WITHOUT])
    known = {one.setting.name: one.setting for one in searched.settings}
    book = ProposalBook(path, searched.advised)
    place = Path(str(seen.manifest["search"].get("journal", "")))
    with system_for(facts, (), known) as system, kept(TuningJournal(place), system) as journal:
        states = ValueStates(system, searched.settings, book, client_of(facts), journal=journal)
        left = states.leave()
    for one in left:
        echo(f"could not be put back: {one}", err=True)
    return left


PROOF_SHARE = 0.3  # of the budget, at least
_AUDIT = "audit"


@dataclass(frozen=True)
class AskedSearch:
    """What was asked for, read; `space` None: what an audit recommends."""

    space: tuple[SpaceWords, ...] | None
    budget_s: float
    bounds: Mapping[str, float]
    limits: SearchLimits
    words: SearchWords

    @property
    def states(self) -> int:
        """States of the proof, at most, without the default."""
        return 3 if self.words.compare_random else 2


@dataclass(frozen=True)
class SearchWords:
    """The options as they were given."""

    spaces: tuple[str, ...]
    budget: str
    bounds: tuple[str, ...]
    proposals: int | None
    tries: int
    compare_random: bool
    blocks: int | None
    work: str
    way: str | None
    allowed: tuple[str, ...]
    grace: str
    own: Path | None = None
    state: Path | None = None

    def checked(self) -> AskedSearch:
        """Read, before anything is looked at. Raises UsageError and what reading raises."""
        budget_s = units.parse_duration(self.budget) / 1e9
        if budget_s <= 0:
            raise UsageError(f"--budget {self.budget}: no time at all", "write for example: --budget 20m")
        if _AUDIT in self.spaces and len(self.spaces) > 1:
            raise UsageError("--space audit stands alone", "name settings, or let the audit name them")
        space = None if self.spaces == (_AUDIT,) else split_space(self.spaces)
        bounds = dict(map(_bound, self.bounds))
        return AskedSearch(space, budget_s, bounds, SearchLimits(self.tries, self.proposals), self)


def _bound(text: str) -> tuple[str, float]:
    from leadline.study.overrides import LATENCIES

    latency, sign, time = (part.strip() for part in text.partition("="))
    if not sign or latency not in LATENCIES:
        raise UsageError(
            f"--bound {text}: no latency is called {latency!r}", f"write p99=20ms; {', '.join(LATENCIES)}"
        )
    bound_ns = float(units.parse_duration(time))
    if bound_ns <= 0:
        raise UsageError(f"--bound {text}: nothing is that fast", "write for example: --bound p99=20ms")
    return f"latency_{'max' if latency == 'p100' else latency}", bound_ns


def start(plan_of: StudyRequest, asked: AskedSearch, out: Path, stop: StopRequest, *, quiet: bool) -> bool:
    """Search and prove. False where it was interrupted or stopped; it has said so."""
    from leadline.cli.machine.lab_faults import labs_of, refuse_faulted
    from leadline.cli.measure.progress import make_display
    from leadline.cli.measure.run import RunChoices, make_options
    from leadline.cli.measure.study_options import load_plan
    from leadline.plan.check import check_space
    from leadline.run.model import RunRequest
    from leadline.tuning.searching.sampler import optuna_here

    optuna_here()
    way, lab = asked.words.way, plan_of.lab is not None
    study, plan, facts = load_plan(
        plan_of, before_looking=refuse_faulted, as_states=lambda found: two_states(found, way, lab=lab)
    )
    labs = labs_of(plan.targets, facts, under_fault=False)
    check_space(plan, study, facts)
    _check_budget(plan, asked)
    names = (WITHOUT, *STATES)
    named = () if asked.space is None else tuple(part.name for part in asked.space)
    journal_in = TuningJournal(journal_of(labs, asked.words.state))
    with (
        system_for(facts[WITHOUT], named, own=asked.words.own) as system,
        kept(journal_in, system) as journal,
    ):
        space = asked.space if asked.space is not None else _audited(system, asked.words.work)
        if any(system.setting(part.name).of_cluster for part in space):
            refuse_in_trouble(system.around, "mend the cluster first")
            journal.hold_cluster()
        searched = searched_settings(space, system, client_of(facts[WITHOUT]), asked.words.allowed)
        own = plan_of_states(plan, names, 0, plan.seed)
        options = make_options(
            study, facts_of_states(facts, names), RunChoices(grace=asked.words.grace), labs
        )
        request = RunRequest(secrets.token_hex(4), own, facts_of_states(facts, names), options)
        sides = SIDES if asked.words.compare_random else SIDES[:1]
        course = SearchCourse(searched.space, searched.default, sides, asked.limits, plan.seed)
        details = _details(study.as_json(), searched, course, asked)
        details["search"]["journal"] = journal.place
        with make_display(quiet) as display:
            own_search = _Search(out, system, searched, display, stop, details["search"], journal)
            return own_search.run(request, details)


def _audited(system: TuningSystem, work: str) -> tuple[SpaceWords, ...]:
    from leadline.cli.change.searching.conduct import audited_space

    return audited_space(system, work)


def _details(
    study: dict[str, Any], searched: SearchedSettings, course: SearchCourse, asked: AskedSearch
) -> dict[str, Any]:
    from leadline.observe.host import host

    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "study": study,
        "host": {**host.facts(), "python": platform.python_version()},
        "memory_bytes": host.memory_bytes(),
        "command": ["leadline", *sys.argv[1:]],
        "search": {
            **searched.as_json(),
            **course.as_json(),
            "bounds": dict(asked.bounds),
            "budget_s": asked.budget_s,
            "proof_s": PROOF_SHARE * asked.budget_s,
            "proof_blocks": asked.words.blocks,
        },
    }


def _check_budget(plan: Plan, asked: AskedSearch) -> None:
    """Room for one proposal and a proof of four blocks. Raises UsageError that says what would fit."""
    block = planned_block_s(plan)
    sides = 2 if asked.words.compare_random else 1
    search_s = block * asked.limits.blocks * sides
    proof_s = block / 2 * (asked.states + 1) * (asked.words.blocks or BLOCKS_MIN)
    least_s = max(search_s / (1 - PROOF_SHARE), search_s + proof_s)
    if asked.budget_s < least_s:
        raise UsageError(
            f"--budget {asked.words.budget} is too short: one proposal takes about"
            f" {units.format_duration(search_s)}, and the proof of a winner {units.format_duration(proof_s)}",
            f"give --budget {round(least_s + 0.5)}s at least, or shorter trials: --set defaults.runtime=2s",
        )


def go_on(path: Path, seen: SeenManifest, stop: StopRequest, *, quiet: bool) -> bool:
    """Resume a search, or its proof."""
    from leadline.cli.measure.progress import make_display
    from leadline.study.target import TargetFacts

    if "search" not in seen.manifest:
        raise UsageError(
            f"{path} is no search of settings", f"go on with: leadline run --resume {quoted(path)}"
        )
    searched = SearchedSettings.from_json(seen.manifest["search"])
    facts = TargetFacts.from_json(seen.manifest["targets"][WITHOUT])
    known = {one.setting.name: one.setting for one in searched.settings}
    said = seen.manifest["search"]
    place = TuningJournal(Path(str(said.get("journal", ""))))
    with (
        system_for(facts, (), known) as system,
        kept(place, system) as journal,
        make_display(quiet) as display,
    ):
        return _Search(path, system, searched, display, stop, said, journal).go_on(seen)


class _Search:
    """A search on its system: the measured part, then the proof, each as a run of its own result."""

    def __init__(
        self,
        path: Path,
        system: TuningSystem,
        searched: SearchedSettings,
        display: Display,
        stop: StopRequest,
        said: Mapping[str, Any],
        journal: ProofJournal,
    ) -> None:
        self._journal = journal
        self._path, self._system, self._searched = path, system, searched
        self._display, self._stop, self._said = display, stop, said
        self._book = ProposalBook(path, searched.advised, display.say)
        try:
            limits = SearchLimits(int(said["limits"]["blocks"]), said["limits"]["proposals"])
            self._course = SearchCourse(
                searched.space, searched.default, tuple(said["sides"]), limits, int(said["seed"])
            )
            self._budget_s = float(said["budget_s"])
        except (KeyError, TypeError, ValueError) as error:
            raise ResultError(
                f"what the result says of its search is damaged: {error}", "restore it"
            ) from None

    def run(self, request: RunRequest, details: Mapping[str, Any]) -> bool:
        """From its beginning."""
        from leadline.run.session import new_run

        states = self._states(request, self._book)
        steering = self._steering(states)
        outcome = new_run(request, self._path, details, self._display, self._watching(states), steering)
        return self._ended(outcome) and self._prove()

    def go_on(self, seen: SeenManifest) -> bool:
        """From what is stored."""
        from leadline.run.session import request_of, resume_run

        if not _is_finished(self._path):
            request = request_of(seen.manifest)
            states = self._states(request, self._book)
            steering = self._steering(states)
            labs = _labs(seen.manifest)
            outcome = resume_run(self._path, seen, self._display, self._watching(states), steering, labs=labs)
            if not self._ended(outcome):
                return False
        return self._prove()

    def _steering(self, states_of_settings: States) -> Any:
        from leadline.analysis.search import next_rate
        from leadline.run.model import Steering

        states = 1 + bool(self._searched.advised) + (len(self._course.sides) > 1)
        blocks = int(self._said.get("proof_blocks") or BLOCKS_MIN)
        time = SearchTime(self._budget_s, float(self._said["proof_s"]), blocks, states)
        growth = make_search_growth(self._path, self._course, time, self._display.say)
        return Steering(next_rate, growth, states_of_settings)

    def _states(self, request: RunRequest, values: StateValues) -> ValueStates:
        from leadline.tuning.searching.sampler import ValueStates

        return ValueStates(
            self._system,
            self._searched.settings,
            values,
            client_of(request.facts[WITHOUT]),
            stopping=self._stop,
            journal=self._journal,
        )

    def _watching(self, states: ValueStates) -> Callable[[], bool]:
        """The request to stop is asked for while trials run: a moment to look at health."""

        def stopping() -> bool:
            states.watch()
            return self._stop()

        return stopping

    def _prove(self) -> bool:
        """The winner's proof, new or what is left of it; True also where there is nothing to prove."""
        from leadline.run.session import new_run, request_of, resume_run
        from leadline.store.acting import look_at
        from leadline.store.reader import open_result

        result = open_result(self._path)
        request = request_of(result.manifest)
        if (self._path / PROOF).is_dir():
            if _is_finished(self._path / PROOF):
                return True
            seen = look_at(self._path / PROOF)
            own = dict(seen.manifest["states"])
            states = self._states(request, ProofValues(own, self._book, self._display.say))
            watching = self._watching(states)
            labs = _labs(seen.manifest)
            outcome = resume_run(
                self._path / PROOF, seen, self._display, watching, self._proof_steering(states), labs=labs
            )
            return self._ended(outcome)
        proved = proof_states(result, self._searched)
        if not proved:
            return True
        blocks = self._said.get("proof_blocks") or proof_blocks(
            self._left_s(), block_s(request.plan, result.events), len(proved)
        )

        states = self._states(request, ProofValues(proved, self._book, self._display.say))
        fresh, details = fresh_proof(request, result.manifest, self._searched, proved, blocks)
        self._display.say(f"the proof: {', '.join(proved)}")
        watching = self._watching(states)
        found = new_run(
            fresh, self._path / PROOF, details, self._display, watching, self._proof_steering(states)
        )
        return self._ended(found)

    def _proof_steering(self, states: States) -> Any:
        from leadline.analysis.search import next_rate
        from leadline.run.model import Steering

        return Steering(next_rate, states=states)

    def _left_s(self) -> float:
        from leadline.analysis.duration import spent_s
        from leadline.store.reader import open_result

        return self._budget_s - spent_s(open_result(self._path).events)

    def _ended(self, outcome: Outcome) -> bool:
        errors = make_console(stderr=True)
        for place in outcome.left_behind:
            errors.print(f"left behind: {place}; later: leadline undo {quoted(self._path)}", markup=False)
        if outcome.interrupted or outcome.stopped:
            why = f"stopped: {outcome.stopped}" if outcome.stopped else "interrupted"
            errors.print(
                f"{why}; go on with: leadline tune search --resume {quoted(self._path)}", markup=False
            )
            return False
        return True


def _is_finished(path: Path) -> bool:
    from leadline.store.reader import open_result

    return any(event.event == "study_finished" for event in open_result(path).events)


def _labs(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    from leadline.cli.machine.lab_faults import labs_of_result

    return labs_of_result(manifest, under_fault=False)


def conclude(path: Path, execute: Callable[[StopRequest], bool]) -> int:
    """Search under a stop request, then show what came of it; the exit code."""
    with StopRequest() as stop:
        whole = execute(stop)
    if not whole:
        return stop.exit_code if stop() else EXIT_FAILED
    from leadline.report.first_screen import show_screen
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings

    console = make_console()
    show_screen(build_findings(open_result(path), with_charts=False), console, path)
    console.print(f"result: {path.resolve()}", markup=False)
    return EXIT_GOOD
