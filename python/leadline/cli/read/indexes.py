"""Many results at once: from their summaries where these are fresh, from the results themselves where not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.console import complain
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
from leadline.errors import TargetError
from leadline.units import format_count

if TYPE_CHECKING:
    from leadline.store.index import Indexed

_MEMORY_SHARE = 2  # judging may take half of the host's memory


def enters(directory: Path) -> bool:
    """Whether to look for results in a directory: not on a mount that does not answer, which is said."""
    from leadline.observe.hang_guard import check_answers
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
    from leadline.store.index import Indexed, read_indexes
    from leadline.store.reader import find_results

    results = list(find_results(directory, enter=enters))
    fresh = read_indexes(results, wanted)
    rows = [Indexed(path, row) for path, found in fresh.items() for row in found]
    stale = [path for path in results if path not in fresh]
    if not stale:
        return rows, {}, []  # what judges results takes longer to load than a thousand summaries take to read
    made, problems, notes = _judged(stale, wanted)
    return rows + made, problems, notes


def _judged(
    results: Sequence[Path], wanted: Callable[[str], bool]
) -> tuple[list[Indexed], dict[Path, str], list[str]]:
    """The same of results without a fresh summary. Forks judge them: none can take the command with it."""
    from leadline.foreign import UNTOUCHED, reading
    from leadline.pool import in_forks
    from leadline.store.index import INDEX, refresh, refreshed
    from leadline.verdict.summary import summarise

    def judge(path: Path) -> dict[str, Any]:
        with reading(path, UNTOUCHED):
            return refresh(path, summarise(path), wanted)

    rows: list[Indexed] = []
    problems: dict[Path, str] = {}
    unwritten = 0
    bytes_max = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MEMORY_SHARE
    with closing(in_forks(results, judge, bytes_max)) as answers:
        for answer in answers:
            path = results[answer.place]
            if answer.problem:
                said = str(path) in answer.problem
                problems[path] = answer.problem if said else f"{path} cannot be read: {answer.problem}"
                continue
            rows += refreshed(path, answer.value)
            unwritten += not answer.value["stored"]
    order = {path: place for place, path in enumerate(results)}  # answers come in any
    rows.sort(key=lambda item: order[item.path])
    problems = {path: problems[path] for path in results if path in problems}
    notes = (
        [f"{format_count(unwritten, 'result')} cannot be written: without {INDEX} each look is slow"]
        if unwritten
        else []
    )
    return rows, problems, notes


def say_left_out(problems: Iterable[str]) -> int:
    """Name what could not be read, a line each; the exit code of a verb that went on without it."""
    found = list(problems)
    for words in found:
        complain(f"left out: {words}")
    return EXIT_FAILED if found else EXIT_GOOD
