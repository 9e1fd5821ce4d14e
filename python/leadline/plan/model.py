"""The plan: an ordered, seeded list of trials with every default explicit.

Frozen values that the manifest stores as JSON and `--resume` reads back. How they are made is in `make`,
which asks the kinds of work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.errors import ResultError
from leadline.study.kind.interface import AnyJob, Layout
from leadline.study.kinds import planned, stored_job
from leadline.study.target import LeftOut, Target
from leadline.study.work import Order, Search, SteadyState, Swept, part_as_json

PLAN_FORMAT = "leadline.plan/1"
TRIAL_OVERHEAD_S = 0.5  # starting a worker, opening files, storing the trial


@dataclass(frozen=True)
class PlannedCell:
    """One work, or one job of a composition, on one target. `id` is `target.work`; `notes` give the reason of
    each chosen default.

    `measures_caches`: a cache of this host or of a server may serve reads or writes. `seconds` is the
    expected time of one trial without its layout. `group` names the composition that the cell is a job of
    (`target.work`), and `order` says how its jobs follow each other. `steady`: when the trial may end early.
    `search`: the job's rate is not planned but found, in the search's number of trials each block.
    `swept`: it is a cell of a sweep's grid, and has trials where the sweep starts, or chooses it.
    """

    id: str
    target: str
    work: str
    factors: dict[str, Any]
    job: AnyJob
    layout: Layout | None
    seconds: float
    measures_caches: bool = False
    notes: tuple[str, ...] = ()
    group: str | None = None
    order: Order | None = None
    steady: SteadyState | None = None
    search: Search | None = None
    swept: Swept | None = None

    @property
    def kind(self) -> str:
        """The kind of work, by the name of its folder below `workloads`."""
        return self.job.kind

    @property
    def targets(self) -> tuple[str, ...]:
        """Every target that its trials touch."""
        return planned(self.job).needs(self.job, self.target)


@dataclass(frozen=True)
class Trial:
    """One execution of a cell: `order` from 1 over the whole plan, `block` from 1.

    The trials of a group's jobs stand next to each other: they are one slot. `probe` counts the trials of a
    search within its block, from 1.
    """

    id: str
    order: int
    block: int
    cell: str
    target: str
    seed: int
    probe: int | None = None


@dataclass(frozen=True)
class Plan:
    """Everything that will be run. `bytes_needed` is the most that is taken on each target at one time."""

    study: str
    title: str
    about: str
    seed: int
    blocks: int
    targets: tuple[Target, ...]
    cells: tuple[PlannedCell, ...]
    trials: tuple[Trial, ...]
    seconds: float
    bytes_needed: dict[str, int]
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def cell(self, cell_id: str) -> PlannedCell:
        """The cell of that id; KeyError where there is none."""
        return {cell.id: cell for cell in self.cells}[cell_id]

    def slots(self, without: Collection[str] = ()) -> list[tuple[Trial, ...]]:
        """What is executed at a time, in order: a trial, or those of a group's jobs; without those named."""
        cells = {cell.id: cell for cell in self.cells}
        found: dict[tuple[int, str], list[Trial]] = {}
        for trial in self.trials:
            if trial.id not in without:
                group = cells[trial.cell].group
                found.setdefault((trial.block, f"group {group}" if group else trial.id), []).append(trial)
        return [tuple(slot) for slot in found.values()]

    def layouts(self, target: str) -> tuple[Layout, ...]:
        """The distinct layouts that cells of one target share, in the cells' order."""
        found = {c.layout.key: c.layout for c in self.cells if c.target == target and c.layout is not None}
        return tuple(found.values())

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back to an equal plan."""
        return {
            "format": PLAN_FORMAT,
            **{name: getattr(self, name) for name in ("study", "title", "about", "seed", "blocks")},
            "targets": [vars(target).copy() for target in self.targets],
            "cells": [
                {
                    **vars(cell),
                    "kind": cell.kind,
                    "factors": dict(cell.factors),
                    "job": cell.job.as_json(),
                    "layout": None if cell.layout is None else vars(cell.layout).copy(),
                    "notes": list(cell.notes),
                    "steady": part_as_json(cell.steady),
                    "search": part_as_json(cell.search),
                    "swept": part_as_json(cell.swept),
                }
                for cell in self.cells
            ],
            "trials": [vars(trial).copy() for trial in self.trials],
            "seconds": self.seconds,
            "bytes_needed": dict(self.bytes_needed),
            "notes": list(self.notes),
            "left_out": [vars(one).copy() for one in self.left_out],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """The inverse of `as_json`. Raises ResultError where it is no plan or one of a newer version."""
        found = value.get("format") if isinstance(value, dict) else None
        if found != PLAN_FORMAT:
            raise ResultError(
                f"the plan is of format {found!r}, this version reads {PLAN_FORMAT!r}",
                "use the version of leadline that wrote it, or run the study anew",
            )
        try:
            return cls(
                **{name: value[name] for name in ("study", "title", "about", "seed", "blocks", "seconds")},
                targets=tuple(Target(**target) for target in value["targets"]),
                cells=tuple(_cell_from_json(cell) for cell in value["cells"]),
                trials=tuple(Trial(**trial) for trial in value["trials"]),
                bytes_needed=dict(value["bytes_needed"]),
                notes=tuple(value["notes"]),
                left_out=tuple(LeftOut(**one) for one in value.get("left_out", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ResultError(
                f"the plan is damaged: {type(error).__name__}: {error}", "run the study anew"
            ) from error


def _cell_from_json(value: dict[str, Any]) -> PlannedCell:
    layout, steady, search = value["layout"], value.get("steady"), value.get("search")
    swept = value.get("swept")
    return PlannedCell(
        **{
            **{name: part for name, part in value.items() if name != "kind"},
            "job": stored_job(value),
            "layout": None if layout is None else Layout(**layout),
            "notes": tuple(value["notes"]),
            "steady": None if steady is None else SteadyState.model_validate(steady),
            "search": None if search is None else Search.model_validate(search),
            "swept": None if swept is None else Swept.model_validate(swept),
        }
    )


def slot_seconds(cells: Sequence[PlannedCell]) -> float:
    """How long a slot of these cells is expected to take, without what surrounds a trial."""
    seconds = [cell.seconds for cell in cells]
    return sum(seconds) if cells[0].order == "sequence" else max(seconds)
