"""Designs as a page for a meeting: one file without scripts, which loads nothing."""

from __future__ import annotations

from leadline import _core
from leadline.report.renderers.page import plain_page
from leadline.sizing.view import ShownSizing


def sizing_html(view: ShownSizing, title: str = "", document: str = "") -> str:
    """The whole page as text; `title` and `document` say whose requirements these are."""
    state, word = ("doubtful", "By model") if view.designs else ("invalid", "No design")
    whose = ". ".join(part for part in (title, document) if part)
    context = {"view": view, "state": state, "word": word, "whose": whose, "version": _core.version()}
    return plain_page("sizing.html.j2", context)
