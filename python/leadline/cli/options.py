"""Parameters and options that several verbs have: paths, names, `-o`, what a shell completes, whom to trust.

No path is touched by the command before it is known to answer. `AskedPath` is what the command itself reads:
a fork asks it first. `WrittenPath` is what the command makes: it refuses a place where another account could
exchange that. `UntouchedPath` is what is measured or looked at: workers touch it, the command never does.

A spelling that a verb once had goes on working and is shown nowhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo
from leadline.errors import TargetError, UsageError
from leadline.trusted import require_own_place

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from leadline.store.acting import SeenManifest


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


class AskedUnlessCondition(click.types.StringParamType):
    """A condition with one of `<`, `>` and `=`, or else a file of the user's that has conditions."""

    name = "condition or path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        from leadline.verdict.requirements import is_condition

        if not is_condition(value):
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


_ENTRIES_MAX = 5_000


def complete_study(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of built-in studies, or else files."""
    from click.shell_completion import CompletionItem

    from leadline.study.library import builtin_names

    return [CompletionItem(begun, type="file"), *_items(builtin_names(), begun)]


def complete_result(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Results in the directory that was begun, or else directories."""
    from click.shell_completion import CompletionItem

    from leadline.store.files import MANIFEST

    place = begun[: begun.rfind("/") + 1]
    found: list[str] = []
    with suppress(OSError), os.scandir(place or ".") as entries:
        for entry in islice(entries, _ENTRIES_MAX):
            # A name that is no plain text would be sent to the terminal as it is.
            if entry.name.isprintable() and Path(entry.path, MANIFEST).is_file():
                found.append(place + entry.name)
    return [CompletionItem(begun, type="dir"), *_items(sorted(found), begun)]


def complete_lab(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of the labs of this account."""
    from leadline.lab.registry import directories

    return _items(directories(os.environ), begun)


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(begun)]


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
        return click.argument("name", required=False, default="", shell_complete=complete_lab)(function)

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


EXIT_OWN_FAILURE = 125  # as `env`, `timeout` and `nohup` have it
WORDS = "leadline.command"  # where a context keeps the words behind `--`


class Misused(click.UsageError):
    """A wrong option is a failure of ours too, and must not look like an exit code of the command."""

    exit_code = EXIT_OWN_FAILURE


class WrappingCommand(click.Command):
    """Gives wrong options our own exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click's, with our exit code."""
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise Misused(error.format_message(), error.ctx) from error.__cause__


class SeparatedCommand(WrappingCommand):
    """Keeps what follows `--` for the command, and gives wrong options an exit code of our own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, of the words before `--`."""
        index = args.index("--") if "--" in args else len(args)
        ctx.meta[WORDS] = tuple(args[index + 1 :])
        return super().parse_args(ctx, args[:index])


_SHOWN = 20  # commands; who wants to see more of them opens the manifest


def trust_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The one answer to all of them."""
    return click.option(
        "--trust-result",
        "trusted",
        is_flag=True,
        help="Trust a result that another user may have written (docs/results.md).",
    )(command)


def require_trust(path: Path, deed: str, *, trusted: bool) -> SeenManifest:
    """What the result at `path` says, once it is certain that the caller wants `deed` done by its words.

    A result is trusted where nobody but the caller, or root, could write it. For any other a person is
    asked; where there is none, it is refused.
    """
    from leadline.store.acting import commands_of, look_at

    seen = look_at(path)
    if trusted or not seen.doubts:
        return seen
    remedy = f"read {path}/manifest.json; if you trust its author, add: --trust-result"
    found = commands_of(seen.manifest)
    lines = [*seen.doubts, f"to {deed}" + (" executes these commands:" if found else " executes no command")]
    lines += [f"  {command}" for command in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    for line in lines:
        echo(line, err=True)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the result may be of another user's making: nothing was done", remedy)
    if not click.confirm(f"Do you trust it, and want to {deed}?", default=False, err=True):
        raise UsageError("nothing was done", remedy)
    return seen
