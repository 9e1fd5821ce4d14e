"""The entry point: finds the verb, runs it, turns errors into exit codes. It reads as the program does.

Nothing else in leadline prints or exits. Verbs are loaded when they are named, so that
`leadline --help` costs no more than Python and click.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterable

import click

from leadline.cli.console import complain, complain_of_usage, echo, echo_text, prepare_streams
from leadline.errors import LeadlineError, UsageError, no_proc, shortage_of

EXIT_GOOD, EXIT_FAILED, EXIT_USAGE, EXIT_INVALID, EXIT_GATE, EXIT_UNDECIDED = 0, 1, 2, 3, 4, 5
EXIT_INTERRUPTED = 130  # by Ctrl-C, as shells have it
# New objects until garbage is looked for: what a command makes mostly lives to its end, and each look costs.
_GARBAGE_AFTER = 50_000

# Heading, the folder that the verbs are in, and each verb with a line of help.
_SECTIONS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Measure",
        "measure",
        (
            ("studies", "List the built-in studies, or show one"),
            ("plan", "Print every trial of a study before anything runs"),
            ("run", "Run a study on one or more targets, or resume one"),
            ("trace", "Run a command and record what it reads and writes"),
            ("replay", "Repeat a trace's calls on any target"),
            ("profile", "Show which calls a command waits for, and predict its run time on other storage"),
        ),
    ),
    (
        "Read results",
        "read",
        (
            ("show", "Show a result in the terminal, or as JSON"),
            ("report", "Write a report: HTML, Markdown, CSV, JSON or fio's JSON"),
            ("compare", "Compare two results, cell by cell"),
            ("hosts", "Compare results of several hosts: is it the host or the file system?"),
            ("gate", "Fail if a result is worse than a baseline by more than is allowed"),
            ("list", "List the results below a directory"),
            ("trend", "Show how a metric changed over many results"),
            (
                "import",
                "Import results of fio, elbencho and IO500, logs of other tracers, published tables",
            ),
            ("reproduce", "Compare a document's published values with measured and modelled ones"),
        ),
    ),
    (
        "Explain",
        "explain",
        (
            ("check", "Check host, network and cluster for faults and wrong settings"),
            ("diagnose", "Show the bottleneck of each cell of a result, or of a traced program"),
            ("model", "Compute theoretical limits of storage, by published models"),
        ),
    ),
    (
        "Predict",
        "predict",
        (
            ("size", "Size a cluster: hosts and devices for required capacity and rates"),
            ("simulate", "Predict the rates of a cluster that exists only as a topology file"),
        ),
    ),
    (
        "Change",
        "change",
        (
            ("tune", "Show, change, revert and prove settings of host, network and Ceph"),
            ("deploy", "Write a cluster as a cephadm specification, and its pools as commands"),
        ),
    ),
    (
        "This machine",
        "machine",
        (
            ("doctor", "Check what works on this machine, and what to install"),
            ("watch", "Watch a mount in production: who uses it, and what is slow"),
            ("mount", "Plan the move from ceph-fuse to the kernel client, or check a mount"),
            ("targets", "List the storage that this host can reach, as --target options"),
            ("engines", "List the I/O engines and their options"),
            ("lab", "Start and stop a disposable real Ceph"),
            ("undo", "Remove files that an interrupted run left on its targets"),
            ("completion", "Print the shell completion script"),
        ),
    ),
)


class WholeWords(click.HelpFormatter):
    """Help whose lines break at spaces alone: the name of a file keeps its hyphens together."""

    _HYPHEN = "\u2011"  # at which no line breaks

    def write(self, string: str) -> None:
        """As click's, with plain hyphens again."""
        super().write(string.replace(self._HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        """As click's, without a break at a hyphen."""
        super().write_text(text.replace("-", self._HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """As click's, without a break at a hyphen."""
        whole = [(first, second.replace("-", self._HYPHEN)) for first, second in rows]
        super().write_dl(whole, col_max, col_spacing)


click.Context.formatter_class = WholeWords


class Verbs(click.Group):
    """Commands by name, each in a module `leadline.cli.<folder>.<name>` that exports `command`."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return [name for _, _, verbs in _SECTIONS for name, _ in verbs]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        for _, folder, verbs in _SECTIONS:
            if name in dict(verbs):
                module = importlib.import_module(f"leadline.cli.{folder}.{name}")
                command: click.Command = module.command
                return command
        return None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if lacking := no_proc():
            raise UsageError(*lacking)
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(context), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?", context) from None

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, _, verbs in _SECTIONS:
            with formatter.section(title):
                formatter.write_dl(list(verbs))


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from leadline._core import version

    echo(f"leadline {version()}")
    context.exit()


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: leadline doctor; leadline run quick --target here=DIR",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def leadline() -> None:
    """Measure how fast a shared file system is for your workload, and find the bottleneck.

    Exit codes: 0 good, 1 the study failed, 2 usage, 3 some cell is INVALID or could not be run,
    4 a gate did not hold, 5 a gate is inconclusive.
    """


def _trace(error: Exception) -> None:
    if os.environ.get("LEADLINE_DEBUG"):
        echo_text("".join(traceback.format_exception(error)), err=True)


def unforeseen(error: Exception) -> LeadlineError:
    """What to say of an exception that no verb expects: a limit, a name that is no text, else a defect."""
    if lacking := shortage_of(error):
        return LeadlineError(*lacking)
    if isinstance(error, UnicodeEncodeError):
        return LeadlineError(
            f"{error.object} cannot be written in {error.encoding}",
            "Use names in UTF-8, in a locale of UTF-8: LC_ALL=C.UTF-8",
        )
    return LeadlineError(
        f"internal error: {type(error).__name__}: {error}",
        "this is a defect of leadline: please report it with the output under LEADLINE_DEBUG=1",
    )


def _interrupted_by(error: BaseException) -> int:
    """128 plus the signal's number where it is known; click puts its own in the place of what was raised."""
    raised = error.__cause__ or error
    told = isinstance(raised, KeyboardInterrupt) and raised.args
    return 128 + raised.args[0] if told else EXIT_INTERRUPTED


def run_command_line(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = leadline.main(arguments, prog_name="leadline", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        complain_of_usage(error)
        return max(EXIT_USAGE, error.exit_code)  # `trace` has codes of its own
    except (click.Abort, KeyboardInterrupt) as error:
        complain("interrupted")
        return _interrupted_by(error)
    except LeadlineError as error:
        if error.__cause__ is not None:
            _trace(error)
        complain(error)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    except Exception as error:
        _trace(error)
        complain(unforeseen(error))
        return EXIT_FAILED
    return code if isinstance(code, int) else EXIT_GOOD


def main() -> None:
    """The `leadline` command."""
    prepare_streams()
    gc.set_threshold(_GARBAGE_AFTER)
    sys.exit(run_command_line(sys.argv[1:]))
