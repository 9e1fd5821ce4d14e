"""`leadline trace`: runs any command under a tracer, whose streams, exit code and signals stay its own."""

from __future__ import annotations

import json
import os
import platform
import resource
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain
from leadline.cli.main import EXIT_GOOD, unforeseen
from leadline.cli.options import EXIT_OWN_FAILURE, AskedPath, WrappingCommand, out_option, place_for
from leadline.cli.signals import require_room
from leadline.errors import CommandError, LeadlineError, TargetError, UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.store.making import Leftover
    from leadline.tracing.sources.launch import Traced
    from leadline.tracing.sources.lives import SurvivorWait
    from leadline.tracing.sources.sources import Bounds, Choice
    from leadline.tracing.tables import TraceTables

SEGMENTS_DEFAULT = "256M"
SPACE_MIN_BYTES = 32 << 20
COPIES_MAX = 1024
DETAILS = frozenset({"created", "version", "command", "program", "program_files", "host", "options"})


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
    help="Run N copies at once, as one trial. Each finds its number, from 0, in LEADLINE_COPY.",
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
    help="The tracer: a preloaded library, or eBPF programs in the kernel (root).",
)
@click.option(
    "--memory",
    metavar="SIZE",
    default="64M",
    show_default=True,
    help="Memory limit for counters in each process.",
)
@click.option(
    "--wait",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Longest wait for processes that COMMAND leaves running; 0s does not wait.",
)
@click.option(
    "--recover",
    type=AskedPath(),
    metavar="PATH",
    help="Store what a killed `leadline trace -o PATH` recorded, as the result PATH.",
)
@out_option()
@click.argument("words", nargs=-1, metavar="[--] COMMAND...")
def command(
    copies: int,
    segments: str | None,
    via: str,
    memory: str,
    wait: str,
    recover: Path | None,
    out: Path | None,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND unchanged and record its reads, writes and metadata operations, per file and process.

    COMMAND keeps your terminal and receives your signals. leadline exits as COMMAND does (of several copies,
    as the first that failed). Exit code 125 is a failure of leadline itself; 126 means that COMMAND is not
    executable, 127 that it was not found. leadline prints one line on standard error after the end, and one
    more while it waits for processes of COMMAND.

    \b
    leadline trace -- tar xf archive.tar
    leadline trace -n 4 --segments -o r -- python analyse.py
    leadline show r
    """
    try:
        bounds, patience = _bounds(segments, memory), _patience(wait)
        if recover is not None:
            return _recover(recover, words, out, patience)
        if not words:
            raise UsageError("no command is given", "write it last: leadline trace -- COMMAND...")
        path = place_for(out, "trace")
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
    from leadline.tracing.sources.lives import SurvivorWait

    def told(count: int, seconds: float) -> None:
        who = "a process that it left" if count == 1 else f"{count} processes that it left"
        _say(f"the command has ended; waiting up to {seconds:.0f} s for {who} (Ctrl-C ends the wait)")

    return SurvivorWait(units.parse_duration(wait) / 1e9, told)


def _trace(
    words: Sequence[str], copies: int, via: str, bounds: Bounds, path: Path, patience: SurvivorWait
) -> tuple[Traced, Choice]:
    """Run the command, then store what was recorded; the logs of the run itself are gone afterwards."""
    from leadline.observe.hang_guard import in_fork
    from leadline.store.making import write_recovery
    from leadline.tracing.sources.launch import resolve, run_traced
    from leadline.tracing.sources.sources import BpfSource, PreloadSource, check_space, choose
    from leadline.tracing.store import identity

    executable = in_fork(lambda doing: resolve(words[0], doing=doing), words[0])
    files: list[dict[str, Any]] = []
    with suppress(TargetError):  # a script that hangs is the command's to wait for
        files = in_fork(lambda _: identity(executable, words), words[0])
    choice = choose(via, executable)  # type: ignore[arg-type]  # click has checked it
    with _logs_beside(path) as logs:
        check_space(logs, SPACE_MIN_BYTES)
        details = _details(words, copies, choice, bounds, files)
        patience = replace(patience, mark=secrets.token_hex(8))
        preload = choice.mode == "preload"
        with PreloadSource(logs, bounds) if preload else BpfSource(bounds) as source:
            if preload:
                write_recovery(logs, path, {**details, "mark": patience.mark})
            traced = run_traced(words, executable, source, copies, patience=patience)
        try:
            _store(path, traced.tables, details)
        except LeadlineError as error:
            raise (_keep(error, logs, path) if preload else error) from None
    return traced, choice


def _keep(error: LeadlineError, logs: Path, path: Path) -> LeadlineError:
    """Keep the records of what cannot be stored, as on a full disk: under a new name nobody removes them."""
    from leadline.durable import unfinished

    try:
        logs.rename(unfinished(path.absolute()))
    except OSError:
        return error
    return LeadlineError(
        f"{error.message}; its records are kept",
        f"mend that, as by freeing space; then: leadline trace --recover {quoted(path)}",
    )


def _recover(place: Path, words: Sequence[str], out: Path | None, patience: SurvivorWait) -> int:
    """Store what a killed trace recorded, where it was to be stored; its logs are gone afterwards."""
    from leadline.store.making import recoverable, remove_leftovers
    from leadline.tracing.sources.launch import recovered_tables
    from leadline.tracing.sources.lives import wait_for_survivors

    if words or out is not None:
        raise UsageError("--recover takes no command and no -o", "name the -o of the killed trace only")
    left = recoverable(place)
    if left is None or left.recovery is None:
        raise UsageError(
            f"no trace that was killed is left for {place}", "find them with: leadline list DIRECTORY"
        )
    if not left.certain and place.absolute() != left.path:
        raise UsageError(
            left.doubt,
            f"if none does: leadline trace --recover {quoted(left.path)}",
        )
    path = left.place
    if path.exists() or path.is_symlink():
        raise UsageError(
            f"{path} exists already, and the trace was to be stored there",
            f"move it away first; if it has this trace already: leadline undo {quoted(left.path)}",
        )
    mark, details = str(left.recovery.get("mark")), _recovered_details(left)
    if running := wait_for_survivors(mark, patience, [], ()):
        raise UsageError(
            f"the traced command still runs: process {', '.join(map(str, running[:5]))}",
            "recover the trace when it has ended; --wait TIME waits longer for that",
        )
    tables = recovered_tables(left.path, details["options"]["copies"])
    _store(path, tables, details)
    remove_leftovers(path.parent, left.path)
    _say(f"{_lost_words(tables)}recovered; read it with: leadline show {quoted(path)}")
    return EXIT_GOOD


def _recovered_details(left: Leftover) -> dict[str, Any]:
    """What the manifest says of a trace, as the killed command had written it down."""
    from leadline.store.making import RECOVERY

    known = {name: value for name, value in (left.recovery or {}).items() if name in DETAILS}
    options = known.get("options")
    copies = options.get("copies") if isinstance(options, dict) else None
    if DETAILS - known.keys() or not isinstance(copies, int) or not 1 <= copies <= COPIES_MAX:
        raise UsageError(
            f"{left.path / RECOVERY} is damaged", f"remove it: leadline undo {quoted(left.path)}"
        )
    return {**known, "recovered": True}


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


def _details(
    words: Sequence[str], copies: int, choice: Choice, bounds: Bounds, files: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What the manifest says beside the tables, known before the command begins."""
    from leadline._core import version
    from leadline.observe.host import host

    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version(),
        "command": ["leadline", *sys.argv[1:]],
        "program": list(words),
        "program_files": list(files),
        "host": {**host.facts(), "python": platform.python_version()},
        "options": {
            "copies": copies,
            "via": choice.mode,
            "why": choice.reason,
            "segments_bytes": bounds.segments_bytes,
            "memory_bytes": bounds.memory_bytes,
        },
    }


def _store(path: Path, tables: TraceTables, details: Mapping[str, Any]) -> None:
    from leadline.tracing.store import create_trace_result

    title = Path(details["program"][0]).name
    create_trace_result(path, {"t0001": tables}, title=title, details=details, now_ns=time.time_ns)


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
