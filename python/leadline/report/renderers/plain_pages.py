"""A check as a page without scripts, which loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline import _core
from leadline.report.renderers.page import plain_page

if TYPE_CHECKING:
    from leadline.check.view import ShownCheck

_CHECK_WORDS = {
    "serious": ("invalid", "Something serious"),
    "warning": ("doubtful", "Something to mend"),
    "note": ("doubtful", "Notes only"),
    "fine": ("valid", "As it should be"),
}


def check_html(check: ShownCheck, created: str) -> str:
    """The whole page as text; `created` is a moment in ISO 8601."""
    state, word = _CHECK_WORDS[check.worst]
    context = {"check": check, "created": created, "state": state, "word": word, "version": _core.version()}
    return plain_page("check.html.j2", context, check.sections)
