"""What of a result tells where it was made: paths, hosts, users, command lines, what programs printed.

It is gathered from what is stored, so that a redacted report replaces what is known instead of guessing at
what a sentence may hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leadline.store.tables import TrialRow

# Keys of a manifest whose texts identify, however they look; other texts do where they look like a place.
_ARGUMENTS = frozenset({"command", "commands", "program"})
_PLACES = frozenset(
    {"conf", "directory", "input", "keyring", "kernel_client", "location", "mount_point", "namespace"}
    | {"client_socket", "output", "pool", "source", "url", "user", "workspace"}
)
_OUR_OWN = frozenset({"about", "title", "notes", "words"})  # sentences, which are cleaned and not replaced
PATH, FILE, HOST = "<path>", "<file>", "<host>"
COMMAND, ARGUMENT, PRINTED = "<command>", "<argument>", "<printed>"


def private_texts(manifest: Mapping[str, Any], trials: Iterable[TrialRow] = ()) -> dict[str, str]:
    """Every such text of a manifest and of what trials say of themselves, with what stands for it."""
    found = dict(_private(manifest, ""))
    for trial in trials:
        found |= dict.fromkeys(_printed(trial), PRINTED)
        found |= dict.fromkeys(_busiest(trial), "<process>")
    return found


def _private(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if key in _ARGUMENTS:
            yield value, ARGUMENT
        elif key in _PLACES or (key not in _OUR_OWN and _is_place(value)):
            yield value, PATH
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _private(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _private(item, key)


def _is_place(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or "://" in text


def _printed(trial: TrialRow) -> Iterator[str]:
    """What a program that failed had printed, which stands behind how it ended."""
    error = (json.loads(trial.summary or "{}") or {}).get("error") or {}
    if error.get("kind") == "program":
        yield str(error.get("message", "")).partition(": ")[2]


def _busiest(trial: TrialRow) -> Iterator[str]:
    sources = json.loads(trial.sources or "{}") or {}
    if isinstance(sources.get("busiest_other"), str):
        yield sources["busiest_other"]
