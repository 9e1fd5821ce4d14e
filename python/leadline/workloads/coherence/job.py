"""A job of coherence: what one way to a storage writes, when does another way see it? And its options."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from leadline import units
from leadline.study.kind.interface import UnpacedJob
from leadline.study.kind.options import Options
from leadline.yamlio.fields import Duration, Whole

Question = Literal[
    "name",
    "size_written",
    "size_closed",
    "bytes_written",
    "bytes_closed",
    "bytes_held",
    "rename",
    "unlink",
    "link",
    "lock_fcntl",
    "lock_flock",
    "shared_file",
]
# The time until the reader sees it, from the moment when the writer's call returned.
LAGS: tuple[Question, ...] = (
    *("name", "size_written", "size_closed", "bytes_written", "bytes_closed", "bytes_held"),
    *("rename", "unlink", "link"),
)
LOCKS: tuple[Question, ...] = ("lock_fcntl", "lock_flock")
SHARED: Question = "shared_file"
QUESTIONS: tuple[Question, ...] = (*LAGS, *LOCKS, SHARED)
REPETITIONS_DEFAULT = 5
GIVE_UP_DEFAULT_NS = 30 * units.NS_PER_S
POLL_NS = units.NS_PER_S // 1000  # between two looks of the reader
# Blocks of a shared file that two writers take in turns: no multiple of a page, so neighbours share one.
SHARED_BLOCK_BYTES = 5000
SHARED_BLOCKS = 256
FILE_BYTES = 8192
WORDS: dict[Question, str] = {
    "name": "a new file's name",
    "size_written": "its size, written but not closed",
    "size_closed": "its size, closed",
    "bytes_written": "its bytes, written but not closed",
    "bytes_closed": "its bytes, closed",
    "bytes_held": "its bytes, closed, by a reader that had it open",
    "rename": "a rename",
    "unlink": "an unlink",
    "link": "a hard link's stat",
    "lock_fcntl": "a lock by fcntl",
    "lock_flock": "a lock by flock",
    "shared_file": "two writers in one file",
}


class CoherenceJob(UnpacedJob):
    """What one trial does: each question `repetitions` times, the cell's target writing and `reader` looking.

    `give_up_ns` is how long the reader looks for what it has not seen. Sizes are bytes.
    """

    questions: tuple[Question, ...] = Field(min_length=1)
    reader: str
    repetitions: int = Field(gt=0)
    give_up_ns: int = Field(gt=0)
    poll_ns: int = Field(gt=0)
    file_bytes: int = Field(gt=0)
    shared_block_bytes: int = Field(gt=0)
    shared_blocks: int = Field(gt=0)

    # What a plan, an executor and a verdict ask of every job.
    kind: ClassVar[str] = "coherence"
    engine_format: ClassVar[str] = "leadline.coherence/1"
    engine: ClassVar[str] = "coherence"
    direct: ClassVar[bool] = False
    time_based: ClassVar[bool] = False
    runtime_ns: ClassVar[int] = 0
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    reads_only: ClassVar[bool] = False

    @property
    def data_set_bytes(self) -> int:
        """The most that its files take."""
        small = 2 * self.file_bytes * self.repetitions * len(self.questions)
        return small + 2 * self.shared_blocks * self.shared_block_bytes * self.repetitions

    @property
    def seconds_max(self) -> float:
        """The longest that a trial may take: a question that was not answered once is not asked again."""
        return len(self.questions) * 3 * self.give_up_ns / 1e9 + 0.5 * self.repetitions * len(self.questions)


class CoherenceOptions(Options):
    """Which questions, how often, and how long a reader looks."""

    questions: list[Question] | None = Field(
        None, description="instead of rw: what a reader on another target is asked of what this one writes"
    )
    repetitions: Annotated[int, Whole(1, 1_000)] | None = Field(
        None, description="with questions: times that each is asked in a trial; 5"
    )
    give_up: Duration | None = Field(
        None, description="with questions: how long a reader looks for what it has not seen; 30s"
    )
