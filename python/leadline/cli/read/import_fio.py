"""What `leadline import fio` does: reads fio's files, each a block, and makes one result of them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from leadline.cli.console import echo
from leadline.units import quoted


def import_fio(sources: tuple[Path, ...], out: Path, target: str) -> None:
    """Import, then say what there is and what is odd in it."""
    from leadline._core import version
    from leadline.errors import UsageError
    from leadline.foreign import foreign_text, read_plain, reading
    from leadline.imported.fio import BYTES_MAX, read_fio
    from leadline.imported.fio_jobs import fio_cells
    from leadline.imported.made import source_of, write_imported
    from leadline.report.format import printable
    from leadline.study.target import check_name

    check_name(target)
    if out.exists():
        raise UsageError(f"{out} exists already", "name another --out")
    reports, texts = [], {}
    for place, path in enumerate(sources, start=1):
        with reading(path, "write it with: fio --output-format=json+ --output=FILE", UsageError):
            text = foreign_text(read_plain(path, BYTES_MAX))
            reports.append(read_fio(text))
        texts[f"{path.name}" if path.name not in texts else f"{path.name} ({place})"] = text
    with reading(sources[0], "import files of the same job file", UsageError):
        cells = fio_cells(reports)
    source = source_of("fio", reports[0].version, texts)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    write_imported(out, source, cells, target, {"created": created, "version": version()}, time.time_ns)
    notes = dict.fromkeys(note for cell in cells for trial in cell.trials for note in trial.said["notes"])
    for note in notes:
        echo(printable(f"NOTE: {note}"), err=True)
    jobs = f"{len(cells)} job{'' if len(cells) == 1 else 's'}"
    files = f"{len(reports)} block{'' if len(reports) == 1 else 's'}"
    echo(printable(f"{source.version}: {jobs} in {files}"))
    echo(f"result: {out.resolve()}; read it with: leadline show {quoted(out)}")
