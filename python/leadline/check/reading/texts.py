"""Small files of /proc and /sys: their text or number, or nothing where the kernel shows none."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str | None:
    """The text without white space around it."""
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def number_in(text: str | None) -> int | None:
    """A whole number from 0 on."""
    return int(text) if text is not None and text.isdigit() else None
