"""A simulated cluster as a page: its tree with how full each part is. No scripts; it loads nothing."""

from __future__ import annotations

from leadline import _core
from leadline.report.renderers.page import plain_page
from leadline.simulation.view import ShownSimulation


def simulation_html(view: ShownSimulation) -> str:
    """The whole page as text."""
    context = {"view": view, "version": _core.version()}
    return plain_page("simulation.html.j2", context)
