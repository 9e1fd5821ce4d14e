"""An answer that rests on no cell: what checks, sizes and simulations print, and their page."""

from __future__ import annotations

from pathlib import Path

from leadline import _core
from leadline.cli.console import make_console
from leadline.cli.files import write_file
from leadline.verdict.model import Findings, State
from leadline.verdict.sections.section import Frame, Section, StudyAnswer


def answered(
    kind: str,
    title: str,
    answer: StudyAnswer,
    sections: tuple[Section, ...],
    made_by: tuple[str, ...],
    about: str = "",
    *,
    created: str = "",
    state: State = "VALID",
    meaning: str = "",
) -> Findings:
    """Findings without targets and cells; `made_by` says what stands in the place of a measurement."""
    return Findings(
        id="",
        kind=kind,
        title=title,
        about=about,
        created=created,
        state=state,
        targets=(),
        cells=(),
        comparisons=(),
        statements=(),
        version=_core.version(),
        sections=sections,
        frame=Frame(cells=False, made_by=made_by, meaning=meaning),
        answer=answer,
    )


def give(findings: Findings, page: Path | None = None, *, quiet: bool = False) -> None:
    """Print it, if not `quiet`, and write its page, if one is asked for."""
    if page is not None:
        from leadline.report import render

        write_file(page, render(findings, "html").encode(), "--page")
    if not quiet:
        from leadline.report.renderers.terminal import show_answer

        show_answer(findings, make_console())
