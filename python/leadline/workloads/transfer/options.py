"""The options of a transfer, as a study may write them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leadline.study.kind.options import (
    BufferOption,
    ClientsOption,
    DirectOption,
    EngineOption,
    IncompressibleOption,
    InputOption,
    Options,
    RampTimeOption,
    RateOption,
    RuntimeOption,
    SizeOption,
    TimeBasedOption,
)
from leadline.workloads.transfer.job import Way
from leadline.yamlio.fields import Truth, Whole

AskedChecksum = Literal["none", "adler32", "crc32c", "md5"]


class TransferOptions(Options):
    """Which way, how many streams, and how much each has under way."""

    transfer: Way | None = Field(
        None,
        description="instead of rw: streams that write, read, do both at once (duplex),"
        " or a copy between two servers",
    )
    streams: Annotated[int, Whole(1, 1_024)] | None = Field(
        None, description="with transfer: streams of each client, a file each; 1"
    )
    readers: Annotated[int, Whole(1, 1_023)] | None = Field(
        None, description="with transfer: duplex: how many of the streams read; half of them"
    )
    buffer: BufferOption = None
    in_flight: Annotated[int, Whole(1, 1_024)] | None = Field(
        None, description="with transfer: requests in flight of each stream; 4"
    )
    clients: ClientsOption = None
    checksum: AskedChecksum | None = Field(
        None, description="with transfer: computed of each stream as the data flows; none"
    )
    end_sync: Truth | None = Field(
        None,
        description="with transfer: sync each file after its last request; true where writes are buffered",
    )
    source: str | None = Field(
        None,
        min_length=1,
        description="with transfer: copy: the URL of the file on the server that sends",
    )
    size: SizeOption = None
    input: InputOption = None
    engine: EngineOption = None
    direct: DirectOption = None
    time_based: TimeBasedOption = None
    runtime: RuntimeOption = None
    ramp_time: RampTimeOption = None
    rate: RateOption = None
    incompressible: IncompressibleOption = None
