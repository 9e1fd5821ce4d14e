"""`leadline lab guest`: runs a command in a virtual machine whose kernel has the clients to measure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import complain, echo
from leadline.cli.options import EXIT_OWN_FAILURE, WORDS, AskedPath, SeparatedCommand, quiet_option
from leadline.errors import LeadlineError, UsageError
from leadline.interpreter import executable

if TYPE_CHECKING:
    from leadline.lab import Lab
    from leadline.lab.guest.guest import GuestOutcome, GuestRequest

EXIT_LACKING = 3
_ALL = "ceph,nfs,smb"
_MIB = 1 << 20


@click.command("guest", cls=SeparatedCommand, options_metavar="[NAME] [OPTIONS] -- COMMAND...")
@click.argument("name", required=False, default="", metavar="")
@click.option(
    "--kernel-mounts",
    metavar="LIST",
    help=f"Mounts below /mnt/leadline: {_ALL}.  [default: what the lab offers]",
)
@click.option(
    "--results",
    type=AskedPath(file_okay=False),
    help="The directory of this host that the guest can write.  [default: the working directory]",
)
@click.option("--memory", metavar="SIZE", default="2G", show_default=True, help="Memory of the guest.")
@click.option("--cpus", type=click.IntRange(min=1, max=64), default=2, show_default=True)
@click.option(
    "--accel",
    type=click.Choice(["auto", "kvm", "tcg"]),
    default="auto",
    show_default=True,
    help="KVM, or emulation (tcg), whose times are not usable.",
)
@click.option("--timeout", metavar="TIME", default="1h", show_default=True, help="Time limit of the command.")
@click.option(
    "--boot-timeout", metavar="TIME", default="3m", show_default=True, help="Time limit of the boot."
)
@quiet_option
@click.pass_context
def command(
    context: click.Context,
    name: str,
    kernel_mounts: str | None,
    results: Path | None,
    memory: str,
    cpus: int,
    accel: str,
    timeout: str,
    boot_timeout: str,
    quiet: bool,
) -> int:
    """Run COMMAND in a virtual machine with the kernel's clients for CephFS, NFS and SMB.

    The machine sees this host's files as they are, but writes to memory, except below --results, where the
    command starts (or in the current directory, where that lies below it). The lab must have been started
    with --bridge. In the guest: /mnt/leadline/ceph, /mnt/leadline/nfs, /mnt/leadline/smb.

    COMMAND's exit code becomes that of leadline; 124 after --timeout, 126 or 127 where it cannot be started,
    3 where it succeeded but a mount that was asked for is not there, 125 for a failure of leadline itself.

    \b
    leadline lab guest -- leadline run quick --target kernel=/mnt/leadline/ceph
    """
    try:
        found, request = _asked(context.meta[WORDS], name, kernel_mounts, results)
        request = _sized(request, memory, cpus, accel, timeout, boot_timeout)
        outcome = _run(found, request, (lambda _: None) if quiet else _say)
    except LeadlineError as error:
        complain(error)
        return EXIT_OWN_FAILURE
    return _conclude(outcome, asked=kernel_mounts is not None)


def _asked(
    words: tuple[str, ...], name: str, kernel_mounts: str | None, results: Path | None
) -> tuple[Lab, GuestRequest]:
    from leadline import lab
    from leadline.lab.guest import mounts as guest_mounts
    from leadline.lab.guest.guest import GuestRequest

    if not words:
        raise UsageError("no command was given", "Write: leadline lab guest -- COMMAND WORDS")
    names = guest_mounts.parse_clients(_ALL if kernel_mounts is None else kernel_mounts)
    found = lab.open(name)
    share = (results or Path.cwd()).resolve()
    here = Path.cwd().resolve()
    inside = here == share or share in here.parents
    request = GuestRequest(
        command=words,
        mounts=tuple(guest_mounts.mounts_of(found, names)),
        share=share,
        directory=here if inside else share,
        variables=_variables(found),
    )
    return found, request


def _sized(
    request: GuestRequest, memory: str, cpus: int, accel: str, timeout: str, boot_timeout: str
) -> GuestRequest:
    from dataclasses import replace

    from leadline import units

    memory_mib = units.parse_size(memory) // _MIB
    if memory_mib < 512:
        raise UsageError(f"--memory {memory} is too little for a guest", "Use 512M or more, for example 2G.")
    return replace(
        request,
        memory_mib=memory_mib,
        cpus=cpus,
        accelerator=accel,
        command_deadline_s=units.parse_duration(timeout) / 1e9,
        boot_deadline_s=units.parse_duration(boot_timeout) / 1e9,
    )


def _variables(found: Lab) -> dict[str, str]:
    """The command's environment: the user's, this lab's cluster, and leadline on the PATH.

    What Python compiles goes to the guest's memory: an emulated processor must not do it for each process.
    """
    paths, own = found.record.paths, os.environ.get("PATH", os.defpath)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {
        "CEPH_CONF": str(paths.conf),
        "CEPH_KEYRING": str(paths.keyring),
        "PATH": f"{own}:{Path(executable()).parent}",
    }


def _run(found: Lab, request: GuestRequest, say: Callable[[str], None]) -> GuestOutcome:
    from leadline.cli.signals import StopRequest
    from leadline.lab.guest import guest

    streams = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}

    def output(name: str, data: bytes) -> None:
        streams[name].write(data)
        streams[name].flush()

    with StopRequest() as stop:
        return guest.run(found, request, guest.GuestListener(say, output, lambda: stop.exit_code - 128))


def _say(words: str) -> None:
    echo(f"lab: {words}", err=True)


def _conclude(outcome: GuestOutcome, *, asked: bool) -> int:
    for name, reason in outcome.unavailable.items():
        _say(f"{name} was not mounted in the guest: {reason}")
    for words in outcome.not_written_back:
        _say(f"not unmounted, and perhaps not all written: {words}")
    if outcome.why:
        complain(outcome.why)
    emulated = ", emulated: its times are no evidence" if outcome.accelerator == "tcg" else ""
    _say(
        f"guest: {outcome.total_s:.0f} s in all, {outcome.ready_s:.0f} s until ready, "
        f"{outcome.command_s:.0f} s for the command{emulated}"
    )
    return EXIT_LACKING if asked and outcome.unavailable and not outcome.exit_code else outcome.exit_code
