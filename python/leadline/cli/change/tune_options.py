"""What several verbs of `leadline tune` share: a user's own settings, and of which versions it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from leadline.cli.options import AskedPath

_Command = TypeVar("_Command", bound=Callable[..., Any])


def settings_option(function: _Command) -> _Command:
    """Adds `--settings FILE`."""
    return click.option(
        "--settings",
        "own",
        type=AskedPath(exists=True, dir_okay=False),
        metavar="FILE",
        help="Additional settings of your own (docs/tuning.md).",
    )(function)


def way_option(function: _Command) -> _Command:
    """Adds `--way NAME`."""
    return click.option(
        "--way",
        metavar="NAME",
        help="With --lab: the access method, as `leadline lab targets` names it.  [default: the first]",
    )(function)


def state_option(function: _Command) -> _Command:
    """Adds `--state DIR`."""
    return click.option(
        "--state",
        type=AskedPath(file_okay=False),
        metavar="DIR",
        help="Directory of the journal.  [default: the lab's, else this host's]",
    )(function)


def versions_options(function: _Command) -> _Command:
    """Adds `--kernel` and `--ceph`: for which versions it is said."""
    for name, words in (("kernel", "[default: this host's]"), ("ceph", "[default: the newest]")):
        function = click.option(
            f"--{name}", f"{name}_version", metavar="VERSION", help=f"{name.capitalize()} version.  {words}"
        )(function)
    return function


def asked_versions(kernel: str | None, ceph: str | None) -> dict[str, str]:
    """The versions that are meant. Raises UsageError for one that is none."""
    import os
    import re

    from leadline.errors import UsageError

    for name, given in (("--kernel", kernel), ("--ceph", ceph)):
        if given is not None and not re.match(r"[0-9]+(\.[0-9]+)*", given):
            raise UsageError(f"{name}: {given!a} is no version", "write it as 6.12 or 19.2.3")
    return {"kernel": kernel or os.uname().release, **({"ceph": ceph} if ceph else {})}
