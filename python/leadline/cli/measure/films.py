"""Has the films made that a plan's pipelines begin with, before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.cli.signals import StopRequest
    from leadline.plan.model import Plan


def make_films(plan: Plan, stop: StopRequest, quiet: bool) -> bool:
    """Make what is not there yet; True where something was made."""
    from leadline.cli.console import make_console
    from leadline.study.kinds import planned
    from leadline.workloads.pipeline.film import make_film
    from leadline.workloads.pipeline.job import FilmToMake

    made = False
    for wanted in (planned(cell.job).to_make(cell.job) for cell in plan.cells):
        if not isinstance(wanted, FilmToMake) or Path(wanted.path).is_file():
            continue
        place = Path(wanted.path)
        if not quiet:
            make_console(stderr=True).print(f"making a film to measure with: {place}", markup=False)
        make_film(wanted.film, place, stop)
        made = True
    return made
