"""`leadline watch PATH`: what goes on on a mount in production, without writing to it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable

import click

from leadline import units
from leadline.cli.console import echo, echo_status, echo_text
from leadline.cli.options import UntouchedPath
from leadline.errors import LeadlineError, SpecError, UsageError

_SECONDS_MAX = 86_400
_LOOPBACK = "127.0.0.1:9836"
_POLL_S = 0.2


@click.command(short_help="Watch a mount in production: who uses it, and what is slow")
@click.argument("path", type=UntouchedPath())
@click.option("--for", "duration", metavar="TIME", help="How long to watch.  [default: 5m]")
@click.option("--no-bpf", is_flag=True, help="Disable the eBPF tracer, which sees every call.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--exporter",
    is_flag=False,
    flag_value=_LOOPBACK,
    metavar="[ADDRESS:PORT]",
    help="Serve metrics for Prometheus until Ctrl-C, from a look of 10 seconds (or --for) each --every."
    f"  [without a value: {_LOOPBACK}]",
)
@click.option(
    "--every", metavar="TIME", default="1m", show_default=True, help="With --exporter: time between looks."
)
def command(
    path: str, duration: str | None, no_bpf: bool, as_json: bool, exporter: str | None, every: str
) -> None:
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

    if exporter is not None:
        if as_json:
            raise UsageError("--exporter and --json are two outputs", "Leave one of them out.")
        export(path, exporter, seconds_of(duration or "10s"), seconds_of(every, "--every"), not no_bpf)
        return
    duration_s = seconds_of(duration or "5m")
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
        echo(f"The bottleneck, with its evidence: leadline diagnose --live {shlex.quote(path)}")


def export(path: str, address: str, look_s: float, every_s: float, use_bpf: bool) -> None:
    """Serve metrics until a stop request. Raises UsageError where nobody can listen there."""
    from prometheus_client import CollectorRegistry, start_http_server

    from leadline.cli.signals import StopRequest
    from leadline.observe.mounts.mounts import look
    from leadline.watch.causes import judge
    from leadline.watch.exporter import WatchCollector
    from leadline.watch.figures import watch_facts
    from leadline.watch.sampler import watch

    if look_s >= every_s:
        raise UsageError(
            f"a look of {look_s:g} s does not fit into {every_s:g} s",
            "Give a longer --every or a shorter --for.",
        )
    look(path)  # a path that is wrong is said at once
    collector, registry = WatchCollector(path), CollectorRegistry()
    registry.register(collector)
    host, port = place_of(address)
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise UsageError(
            f"no metrics can be served at {address}: {error.strerror or error}", "Give another ADDRESS:PORT."
        ) from None
    shown = f"[{host}]" if ":" in host else host
    echo(f"metrics of {path}: http://{shown}:{port}/metrics (Ctrl-C ends it)", err=True)
    with StopRequest() as stop:
        while not stop():
            begun = time.monotonic()
            try:
                facts, mount, resolved = look(path)
                seen = watch(
                    resolved, facts, mount, look_s, stop=stop, progress=lambda *_: None, use_bpf=use_bpf
                )
                found = watch_facts(seen)
                collector.update(seen, found, judge(found))
            except LeadlineError as error:  # a mount that hangs may come back
                collector.fail(str(error))
            while not stop() and time.monotonic() < begun + every_s:
                time.sleep(_POLL_S)
    server.shutdown()


def place_of(address: str) -> tuple[str, int]:
    """Of `ADDRESS:PORT`, or of a port alone, which is the loopback's. Raises UsageError."""
    host, _, port = address.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"--exporter {address}: no port", "Write it as 127.0.0.1:9836, or [::1]:9836.")
    return host.strip("[]") or "127.0.0.1", int(port)


def seconds_of(text: str, option: str = "--for") -> float:
    """What `--for` or `--every` says. Raises UsageError outside of a second to a day."""
    try:
        duration_s = units.parse_duration(text) / units.NS_PER_S
    except SpecError as error:
        raise UsageError(f"{option} {error.message}", error.remedy) from None
    if not 1 <= duration_s <= _SECONDS_MAX:
        raise UsageError(
            f"{option} {text}: from 1 second to a day", "Five minutes show most of what goes on."
        )
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
