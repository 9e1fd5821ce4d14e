"""A check as a page: one file without scripts, which loads nothing."""

from __future__ import annotations

from leadline import _core
from leadline.check.view import ShownCheck
from leadline.report.renderers.page import plain_page

_WORDS = {
    "serious": ("invalid", "Something serious"),
    "warning": ("doubtful", "Something to mend"),
    "note": ("doubtful", "Notes only"),
    "fine": ("valid", "As it should be"),
}


def check_html(check: ShownCheck, created: str) -> str:
    """The whole page as text; `created` is a moment in ISO 8601."""
    state, word = _WORDS[check.worst]
    context = {"check": check, "created": created, "state": state, "word": word, "version": _core.version()}
    return plain_page("check.html.j2", context)
