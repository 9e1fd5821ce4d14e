"""A transfer with nothing left open: so many streams, a file each, with so many requests in flight.

The engine is given this (`leadline.transfer/1`). A copy between two servers is made by the protocol's tool.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline.study.schemes import EngineName

Way = Literal["write", "read", "duplex", "copy"]
Checksum = Literal["adler32", "crc32c", "md5"]
ACKS_MAX = 1 << 21  # records of one trial, 48 bytes each until they are a table: 96 MiB
_OF_THE_STUDY = frozenset({"clients", "source"})  # what the engine is not told


class TransferJob(BaseModel):
    """What one trial does on one client. Sizes are bytes, times nanoseconds.

    `size` is of one stream's file; the last `readers` of the `streams` read. `sources` are the user's files
    that are sent, none for generated data. `clients` is how many hosts take part, None for all.
    `source` is the URL of the file that a third-party copy reads, None where this client moves the data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as the manifest takes them."""
        return self.model_dump(mode="json")

    def as_engine_json(self) -> dict[str, Any]:
        """The same without what the engine has no part in, and with where no log is kept yet."""
        return {
            **self.model_dump(mode="json", exclude=set(_OF_THE_STUDY)),
            "acks": None,
            "acks_max": ACKS_MAX,
        }
