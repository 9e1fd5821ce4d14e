"""What a run asks of a kind of work, on both sides of its worker: the face `Conducted`.

Who wears it is in `run.kinds`, a line for each kind. Most kinds say little: what the engine does by
itself is done here. What forks workers imports this: what else a kind needs is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from leadline import _core

if TYPE_CHECKING:
    from leadline.plan.model import PlannedCell, Trial
    from leadline.run.child import Answer, Worker
    from leadline.run.workspace import Place, Workspace
    from leadline.study.kind.interface import AnyJob

SLOWEST_BYTES_PER_S = 1 << 20  # below 1 MiB/s a transfer without a runtime counts as hung
SLOWEST_OPERATIONS_PER_S = 20.0  # of metadata; below, a pass counts as hung

Say = Callable[..., None]
Command = Callable[[dict[str, Any]], dict[str, Any]]
_Job = TypeVar("_Job", bound="AnyJob")


def plain_summary(started_unix_ns: int, measured_ns: int, **own: Any) -> dict[str, Any]:
    """The summary of a trial that the engine does not run, in its shape: every key that a row asks for.

    `own` has what is otherwise, and what the kind itself has to tell under a key of its own: the whole is
    kept as JSON in the trial's row, so that no figure needs a column.
    """
    return {
        "state": "complete",
        "error": None,
        "directions": {},
        "total": {},
        "threads": [],
        "started_unix_ns": started_unix_ns,
        "ramp_ns": 0,
        "measured_ns": measured_ns,
        "first_done_ns": measured_ns,
        "last_done_ns": measured_ns,
        "cpu_user_ns": 0,
        "cpu_system_ns": 0,
        "unwritten_blocks_read": 0,
        "verified_blocks": 0,
        **own,
    }


@dataclass(frozen=True)
class Assignment:
    """What the JSON of a job is made of besides the job: for a layout where `trial` is None.

    `prefix` is how the files begin that the job works on, `own_prefix` those that only this trial has;
    `result` and `logs` are the directories of the result and of what programs say, `ledger` the file of what
    the engine knows that it wrote to these files. Times are nanoseconds.
    """

    cell: PlannedCell
    trial: Trial | None
    place: Place
    prefix: str
    own_prefix: str
    result: Path
    logs: Path
    ledger: Path
    seed: int
    generation: int
    interval_ns: int
    deadline_ns: int
    layout_rate_bytes_per_s: int | None

    @property
    def name(self) -> str:
        """How what comes of it is called."""
        return self.trial.id if self.trial else f"layout-{self.prefix}"


@dataclass(frozen=True)
class Preparing:
    """What a kind can have done before its trial; each gives what went wrong, or None.

    `reach` makes the workspace on another target than the cell's, in a worker of its own; `lay_out` has files
    of that many bytes written for this trial alone.
    """

    reach: Callable[[str], Answer | None]
    lay_out: Callable[[int], Answer | None]


@dataclass(frozen=True)
class Scene:
    """Where a trial is conducted: its worker, how its files begin, and the places on every target.

    `engine` has the worker do the job to its end; `stopping` is asked often; `lose` is told of a target that
    is not to be used again, and why.
    """

    target: str
    prefix: str
    worker: Worker
    places: Mapping[str, Workspace]
    engine: Callable[[], Answer]
    stopping: Callable[[], bool]
    lose: Callable[[str, str], None]


@dataclass(frozen=True)
class ReadingBack:
    """How a kind reads back what a trial wrote, once its time was taken.

    `check` has a worker of its own do the kind's command with the place on a target; `others` are the targets
    besides the trial's own `target`.
    """

    target: str
    others: tuple[str, ...]
    check: Callable[[str, str], Answer]


@dataclass(frozen=True)
class JobFiles:
    """Fields of a worker's job that name files of its result, where the worker is on another machine.

    `kept` are files of the worker's that only stay there, `sent` are put there before the trial, `brought`
    are fetched after it, and `ours` mean nothing there.
    """

    kept: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()


class Conducted(Generic[_Job]):
    """A kind of work as it is run. The first half is asked by the parent, the second by the worker.

    A worker is handed JSON and knows the kind by its `format`; commands of its own begin with its name.
    """

    kind: str
    # A trial makes files of its own even where files were laid out for it.
    own_beside_layout: bool = False
    carried: JobFiles = JobFiles()

    # -- the parent's side ---------------------------------------------------------------------------

    def deadline_s(self, job: _Job) -> float:
        """The longest that a trial may take, before any grace."""
        return (job.ramp_time_ns + job.runtime_ns) / 1e9

    def prepare(self, job: _Job, target: str, preparing: Preparing) -> Answer | None:
        """What a trial needs besides its target's workspace and its layout; what went wrong, or None."""
        del job, target, preparing
        return None

    def as_worker_job(self, job: _Job, given: Assignment) -> dict[str, Any]:
        """The JSON that the worker is handed."""
        return engine_job(job.engine_format, job.as_json(), given)

    def conduct(self, job: _Job, scene: Scene) -> Answer:
        """One trial, from its start to its end."""
        del job
        return scene.engine()

    def read_back(self, job: _Job, answer: Answer, reading: ReadingBack) -> Answer:
        """The trial's answer with what became of what it wrote."""
        del job, reading
        return answer

    def recorded(self, job: _Job, answer: Answer, record: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
        """The answer, and the engine's record of the trial or what a kind has in its place."""
        del job
        return answer, record

    def cause(self, job: _Job) -> str:
        """What jobs have in common that fail for one cause, as a program has that cannot be started."""
        return json.dumps(job.as_json(), sort_keys=True)

    def at_rate(self, job: _Job, rate_iops: float) -> _Job:
        """The job at a rate that a search wants tried."""
        del rate_iops
        return job

    def gather(self, trial: str, into: Path, hosts: Mapping[str, Path]) -> None:
        """Join the kind's own tables of a trial that many hosts executed into the result `into`.

        `hosts` has a directory for each, in which its files lie as in its own result.
        """
        del trial, into, hosts

    def taken(self, job: dict[str, Any], summary: dict[str, Any]) -> None:
        """Finish a trial whose worker was on another machine, once its files are here."""
        del job, summary

    # -- the worker's side ---------------------------------------------------------------------------

    def lay_out(self, job: dict[str, Any], say: Say) -> dict[str, Any]:
        """Write in full what the job works on; `say` hears how far it is."""
        del say
        answer: dict[str, Any] = _core.layout(json.dumps(job))
        return answer

    def forget(self, job: dict[str, Any]) -> None:
        """Drop what this host's caches hold of the job's files, where the trial is to begin without it."""

    def run(self, job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
        """Do the job to its end; its summary, in Python by way of `plain_summary`.

        Where there is a `meeting` all that takes time is prepared before it is come to.
        """
        before = _own_io()
        summary: dict[str, Any] = _core.run_trial(json.dumps(job), record, meeting)
        after = _own_io()
        if before is not None and after is not None:
            summary["process_read_bytes"] = after["read_bytes"] - before["read_bytes"]
            summary["process_written_bytes"] = after["write_bytes"] - before["write_bytes"]
        return summary

    def commands(self, say: Say) -> Mapping[str, Command]:
        """Commands that only this kind's parent sends; `say` sends a message before the answer."""
        del say
        return {}


def engine_job(job_format: str, job: Mapping[str, Any], given: Assignment) -> dict[str, Any]:
    """A job of the engine with everything that it is told around it."""
    own = {} if given.place.location is None else {"location": given.place.location}
    return {
        "format": job_format,
        "trial": given.name,
        "directory": given.place.directory,
        "prefix": given.prefix,
        **job,
        "seed": given.seed,
        "generation": given.generation,
        "interval_ns": given.interval_ns,
        "deadline_ns": given.deadline_ns,
        "parent_pid": None,
        **own,
    }


def _own_io() -> dict[str, int] | None:
    """What this process fetched from and sent to storage so far, bytes (proc(5), /proc/PID/io)."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
