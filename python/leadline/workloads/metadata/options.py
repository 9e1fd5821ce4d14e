"""The options of a work of metadata operations, as a study may write them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from leadline.study.kind.options import (
    BlockSizeOption,
    DirectOption,
    NumjobsOption,
    Options,
    RuntimeOption,
    TimeBasedOption,
)
from leadline.workloads.metadata.job import MetadataOperation
from leadline.yamlio.fields import Size, Truth, Whole


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
