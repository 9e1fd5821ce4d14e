"""The types of parameters that are paths: none is touched by the command before it is known to answer.

`AskedPath` is what the command itself reads: a fork asks it first. `WrittenPath` is what the command makes:
it refuses a place where another account could exchange that. `UntouchedPath` is what is
measured or looked at: workers touch it, the command never does.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from leadline.errors import TargetError, UsageError
from leadline.trusted import require_own_place


class AskedPath(click.Path):
    """A file or directory of the user's: results, reports, logs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, which looks at the path itself."""
        from leadline.observe.hang_guard import check_answers

        try:
            check_answers([os.fsdecode(value)])
        except TargetError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return super().convert(value, param, ctx)


class WrittenPath(AskedPath):
    """A file or directory that the verb makes. Where another account could exchange it, nothing is begun."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As `AskedPath`; `-` is standard output."""
        path = super().convert(value, param, ctx)
        try:
            if str(path) != "-":
                require_own_place(path, param.opts[0] if param is not None else "-o")
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return path


class AskedOrAddress(click.types.StringParamType):
    """A file of the user's, or the address of a server."""

    name = "path or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        if "://" not in value:
            AskedPath().convert(value, param, ctx)
        return str(value)


class AskedUnlessValues(click.types.StringParamType):
    """`NAME=VALUES` or a word that stands for some, or else a file of the user's that has them."""

    name = "values or path"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        if "=" not in value and value not in self._words:
            AskedPath().convert(value, param, ctx)
        return str(value)


class UntouchedPath(click.types.StringParamType):
    """A place to measure or to look at."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        if not value or "\0" in value:
            self.fail("a path is not empty and holds no zero byte", param, ctx)
        return str(value)


def place_for(out: Path | None, kind: str) -> Path:
    """`out`, or a name in the working directory, which is asked then."""
    if out is not None:
        return out
    from leadline.observe.hang_guard import check_answers

    check_answers(["."])
    place = Path(f"leadline-{kind}-{datetime.now():%Y%m%d-%H%M%S}")
    require_own_place(place)
    return place
