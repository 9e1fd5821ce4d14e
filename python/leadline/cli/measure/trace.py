"""`leadline trace`: runs any command under a tracer, whose streams, exit code and signals stay its own."""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain
from leadline.cli.main import unforeseen
from leadline.cli.options import out_option
from leadline.cli.paths import place_for
from leadline.cli.room import require_room
from leadline.cli.wrapping import EXIT_OWN_FAILURE, WrappingCommand
from leadline.errors import CommandError, LeadlineError, TargetError, UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.tracing.sources.launch import Traced
    from leadline.tracing.sources.lives.survivors import SurvivorWait
    from leadline.tracing.sources.sources import Bounds, Choice
    from leadline.tracing.tables import TraceTables

SEGMENTS_DEFAULT = "256M"
SPACE_MIN_BYTES = 32 << 20
COPIES_MAX = 1024


@click.command(
    cls=WrappingCommand,
    short_help="Run a command and record what it reads and writes",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "-n",
    "--copies",
    type=click.IntRange(1, COPIES_MAX),
    default=1,
    show_default=True,
    help="Copies to run at once, as one trial; each finds its number, from 0, in LEADLINE_COPY.",
)
@click.option(
    "--segments",
    metavar="[SIZE]",
    is_flag=False,
    flag_value=SEGMENTS_DEFAULT,
    help=f"Record every call, in at most SIZE bytes a process.  [SIZE: {SEGMENTS_DEFAULT}]",
)
@click.option(
    "--via",
    type=click.Choice(["auto", "preload", "bpf"]),
    default="auto",
    show_default=True,
    help="The tracer: a preloaded library, or programs in the kernel (root).",
)
@click.option(
    "--memory", metavar="SIZE", default="64M", show_default=True, help="Most memory for counters, a process."
)
@click.option(
    "--wait",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Longest wait for processes that the command leaves running; 0s waits for none.",
)
@out_option()
@click.argument("words", nargs=-1, required=True, metavar="[--] COMMAND...")
def command(
    copies: int,
    segments: str | None,
    via: str,
    memory: str,
    wait: str,
    out: Path | None,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND unchanged and record its reads, writes and metadata operations, per file and process.

    Its streams are yours, signals are passed on, and its exit code or death by a signal becomes that of
    leadline (of several copies the first that failed). A failure of leadline itself is 125; a command that
    is not executable gives 126, one that was not found 127. Nothing is printed before the command has ended,
    and then one line on standard error, two where processes of the command are waited for.

    \b
    leadline trace -- tar xf archive.tar
    leadline trace -n 4 --segments -o r -- python analyse.py
    leadline show r
    """
    try:
        path = place_for(out, "trace")
        bounds, patience = _bounds(segments, memory), _patience(wait)
        require_room()
        traced, choice = _trace(words, copies, via, bounds, path, patience)
    except CommandError as error:
        return _fail(error, error.exit_code)
    except LeadlineError as error:
        return _fail(error, EXIT_OWN_FAILURE)
    except Exception as error:
        if os.environ.get("LEADLINE_DEBUG"):
            raise
        return _fail(unforeseen(error), EXIT_OWN_FAILURE)
    _say(f"{_lost_words(traced.tables)}{_how(choice)}; read it with: leadline show {quoted(path)}")
    return _pass_on(traced)


def _bounds(segments: str | None, memory: str) -> Bounds:
    from leadline import units
    from leadline.tracing.sources.sources import Bounds

    return Bounds(None if segments is None else units.parse_size(segments), units.parse_size(memory))


def _patience(wait: str) -> SurvivorWait:
    from leadline import units
    from leadline.tracing.sources.lives.survivors import SurvivorWait

    def told(count: int, seconds: float) -> None:
        who = "a process that it left" if count == 1 else f"{count} processes that it left"
        _say(f"the command has ended; waiting up to {seconds:.0f} s for {who} (Ctrl-C ends the wait)")

    return SurvivorWait(units.parse_duration(wait) / 1e9, told)


def _trace(
    words: Sequence[str], copies: int, via: str, bounds: Bounds, path: Path, patience: SurvivorWait
) -> tuple[Traced, Choice]:
    """Run the command, then store what was recorded; the logs of the run itself are gone afterwards."""
    from leadline.observe.answering import in_fork
    from leadline.tracing.counted.identity import identity
    from leadline.tracing.sources.launch import resolve, run_traced
    from leadline.tracing.sources.sources import BpfSource, PreloadSource, check_space, choose

    executable = in_fork(lambda doing: resolve(words[0], doing=doing), words[0])
    files: list[dict[str, Any]] = []
    with suppress(TargetError):  # a script that hangs is the command's to wait for
        files = in_fork(lambda _: identity(executable, words), words[0])
    choice = choose(via, executable)  # type: ignore[arg-type]  # click has checked it
    with _logs_beside(path) as logs:
        check_space(logs, SPACE_MIN_BYTES)
        preload = choice.mode == "preload"
        with PreloadSource(logs, bounds) if preload else BpfSource(bounds) as source:
            traced = run_traced(words, executable, source, copies, patience=patience)
        _store(path, words, traced, choice, bounds, files)
    return traced, choice


@contextmanager
def _logs_beside(path: Path) -> Iterator[Path]:
    """The directory for the logs while the command runs, beside the result's place."""
    from leadline.store.files import make_parents
    from leadline.store.making import making

    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already", "name another directory with -o")
    place = path.absolute()
    with ExitStack() as stack:
        try:
            make_parents(place)
            logs, _ = stack.enter_context(making(place, 0o700))
        except OSError as error:
            raise UsageError(
                f"{place.parent} cannot be written: {error.strerror}", "name a directory elsewhere with -o"
            ) from None
        yield logs


def _store(
    path: Path,
    words: Sequence[str],
    traced: Traced,
    choice: Choice,
    bounds: Bounds,
    files: Sequence[Mapping[str, Any]],
) -> None:
    from leadline._core import version
    from leadline.observe.host import host
    from leadline.tracing.store import create_trace_result

    details = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version(),
        "command": ["leadline", *sys.argv[1:]],
        "program": list(words),
        "program_files": list(files),
        "host": {**host.facts(), "python": platform.python_version()},
        "options": {
            "copies": len(traced.ends),
            "via": choice.mode,
            "why": choice.reason,
            "segments_bytes": bounds.segments_bytes,
            "memory_bytes": bounds.memory_bytes,
        },
    }
    title = Path(words[0]).name
    create_trace_result(path, {"t0001": traced.tables}, title=title, details=details, now_ns=time.time_ns)


def _how(choice: Choice) -> str:
    return f"traced by {choice.mode}" + (f", since {choice.reason}" if choice.reason else "")


def _lost_words(tables: TraceTables) -> str:
    """What the reader must know before any figure."""
    if not tables.processes:
        return "NOTHING WAS RECORDED: the command was not followed; "
    lost = sum(sum(json.loads(row.lost or "{}").values()) for row in tables.processes)
    return f"{lost} records were LOST; " if lost else ""


def _say(words: object) -> None:
    with suppress(OSError):  # the command's outcome counts, even where nobody can be told of the trace
        complain(words)


def _fail(problem: object, code: int) -> int:
    _say(problem)
    return code


def _pass_on(traced: Traced) -> int:
    """The exit code of the first copy that failed; a death by signal is died again."""
    worst = next((end for end in traced.ends if end.end == "signal" or end.status), traced.ends[0])
    if worst.end == "exit":
        return worst.status
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if worst.status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(worst.status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {worst.status})
    os.kill(os.getpid(), worst.status)
    return 128 + worst.status  # the signal was one that does not kill us
