"""`leadline tune emit`: chosen settings as files of those who keep hosts, with the evidence in comments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.change.deploy import write_or_print
from leadline.cli.change.tune_reach import settings_option
from leadline.cli.console import echo
from leadline.cli.main import EXIT_GOOD, EXIT_INVALID
from leadline.cli.options import AskedPath, out_option
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.mounting.plan import NewMount
    from leadline.tuning.emitting.delivery import AskedValue, Evidence, NotEmitted, Rendered
    from leadline.tuning.settings import Setting

_FORMATS = (
    "sysctl", "udev", "tuned", "modprobe", "grub", "systemd", "fstab", "ceph", "cephadm", "salt",
    "ansible", "puppet",
)  # fmt: skip
_PLAN_BYTES_MAX = 1 << 20


@click.command("emit")
@click.argument("what", nargs=-1, required=True, metavar="NAME[@SUBJECT]=VALUE… | PLAN")
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="Format of the output.")
@click.option(
    "--only",
    type=click.Choice(["proved"]),
    help="Only settings that a proof shows to help by their mechanism.",
)
@click.option("--from", "result", type=AskedPath(file_okay=False), help="Directory of the proof.")
@settings_option
@out_option("File to write, or directory if there are several.  [default: standard output]")
@click.option("--force", is_flag=True, help="Overwrite files.")
def command(
    what: tuple[str, ...],
    form: str,
    only: str | None,
    result: Path | None,
    own: Path | None,
    out: Path | None,
    force: bool,
) -> int:
    """Write settings in the format of a configuration tool.

    SUBJECT is a device, interface, pool, file system, mount point or directory. If the format cannot hold a
    setting, the output names formats that can, and the exit code is 3. Nothing is changed.
    """
    from leadline.tuning.emitting import asking
    from leadline.tuning.emitting.delivery import Emission
    from leadline.tuning.emitting.tools import TUNING_FORMATS
    from leadline.tuning.settings import settings_with

    evidence = () if result is None else _evidence(result)
    asked = _asked(what, evidence, settings_with(own))
    asking.check_together(asked)
    unproved: tuple[NotEmitted, ...] = ()
    if only == "proved":
        asked, unproved = asking.only_proved(asked)
    rendered = TUNING_FORMATS[form](Emission(asked, _mounts(asked)))
    _write(rendered, out, force)
    left = (*unproved, *rendered.left_out)
    for one in left:
        other = f"; as {', '.join(one.formats)} it can be written" if one.formats else ""
        echo(f"left out: {one.asked}: {one.why}{other}", err=True)
    return EXIT_INVALID if left else EXIT_GOOD


def _asked(
    what: tuple[str, ...], evidence: tuple[Evidence, ...], known: Mapping[str, Setting]
) -> tuple[AskedValue, ...]:
    from leadline.foreign import read_plain, reason_of
    from leadline.tuning.emitting import asking

    found: list[AskedValue] = []
    for word in what:
        if asking.is_pair(word):
            found.append(asking.parse_pair(word, known, evidence))
            continue
        AskedPath().convert(word, None, None)
        try:
            text = read_plain(Path(word), _PLAN_BYTES_MAX).decode()
        except (OSError, ValueError) as error:
            why = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8 text"
            raise UsageError(
                f"{word} is no NAME=VALUE, and no plan: {why}", "Give NAME=VALUE, or a plan's file."
            ) from None
        found += asking.parse_plan(text, word, known, evidence)
    return tuple(found)


def _evidence(result: Path) -> tuple[Evidence, ...]:
    """What the proof says, judged now as `show` judges it; nothing of a result that proves nothing."""
    from leadline.store.reader import open_result
    from leadline.tuning.emitting.delivery import evidence_of
    from leadline.verdict.findings import proof_of
    from leadline.verdict.proofs.messages import VERDICTS, verdict_sentence

    found = proof_of(open_result(result))
    if found is None:
        return ()
    said: list[Evidence] = []
    for one in found.each or (found,):
        proved = [(str(row["setting"]), str(row["value"])) for row in one.settings]
        said += evidence_of(proved, one.outcome, verdict_sentence(one), str(result), VERDICTS[one.outcome])
    return tuple(said)


def _mounts(asked: tuple[AskedValue, ...]) -> Mapping[str, NewMount]:
    """The kernel's CephFS mounts of this host, where an option of one is wanted."""
    if not any(one.setting.access.kind == "mount" for one in asked):
        return {}
    from leadline.observe.mounts.mountinfo import read_mounts
    from leadline.tuning.emitting.mounts import present_mount

    return {one.mount_point: present_mount(one) for one in read_mounts() if one.file_system == "ceph"}


def _write(rendered: Rendered, out: Path | None, force: bool) -> None:
    """One file as it stands; several below a directory by their names, all checked before the first."""
    if out is None or len(rendered.files) == 1:
        for file in rendered.files:
            write_or_print(file.text, out, force)
        return
    if not rendered.files:
        return
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{out} cannot be made: {error.strerror}; {len(rendered.files)} files need a directory",
            "Name one with -o.",
        ) from None
    places = [out / file.name for file in rendered.files]
    there = [str(place) for place in places if os.path.lexists(place)]
    if there and not force:
        raise UsageError(
            f"{', '.join(there)}: there already", "Name another directory with -o, or give --force."
        )
    for place, file in zip(places, rendered.files, strict=True):
        write_or_print(file.text, place, force)
