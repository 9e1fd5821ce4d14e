"""The figures that observers give of a trial, as fields: of the difference of two marks and of a trial's row.

The fields are made from the list of counters, so that a new one needs no line here. Those below say to the
type checker what code asks for by name; a unit test holds them against the list.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING

from leadline.counters.catalogue import trial_figures

if TYPE_CHECKING:

    @dataclass(frozen=True, kw_only=True)
    class ObservedFigures:
        """One field for each metric; None is "not observable"."""

        wire_sent_bytes: int | None = None
        wire_received_bytes: int | None = None
        device_read_bytes: int | None = None
        device_written_bytes: int | None = None
        process_read_bytes: int | None = None
        process_written_bytes: int | None = None
        osd_read_bytes: int | None = None
        osd_written_bytes: int | None = None
        osd_subop_received_bytes: int | None = None
        store_read_bytes: int | None = None
        store_written_bytes: int | None = None
        cpu_busy_share: float | None = None
        cpu_steal_share: float | None = None
        cgroup_throttled: int | None = None
        client_cpu_ns: int | None = None
        observer_cpu_ns: int | None = None
        own_read_bytes: int | None = None
        own_written_bytes: int | None = None
        interface_sent_bytes: int | None = None
        interface_received_bytes: int | None = None
        dirty_at_start_bytes: int | None = None
        wire_limit_bytes_per_s: int | None = None
        device_read_limit_bytes_per_s: int | None = None
        device_write_limit_bytes_per_s: int | None = None
        samples_due: int | None = None
        samples_missed: int | None = None
        other_cpu_share: float | None = None
        pgs_not_clean_max: int | None = None
        pgs_scrubbing_max: int | None = None
        client_read_bytes: int | None = None
        client_cached_bytes: int | None = None
        client_written_bytes: int | None = None
        client_flushed_bytes: int | None = None

else:
    ObservedFigures = make_dataclass(
        "ObservedFigures",
        [(figure.name, f"{figure.type} | None", field(default=None)) for figure in trial_figures()],
        frozen=True,
        kw_only=True,
        namespace={"__module__": __name__, "__doc__": 'One field for each metric; None is "not observable".'},
    )
