"""Writing one file that a user named: whole or not at all."""

from __future__ import annotations

from pathlib import Path

from leadline.errors import UsageError


def write_file(path: Path, data: bytes, option: str = "") -> None:
    """A full disk must not leave half a file where a good one was. Raises UsageError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        with partial.open("xb") as file:  # a new one: whoever may write beside it could have put a link there
            file.write(data)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        remedy = f"name another file with {option}" if option else "name another file"
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy) from None
