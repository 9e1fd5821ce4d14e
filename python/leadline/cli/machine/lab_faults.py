"""Which labs a study touches, and whether a fault is in force there: the flow itself knows of no lab."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.errors import TargetError, UsageError

if TYPE_CHECKING:
    from leadline.faults import Fault
    from leadline.study.target import Target, TargetFacts

_OPTION = "--under-fault"
_SHORT_S = 2.0  # a look before the targets are asked, who then need their own time
_SHOWN = 8
_Command = TypeVar("_Command", bound=Callable[..., Any])


def under_fault_option(command: _Command) -> _Command:
    """Adds --under-fault."""
    return click.option(
        _OPTION,
        is_flag=True,
        help="Measure although a fault of `leadline lab inject` is active. The report names it.",
    )(command)


def refuse_faulted(targets: Collection[Target]) -> None:
    """Raises UsageError where targets are on a lab with a fault in force, as far as their names tell.

    The targets themselves are not asked, so that one that hangs by a fault is refused for the fault.
    """
    from leadline.observe.mounts.mountinfo import mount_of, read_mounts

    places, mounts = [_of_environment(), *_configurations(targets)], read_mounts()
    for target in targets:
        mount = mount_of(os.path.abspath(target.url), mounts) if target.is_path else None  # noqa: PTH100
        places.append(mount.mount_point if mount else "")
    with suppress(TargetError):  # who asks the targets themselves says so
        _refuse(_labs_above(places, _SHORT_S))


def labs_of(
    targets: Collection[Target], facts: Mapping[str, TargetFacts], *, under_fault: bool
) -> tuple[str, ...]:
    """The directories of all labs that targets are on which have answered.

    Without `under_fault` raises UsageError where a fault is in force on one.
    """
    known = [access.conf or "" for one in facts.values() if (access := one.ceph) is not None]
    inside = [target.url for target in targets if target.is_path]
    labs = _labs_above([_of_environment(), *_configurations(targets), *known, *inside], resolved=True)
    if not under_fault:
        _refuse(labs)
    return labs


def labs_of_result(manifest: Mapping[str, Any], *, under_fault: bool) -> tuple[str, ...]:
    """The labs of a study that is gone on with. Raises as `labs_of`."""
    noted = manifest.get("options", {}).get("labs")
    known = [lab for lab in noted if isinstance(lab, str)] if isinstance(noted, list) else []
    labs = tuple(dict.fromkeys((*known, *_labs_above([_of_environment()]))))
    if not under_fault:
        _refuse(labs)
    return labs


def labs_at(places: Iterable[str]) -> tuple[str, ...]:
    """The directories of the labs that places such as a configuration lie in."""
    return _labs_above(places, resolved=True)


def _of_environment() -> str:
    """A place in the lab that this command was started in, if any."""
    from leadline.faults import DIRECTORY

    directory = os.environ.get(DIRECTORY, "")
    return os.path.join(directory, "inside") if directory.startswith("/") else ""  # noqa: PTH118


def _configurations(targets: Iterable[Target]) -> Iterator[str]:
    """Ceph's configuration of each URL that has one, by its own word or by the environment's."""
    from leadline import _core

    for target in targets:
        if target.location is not None:
            options = _core.parse_location(target.location)["options"]
            if "conf" in options:
                yield options["conf"] or os.environ.get("CEPH_CONF", "")


def _labs_above(
    places: Iterable[str], deadline_s: float | None = None, *, resolved: bool = False
) -> tuple[str, ...]:
    """The labs that places lie in; looked for from the root on, so that no mount inside a lab is touched.

    `resolved`: where links lead, too.
    """
    from leadline.observe.hang_guard import ANSWER_S, in_fork

    asked = [place for place in dict.fromkeys(places) if place.startswith("/")]
    if not asked:
        return ()
    return in_fork(partial(_look, asked, resolved), asked[0], deadline_s or ANSWER_S)


def _look(places: Sequence[str], resolved: bool, doing: Callable[[str], None]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for place in places:
        doing(place)
        lab = _lab_above(Path(place)) or (_lab_above(Path(os.path.realpath(place))) if resolved else None)
        if lab is not None:
            found[os.path.realpath(lab)] = None
    return tuple(found)


def _lab_above(place: Path) -> Path | None:
    return next((parent for parent in reversed(place.parents) if _is_lab(parent)), None)


def _is_lab(directory: Path) -> bool:
    """True where a lab's file lies that nobody but the directory's owner has put there."""
    from leadline.lab.record import FILE

    try:
        file, whole = (directory / FILE).lstat(), directory.stat()
    except OSError:
        return False
    return file.st_uid == whole.st_uid and not whole.st_mode & 0o022


def _refuse(labs: Sequence[str]) -> None:
    from leadline.faults import in_force
    from leadline.run.faulted import read_faults

    try:
        found = {lab: in_force(faults) for lab, faults in read_faults(labs).items()}
    except OSError as error:
        place, why = error.filename or ", ".join(labs), error.strerror or str(error)
        raise UsageError(
            f"{place}: which faults are in force on the lab cannot be read: {why}",
            f"look what stands there; or measure all the same: {_OPTION}",
        ) from None
    for lab, faults in found.items():
        if faults:
            words = "; ".join(_words(fault) for fault in faults[:_SHOWN])
            more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
            what = "a fault is" if len(faults) == 1 else f"{len(faults)} faults are"
            raise UsageError(
                f"{what} in force on the lab in {lab}: {words}{more}",
                f"undo it: leadline lab inject --clear; or measure under it: {_OPTION}",
            )


def _words(fault: Fault) -> str:
    from datetime import datetime

    since = datetime.fromtimestamp(fault.began_unix_s).astimezone()
    return f"{fault.words} ({fault.kind} on {fault.on}) since {since:%Y-%m-%d %H:%M:%S}"
