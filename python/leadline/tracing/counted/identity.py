"""Which program was traced: that two traces of one name are of one program, or are not."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline import units

# What runs another file, which is the program then.
_INTERPRETER = re.compile(
    r"^(?:python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|(?:ba|da|z|k|c|tc)?sh|node|Rscript|julia|lua[\d.]*)$"
)
_DIGESTED_BYTES = 16 << 20  # of a file; beyond, its size tells


def identity(executable: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """The executable, and the script that it runs: path, size, change time in ns, SHA-256 of its beginning.

    Reads both files: ask in a fork. What cannot be read is left out.
    """
    found = []
    script = next((word for word in words[1:] if not word.startswith("-")), None)
    runs = _INTERPRETER.match(Path(words[0]).name) and script is not None
    for path in (executable, *([Path(script)] if runs and script else [])):
        with suppress(OSError, ValueError):
            status = path.stat()
            with path.open("rb") as file:
                digest = hashlib.sha256(file.read(_DIGESTED_BYTES)).hexdigest()
            real = str(path.resolve())
            found.append(
                {"path": real, "bytes": status.st_size, "changed_ns": status.st_mtime_ns, "sha256": digest}
            )
    return found


@dataclass(frozen=True)
class TracedProgram:
    """A trace's command, and what `identity` said of its files when it ran; empty where it is not known."""

    words: tuple[str, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()


def stored_program(manifest: Mapping[str, Any], recorded: Sequence[str]) -> TracedProgram:
    """From a trace's manifest; an import has the words that its source `recorded` of the first process."""
    program = manifest.get("program")
    words = program if isinstance(program, list) else recorded
    kept = manifest.get("program_files")
    known = ("path", "bytes", "sha256")
    files = (
        [one for one in kept if isinstance(one, dict) and all(name in one for name in known)] if kept else []
    )
    return TracedProgram(tuple(str(word) for word in words), tuple(files))


def differences(base: TracedProgram, other: TracedProgram) -> Iterator[str]:
    """What differs between the programs of two traces, and what is not known; nothing where all is alike."""
    if base.words and other.words and base.words != other.words:
        yield f"the commands differ: A ran `{shlex.join(base.words)}`, B ran `{shlex.join(other.words)}`"
    if not (base.words and other.words):
        yield "a trace does not say which command it is of: whether both ran the same is not known"
    elif not (base.files and other.files):
        yield "a trace does not keep which file its program was: whether both are of one version is not known"
    for first, second in zip(base.files, other.files, strict=False):
        if (first["sha256"], first["bytes"]) != (second["sha256"], second["bytes"]):
            yield f"the programs differ: A ran {_words(first)}, B ran {_words(second)}"
    if base.files and other.files and len(base.files) != len(other.files):
        yield "the programs differ: one of them ran a script, the other did not"


def _words(item: Mapping[str, Any]) -> str:
    size = units.format_size(float(item["bytes"]))
    return f"{item['path']} ({size}, SHA-256 {str(item['sha256'])[:12]})"
