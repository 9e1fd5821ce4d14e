"""`leadline lab inject`: faults on purpose in a lab, listed, in force for a time or until they are undone."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.machine.lab_targets import open_lab, print_json
from leadline.cli.options import AskedPath
from leadline.cli.signals import Unwinding
from leadline.errors import LabError, LeadlineError, UsageError
from leadline.units import format_duration, parse_duration, printable

if TYPE_CHECKING:
    from leadline.lab import Lab
    from leadline.lab.inject.fault import FaultKind
    from leadline.lab.inject.injection import Injection
    from leadline.lab.record import LabRecord

_FOR = "for"
_POLL_S = 0.2


@click.command("inject", options_metavar="[KIND [ON] [OPTION=VALUE]... [for TIME]] [OPTIONS]")
@click.argument("words", nargs=-1, metavar="")
@click.option("--for", "time_words", metavar="TIME", default="", help="Undo the fault after TIME.")
@click.option("--list", "listing", is_flag=True, help="Show the active faults.")
@click.option(
    "--kinds", "kinds", is_flag=True, help="Show the faults that can be injected here, and those that cannot."
)
@click.option("--clear", "clear", is_flag=True, help="Undo the faults with these IDs, or all.")
@click.option("--lab", "name", metavar="NAME", default="", help="The lab.  [default: the only one, or `lab`]")
@click.option("--dir", "directory", type=AskedPath(file_okay=False), help="The lab's directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    words: tuple[str, ...],
    time_words: str,
    listing: bool,
    kinds: bool,
    clear: bool,
    name: str,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Inject a fault into a lab. Every fault can be undone.

    Without `for TIME` the fault stays until --clear, or until the lab is taken down. With it, the command
    waits, and undoes the fault then, or at Ctrl-C.

    \b
    leadline lab inject --kinds
    leadline lab inject osd-paused osd.1 for 30s
    leadline lab inject --clear
    """
    if listing + kinds + clear > 1:
        raise UsageError("of --list, --kinds and --clear, several were given", "Give one.")
    if (listing or kinds) and words:
        raise UsageError(f"--list and --kinds take no {words[0]!r}", "Leave it out.")
    if kinds:
        _print_kinds(_record_of(name, directory), as_json)
        return
    lab = open_lab(name, directory)
    if clear:
        _clear(lab, words, as_json)
    elif words:
        _inject(lab, words, time_words, as_json)
    elif listing:
        _print_list(lab, as_json)
    else:
        raise UsageError("no fault was named", "`leadline lab inject --kinds` lists what can be injected.")


def in_words(injection: Injection) -> str:
    """`3  osd-paused on osd.1: osd.1 stands still, since 12 seconds, until in 18 seconds`."""
    now_s = time.time()
    text = (
        f"{injection.id}  {injection.title}: {injection.words}; since {_span(now_s - injection.began_unix_s)}"
    )
    if injection.until_unix_s is not None:
        left_s = injection.until_unix_s - now_s
        text += f", for {_span(left_s)} more" if left_s > 0 else ", overdue: undo it with --clear"
    return text if injection.done else f"{text}; done in part"


def _span(seconds: float) -> str:
    return format_duration(max(0, round(seconds)))


def _inject(lab: Lab, words: tuple[str, ...], time_words: str, as_json: bool) -> None:
    kind, on, options, for_s = _parsed(words, time_words)
    begun: list[Injection] = []
    with Unwinding() as unwinding:
        try:
            try:
                made = _begin(lab, kind, on, options, for_s, begun)
                if as_json:
                    print_json({"format": "leadline.injection/1", "injection": asdict(made)})
                else:
                    echo(f"injected {made.id}: {made.title}: {made.words}")
                if for_s is None:
                    _say_how_to_undo(lab, made, as_json)
                    begun.clear()  # it stays
                    return
                gone = _wait(lab, made, time.monotonic() + for_s)
            finally:
                unwinding.ignore()
        finally:
            _undo(lab, begun)
    if not as_json:
        echo(f"{made.title} was undone by another command" if gone else f"undone: {made.title}")


def _begin(
    lab: Lab, kind: str, on: str, options: dict[str, str], for_s: float | None, begun: list[Injection]
) -> Injection:
    from leadline.lab.inject import engine

    try:
        return engine.inject(lab.directory, os.environ, kind, on, options, for_s, begun.append)
    except LeadlineError:
        begun.clear()  # undone as far as it could be; the first error is the one to report
        raise


def _undo(lab: Lab, begun: list[Injection]) -> None:
    """Of a lab that was taken down meanwhile, or where another undid it, nothing is left to be undone."""
    from leadline.lab.inject import engine

    for made in begun:
        if _is_in_force(lab, made):
            _, failures = engine.clear(lab.directory, os.environ, [made.id])
            _raise_all(failures)


def _is_in_force(lab: Lab, made: Injection) -> bool:
    from leadline.lab.inject import engine

    try:
        return any(item.id == made.id for item in engine.in_force(lab.directory))
    except UsageError:
        return False


def _wait(lab: Lab, made: Injection, end_s: float) -> bool:
    """Until the time is over; True as soon as another undid it. Logs of daemons in trouble stay bounded."""
    from leadline.lab.cluster import process

    while (left_s := end_s - time.monotonic()) > 0:
        if not _is_in_force(lab, made):
            return True
        with suppress(OSError):
            process.trim_logs(lab.record.paths.logs)
        time.sleep(min(_POLL_S, left_s))
    return False


def _say_how_to_undo(lab: Lab, made: Injection, as_json: bool) -> None:
    from leadline.lab.inject import engine

    if as_json:
        return
    if any(item.id == made.id for item in engine.in_force(lab.directory)):
        echo(f"undo it with: leadline lab inject --lab {lab.record.name} --clear {made.id}")
    else:
        echo("it is over: there is nothing to undo")


def _parsed(words: tuple[str, ...], time_words: str) -> tuple[str, str, dict[str, str], float | None]:
    """Kind, thing, options and seconds of `KIND [ON] [OPTION=VALUE]... [for TIME]`. Raises UsageError."""
    rest = list(words[1:])
    if _FOR in rest:
        place = rest.index(_FOR)
        if time_words or len(rest) != place + 2:
            raise UsageError("`for` takes one time, at the end", "For example: for 30s")
        time_words, rest = rest[place + 1], rest[:place]
    options: dict[str, str] = {}
    names = [word for word in rest if "=" not in word]
    for word in rest:
        name, equals, value = word.partition("=")
        if equals and name in options:
            raise UsageError(f"{name} was given twice", "Give it once.")
        if equals:
            options[name] = value
    if len(names) > 1:
        raise UsageError(f"a fault is done on one thing, not on {', '.join(names)}", "Inject one for each.")
    seconds = parse_duration(time_words) / 1e9 if time_words else None
    if seconds == 0:
        raise UsageError("a fault that lasts no time shows nothing", "For example: for 30s")
    return words[0], names[0] if names else "", options, seconds


def _clear(lab: Lab, identifiers: tuple[str, ...], as_json: bool) -> None:
    from leadline.lab.inject import engine

    undone, failures = engine.clear(lab.directory, os.environ, identifiers)
    if as_json:
        print_json({"format": "leadline.injections/1", "undone": [asdict(item) for item in undone]})
    else:
        for item in undone:
            echo(f"undone: {item.title}")
        if not (undone or failures):
            echo("no fault was in force")
    _raise_all(failures)


def _raise_all(failures: list[LabError]) -> None:
    if failures:
        raise LabError("\n".join(failure.message for failure in failures), failures[0].remedy)


def _print_list(lab: Lab, as_json: bool) -> None:
    from leadline.lab.inject import engine

    found = engine.in_force(lab.directory)
    if as_json:
        print_json({"format": "leadline.injections/1", "injections": [asdict(item) for item in found]})
        return
    for item in found:
        echo_text(printable(in_words(item)))
    if not found:
        echo("no fault is in force", err=True)


def _record_of(name: str, directory: Path | None) -> LabRecord | None:
    """The lab's own; None where none is named and there is none: kinds are listed without one, too."""
    from leadline.lab import registry

    if not name and directory is None and registry.default_directory(os.environ) is None:
        return None
    return open_lab(name, directory).record


def _print_kinds(record: LabRecord | None, as_json: bool) -> None:
    from leadline.lab.inject.kinds import KINDS

    rows = [_kind_row(kind, record) for kind in KINDS]
    if as_json:
        print_json({"format": "leadline.fault-kinds/1", "kinds": rows})
        return
    for row in rows:
        echo_text(f"{row['name']:<22} {row['words']}")
        things = f": {', '.join(row['things'])}" if row["things"] else ""
        echo_text(f"{'':<22} on {row['on'] or 'the cluster'}{things}")
        for option in row["options"]:
            echo_text(f"{'':<22} {option['name']}={option['default']}  {option['words']}")
        if row["reason"]:
            echo_text(f"{'':<22} cannot be done here: {row['reason']}")


def _kind_row(kind: FaultKind, record: LabRecord | None) -> dict[str, Any]:
    return {
        "name": kind.name,
        "words": kind.help,
        "on": kind.on,
        "things": [] if record is None else kind.things(record),
        "options": [
            {"name": item.name, "default": item.default, "words": item.words} for item in kind.options
        ],
        "reason": "" if record is None else kind.lacking(record),
    }
