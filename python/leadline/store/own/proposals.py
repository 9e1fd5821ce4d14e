"""The file `proposals.json` of a search of settings: each proposal, who made it, and the blocks it was in.

Written whole before anything of a proposal is in force: whoever has the result knows every value that may be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from leadline.durable import write_whole
from leadline.errors import ResultError
from leadline.foreign import parse_json, read_plain, reading
from leadline.store.files import storing

PROPOSALS = "proposals.json"
_FORMAT = "leadline.proposals/1"
_BYTES_MAX = 1 << 24


@dataclass(frozen=True)
class StoredProposal:
    """`values` by setting; `state` is the target that it was measured as, `ended` why nothing more was."""

    name: str
    side: str
    state: str
    values: Mapping[str, str]
    blocks: tuple[int, ...] = ()
    ended: str = ""


def write_proposals(result: Path, proposals: Sequence[StoredProposal]) -> None:
    """Store all of them in the place of those before. Raises StoreError."""
    text = json.dumps({"format": _FORMAT, "proposals": [asdict(one) for one in proposals]}, indent=1)
    with storing(result):
        write_whole(result / PROPOSALS, text.encode())


def read_proposals(result: Path) -> tuple[StoredProposal, ...]:
    """In the order in which they were made; none where nothing was proposed. Raises ResultError."""
    path = result / PROPOSALS
    if not os.path.lexists(path):
        return ()
    with reading(path):
        found = parse_json(read_plain(path, _BYTES_MAX))
    try:
        if found["format"] != _FORMAT:
            raise ResultError(f"{path} is of format {found['format']!r}", "use the version that wrote it")
        return tuple(_proposal(one) for one in found["proposals"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(
            f"{path} is damaged: {type(error).__name__}: {error}", "restore it from a copy"
        ) from None


def _proposal(one: Mapping[str, object]) -> StoredProposal:
    values, blocks = one["values"], one["blocks"]
    if not isinstance(values, dict) or not isinstance(blocks, list):
        raise TypeError("a proposal has no values or no blocks")
    name, side, state = (str(one[name]) for name in ("name", "side", "state"))
    held = {str(name): str(value) for name, value in values.items()}
    return StoredProposal(name, side, state, held, tuple(int(block) for block in blocks), str(one["ended"]))
