"""Many results at once: from their summaries where these are fresh, from the results themselves where not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.console import complain
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
from leadline.errors import TargetError

if TYPE_CHECKING:
    from leadline.store.index import Indexed


def enters(directory: Path) -> bool:
    """Whether to look for results in a directory: not on a mount that does not answer, which is said."""
    from leadline.observe.answering import check_answers
    from leadline.observe.mounts.mountinfo import read_mounts

    place = os.path.abspath(directory)  # noqa: PTH100 - resolves nothing
    if not any(mount.mount_point == place for mount in read_mounts()):
        return True
    try:
        check_answers([place])
    except TargetError as error:
        complain(TargetError(f"left out: {error.message}", error.remedy))
        return False
    return True


def indexed_results(
    directory: Path, wanted: Callable[[str], bool]
) -> tuple[list[Indexed], dict[Path, str], list[str]]:
    """Rows below a directory whose figure, CELL.METRIC, is wanted, results that cannot be read with the
    reason, and what else is to be said.

    A result without a fresh summary is judged, and its summary is stored where the directory can be written.
    """
    from leadline.store.index import INDEX, Indexed, read_indexes, refresh
    from leadline.store.reader import find_results

    results = list(find_results(directory, enter=enters))
    fresh = read_indexes(results, wanted)
    rows = [Indexed(path, row) for path, found in fresh.items() for row in found]
    if len(fresh) == len(results):
        return rows, {}, []  # what judges results takes longer to load than a thousand summaries take to read
    from leadline.verdict.summary import summarise

    made, unwritten, unreadable = refresh(results, summarise, fresh)
    notes = []
    if unwritten:
        notes.append(f"{len(unwritten)} results cannot be written: without {INDEX} each look is slow")
    rows += [item for item in made if wanted(f"{item.row.cell}.{item.row.metric}")]
    return rows, dict(unreadable), notes


def say_left_out(problems: Iterable[str]) -> int:
    """Name what could not be read, a line each; the exit code of a verb that went on without it."""
    found = list(problems)
    for words in found:
        complain(f"left out: {words}")
    return EXIT_FAILED if found else EXIT_GOOD
