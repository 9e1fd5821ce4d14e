"""What a shell is offered after TAB: built-in studies, and results in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

_ENTRIES_MAX = 5_000


def complete_study(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of built-in studies, or else files."""
    from click.shell_completion import CompletionItem

    from leadline.study.library import builtin_names

    return [CompletionItem(begun, type="file"), *_items(builtin_names(), begun)]


def complete_result(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Results in the directory that was begun, or else directories."""
    from click.shell_completion import CompletionItem

    from leadline.store.files import MANIFEST

    place = begun[: begun.rfind("/") + 1]
    found: list[str] = []
    with suppress(OSError), os.scandir(place or ".") as entries:
        for entry in islice(entries, _ENTRIES_MAX):
            # A name that is no plain text would be sent to the terminal as it is.
            if entry.name.isprintable() and Path(entry.path, MANIFEST).is_file():
                found.append(place + entry.name)
    return [CompletionItem(begun, type="dir"), *_items(sorted(found), begun)]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(begun)]
