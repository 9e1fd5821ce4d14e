"""A metadata job, as mdtest does them: what is done to files and directories themselves, and its options.

Phases in the order given; each operation has its own rate and latencies.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from leadline.study.kind.interface import UnpacedJob
from leadline.study.kind.options import (
    BlockSizeOption,
    DirectOption,
    NumjobsOption,
    Options,
    RuntimeOption,
    TimeBasedOption,
)
from leadline.yamlio.fields import Size, Truth, Whole

MetadataOperation = Literal[
    "create", "open", "stat", "readdir", "rename", "unlink", "mkdir", "rmdir", "first_byte"
]
Operation = MetadataOperation
OPERATIONS: tuple[Operation, ...] = get_args(MetadataOperation)
FIRST_BYTE: Operation = "first_byte"
NEEDS_FILES: tuple[Operation, ...] = ("open", "stat", "readdir", "rename", "unlink")
DIRECTORIES_MAX = 1 << 20  # of one tree; the engine's limit


class MetadataJob(UnpacedJob):
    """What one trial does. `files` is per numjob, and is the number of directories for mkdir and rmdir.

    `bs` is what `first_byte` reads, past the page cache where `direct`. Times are nanoseconds, sizes bytes.
    """

    operations: tuple[Operation, ...] = Field(min_length=1)
    files: int = Field(gt=0)
    branch: int = Field(gt=0)
    depth: int = Field(ge=0)
    private: bool
    file_size: int = Field(ge=0)
    bs: int = Field(gt=0)
    direct: bool = False
    numjobs: int = Field(gt=0)
    time_based: bool
    runtime_ns: int = Field(ge=0)

    # What a plan, an executor and a verdict ask of every job.
    kind: ClassVar[str] = "metadata"
    engine_format: ClassVar[str] = "leadline.metadata/1"
    engine: ClassVar[str] = "metadata"

    @property
    def reads(self) -> bool:
        """True where data is read that was laid out beforehand."""
        return FIRST_BYTE in self.operations

    @property
    def writes(self) -> bool:
        """True where files get data."""
        return "create" in self.operations and self.file_size > 0

    @property
    def reads_only(self) -> bool:
        """True where nothing is changed."""
        return self.reads

    @property
    def fresh_files(self) -> bool:
        """True where the trial makes its own files, so that nothing needs to be laid out before it."""
        return not self.reads

    @property
    def data_set_bytes(self) -> int:
        """All files of all numjobs together."""
        return self.files * self.file_size * self.numjobs

    @property
    def directories(self) -> int:
        """Directories of one tree, its top included."""
        return tree_directories(self.branch, self.depth)

    @property
    def pass_operations(self) -> int:
        """Operations of one pass over all phases, all numjobs."""
        trees = self.numjobs if self.private else 1
        items = self.files * self.numjobs
        return sum(self.directories * trees if name == "readdir" else items for name in self.operations)


def tree_directories(branch: int, depth: int) -> int:
    """Directories of a tree, its top included; counting stops beyond DIRECTORIES_MAX."""
    level = total = 1
    for _ in range(depth):
        level *= branch
        total += level
        if total > DIRECTORIES_MAX:
            break
    return total


class MetadataOptions(Options):
    """Which operations, on how many files in which tree."""

    operations: list[MetadataOperation] | None = Field(
        None, description="instead of rw: what is done to files and directories themselves, in phases"
    )
    files: Annotated[int, Whole(1, 10**9)] | None = Field(
        None, description="with operations: files (and directories) per numjob; 1000"
    )
    branch: Annotated[int, Whole(1, 10_000)] | None = Field(
        None, description="with operations: directories in each directory of the tree; 1"
    )
    depth: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="with operations: levels of the tree below its top; 0"
    )
    private: Truth | None = Field(
        None, description="with operations: a tree for each numjob; false: one for all; true"
    )
    file_size: Size | None = Field(None, description="with operations: bytes of each file; 0")
    numjobs: NumjobsOption = None
    time_based: TimeBasedOption = None
    runtime: RuntimeOption = None
    bs: BlockSizeOption = None
    direct: DirectOption = None
