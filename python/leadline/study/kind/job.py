"""What is asked of every job, whatever its kind: by a plan, an executor and a verdict.

A kind's own job is a frozen model in its folder below `workloads`; what never changes is an attribute of its
class.
"""

from __future__ import annotations

from typing import Any, Protocol


class AnyJob(Protocol):
    """One trial's work with nothing left open. Sizes are bytes, times nanoseconds, rates totals."""

    @property
    def kind(self) -> str:
        """The kind of work: its folder below `workloads`."""

    @property
    def engine_format(self) -> str:
        """The format of its JSON, by which a worker knows who does it."""

    @property
    def engine(self) -> str:
        """What does the I/O."""

    @property
    def direct(self) -> bool:
        """True where it goes past the page cache."""

    @property
    def verify(self) -> bool:
        """True where every block that is read is checked."""

    @property
    def incompressible(self) -> bool:
        """True where no two blocks of its data are equal."""

    @property
    def time_based(self) -> bool:
        """True where it goes on until its time is over."""

    @property
    def ramp_time_ns(self) -> int:
        """Time before the measured interval."""

    @property
    def runtime_ns(self) -> int:
        """How long it is measured, or the longest that it may take; 0 where its size ends it."""

    @property
    def rate_bytes_per_s(self) -> int | None:
        """The rate that it keeps to, None for as fast as it goes."""

    @property
    def rate_iops(self) -> float | None:
        """The same in operations per second."""

    @property
    def reads(self) -> bool:
        """True where data is read that was there before."""

    @property
    def writes(self) -> bool:
        """True where files get data."""

    @property
    def reads_only(self) -> bool:
        """True where nothing is changed."""

    @property
    def data_set_bytes(self) -> int:
        """The most that its files take."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as a worker and the manifest take them."""
