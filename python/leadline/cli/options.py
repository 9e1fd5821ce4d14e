"""Options that several verbs have: `-o` is where what a verb makes goes, and names stand for themselves.

A spelling that a verb once had goes on working and is shown nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from leadline.cli.paths import WrittenPath
from leadline.errors import UsageError

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


class RenamedOption(click.Option):
    """An option with spellings of before (`former`), which parse and are not shown."""

    def __init__(self, declarations: Sequence[str], former: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__([*declarations, *former], **attributes)
        self._former = frozenset(former)

    @property
    def shown(self) -> list[str]:
        """The spellings that help names."""
        return [name for name in self.opts if name not in self._former]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """As click's, of the spellings that are shown."""
        every, self.opts = self.opts, self.shown
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def out_option(
    text: str = "Directory of the result. It must not exist.",
    *,
    former: Sequence[str] = (),
    path: WrittenPath | None = None,
    **attributes: Any,
) -> Callable[[_Decorated], _Decorated]:
    """`-o`, `--out`: where what the verb makes goes."""
    return click.option(
        "-o",
        "--out",
        "out",
        cls=RenamedOption,
        former=former,
        type=path or WrittenPath(),
        help=text,
        **attributes,
    )


def name_argument(*, former: str = "") -> Callable[[_Decorated], _Decorated]:
    """NAME, as a word of its own; `former` is the option that it once was, handed to `one_name`."""

    def add(function: _Decorated) -> _Decorated:
        if former:
            function = click.option(former, "former_name", default="", hidden=True)(function)
        return click.argument("name", required=False, default="")(function)

    return add


def one_name(name: str, former_name: str) -> str:
    """The name by whichever spelling. Raises UsageError where both were given and differ."""
    if name and former_name and name != former_name:
        raise UsageError(f"two names were given: {name} and {former_name}", "give one: NAME")
    return name or former_name


def ignore_health_option(function: _Decorated) -> _Decorated:
    """Adds `--ignore-health`, of every verb that adds load to a cluster, or changes it."""
    return click.option(
        "--ignore-health",
        is_flag=True,
        help="Measure although the cluster is in HEALTH_ERR or has slow operations.",
    )(function)


def grace_option(function: _Decorated) -> _Decorated:
    """Adds `--grace`, of every verb that runs trials."""
    return click.option(
        "--grace",
        metavar="TIME",
        default="60s",
        show_default=True,
        help="How late a trial may end before it is aborted.",
    )(function)


def drop_caches_option(function: _Decorated) -> _Decorated:
    """Adds `--drop-caches`."""
    return click.option(
        "--drop-caches",
        is_flag=True,
        help="Drop this host's caches before each trial. Needs root, and slows down every program here.",
    )(function)


def no_ceph_option(function: _Decorated) -> _Decorated:
    """Adds `--no-ceph`, of every verb that measures targets."""
    return click.option("--no-ceph", is_flag=True, help="Do not connect to the cluster behind a target.")(
        function
    )


def quiet_option(function: _Decorated) -> _Decorated:
    """Adds `--quiet`, of every verb that shows progress."""
    return click.option("--quiet", is_flag=True, help="Print errors only, no progress.")(function)


def across_jobs_option(function: _Decorated) -> _Decorated:
    """Adds `--across-jobs`, of every verb that holds results against each other."""
    return click.option(
        "--across-jobs",
        is_flag=True,
        help="Compare results even where workloads of one name ran different jobs; the output says so.",
    )(function)
