"""The planner of what another program did: `leadline import` makes its plan, no study asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.imported.job import ImportedJob
from leadline.study.kind.interface import Planned
from leadline.study.kind.options import Options

_INDIFFERENT_WORDS = frozenset(
    {"directory", "filename", "filename_format", "group_reporting", "name", "new_group", "opendir", "output"}
    | {"output-format", "randrepeat", "randseed", "stonewall", "wait_for_previous", "write_bw_log"}
    | {"write_hist_log", "write_iops_log", "write_lat_log"}
)


class ImportedPlanned(Planned[Options, ImportedJob]):
    """Jobs that are over."""

    kind = "imported"
    job = ImportedJob
    told_by = "program"
    indifferent = frozenset({"program", "options", "runtime_ns"})  # runtime_ns is what it took
    byte_fields = ("bs", "size")

    def compared(self, job: ImportedJob) -> Mapping[str, Any]:
        """See the base. Of the program's own words those that are no place, name or seed."""
        own = {name: text for name, text in job.options.items() if name not in _INDIFFERENT_WORDS}
        return {**own, **super().compared(job)}
