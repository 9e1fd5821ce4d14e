"""`leadline undo`: removes what an interrupted run left below its targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.change.own_mounts import mounted_again
from leadline.cli.console import complain, echo
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD, EXIT_INTERRUPTED
from leadline.cli.measure.hosts_options import HostsOptions, connected_again, reach_options
from leadline.cli.options import AskedPath, complete_result, require_trust, trust_option
from leadline.errors import ResultError, UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.store.acting import SeenManifest


@click.command(short_help="Remove files that an interrupted run left on its targets")
@click.argument("directory", type=AskedPath(), shell_complete=complete_result)
@trust_option
@reach_options
def command(directory: Path, trusted: bool, hosts: HostsOptions) -> int:
    """Remove the files and revert the settings that the interrupted run in DIRECTORY left.

    Only directories with the mark of this result are removed, and unfinished files of a killed command next
    to it. If DIRECTORY is the -o of a killed trace, its records are removed (`leadline trace --recover
    DIRECTORY` stores them). A study on many hosts is undone on all of them, reached as in the run, or by
    --hosts or --scheduler. Settings of `leadline tune apply` are reverted by `leadline tune revert`.
    """
    from leadline.run.session import undo_run
    from leadline.store.acting import look_at
    from leadline.store.files import MANIFEST, PROOF
    from leadline.store.making import recoverable, remove_leftovers

    if not (directory / MANIFEST).exists() and recoverable(directory):
        return _remove_trace(directory)
    seen = require_trust(directory, "remove what it says it left", trusted=trusted)
    kept_settings = _settings_back(directory, seen)
    try:
        with mounted_again(seen.manifest):
            removed, left, damage = undo_run(directory, seen)
        if (directory / PROOF / MANIFEST).exists():  # of a search of settings
            below = undo_run(directory / PROOF, look_at(directory / PROOF))
            removed, left, damage = removed + below[0], left | below[1], damage or below[2]
    except KeyboardInterrupt:
        complain(
            f"interrupted; what is left carries its mark still, go on with: leadline undo {quoted(directory)}"
        )
        return EXIT_INTERRUPTED
    if damage:
        complain(f"{damage}; so every place of the plan was looked at")
    if "crew" in seen.manifest:
        undone, kept = _undo_on_hosts(directory, seen.manifest, hosts)
        removed += undone
        left |= kept
    elif hosts:
        raise UsageError(f"{directory} is of one host alone", f"write: leadline undo {quoted(directory)}")
    removed += map(str, remove_leftovers(directory.absolute().parent, directory))
    for place in removed:
        echo(f"removed: {place}")
    for place, why in left.items():
        echo(f"could not be removed: {place}: {why}", err=True)
    if not removed and not left and not kept_settings:
        echo("nothing to undo")
    return EXIT_FAILED if left or kept_settings else EXIT_GOOD


def _remove_trace(place: Path) -> int:
    """Remove what a killed trace recorded."""
    from leadline.store.making import recoverable, remove_leftovers

    for path in remove_leftovers(place.absolute().parent, place):
        echo(f"removed: {path}")
    left = recoverable(place)
    if left is not None:
        raise UsageError(
            left.doubt,
            f"if none does: leadline undo {quoted(left.path)}",
        )
    return EXIT_GOOD


def _settings_back(directory: Path, seen: SeenManifest) -> tuple[str, ...]:
    """What could not be put back of settings that a proof or a search changed."""
    if "search" in seen.manifest:
        from leadline.cli.change.searching.conduct import put_back_search

        return put_back_search(directory, seen)
    if "states" in seen.manifest:
        raise UsageError(
            f"{directory} is the proof of a search",
            f"undo the whole of it: leadline undo {quoted(directory.parent)}",
        )
    if "proof" in seen.manifest:
        from leadline.cli.change.tune_prove import put_back

        return put_back(directory, seen)
    return ()


def _undo_on_hosts(
    directory: Path, manifest: Mapping[str, Any], hosts: HostsOptions
) -> tuple[list[str], dict[str, str]]:
    from leadline.hosts.worker_rpc import remote
    from leadline.hosts.workers.study import undo_on_hosts
    from leadline.store.reader import open_result

    stored: Collection[str] = ()
    with suppress(ResultError):  # a damaged result does not show them: the hosts keep their tables
        stored = open_result(directory).finished

    with connected_again(manifest, hosts, lambda text: echo(text, err=True)) as crew:
        return undo_on_hosts(crew, remote(), str(manifest["id"]), stored)
