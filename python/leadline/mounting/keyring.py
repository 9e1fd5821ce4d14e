"""Which file the present client has its key from, and which one mount.ceph would take. Never reads a key.

Ceph looks, the first that says something: the command line and CEPH_ARGS, CEPH_KEYRING, the configuration's
sections for the user, its type and all, its own default. Each may be a list with metavariables, of which the
first file that can be opened is taken. Ceph's own library resolves them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leadline.observe.ceph.client import NotObservableError, cluster_name, configured
from leadline.observe.hang_guard import in_fork
from leadline.observe.mounts.fuse_client import ClientArguments

_DEFAULTS = (
    "/etc/ceph/{cluster}.{name}.keyring",
    "/etc/ceph/{cluster}.keyring",
    "/etc/ceph/keyring",
    "/etc/ceph/keyring.bin",
)
_BETWEEN = re.compile(r"[;,=\s]+")  # as Ceph takes lists of files apart


@dataclass(frozen=True)
class Keyring:
    """`path` is the file in force, None where there is none or no file has the key; `words` say by what.

    `for_mount` is the file that mount.ceph takes by the configuration alone, None where it finds none.
    """

    path: str | None
    words: str
    for_mount: str | None

    @property
    def is_found_by_mount(self) -> bool:
        """Whether mount.ceph needs no help."""
        return self.path is not None and self.path == self.for_mount


def find_keyring(
    arguments: ClientArguments,
    variables: Mapping[str, str],
    conf: str | None,
    name: str,
    settings: Mapping[str, str],
) -> Keyring:
    """The keyring of a client of this command line and environment; `name` as `client.admin`.

    `settings` are those that the client's process says to have in force, where it says so: they count most.
    """
    by_conf = _listed(conf, name)
    for_mount, _ = _first(by_conf)
    if arguments.has_key or arguments.keyfile:
        where = f"in {arguments.keyfile} (--keyfile)" if arguments.keyfile else "on its command line (--key)"
        return Keyring(None, f"its key is {where}, in no keyring", for_mount)
    asked = "its command line or CEPH_ARGS" if arguments.keyring else "CEPH_KEYRING"
    given = arguments.keyring or variables.get("CEPH_KEYRING")
    if settings.get("keyring"):
        files, source = _apart(settings["keyring"]), "what its process has in force"
    elif given:
        files, source = _listed(conf, name, given), asked
    else:
        files, source = by_conf, f"{conf or _default_conf(conf)}, or Ceph's default where that names none"
    path, seen = _first(files)
    if path is None:
        return Keyring(None, f"none of {', '.join(files)} is there, of {source}{seen}", for_mount)
    return Keyring(path, f"by {source}", for_mount)


def _default_conf(conf: str | None) -> str:
    return f"/etc/ceph/{cluster_name(conf)}.conf"


def _listed(conf: str | None, name: str, given: str | None = None) -> list[str]:
    """The files of a list, as Ceph resolves it; Ceph's default where its library is not there to ask."""
    try:
        return _apart(configured("keyring", conf, name, given))
    except NotObservableError:
        if given:
            return _apart(given)
        return [one.format(cluster=cluster_name(conf), name=name) for one in _DEFAULTS]


def _apart(text: str) -> list[str]:
    return [one for one in _BETWEEN.split(text) if one]


def _first(files: Sequence[str]) -> tuple[str | None, str]:
    """The first that is there, and what kept one from looking. Looks with a deadline: a mount may hang."""
    from leadline.errors import TargetError

    def there(doing: Callable[[str, str], None]) -> str | None:
        for file in files:
            doing(file, "looking for the keyring")
            if os.path.isfile(file):  # noqa: PTH113 - a name may hold what no Path takes
                return file
        return None

    try:
        return in_fork(there, files[0] if files else "the keyring"), ""
    except TargetError as error:
        return None, f" ({error.message})"
