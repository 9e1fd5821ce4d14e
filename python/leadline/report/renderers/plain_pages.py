"""Pages without scripts, which load nothing: a check, a simulated cluster, designs for a meeting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline import _core
from leadline.report.renderers.page import plain_page

if TYPE_CHECKING:
    from leadline.check.view import ShownCheck
    from leadline.simulation.view import ShownSimulation
    from leadline.sizing.view import ShownSizing

_CHECK_WORDS = {
    "serious": ("invalid", "Something serious"),
    "warning": ("doubtful", "Something to mend"),
    "note": ("doubtful", "Notes only"),
    "fine": ("valid", "As it should be"),
}


def check_html(check: ShownCheck, created: str) -> str:
    """A check as text; `created` is a moment in ISO 8601."""
    state, word = _CHECK_WORDS[check.worst]
    return _page("check", check=check, created=created, state=state, word=word)


def simulation_html(view: ShownSimulation) -> str:
    """A simulated cluster as text: its tree with how full each part is."""
    return _page("simulation", view=view)


def sizing_html(view: ShownSizing, title: str = "", document: str = "") -> str:
    """Designs as text; `title` and `document` say whose requirements these are."""
    state, word = ("doubtful", "By model") if view.designs else ("invalid", "No design")
    whose = ". ".join(part for part in (title, document) if part)
    return _page("sizing", view=view, state=state, word=word, whose=whose)


def _page(template: str, **context: Any) -> str:
    return plain_page(f"{template}.html.j2", {**context, "version": _core.version()})
