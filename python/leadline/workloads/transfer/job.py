"""A transfer with nothing left open: streams, a file each, with requests in flight; and its options.

The engine is given this (`leadline.transfer/1`). A copy between two servers is made by the protocol's tool.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from leadline.study.kind.interface import JobModel
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
from leadline.study.schemes import EngineName
from leadline.yamlio.fields import Truth, Whole

Way = Literal["write", "read", "duplex", "copy"]
Checksum = Literal["adler32", "crc32c", "md5"]
ACKS_MAX = 1 << 21  # records of one trial, 48 bytes each until they are a table: 96 MiB
_OF_THE_STUDY = frozenset({"clients", "source"})  # what the engine is not told


class TransferJob(JobModel):
    """What one trial does on one client. Sizes are bytes, times nanoseconds.

    `size` is of one stream's file; the last `readers` of the `streams` read. `sources` are the user's files
    that are sent, none for generated data. `clients` is how many hosts take part, None for all.
    `source` is the URL of the file that a third-party copy reads, None where this client moves the data.
    """

    transfer: Way
    streams: int = Field(gt=0)
    readers: int = Field(ge=0)
    buffer: int = Field(gt=0)
    in_flight: int = Field(gt=0)
    size: int = Field(gt=0)
    clients: int | None = Field(None, gt=0)
    engine: EngineName
    direct: bool
    checksum: Checksum | None
    sources: tuple[str, ...] = ()
    end_sync: bool
    time_based: bool
    runtime_ns: int = Field(ge=0)
    ramp_time_ns: int = Field(ge=0)
    rate_bytes_per_s: int | None
    incompressible: bool
    source: str | None = None

    kind: ClassVar[str] = "transfer"
    engine_format: ClassVar[str] = "leadline.transfer/1"
    verify: ClassVar[bool] = False
    rate_iops: ClassVar[float | None] = None

    @property
    def writers(self) -> int:
        """How many of the streams write."""
        return self.streams - self.readers

    @property
    def copies(self) -> bool:
        """True where two servers move the data between them, and not this client."""
        return self.transfer == "copy"

    @property
    def bytes_in_flight(self) -> int:
        """The most that is under way at once, all streams of a client together."""
        return self.streams * self.buffer * self.in_flight

    @property
    def reads(self) -> bool:
        """True where data is read that was there before."""
        return self.readers > 0

    @property
    def writes(self) -> bool:
        """True where files get data."""
        return self.writers > 0

    @property
    def reads_only(self) -> bool:
        """True where nothing is changed."""
        return not self.writes

    @property
    def data_set_bytes(self) -> int:
        """The files of all streams together."""
        return self.size * self.streams

    def as_engine_json(self) -> dict[str, Any]:
        """The same without what the engine has no part in, and with where no log is kept yet."""
        return {
            **self.model_dump(mode="json", exclude=set(_OF_THE_STUDY)),
            "acks": None,
            "acks_max": ACKS_MAX,
        }


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
        None, description="with transfer: outstanding requests of each stream; 4"
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
