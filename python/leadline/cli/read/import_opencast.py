"""What `leadline import opencast` does: reads a file or asks a platform, and makes a result of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.console import echo
from leadline.errors import UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.workflows.reading import Workflow


def import_opencast(
    source: str, out: Path, since_change: str | None, size: str | None, timeout: str, retries: int
) -> None:
    """Import, then say the first sentence of what was found."""
    from leadline import units
    from leadline._core import version
    from leadline.store.reader import open_result
    from leadline.workflows.findings import workflow_findings
    from leadline.workflows.reading import parse_moment
    from leadline.workflows.store import write_workflows

    if out.exists():
        raise UsageError(f"{out} exists already", "name another --out")
    change_ns = None if since_change is None else parse_moment(since_change, "--since-change")
    given_bytes = None if size is None else units.parse_size(size)
    timeout_s = units.parse_duration(timeout) / 1e9
    if timeout_s <= 0:
        raise UsageError(f"--timeout {timeout}: no time at all", "write for example: --timeout 30s")
    found = _unique([one for answer in _answers(source, timeout_s, retries) for one in answer])
    if not found:
        raise UsageError(f"{source} has no workflow", "ask for others")
    if given_bytes:
        found = [one if one.bytes else replace(one, bytes=given_bytes) for one in found]
    details = {
        "title": f"Opencast: {len(found)} workflow{'' if len(found) == 1 else 's'}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version(),
        "imported": {"kind": "opencast", "source": source},
        "since_change_ns": change_ns,
    }
    write_workflows(out, found, details, time.time_ns)
    findings = workflow_findings(open_result(out))
    for one in findings.statements:
        if one.tone == "headline" or one.says in ("workflows_changed", "workflows_on_one_side"):
            echo(one.text)
    echo(f"result: {out.resolve()}; read it with: leadline show {quoted(out)}")


def _answers(source: str, timeout_s: float, retries: int) -> Iterator[Sequence[Workflow]]:
    from leadline.observe.host.platform import Patience, fetch_all
    from leadline.workflows.reading import read_workflows

    if "://" in source:
        for address, text in fetch_all(source, os.environ, Patience(timeout_s, retries)):
            yield read_workflows(text, address)
    else:
        yield read_workflows(_read(Path(source)), source)


def _read(path: Path) -> str:
    from leadline.observe.host.platform import ANSWER_BYTES_MAX

    try:
        with path.open("rb") as file:
            data = file.read(ANSWER_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file, or an address") from None
    if len(data) > ANSWER_BYTES_MAX:
        raise UsageError(f"{path} is larger than {ANSWER_BYTES_MAX >> 20} MiB", "split it")
    return data.decode("utf-8", "replace")


def _unique(found: Sequence[Workflow]) -> list[Workflow]:
    """Pages shift while a platform works: a workflow that was met twice counts once, as it was met last."""
    return list({one.id: one for one in found}.values())
