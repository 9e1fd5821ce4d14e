"""`leadline watch PATH`: what goes on on a mount in production, without writing to it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable

import click

from leadline import units
from leadline.cli.console import echo, echo_status, echo_text
from leadline.cli.options import UntouchedPath
from leadline.errors import SpecError, UsageError

_SECONDS_MAX = 86_400


@click.command(short_help="Watch a mount in production: who uses it, and what is slow")
@click.argument("path", type=UntouchedPath())
@click.option("--for", "duration", metavar="TIME", default="5m", show_default=True, help="How long to watch.")
@click.option("--no-bpf", is_flag=True, help="Disable the eBPF tracer, which sees every call.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, duration: str, no_bpf: bool, as_json: bool) -> None:
    """Watch others use the files below PATH, and name the likely cause of slowness.

    Files, rates and processes are those below PATH; the rest of its file system is shown apart. Nothing is
    written there and no load is added. As root, every call is seen; otherwise /proc and the client's counters
    are read. Ctrl-C ends the watch and prints what was seen.
    """
    from leadline.cli.answer import answered, give
    from leadline.cli.signals import StopRequest
    from leadline.observe.mounts.mounts import look
    from leadline.verdict.sections.section import StudyAnswer
    from leadline.watch.causes import judge
    from leadline.watch.figures import watch_facts
    from leadline.watch.sampler import watch
    from leadline.watch.view import watch_json, watch_sections

    duration_s = seconds_of(duration)
    facts, mount, resolved = look(path)
    progress = say_progress(duration_s)
    with StopRequest() as stop:
        seen = watch(resolved, facts, mount, duration_s, stop=stop, progress=progress, use_bpf=not no_bpf)
    found = watch_facts(seen)
    judged = judge(found)
    if as_json:
        echo_text(json.dumps(watch_json(seen, found, judged), indent=1))
    else:
        watched = f"watched for {units.format_duration(seen.elapsed_s)}; nothing was written there"
        answer = StudyAnswer(f"{seen.path}: {seen.words}", watched)
        give(answered("watch", seen.path, answer, watch_sections(seen, found, judged), ()))
        echo()
        echo(f"What bounds it, with its evidence: leadline diagnose --live {shlex.quote(path)}")


def seconds_of(text: str) -> float:
    """What `--for` says. Raises UsageError outside of a second to a day."""
    try:
        duration_s = units.parse_duration(text) / units.NS_PER_S
    except SpecError as error:
        raise UsageError(f"--for {error.message}", error.remedy) from None
    if not 1 <= duration_s <= _SECONDS_MAX:
        raise UsageError(f"--for {text}: from 1 second to a day", "Five minutes show most of what goes on.")
    return duration_s


def say_progress(duration_s: float) -> Callable[[float, int], None]:
    """What tells how long it has gone on, on a terminal."""

    def say(elapsed_s: float, users: int) -> None:
        if sys.stderr.isatty():
            words = (
                f"watching: {elapsed_s:.0f} of {duration_s:.0f} s, {users} processes seen (Ctrl-C ends it)"
            )
            echo_status(words, last=elapsed_s + 1 >= duration_s)

    return say
