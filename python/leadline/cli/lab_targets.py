"""The targets of a lab for other verbs: only here do the lab and the flow meet."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.lab.targets import LabTarget

_Command = TypeVar("_Command", bound=Callable[..., Any])


def lab_option(words: str) -> Callable[[_Command], _Command]:
    """Adds `--lab [NAME]`: None where it was not given, "" without a name."""
    return click.option("--lab", is_flag=False, flag_value="", default=None, metavar="[NAME]", help=words)


def targets_of_lab(name: str) -> tuple[LabTarget, ...]:
    """Every way to a lab that is up, with what its targets need put into this process's environment.

    Raises UsageError where there is no such lab, or it is not up.
    """
    from leadline import lab

    found = lab.open(name)
    targets = tuple(found.targets())
    if not targets:
        raise UsageError(
            f"lab {found.record.name} is not up", "start one with: leadline lab up --gateways all"
        )
    for target in targets:
        os.environ.update(target.variables)
    return targets
