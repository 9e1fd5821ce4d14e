"""What present mounts, their clients and clusters say, as far as this user may ask. Keeps no key.

Ceph looks, the first that says something: the command line and CEPH_ARGS, CEPH_KEYRING, the configuration's
sections for the user, its type and all, its own default. Each may be a list with metavariables, of which the
first file that can be opened is taken. Ceph's own library resolves them.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import TargetError
from leadline.knowledge.pitfalls import first_kernel, kernel_version
from leadline.knowledge.tables import bound_of
from leadline.observe.ceph.client import (
    Cluster,
    NotObservableError,
    ask_socket,
    cluster_name,
    configured,
    connect,
)
from leadline.observe.hang_guard import in_fork
from leadline.observe.mounts.fuse_client import ClientArguments, arguments_of, environment_of
from leadline.observe.mounts.mountinfo import Mount, mount_of, read_mounts
from leadline.observe.mounts.mounts import look
from leadline.observe.mounts.users import Users, users_of

if TYPE_CHECKING:
    from leadline.check.rows import Fact
    from leadline.study.target import CephAccess, TargetFacts


_ALL_S = 10.0  # each is asked for itself, and each that hangs takes half of that


def mount_facts(host: str) -> list[Fact]:
    """Of each mount of the kernel's client and of ceph-fuse; nothing is read or written below it."""
    from leadline.check.rows import Fact
    from leadline.errors import LeadlineError
    from leadline.knowledge.pitfalls import assess
    from leadline.mounting.facts import FUSE_TYPES, read_facts
    from leadline.observe.hang_guard import check_answers
    from leadline.observe.mounts.mountinfo import read_mounts

    found: list[Fact] = []
    points = {one.mount_point for one in read_mounts() if one.file_system in ("ceph", *FUSE_TYPES)}
    begun = time.monotonic()
    for point in sorted(points):
        subject = f"{host}:{point}"
        if time.monotonic() - begun > _ALL_S:
            found.append(Fact("mount", subject, "answers", None, f"the mounts before it took {_ALL_S:g} s"))
            continue
        try:
            check_answers([point])
        except LeadlineError as error:
            found.append(Fact("mount", subject, "answers", False))
            found.append(Fact("mount", subject, "pitfalls", None, str(error).partition("\n")[0]))
            continue
        found.append(Fact("mount", subject, "answers", True))
        try:
            facts = read_facts(point)
        except LeadlineError as error:
            found.append(Fact("mount", subject, "pitfalls", None, str(error).partition("\n")[0]))
            continue
        held = assess(facts.client, facts.kernel, facts.answers, facts.reasons)
        found.append(Fact("mount", subject, "client", facts.words))
        names = ", ".join(one.name for one in held if one.holds)
        found.append(Fact("mount", subject, "pitfalls", names))
    return found


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


FUSE_TYPES = ("fuse.ceph", "fuse.ceph-fuse")
_SELINUX = Path("/sys/fs/selinux/enforce")
_SOCKET_DEADLINE_S = 2.0
_NAMESPACE = re.compile(r"\bnamespace\s*=?\s*(\S+)")


@dataclass(frozen=True)
class MountFacts:
    """A CephFS mount as it is. Monitors are (protocol `v1` or `v2`, address with port).

    `keyring` is the file that the client has its key from, `keyring_words` by what, or why none is known;
    `mount_keyring` is the one that mount.ceph takes by itself.
    `answers` are the facts that the knowledge base asks for; None is "cannot be told", and `reasons` say why.
    """

    mount_point: str
    client: str
    words: str
    options: tuple[str, ...]
    user: str
    conf: str | None
    keyring: str | None
    root: str
    file_system: str | None
    fsid: str | None
    monitors: tuple[tuple[str, str], ...]
    kernel: str
    users: Users
    answers: Mapping[str, bool | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    keyring_words: str = ""
    mount_keyring: str | None = None


def find_mount(kind: str) -> str:
    """The one mount of this kind (`fuse` or `kernel`) on this host. Raises TargetError."""
    types = FUSE_TYPES if kind == "fuse" else ("ceph",)
    found = [mount.mount_point for mount in read_mounts() if mount.file_system in types]
    if not found:
        raise TargetError(f"no CephFS is mounted by {_client_words(kind)} here", "Name the mount point.")
    if len(found) > 1:
        places = ", ".join(found)
        raise TargetError(f"several are mounted by {_client_words(kind)}: {places}", "Name one of them.")
    return found[0]


def _client_words(kind: str) -> str:
    return "ceph-fuse" if kind == "fuse" else "the kernel client"


def read_facts(path: str, kernel: str = "") -> MountFacts:
    """Everything about the CephFS mount that holds `path`; `kernel` stands for another host's release.

    Raises TargetError where it is no CephFS, or does not answer.
    """
    target, mount, _ = look(path)
    if target.ceph is None:
        raise TargetError(f"{path} is {target.words}, and no CephFS", "Name a path on a mounted CephFS.")
    release = kernel or platform.release()
    reader = _FactsReader(target, target.ceph, mount, release)
    return reader.facts()


class _FactsReader:
    """Collects answers and, for those that nobody gives, reasons."""

    def __init__(self, target: TargetFacts, access: CephAccess, mount: Mount, kernel: str) -> None:
        self._target, self._access, self._mount, self._kernel = target, access, mount, kernel
        self._answers: dict[str, bool | None] = {}
        self._reasons: dict[str, str] = {}

    def facts(self) -> MountFacts:
        fuse = self._target.access == "ceph-fuse"
        pid = self._access.client_pid
        arguments = arguments_of(pid) if fuse and pid is not None else None
        self._of_host()
        self._of_options(fuse)
        cluster = self._of_cluster(arguments.fs if arguments is not None else None)
        self._of_client(fuse)
        mounts = read_mounts()
        without = frozenset({pid} if pid is not None else ())
        root = self._mount.source.partition(":/")[2] if not fuse else (arguments.root if arguments else None)
        keyring = self._keyring(arguments)
        return MountFacts(
            mount_point=self._mount.mount_point,
            client="fuse" if fuse else "kernel",
            words=self._target.words,
            options=self._target.options,
            user=(self._access.name or "client.admin").removeprefix("client."),
            conf=self._access.conf,
            keyring=keyring.path,
            keyring_words=keyring.words,
            mount_keyring=keyring.for_mount,
            root="/" + (root or "").strip("/"),
            file_system=cluster.get("file_system"),
            fsid=cluster.get("fsid"),
            monitors=cluster.get("monitors", ()),
            kernel=self._kernel,
            users=users_of(mount_of(self._mount.mount_point, mounts) or self._mount, mounts, without=without),
            answers=self._answers,
            reasons=self._reasons,
        )

    def _keyring(self, arguments: ClientArguments | None) -> Keyring:
        access, settings = self._access, {}
        if access.distrusted:
            return Keyring(None, f"not asked: {access.distrusted}", None)
        if access.client_socket is not None and access.client_pid is not None:
            with contextlib.suppress(NotObservableError):
                told = ask_socket(access.client_socket, access.client_pid, "config show", _SOCKET_DEADLINE_S)
                settings = {"keyring": str(told.get("keyring") or "")}  # and nothing else: it may tell keys
        variables = environment_of(access.client_pid) if access.client_pid is not None else {}
        given = arguments or ClientArguments(())
        named = replace(given, keyring=access.keyring) if given.keyring else given
        return find_keyring(named, variables, access.conf, access.name or "client.admin", settings)

    def _say(self, name: str, answer: bool | None, why: str) -> None:
        self._answers[name], self._reasons[name] = answer, why

    def _of_host(self) -> None:
        selinux = _SELINUX.exists()
        self._say("selinux", selinux, "SELinux is enabled" if selinux else "SELinux is not enabled here")
        self._say(
            "quota", None, "whether a quota is set was not asked: getfattr -n ceph.quota.max_bytes PATH"
        )
        self._say("hard_links_used", None, "whether programs link and stat at once is not to be seen")

    def _of_options(self, fuse: bool) -> None:
        """What the present options say; for a plan from FUSE the new mount has none of them yet."""
        options = set() if fuse else {option.partition("=")[0] for option in self._target.options}
        by_default = kernel_version(self._kernel) >= kernel_version(
            first_kernel("asynchronous-create-default")
        )
        neither = "wsync" not in options and "nowsync" not in options
        nowsync = "nowsync" in options or (neither and by_default)
        said = (
            "wsync"
            if "wsync" in options
            else "nowsync"
            if "nowsync" in options
            else "neither wsync nor nowsync"
        )
        self._say(
            "nowsync",
            nowsync,
            f"options say {said}; kernel {self._kernel} creates {'not ' if nowsync else ''}synchronously",
        )
        self._say("nowsync_by_default", neither and by_default, f"options say {said}")
        self._say("no_context", "context" not in options, "no context= option")
        self._say("no_recover_session", "recover_session" not in options, "no recover_session= option")

    def _of_cluster(self, wanted: str | None) -> dict[str, Any]:
        asked = ("namespace", "nearly_full", "msgr2_only")
        found: dict[str, Any] = {}
        try:
            if self._access.distrusted:
                raise NotObservableError(f"it is not asked: {self._access.distrusted}")
            cluster = connect(self._access.conf, self._access.name, self._access.keyring)
        except NotObservableError as error:
            for name in asked:
                self._say(name, None, f"the cluster does not answer: {error}")
            return found
        try:
            for name, ask in zip(asked, (self._namespace, self._nearly_full, self._monitors), strict=True):
                try:
                    ask(cluster, found)
                except NotObservableError as error:
                    self._say(name, None, str(error))
            with contextlib.suppress(NotObservableError):
                names = [str(one["name"]) for one in cluster.mon("fs ls")]
                found["file_system"] = wanted or (names[0] if len(names) == 1 else None)
        finally:
            cluster.close()
        return found

    def _namespace(self, cluster: Cluster, _found: dict[str, Any]) -> None:
        """From the client's own capability where it may be read, else from the layout in use."""
        name = self._access.name or "client.admin"
        try:
            entries = cluster.mon("auth get", entity=name)
        except NotObservableError:
            self._say("namespace", None, f"the OSD capability of {name} may not be read by it")
            return
        caps = str((entries[0].get("caps") or {}).get("osd", "")) if entries else ""
        del entries  # it holds the key
        match = _NAMESPACE.search(caps)
        if match:
            self._say(
                "namespace", True, f"the OSD capability of {name} is restricted to namespace {match[1]}"
            )
        else:
            self._say("namespace", False, f"the OSD capability of {name} names no namespace")

    def _nearly_full(self, cluster: Cluster, _found: dict[str, Any]) -> None:
        from leadline.observe.ceph.parse import cluster_state

        state = cluster_state(cluster.mon("status"), cluster.mon("osd dump"))
        if state.used_share is None or not state.nearfull_share:
            self._say("nearly_full", None, "the cluster does not say how full it is")
            return
        nearly = state.used_share >= bound_of("nearly_full") * state.nearfull_share
        self._say(
            "nearly_full", nearly, f"{state.used_share:.0%} used, nearfull from {state.nearfull_share:.0%}"
        )

    def _monitors(self, cluster: Cluster, found: dict[str, Any]) -> None:
        answer = cluster.mon("mon dump")
        found["fsid"] = answer.get("fsid")
        found["monitors"] = tuple(
            (str(address["type"]), str(address["addr"]))
            for monitor in answer.get("mons", [])
            for address in (monitor.get("public_addrs") or {}).get("addrvec", [])
        )
        kinds = {kind for kind, _ in found["monitors"]}
        self._say("msgr2_only", kinds == {"v2"}, f"monitors speak {' and '.join(sorted(kinds)) or 'nothing'}")

    def _of_client(self, fuse: bool) -> None:
        if not fuse:
            return
        path, pid = self._access.client_socket, self._access.client_pid
        try:
            if path is None or pid is None:
                raise NotObservableError(
                    self._access.distrusted or "the admin socket of ceph-fuse is not to be seen"
                )
            value = ask_socket(path, pid, "config get", _SOCKET_DEADLINE_S, var="fuse_big_writes")
            small = str(value.get("fuse_big_writes", "true")).lower() == "false"
            self._say("fuse_small_writes", small, f"fuse_big_writes is {'false' if small else 'true'}")
        except NotObservableError as error:
            self._say("fuse_small_writes", None, str(error))
        self._say("fuse2", *_library_of(pid))


def _library_of(pid: int | None) -> tuple[bool | None, str]:
    """Whether the daemon is linked with libfuse 2, from the libraries that it mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError as error:
        return None, f"the libraries of ceph-fuse cannot be read: {os.strerror(error.errno or 0)}"
    if "libfuse.so.2" in maps:
        return True, "ceph-fuse is linked with libfuse 2"
    return (
        (False, "ceph-fuse is linked with libfuse 3") if "libfuse3" in maps else (None, "no libfuse was seen")
    )
