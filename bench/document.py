"""A document of sections that are made at different times: those not made anew stay, with their date."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

_MARK = re.compile(r"^<!-- section (\w+) -->$", re.MULTILINE)


class Document:
    """The file itself is the store: each section follows a mark with its name."""

    def __init__(self, path: Path, introduction: str, order: Sequence[str]) -> None:
        self._path = path
        self._introduction = introduction
        self._order = tuple(order)
        parts = _MARK.split(path.read_text()) if path.exists() else [""]
        self.sections = {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}

    def make(self, name: str, section: Callable[[], Iterator[str]]) -> None:
        """Make one section, say when and on how busy a machine, and write the whole document."""
        begun, before = time.monotonic(), os.getloadavg()[0]
        text = "\n".join(section()).strip()
        after = os.getloadavg()[0]
        made = (
            f"*Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC in {_duration(time.monotonic() - begun)}; load"
            f" average {before:.1f} at the start, {after:.1f} at the end, on {os.cpu_count()} CPUs.*"
        )
        heading, _, rest = text.partition("\n")
        self.sections[name] = f"{heading}\n\n{made}\n\n{rest.strip()}"
        self._write()

    def _write(self) -> None:
        names = [name for name in self._order if name in self.sections]
        parts = [f"<!-- section {name} -->\n{self.sections[name]}\n" for name in names]
        whole = self._path.with_suffix(".new")
        whole.write_text("\n".join([self._introduction, *parts]))
        whole.replace(self._path)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
