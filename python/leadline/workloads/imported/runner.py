"""The runner of what another program did: it is over, and is refused where somebody would run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from leadline.errors import UsageError
from leadline.run.interface import Assignment, Conducted

if TYPE_CHECKING:
    from leadline.imported.job import ImportedJob


class ImportedConducted(Conducted["ImportedJob"]):
    """Jobs that are over."""

    kind = "imported"

    def as_worker_job(self, job: ImportedJob, given: Assignment) -> dict[str, Any]:
        """Refuses: whoever resumed such a result would measure something else into it."""
        del given
        self._refuse(job.program)

    def _refuse(self, program: str) -> NoReturn:
        raise UsageError(
            f"this was measured by {program} and only imported", "write a study of it and run that"
        )
