"""Whether two results are one: a copy that is held against its original always agrees with it."""

from __future__ import annotations

from leadline.store.reader import Result


def in_common(first: Result, second: Result) -> str | None:
    """What two results have in common that were not measured apart, in words; None where they were.

    By their ids, or by the starts and lengths of trials in nanoseconds, whatever the ids and directories are:
    no two trials agree in both. A result that was copied and gone on with has some of its trials in common.
    """
    same_id = first.manifest["id"] == second.manifest["id"]
    mine, theirs = _trials(first), _trials(second)
    shared = len(mine & theirs)
    if not same_id and not shared:
        return None
    where = f"{second.path} and {first.path}"
    if not shared:
        return f"{where} are one result, {first.manifest['id']}: of the same trials, or of some of them"
    if mine == theirs:
        return f"{where} have the same trials: one is the other, or its copy"
    return f"{where} have {shared} of their {len(mine | theirs)} trials in common: the same trials in both"


def _trials(result: Result) -> set[tuple[int, int]]:
    """Starts and lengths; of what has no trials, when it was stored."""
    if result.published or result.traced or result.workflows:
        return {(event.t_ns, 0) for event in result.events}
    return {(row.started_unix_ns, row.measured_ns) for row in result.trials()}
