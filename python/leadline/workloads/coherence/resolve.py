"""From the options of a work of coherence to a job: which targets it can be asked of, and its defaults."""

from __future__ import annotations

from leadline import units
from leadline.study.kind.face import Resolved
from leadline.study.kind.resolving import fail
from leadline.study.schemes import scheme_of
from leadline.study.target import Target, TargetFacts
from leadline.workloads.coherence.job import (
    FILE_BYTES,
    GIVE_UP_DEFAULT_NS,
    POLL_NS,
    REPETITIONS_DEFAULT,
    SHARED_BLOCK_BYTES,
    SHARED_BLOCKS,
    CoherenceJob,
)
from leadline.workloads.coherence.options import CoherenceOptions

_OF_FILES = {"create", "rename", "unlink"}  # what a scheme of a file system can do by name


def _has_files(target: Target) -> bool:
    scheme = scheme_of(target.url)
    return scheme is not None and set(scheme.operations) >= _OF_FILES


def resolve_coherence(work: str, options: CoherenceOptions, target: Target, facts: TargetFacts) -> Resolved:
    """The job of a target as the writer; its readers are added by the plan. Raises SpecError."""
    if not target.is_path and not _has_files(target):
        words = f"{facts.words}: no file system that another way could look at"
        fail(work, target, "questions", words, "leave this target out")
    notes = [
        f"a reader looks every {units.exact_duration(POLL_NS)}, which is the resolution",
        "what was not seen within give_up has no number",
    ]
    if not target.is_path:
        notes.append("through a library: whole files by name, rename and unlink; no open file, link or lock")
    job = CoherenceJob(
        questions=tuple(options.questions or ()),
        reader=target.name,
        repetitions=options.repetitions or REPETITIONS_DEFAULT,
        give_up_ns=options.give_up or GIVE_UP_DEFAULT_NS,
        poll_ns=POLL_NS,
        file_bytes=FILE_BYTES,
        shared_block_bytes=SHARED_BLOCK_BYTES,
        shared_blocks=SHARED_BLOCKS,
    )
    return Resolved(job, False, tuple(notes))
