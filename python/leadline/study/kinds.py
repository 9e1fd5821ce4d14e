"""The kinds of work as studies and plans ask them, and what follows from all. The registry has the table."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from leadline import units
from leadline.errors import SpecError
from leadline.registry import offered
from leadline.study.kind.interface import AnyJob, Planned, Problem, Resolved, Surroundings, WorkBytes
from leadline.study.kind.options import Options
from leadline.study.target import Target, TargetFacts

_FACES: tuple[Planned[Any, Any], ...] = offered("kinds planned")
PLANNED: Mapping[str, Planned[Any, Any]] = {face.kind: face for face in _FACES}
# The kinds that a study can ask for, by what each adds to the options of those before it.
ASKED: Mapping[str, type[Options]] = {face.kind: face.options for face in _FACES if face.options is not None}

if TYPE_CHECKING:

    class _Union(Options):
        """What study itself asks of options, of any kind."""

        time_based: bool | None = None
        runtime: int | None = None

else:
    _Union = types.new_class("_Union", tuple(reversed(ASKED.values())))


class JobOptions(_Union):
    """The options of a job that were written down; None is "not said"."""

    def over(self, other: JobOptions) -> JobOptions:
        """These options; what they do not say is taken from `other`."""
        said = {
            name: getattr(self, name) for name in self.model_fields_set if getattr(self, name) is not None
        }
        return other.model_copy(update=said)

    def said(self) -> dict[str, Any]:
        """The options that were written down, by name."""
        return {name: value for name in JOB_OPTIONS if (value := getattr(self, name)) is not None}


JOB_OPTIONS: tuple[str, ...] = tuple(JobOptions.model_fields)


def planned(job: AnyJob) -> Planned[Any, Any]:
    """The face of a job's kind."""
    return PLANNED[job.kind]


def asked_kind(options: JobOptions) -> Planned[Any, Any] | None:
    """The kind of work that options ask for; None where they do not say it."""
    faces = (PLANNED[kind] for kind in reversed(tuple(ASKED)))
    return next((face for face in faces if getattr(options, face.told_by) is not None), None)


def problem_of(options: JobOptions) -> Problem | None:
    """The first contradiction in the options of a work, or None."""
    face = asked_kind(options)
    if face is None:
        return _nothing_asked()
    return next(face.problems(options, _foreign(face, options)), None)


def work_bytes(options: JobOptions) -> WorkBytes:
    """What one client of a work moves, by its study. Raises SpecError where that does not say it."""
    face = asked_kind(options)
    if face is None:
        problem = _nothing_asked()
        raise SpecError(problem.message, problem.remedy)
    return face.work_bytes(options)


def resolve(
    work: str, options: JobOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one work on one target. Raises SpecError for what this target cannot do."""
    face = asked_kind(options)
    if face is None:
        problem = _nothing_asked()
        raise SpecError(
            problem.message,
            problem.remedy,
            source=f"workload {work} on target {target.name}",
            key=problem.key,
        )
    return face.resolve(work, options, target, facts, around)


def stored_kind(cell: Mapping[str, Any]) -> str:
    """The kind of a stored cell. Older versions did not say it: there a job is told by its keys."""
    if "kind" in cell:
        return str(cell["kind"])
    job: Mapping[str, Any] = cell["job"]
    kinds: Iterator[str] = (face.kind for face in reversed(_FACES) if face.told_by in job)
    return next(kinds)


def stored_job(cell: Mapping[str, Any]) -> AnyJob:
    """The job of a stored cell. Raises ValueError, or KeyError for a kind that is not known."""
    found: AnyJob = PLANNED[stored_kind(cell)].job.model_validate(cell["job"])
    return found


def job_words(job: AnyJob) -> dict[str, str]:
    """Every option of a job by its name in a study, in fio's notation."""
    return _words_of(job, job.as_json())


def compared_words(job: AnyJob) -> dict[str, str]:
    """The same of the options that two jobs must have alike for a ratio of their metrics to mean anything."""
    return _words_of(job, planned(job).compared(job))


def _words_of(job: AnyJob, fields: Mapping[str, Any]) -> dict[str, str]:
    face = planned(job)
    words: dict[str, str] = {}
    for name, value in fields.items():
        own = None if value is None else face.option_words(job, name, value)
        if value is None:
            text = "none"
        elif own is not None:
            text = own
        elif isinstance(value, list):
            text = ",".join(str(part) for part in value)
        elif name in face.byte_fields:
            text = units.exact_size(value)
        else:
            is_time = name.endswith("_ns") and isinstance(value, int)
            text = units.exact_duration(value) if is_time else str(value).lower()
        words[name.removesuffix("_ns").removesuffix("_bytes_per_s")] = text
    return words


def is_list(option: str) -> bool:
    """True for an option whose value is a list: as a factor's level it stands in a list of lists."""
    annotation: Any = JobOptions.model_fields[option].annotation
    return any(getattr(one, "__origin__", None) in (list, tuple) for one in _choices(annotation))


def _choices(annotation: Any) -> Iterator[Any]:
    """What a value may be, without None and annotations."""
    for one in get_args(annotation) or (annotation,):
        yield getattr(one, "__origin__", one) if hasattr(one, "__metadata__") else one


def _nothing_asked() -> Problem:
    first, *others = (PLANNED[kind] for kind in ASKED)
    ways = "; or ".join(face.example for face in (first, *others))
    return Problem(first.told_by, "the workload has no kind of load", f"add {ways}")


def _foreign(face: Planned[Any, Any], options: JobOptions) -> Iterator[Problem]:
    """Options of other kinds beside those of this one."""
    own = ASKED[face.kind].model_fields
    for key in JOB_OPTIONS:
        if key in own or getattr(options, key) is None:
            continue
        if face is _FACES[0]:  # what most works are: something is missing, rather than too much
            owner = next(PLANNED[kind] for kind, known in ASKED.items() if key in known.model_fields)
            message = f"means nothing without {owner.told_by}"
            yield Problem(key, message, f"add {owner.example}, or leave it out")
        else:
            message = f"{face.foreign} {face.told_by}"
            yield Problem(key, message, "leave it out, or make two workloads of it")
