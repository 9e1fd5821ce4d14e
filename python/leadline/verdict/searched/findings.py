"""Findings of a search of settings: it has no cells of its own, as each of its states was many proposals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.errors import UsageError
from leadline.store.reader import Result
from leadline.study.target import TargetFacts
from leadline.units import quoted
from leadline.verdict.model import Cell, Findings, TargetView
from leadline.verdict.private import private_texts
from leadline.verdict.proved.found import ProofFound
from leadline.verdict.searched.found import find_search
from leadline.verdict.searched.said import search_answer, search_sections, search_statements
from leadline.verdict.sections.section import Frame

_WITHOUT = "without"


def search_findings(
    result: Result,
    proof_of: Callable[[Result], tuple[ProofFound | None, tuple[Cell, ...], Any]],
    base: str | None,
) -> Findings:
    """Everything that can be said of a search and of its proof. Raises ResultError, UsageError."""
    if base is not None:
        raise UsageError("a search has one base, the default", f"name one of its proof: {result.path}/proof")
    manifest = result.manifest
    found = find_search(result, proof_of)
    facts = TargetFacts.from_json(manifest["targets"][_WITHOUT])
    url = next(one["url"] for one in manifest["plan"]["targets"] if one["name"] == _WITHOUT)
    state = "VALID"
    if found.proof is not None:
        from leadline.verdict.model import worst

        state = worst([cell.validity.state for cell in found.proof.cells])
    steps = (
        (f"The proof by itself: leadline show {quoted(result.path / 'proof')}",)
        if found.proof is not None
        else ()
    )
    return Findings(
        id=str(manifest["id"]),
        kind=str(manifest["kind"]),
        title=str(manifest["plan"].get("title") or manifest["plan"].get("study", "")),
        about=str(manifest["plan"].get("about", "")),
        created=str(manifest.get("created", "")),
        state=state,  # type: ignore[arg-type]
        targets=(TargetView(_WITHOUT, url, facts.access, facts.words, facts.as_json()),),
        cells=(),
        comparisons=(),
        statements=tuple(search_statements(found)),
        host={str(name): str(value) for name, value in manifest.get("host", {}).items()},
        study=manifest["study"],
        reproduce=(" ".join(map(str, manifest.get("command", ()))),),
        version=str(manifest.get("version", "")),
        complete=result.complete,
        sections=search_sections(found),
        private=private_texts(manifest),
        frame=Frame(cells=False, steps=steps, no_jobs="a search has a job for each proposal"),
        answer=search_answer(found, str(result.path)),
    )
