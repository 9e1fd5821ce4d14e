"""Puts back what a search, or its proof, left changed: whatever it ever proposed is known from its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.change.searching.growth import ProposalBook
from leadline.cli.change.tune_prove import client_of, system_for
from leadline.cli.console import echo
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.proving.kept import kept
from leadline.tuning.proving.proof import WITHOUT
from leadline.tuning.searching.request import SearchedSettings

if TYPE_CHECKING:
    from leadline.store.acting import SeenManifest


def put_back_search(path: Path, seen: SeenManifest) -> tuple[str, ...]:
    """Put back; what could not be, in words. Raises ResultError."""
    from leadline.study.target import TargetFacts
    from leadline.tuning.searching.states import ValueStates

    searched = SearchedSettings.from_json(seen.manifest["search"])
    facts = TargetFacts.from_json(seen.manifest["targets"][WITHOUT])
    known = {one.setting.name: one.setting for one in searched.settings}
    book = ProposalBook(path, searched.advised)
    place = Path(str(seen.manifest["search"].get("journal", "")))
    with system_for(facts, (), known) as system, kept(TuningJournal(place), system) as journal:
        states = ValueStates(system, searched.settings, book, client_of(facts), journal=journal)
        left = states.leave()
    for one in left:
        echo(f"could not be put back: {one}", err=True)
    return left
