"""What `leadline import elbencho` and `import io500` do: a file's figures as a result of published ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leadline.cli.console import echo
from leadline.units import quoted


def import_benchmark(program: str, source: Path, out: Path, link: str | None) -> None:
    """Import, then say what does not agree."""
    from leadline._core import version
    from leadline.errors import UsageError
    from leadline.foreign import foreign_text, read_plain, reading
    from leadline.published.checks import tested
    from leadline.published.document import read_published
    from leadline.published.findings import published_findings
    from leadline.published.store import write_published
    from leadline.report.format import printable
    from leadline.store.reader import open_result

    if out.exists():
        raise UsageError(f"{out} exists already", "name another --out")
    file, bytes_max, make = _reader(program, source)
    with reading(file, f"name what {program} wrote", UsageError):
        text = make(foreign_text(read_plain(file, bytes_max)), source.name, link)
        document = read_published(text, str(file))
        doubts = [one.doubt for one in tested(document) if one.doubt]
    details: dict[str, Any] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version(),
        "imported": {"kind": program, "files": [source.name]},
    }
    write_published(out, text, document, details, time.time_ns)
    for doubt in doubts:
        echo(printable(f"DOUBTFUL: {doubt.text}"), err=True)
    echo(published_findings(open_result(out)).statements[0].text)
    echo(f"result: {out.resolve()}; read it with: leadline show {quoted(out)}")


def _reader(program: str, source: Path) -> tuple[Path, int, Callable[[str, str, str | None], str]]:
    from leadline.imported import elbencho, io500

    if program == "io500":
        file = source / io500.SUMMARY if source.is_dir() else source
        # A directory may have summaries of several runs, whose names have the time; logs are of one of them.
        logs = io500.read_logs(file.parent) if file.name == io500.SUMMARY else {}
        return file, io500.BYTES_MAX, lambda text, name, rate: io500.io500_document(text, name, rate, logs)
    return source, elbencho.BYTES_MAX, elbencho.elbencho_document
