"""A study as the user asked for it: works, factors, repetitions, what to compare. Frozen once read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from leadline import units
from leadline.errors import ResultError, SpecError
from leadline.study.kinds import JOB_OPTIONS, JobOptions
from leadline.study.levels import WORK_NAME, label_of, level_words
from leadline.study.target import Target, check_name, check_pool, check_url
from leadline.study.work import (
    Order,
    Search,
    SharedOptions,
    SteadyState,
    Sweep,
    Swept,
    WorkOptions,
    known_keys,
    plain_options,
    problem_of_works,
)
from leadline.study.yaml_source import RENAMED, suggest, vocabulary
from leadline.yamlio.fields import SIZE_PATTERN, Duration, Rate, Share, Whole, guarded
from leadline.yamlio.problems import describe, translate
from leadline.yamlio.yaml_source import Document, Path, WrittenAt, with_new_names

STUDY_FORMAT = "leadline.study/1"
CELLS_MAX = 2_000
QUESTION_MAX = 100  # letters: a line


def _parse_reserve(value: object) -> str:
    if isinstance(value, str) and value.strip().endswith("%"):
        return f"{units.parse_percent(value):g}%"
    return units.exact_size(units.parse_size(value))


def _parse_interval(value: object) -> int:
    interval_ns = units.parse_duration(value)
    if not units.NS_PER_S // 10 <= interval_ns <= 10 * units.NS_PER_S:
        raise SpecError(f"{value!r} is out of range", "write a time from 100ms to 10s")
    return interval_ns


_Reserve = Annotated[
    str,
    BeforeValidator(guarded(_parse_reserve)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": rf"(^\s*[0-9]+(\.[0-9]+)?\s*%\s*$)|({SIZE_PATTERN})"},
                {"type": "integer", "minimum": 0},
            ]
        }
    ),
]
_Interval = Annotated[
    Duration, BeforeValidator(lambda value: units.exact_duration(guarded(_parse_interval)(value)))
]
_Url = Annotated[str, BeforeValidator(guarded(check_url)), WithJsonSchema({"type": "string", "minLength": 1})]
_Pool = Annotated[
    str, BeforeValidator(guarded(check_pool)), WithJsonSchema({"type": "string", "minLength": 1})
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TargetPlace(_Section):
    """Where a target is, where more than its address is said."""

    at: _Url = Field(description="path, or URL")
    pool: _Pool | None = Field(
        None, description="pool of the same CephFS that the study's own directory below it keeps its files in"
    )


def _place(value: object) -> object:
    """A path or a URL alone stands for a place without anything else."""
    return value if isinstance(value, dict | TargetPlace) else {"at": value}


_Place = Annotated[
    TargetPlace,
    BeforeValidator(_place),
    PlainSerializer(lambda place: place.at if place.pool is None else {"at": place.at, "pool": place.pool}),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, TargetPlace.model_json_schema()]}),
]


class Compare(_Section):
    """What is compared: every other target against `base`, in `metrics`; "same" is within `margin`.

    The comparisons of works that `decides` names are decided together, so that any of them errs in one of
    twenty studies; of what others find one in twenty is false.
    """

    base: str | None = Field(None, description="name of the target that others are compared with; the first")
    metrics: list[str] = Field(
        default_factory=list, description="metrics to compare; empty: chosen by workload"
    )
    margin: Share = Field(0.05, description="difference that does not matter, for example 5%")
    decides: list[str] = Field(
        default_factory=list,
        description="workloads that answer the question, tested together; others explore",
    )
    table: bool = Field(
        False, description="one table of all targets and all workloads, with the cost of each"
    )


class Enough(_Section):
    """Blocks are added to the first ones where these scatter so much that `tells` would not be told in most
    comparisons, and as many as tell it fit into the whole time `within`."""

    tells: Share = Field(0.2, description="the difference to detect, for example 20%")
    within: Duration = Field(description="time that the whole study may take with them, for example 15m")
    alone: Annotated[int, Whole(1, 1_000)] | None = Field(
        None, description="blocks where a single target leaves nothing to compare; as `blocks` says"
    )


class Observe(_Section):
    """How often observers sample and the engine closes an interval."""

    interval: _Interval = Field(units.NS_PER_S, description="100ms to 10s; default 1s")


class Limits(_Section):
    """What a run must not exceed."""

    max_rate: Rate | None = Field(None, description="most bytes per second of one trial and of prefilling")
    reserve: _Reserve = Field("5%", description="free space to keep, of the file system's size or in bytes")


class Study(_Section):
    """A whole study. `defaults` hold for every work that does not say otherwise; factors hold over both."""

    format: Literal["leadline.study/1"] = Field(description="the format and its version")
    name: str = Field("", pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="short name; the file's name")
    title: str = Field("", max_length=200, description="one line for reports")
    question: str = Field(
        "", max_length=QUESTION_MAX, description="what is asked, in one line: reports answer it first"
    )
    about: str = Field("", max_length=4000, description="what is asked and why")
    notes: list[str] = Field(
        default_factory=list, description="what is otherwise here than in the file that the study was made of"
    )
    targets: dict[str, _Place] = Field(
        default_factory=dict, description="name: path, or null://; or {at: PATH, pool: POOL}"
    )
    workloads: dict[str, WorkOptions] = Field(
        min_length=1, description="name: options of a job, or several jobs"
    )
    defaults: SharedOptions = Field(default_factory=SharedOptions, description="options of every workload")
    factors: dict[str, list[Any]] = Field(default_factory=dict, description="option: list of its levels")
    label: str = Field("", description="name of each workload, for example {workload}_{bs}")
    blocks: Annotated[int, Whole(1, 1_000)] = Field(3, description="times that every cell is run; 3")
    enough: Enough | None = Field(
        None, description="when to add blocks to these; never with --blocks, --until or --budget"
    )
    seed: Annotated[int, Whole(0, 2**63 - 1)] = Field(1, description="of the order and of the data; 1")
    where_possible: bool = Field(
        False, description="leave out, with the reason, what a target cannot do; else the study is refused"
    )
    compare: Compare = Field(default_factory=Compare)
    observe: Observe = Field(default_factory=Observe)
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="before")
    @classmethod
    def _with_new_names(cls, value: Any) -> Any:
        """Results store studies, and those of older versions have their keys."""
        return with_new_names(value, RENAMED)

    def own_targets(self) -> dict[str, Target]:
        """The targets that the study itself names."""
        return {name: Target(name, place.at, pool=place.pool) for name, place in self.targets.items()}

    def as_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back, in the notation of a study."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_json(cls, value: Any) -> Study:
        """The inverse of `as_json`. Raises ResultError where it is no study of this version."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise ResultError(
                f"the stored study is damaged or of another version: {error.errors()[0]['msg']}",
                "use the version of leadline that wrote it",
            ) from error


@dataclass(frozen=True)
class Work:
    """One work, or one job of a composition, with one level of each factor applied.

    `base` is the work's name in the study, `job` the name of the job in it. `group` names the composition
    that the job is a part of, and `order` says how its jobs follow each other; None for a work alone.
    """

    name: str
    base: str
    options: JobOptions
    factors: dict[str, Any]
    job: str | None = None
    group: str | None = None
    order: Order | None = None
    steady: SteadyState | None = None
    search: Search | None = None
    swept: Swept | None = None


KNOWN_KEYS: dict[str, tuple[str, ...]] = {
    **known_keys(),
    "": tuple(Study.model_fields),
    "factors": JOB_OPTIONS,
    "targets": tuple(TargetPlace.model_fields),
    "compare": tuple(Compare.model_fields),
    "enough": tuple(Enough.model_fields),
    "observe": tuple(Observe.model_fields),
    "limits": tuple(Limits.model_fields),
}


def parse_study(document: Document, name: str = "study") -> Study:
    """A study whose works were all expanded once, so that no contradiction is left. Raises SpecError.

    `name` is used where the study does not give one.
    """
    value = document.value
    if not isinstance(value, dict):
        document.fail((), "a study is a mapping of keys", "see `leadline studies quick` for an example")
    _refuse_empty(document, value, ())
    _refuse_format(document, value)
    _refuse_names(document, value)
    try:
        study = Study.model_validate({"name": name, **value})
    except ValidationError as error:
        translate(error, document, vocabulary(KNOWN_KEYS))
    _refuse_factors(document, study)
    if study.compare.base is not None and study.targets and study.compare.base not in study.targets:
        remedy = suggest(study.compare.base, study.targets)
        document.fail(("compare", "base"), f"{study.compare.base!r} is no target of the study", remedy)
    _refuse_varies(document, study)
    works = expand(study, document)
    _refuse_decides(document, study, works)
    return study


def expand(study: Study, document: Document | None = None) -> tuple[Work, ...]:
    """Every work times every combination of factor levels. Raises SpecError for what contradicts itself."""
    written = document or Document({}, {(): WrittenAt(study.name)}, study.name)
    cells = sum(
        _cells_of(own) * math.prod(len(study.factors[name]) for name in factors_of(study, own))
        for own in study.workloads.values()
    )
    if cells > CELLS_MAX:
        written.fail(("factors",), f"more than {CELLS_MAX} workloads", "leave levels out, or split the study")
    found: dict[str, Work] = {}
    for base, own in study.workloads.items():
        names = factors_of(study, own)
        for combination in itertools.product(*(study.factors[name] for name in names)):
            chosen = JobOptions.model_validate(dict(zip(names, combination, strict=True)))
            factors = {name: level_words(name, getattr(chosen, name)) for name in names}
            for work in _works(study, base, own, chosen, factors, written):
                if work.name in found:
                    written.fail(
                        ("label",) if study.label else ("workloads", base),
                        f"two workloads would be named {work.name!r} ({found[work.name].base} and {base})",
                        "name in `label` what they differ in, for example {workload}_{bs}",
                    )
                found[work.name] = work
    return tuple(found.values())


def factors_of(study: Study, own: WorkOptions) -> list[str]:
    """The factors of a study that hold for one of its works, in the study's order."""
    return [name for name in study.factors if own.varies is None or name in own.varies]


def _works(
    study: Study,
    base: str,
    own: WorkOptions,
    chosen: JobOptions,
    factors: dict[str, Any],
    written: Document,
) -> list[Work]:
    """One combination of levels of one work: a work, or one for each job of a composition."""
    common = plain_options(own).over(plain_options(study.defaults))
    name = label_of(study.label, base, chosen.over(common), factors, written)
    steady = own.steady_state or study.defaults.steady_state
    if own.sweep is not None:
        works = _swept_works(
            Work(name, base, chosen.over(common), factors, search=own.search), own.sweep, written
        )
    elif own.jobs is None:
        work = Work(name, base, chosen.over(common), factors, steady=steady, search=own.search)
        works = [work]
    else:
        order = own.order or "together"
        works = [
            Work(f"{name}.{job}", base, chosen.over(options.over(common)), factors, job, name, order, steady)
            for job, options in own.jobs.items()
        ]
    problem, at_fault = problem_of_works(own, works)
    if problem is not None:
        path = _origin(study, base, at_fault.job, problem.key)
        of = base if at_fault.job is None else f"{base}, job {at_fault.job}"
        written.fail(path, f"{problem.message} (workload {of})", problem.remedy)
    return works


def _cells_of(own: WorkOptions) -> int:
    """How many cells a work makes of each combination of levels."""
    return math.prod(map(len, own.sweep.over.values())) if own.sweep else len(own.jobs or (None,))


def _swept_works(work: Work, sweep: Sweep, written: Document) -> list[Work]:
    """A work at every combination of a sweep's levels."""
    found = []
    for place, levels in sweep.cells():
        options = JobOptions.model_validate(dict(levels)).over(work.options)
        factors = {name: level_words(name, getattr(options, name)) for name in levels}
        name = label_of("", work.name, options, factors, written)
        swept = Swept(name=work.name, sweep=sweep, place=place)
        factors = {**work.factors, **factors}
        found.append(replace(work, name=name, options=options, factors=factors, swept=swept))
    return found


def _origin(study: Study, work: str, job: str | None, option: str) -> Path:
    """Where the value of an option of a work was written down."""
    own, jobs = study.workloads[work], study.workloads[work].jobs
    if option in factors_of(study, own):
        return ("factors", option)
    if job is not None and jobs is not None and getattr(jobs[job], option, None) is not None:
        return ("workloads", work, "jobs", job, option)
    if getattr(own, option, None) is not None:
        return ("workloads", work, option)
    if getattr(study.defaults, option, None) is not None:
        return ("defaults", option)
    return ("workloads", work, option) if job is None else ("workloads", work, "jobs", job, option)


def deciding_works(study: Study) -> frozenset[str]:
    """The names of the works, as planned, that answer the study's question."""
    named = set(study.compare.decides)
    if not named:  # nor could every study be expanded: that of a replay has no work to write down
        return frozenset()
    return frozenset(work.name for work in expand(study) if {work.base, work.name} & named)


def _refuse_varies(document: Document, study: Study) -> None:
    for work, own in study.workloads.items():
        for place, name in enumerate(own.varies or ()):
            if name not in study.factors:
                remedy = suggest(name, study.factors) or "leave varies out, or add factors"
                document.fail(
                    ("workloads", work, "varies", place), f"{name!r} is no factor of the study", remedy
                )


def _refuse_decides(document: Document, study: Study, works: Sequence[Work]) -> None:
    known = dict.fromkeys(name for work in works for name in (work.base, work.name))
    for name in study.compare.decides:
        if name not in known:
            document.fail(
                ("compare", "decides"), f"{name!r} is no workload of the study", suggest(name, known)
            )


def _refuse_empty(document: Document, value: Any, path: Path) -> None:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        if child is None:
            document.fail((*path, key), "has no value", "give it one, or take the key out")
        _refuse_empty(document, child, (*path, key))


def _refuse_format(document: Document, value: dict[str, Any]) -> None:
    found = value.get("format")
    if "format" in value and found != STUDY_FORMAT:
        newer = isinstance(found, str) and found.startswith("leadline.study/")
        remedy = (
            "use the version of leadline that it was written for"
            if newer
            else f"write format: {STUDY_FORMAT}"
        )
        document.fail(("format",), f"{found!r} is not a format that this version reads", remedy)
    if "format" not in value:
        document.fail(("format",), "the key is missing", f"begin the file with `format: {STUDY_FORMAT}`")


def _refuse_names(document: Document, value: dict[str, Any]) -> None:
    works, targets = value.get("workloads"), value.get("targets")
    for name, work in works.items() if isinstance(works, dict) else ():
        if not WORK_NAME.fullmatch(name):
            document.fail(
                ("workloads", name),
                "is no name of a workload",
                "use up to 64 letters, digits, _ and -, for example randread_4k",
            )
        _refuse_job_names(document, name, work)
    for name in targets if isinstance(targets, dict) else ():
        try:
            check_name(name)
        except SpecError as error:
            document.fail(("targets", name), error.message, error.remedy)


def _refuse_job_names(document: Document, work: str, value: Any) -> None:
    jobs = value.get("jobs") if isinstance(value, dict) else None
    for name in jobs if isinstance(jobs, dict) else ():
        if not WORK_NAME.fullmatch(name):
            document.fail(
                ("workloads", work, "jobs", name),
                "is no name of a job",
                "use up to 64 letters, digits, _ and -, for example stream",
            )
    if isinstance(jobs, dict) and len(jobs) < 2:
        document.fail(
            ("workloads", work, "jobs"),
            "several jobs are two or more",
            "write the one job as a workload of its own",
        )


def _refuse_factors(document: Document, study: Study) -> None:
    for option, levels in study.factors.items():
        if option not in JOB_OPTIONS:
            document.fail(("factors", option), "is no option of a job", suggest(option, JOB_OPTIONS))
        if not levels:
            document.fail(("factors", option), "has no level", "write [a, b, c]")
        seen: list[Any] = []
        for index, level in enumerate(levels):
            path: Path = ("factors", option, index)
            try:
                value = getattr(JobOptions.model_validate({option: level}), option)
            except ValidationError as error:
                _, message, remedy = describe(error, document, vocabulary(KNOWN_KEYS))
                document.fail(path, message, remedy)
            if value in seen:
                document.fail(path, f"the level {level!r} is given twice", "keep one of them")
            seen.append(value)
