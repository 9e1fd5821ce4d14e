"""`leadline profile`: runs a command again and again with its calls delayed, and says which of them it
waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text, make_console
from leadline.cli.files import write_file
from leadline.cli.main import EXIT_GOOD, EXIT_INTERRUPTED
from leadline.cli.options import AskedPath, UntouchedPath, out_option
from leadline.cli.signals import require_room
from leadline.errors import StudyError, UsageError

if TYPE_CHECKING:
    from leadline.analysis.sensitivity import SensitivityFit
    from leadline.causal.judge import Elsewhere, LatencyThere
    from leadline.causal.model import CausalProfile
    from leadline.causal.runs import ProfileAsked


@click.command(
    short_help="Show which calls a command waits for, and predict its run time on other storage",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--class", "classes", metavar="CLASS,...", help="Classes of calls to delay.  [default: all classes]"
)
@click.option(
    "--delay", metavar="TIME,...", default="200us,1ms", show_default=True, help="Delay of each call."
)
@click.option(
    "--blocks", type=click.IntRange(3, 100), default=5, show_default=True, help="Repetitions of the whole."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the order.")
@click.option(
    "--for", "longest", metavar="TIME", default="10m", show_default=True, help="Time limit of the whole."
)
@click.option(
    "--below",
    type=UntouchedPath(),
    multiple=True,
    metavar="DIR",
    help="Delay only calls on files below DIR. Repeat for several.  [default: the working "
    "directory, and absolute paths in COMMAND]",
)
@click.option("--at", metavar="CLASS=TIME,...", help="Predict the run time if calls take this long.")
@click.option(
    "--like",
    type=AskedPath(),
    metavar="PATH",
    help="Predict the run time on the storage of this profile or trace.",
)
@click.option(
    "--from", "stored", type=AskedPath(), metavar="FILE", help="Read this profile instead of running COMMAND."
)
@out_option("Write the profile to this JSON file, except with --from.  [default: the profile is not kept]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.profile/1.")
@click.argument("words", nargs=-1, metavar="[--] [COMMAND...]")
def command(
    classes: str | None,
    delay: str,
    blocks: int,
    seed: int,
    longest: str,
    below: tuple[str, ...],
    at: str | None,
    like: Path | None,
    stored: Path | None,
    out: Path | None,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND repeatedly, delay one class of its calls each time, and show how its run time changes.

    Classes are metadata, small-read (up to 10 KiB), large-read, write and sync; read is both reads. A slope
    of 1 means that COMMAND waits for every such call; 0 means that other work hides the wait. COMMAND must do
    the same each time. It really writes and removes its files. Its standard input is empty, and its output is
    not shown.

    \b
    leadline profile -o p.json --below /data -- ./analyse /data/input
    leadline profile --from p.json --at metadata=3ms,read=1ms
    leadline profile --from p.json --like profile-of-the-other-mount.json
    """
    from leadline.causal.judge import typed_latencies

    if (stored is None) == (not words):
        raise UsageError("it takes a command, or --from with a profile", "see leadline profile --help")
    if at is not None and like is not None:
        raise UsageError("--at and --like both give the times of calls elsewhere", "give one of them")
    there = (typed_latencies(at), "") if at is not None else _recorded(like)
    if stored is not None:
        from leadline.causal.judge import read_profile

        return _conclude(read_profile(stored), there, None, as_json=as_json)
    require_room()
    asked = _asked((classes, delay, longest), blocks, seed, below, words)
    if out is not None and (out.exists() or out.is_symlink()):
        raise UsageError(f"{out} exists already", "name another file with -o")
    return _conclude(_profile(asked, out), there, out, as_json=as_json)


def _recorded(like: Path | None) -> tuple[dict[str, LatencyThere], str]:
    from leadline.causal.judge import recorded_latencies

    return ({}, "") if like is None else recorded_latencies(like)


def _asked(
    texts: tuple[str | None, str, str], blocks: int, seed: int, below: Sequence[str], words: tuple[str, ...]
) -> ProfileAsked:
    from leadline import units
    from leadline.causal.judge import class_names
    from leadline.causal.model import CLASSES
    from leadline.causal.runs import ProfileAsked, delays_of, places_below
    from leadline.observe.hang_guard import in_fork

    classes, delay, longest = texts
    names = CLASSES if classes is None else class_names(classes)
    delays_ns = delays_of(delay)
    longest_s = units.parse_duration(longest) / 1e9
    if longest_s <= 0:
        raise UsageError("--for 0 leaves no time to run anything", "give it minutes, for example --for 10m")
    places = in_fork(lambda doing: places_below(below, words, doing), ", ".join(below) or ".")
    return ProfileAsked(words, places, names, delays_ns, blocks, seed, longest_s)


def _profile(asked: ProfileAsked, out: Path | None) -> CausalProfile:
    from dataclasses import replace

    from leadline._core import version
    from leadline.causal.runs import DelayedProgram, profile
    from leadline.observe.hang_guard import in_fork
    from leadline.tracing.sources.launch import resolve
    from leadline.tracing.sources.preload import cannot_follow, library

    name = asked.program[0]
    executable = in_fork(lambda doing: resolve(name, doing=doing), name)
    unseen = cannot_follow(executable)
    if unseen is not None:
        raise UsageError(
            f"the calls of {executable} cannot be delayed: {unseen}",
            "profile a program that is linked dynamically against glibc and is not setuid",
        )
    library()
    with _logs(out) as logs:
        found = profile(asked, DelayedProgram(asked.program, executable, asked.below, logs), _say)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(found, details={"created": created, "version": version()})


@contextmanager
def _logs(out: Path | None) -> Iterator[Path]:
    """A directory for logs while the command runs: beside the profile, or where temporary files are."""
    import tempfile

    from leadline.store.making import making
    from leadline.tracing.sources.sources import check_space

    parent = Path(tempfile.gettempdir()) if out is None else out.absolute().parent
    try:
        with making(parent / "leadline-profile", 0o700) as (logs, _):
            check_space(logs, 32 << 20)
            yield logs
    except OSError as error:
        raise UsageError(
            f"{parent} cannot be written: {error.strerror}", "name a file elsewhere with -o"
        ) from None


def _say(words: str) -> None:
    echo(f"leadline: {words}", err=True)


def _conclude(
    profile: CausalProfile, there: tuple[dict[str, LatencyThere], str], out: Path | None, *, as_json: bool
) -> int:
    """Judge, keep and print it; what was interrupted is said by the exit code, too."""
    from leadline.causal.judge import judge, predict_elsewhere, to_document, to_text

    fit = judge(profile)
    if out is not None:
        write_file(out, to_text(to_document(profile, fit)).encode(), "-o")
    if fit is None:
        raise StudyError(
            f"there are {len(profile.blocks())} whole blocks: too few for a confidence interval",
            "let it go on for longer (--for), or take fewer classes and delays (--class, --delay)",
        )
    latencies, doubt = there
    elsewhere = predict_elsewhere(profile, fit, latencies, (doubt,) if doubt else ()) if latencies else None
    if as_json:
        echo_text(to_text(to_document(profile, fit, elsewhere)))
    else:
        _print(profile, fit, elsewhere)
    if out is not None:
        _say(f"kept in {out}; predict from it with: leadline profile --from {out} --at CLASS=TIME,...")
    return EXIT_INTERRUPTED if profile.ended == "interrupted" else EXIT_GOOD


def _print(profile: CausalProfile, fit: SensitivityFit, elsewhere: Elsewhere | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from leadline.causal import messages

    for line in messages.headline(profile, fit):
        echo(line)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for heading in messages.HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in messages.rows(profile, fit):
        table.add_row(*(Text(cell) for cell in row))
    make_console().print(table)
    for line in messages.bent(profile, fit):
        echo(line)
    if elsewhere is not None:
        for line in messages.elsewhere_words(fit, elsewhere):
            echo(line)
    echo(f"Calls on files below {', '.join(profile.below)}; CI is the 95 % confidence interval.")
    for line in messages.cautions(profile):
        echo(f"Caution: {line}.")
