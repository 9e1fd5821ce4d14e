"""Targets of a proof whose settings a mount has for life: on mounts of its own, for as long as it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.study.target import Target
    from leadline.tuning.proving.mounts import ProofMounts
    from leadline.tuning.proving.proof import ProofDesign
    from leadline.tuning.proving.states import TargetClient
    from leadline.tuning.settings import Setting


@dataclass(frozen=True)
class OwnMounts:
    """The mounts that a proof has or, before it begins, would have."""

    wanted: ProofMounts
    present: TargetClient
    clients: Mapping[str, TargetClient]


def wanted_mounts(
    targets: Mapping[str, Target],
    design: ProofDesign,
    values: Mapping[str, str],
    known: Mapping[str, Setting],
) -> ProofMounts | None:
    """None where the target is on no ceph-fuse, or no setting needs a mount. Raises RefusedChangeError."""
    from leadline.tuning.proving.mounts import fuse_mount_of, new_directory, proof_mounts
    from leadline.tuning.proving.request import client_option, needs_mounts, setting_value

    target = next(iter(targets.values()))
    if not target.is_path or not needs_mounts(values, known):
        return None
    mount = fuse_mount_of(target.url)
    if mount is None:
        return None
    if target.pool is not None:
        raise UsageError(
            "a proof on mounts of its own takes no --layout", "name a directory whose files lie in that pool"
        )
    # Refused here, before anything is mounted with it.
    options = {name: client_option(name, known.get(name)) for name in values}
    asked = {
        options[name]: setting_value(known[name], text) if name in known else text
        for name, text in values.items()
    }
    states = {state: tuple(options[name] for name in on) for state, on in design.states.items()}
    return proof_mounts(target.url, mount, new_directory(), replace(design, states=states), asked)


def on_mounts(targets: Mapping[str, Target], wanted: ProofMounts) -> dict[str, Target]:
    """The same states, each by its own mount."""
    return {name: replace(one, url=wanted.path(name)) for name, one in targets.items()}


@contextmanager
def made(wanted: ProofMounts) -> Iterator[OwnMounts]:
    """Mounted, and unmounted at the end. Raises TuningError."""
    from leadline.tuning.proving.mounts import mounted

    with mounted(wanted) as clients:
        yield OwnMounts(wanted, _present(wanted), clients)


@contextmanager
def mounted_again(manifest: Mapping[str, Any]) -> Iterator[None]:
    """What a stored proof had mounted, so that what it left there can be removed. Raises TuningError."""
    wanted = mounts_of(manifest)
    with nullcontext() if wanted is None else made(wanted):
        yield


def only_planned(wanted: ProofMounts) -> OwnMounts:
    """Nothing is mounted. Raises TuningError where the mount in use cannot be asked."""
    return OwnMounts(wanted, _present(wanted), {})


def mounts_of(manifest: Mapping[str, Any]) -> ProofMounts | None:
    """Those that a stored proof had; None where it had none. Raises ResultError."""
    from leadline.tuning.proving.mounts import ProofMounts

    found = manifest.get("proof", {}).get("mounts")
    return None if found is None else ProofMounts.from_json(found)


def _present(wanted: ProofMounts) -> TargetClient:
    from leadline.tuning.proving.mounts import client_at

    found = client_at(wanted.present)
    if found is None:
        raise UsageError(
            f"the ceph-fuse of {wanted.present} cannot be asked what it has in force",
            "run it as the account whose mount it is, or as root",
        )
    return found
