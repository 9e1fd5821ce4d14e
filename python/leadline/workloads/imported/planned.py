"""The planned face of what another program did: `leadline import` makes its plan, no study asks for it."""

from __future__ import annotations

from leadline.study.kind.face import Planned
from leadline.study.kind.options import Options
from leadline.workloads.imported.job import ImportedJob


class ImportedPlanned(Planned[Options, ImportedJob]):
    """Jobs that are over."""

    kind = "imported"
    job = ImportedJob
    told_by = "program"
    byte_fields = ("bs", "size")
