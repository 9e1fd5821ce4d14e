"""The process that serves a FUSE mount, by the connection that it holds, and what a ceph-fuse was told."""

from __future__ import annotations

import contextlib
import enum
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.observe.mounts.mountinfo import Mount
from leadline.study.target import CephAccess
from leadline.trusted import accounts_of, believed_accounts, why_not_file
from leadline.units import printable

PROC = Path("/proc")
_DEVICE = "/dev/fuse"
_CONNECTION = "fuse_connection:"


@dataclass(frozen=True)
class FuseServer:
    """The process of a mount and its account. `reason` says why none of those seen is believed."""

    pid: int | None = None
    account: int | None = None
    reason: str = ""


class _Holds(enum.Enum):
    NOTHING, PERHAPS, THIS = range(3)


def processes_named(name: str, proc: Path = PROC) -> list[int]:
    """Processes with this command name that this host shows, by number. Their names are their own choice."""
    found = []
    for entry in proc.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
    return sorted(found)


def server_of(
    mount: Mount, name: str, names_it: Callable[[int], bool] = lambda _pid: False, proc: Path = PROC
) -> FuseServer:
    """The one process called `name` that serves `mount`.

    `names_it` says of a process whether its command line names the mount: asked where the kernel does not
    tell, and several could be meant.
    """
    owner = mount.option("user_id")
    if owner is None:
        return FuseServer(reason="the kernel does not say whose mount it is")
    held = [(pid, _holds(pid, mount, proc)) for pid in processes_named(name, proc)]
    exact = [pid for pid, what in held if what is _Holds.THIS]
    meant = exact or [pid for pid, what in held if what is _Holds.PERHAPS]
    own = [pid for pid in meant if _accounts(pid, proc) == {int(owner)}]
    if len(own) > 1 and not exact:
        own = [pid for pid in own if names_it(pid)] or own
    if len(own) == 1:
        return FuseServer(own[0], int(owner))
    if own:
        numbers = ", ".join(str(pid) for pid in own)
        return FuseServer(reason=f"which of the processes {numbers} serves it is not known")
    others = [pid for pid, _ in held if _accounts(pid, proc) != {int(owner)}]
    if others:
        pid, mine = others[0], f"the mount belongs to uid {owner}"
        accounts = ", ".join(str(uid) for uid in sorted(_accounts(pid, proc)))
        return FuseServer(reason=f"process {pid} called {name} runs as uid {accounts or '?'}, and {mine}")
    return FuseServer()


def _accounts(pid: int, proc: Path) -> frozenset[int]:
    try:
        return accounts_of(proc / str(pid))
    except OSError:
        return frozenset()


def _holds(pid: int, mount: Mount, proc: Path) -> _Holds:
    place, best = proc / str(pid), _Holds.NOTHING
    try:
        names = os.listdir(place / "fd")  # noqa: PTH208 - names are all it needs
    except PermissionError:
        return _Holds.PERHAPS
    except OSError:
        return best
    for name in names:
        with contextlib.suppress(OSError):
            if os.readlink(place / "fd" / name) == _DEVICE:  # noqa: PTH115
                text = (place / "fdinfo" / name).read_text()
                served = [line.split()[1] for line in text.splitlines() if line.startswith(_CONNECTION)]
                if served == [str(mount.minor)]:
                    return _Holds.THIS
                best = best if served else _Holds.PERHAPS
    return best


_PROGRAM = "ceph-fuse"
_WITH_VALUE = {
    "-c": "conf",
    "--conf": "conf",
    "--id": "id",
    "--user": "id",
    "-n": "name",
    "--name": "name",
    "--cluster": "cluster",
    "-k": "keyring",
    "--keyring": "keyring",
    "--admin-socket": "socket",
    "--client_mountpoint": "root",
    "--client-mountpoint": "root",
    "-r": "root",
    "-m": "monitors",
    "--client_fs": "fs",
    "--client-fs": "fs",
    "-o": "fuse",
    "--key": "key",
    "--keyfile": "keyfile",
    "--setuser": "setuser",
    "--setgroup": "setgroup",
    "-i": "id",
}
# What decides how much the client caches, reads ahead and moves at a time.
_SETTINGS = (
    *("client_oc", "client_oc_size", "client_oc_max_dirty", "client_readahead_max_bytes", "fuse_big_writes"),
    *("client_readahead_max_periods", "client_cache_size", "client_quota", "objecter_inflight_ops"),
)
_LAB_MARK = "LEADLINE_LAB"  # in the environment of every process that a lab started
_LISTENING = "00010000"  # __SO_ACCEPTCON in /proc/net/unix


@dataclass(frozen=True)
class ClientArguments:
    """What a ceph-fuse command line says; a key is never kept, only that there is one (`has_key`)."""

    positional: tuple[str, ...]
    conf: str | None = None
    name: str | None = None
    keyring: str | None = None
    socket: str | None = None
    root: str | None = None
    fs: str | None = None
    cluster: str | None = None
    keyfile: str | None = None
    has_key: bool = False


def parse_arguments(arguments: Sequence[str]) -> ClientArguments:
    """The part of a ceph-fuse command line (without the program) that says which cluster and mount."""
    values: dict[str, str] = {}
    positional: list[str] = []
    items = iter(arguments)
    for item in items:
        flag, equals, value = item.partition("=")
        flag = _canonical(flag)
        if flag in _WITH_VALUE:
            values[_WITH_VALUE[flag]] = value if equals else next(items, "")
        elif not item.startswith("-"):
            positional.append(item)
    name = values.get("name") or (f"client.{values['id']}" if values.get("id") else None)
    socket = values.get("socket")
    return ClientArguments(
        positional=tuple(positional),
        conf=values.get("conf"),
        name=name,
        keyring=values.get("keyring"),
        socket=socket if socket and "$" not in socket else None,
        root=values.get("root"),
        fs=values.get("fs"),
        cluster=values.get("cluster"),
        keyfile=values.get("keyfile"),
        has_key=bool(values.get("key")),
    )


def _canonical(flag: str) -> str:
    if not flag.startswith("--"):
        return flag
    dashed = flag.replace("_", "-")
    return dashed if dashed in _WITH_VALUE else flag


def find_client(mount: Mount, proc: Path = PROC) -> CephAccess:
    """How the ceph-fuse of a mount reaches its cluster; `distrusted` says why what it says is not used.

    Nothing of either is known where no such process is to be seen.
    """
    server = server_of(mount, _PROGRAM, lambda pid: _names(pid, mount.mount_point, proc), proc)
    if server.pid is None:
        return CephAccess(distrusted=server.reason or None)
    if server.account not in believed_accounts():
        why = f"its process {server.pid} runs as uid {server.account}, whom this account does not follow"
        return CephAccess(client_pid=server.pid, distrusted=why)
    return _access(server.pid, arguments_of(server.pid, proc), proc)


def arguments_of(pid: int, proc: Path = PROC) -> ClientArguments:
    """What the command line of a ceph-fuse says, and CEPH_ARGS before it; nothing of one that has ended."""
    try:
        parts = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")[1:]
    except OSError:
        return ClientArguments(())
    try:
        first = shlex.split(environment_of(pid, proc).get("CEPH_ARGS", ""))
    except ValueError:  # a quote that is not closed
        first = []
    return parse_arguments([*first, *(os.fsdecode(part) for part in parts if part)])


def arguments_again(pid: int, mount_point: str, proc: Path = PROC) -> tuple[str, ...]:
    """With what another ceph-fuse mounts the same as process `pid`, elsewhere: its words but for where it
    mounts, what it listens on and where it writes its log."""
    try:
        parts = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")[1:]
    except OSError:
        return ()
    found, skipped = [], False
    for item in (os.fsdecode(part) for part in parts if part):
        flag, equals, _ = item.partition("=")
        own = flag.replace("_", "-") in _ITS_OWN
        if skipped or own or item in ("-f", "-d"):
            skipped = own and not equals
        elif item.startswith("-") or os.path.normpath(_absolute(item, pid, proc)) != mount_point:
            found.append(item)
    return tuple(found)


_ITS_OWN = ("--admin-socket", "--log-file", "--log-to-stderr", "--pid-file")


def with_its_own_word(access: CephAccess) -> CephAccess:
    """The same with the version and the settings that the client's process tells by its admin socket."""
    from leadline.observe.ceph.client import NotObservableError, ask_socket

    if access.client_socket is None or access.client_pid is None:
        return access
    try:
        version = ask_socket(access.client_socket, access.client_pid, "version").get("version")
        config = ask_socket(access.client_socket, access.client_pid, "config show")
    except (NotObservableError, AttributeError):
        return access
    settings = {name: str(config[name]) for name in _SETTINGS if name in config}
    return replace(access, client_version=version, settings=settings or None)


def _absolute(path: str, pid: int, proc: Path) -> str:
    if path.startswith("/"):
        return path
    try:
        return str(Path(os.readlink(proc / str(pid) / "cwd"), path))  # noqa: PTH115
    except OSError:
        return path


def _names(pid: int, mount_point: str, proc: Path) -> bool:
    """True where the command line names the mount point, which is not looked at: it may hang."""
    places = (_absolute(item, pid, proc) for item in arguments_of(pid, proc).positional)
    return mount_point in map(os.path.normpath, places)


def _access(pid: int, arguments: ClientArguments, proc: Path) -> CephAccess:
    variables = environment_of(pid, proc)
    conf = _absolute(arguments.conf, pid, proc) if arguments.conf else variables.get("CEPH_CONF") or None
    if conf is None and arguments.cluster:
        conf = f"/etc/ceph/{arguments.cluster}.conf"
    named = arguments.keyring or variables.get("CEPH_KEYRING")
    keyring = _absolute(named, pid, proc) if named else None
    access = CephAccess(
        client_pid=pid,
        client_socket=admin_socket_of(pid, proc) or arguments.socket,
        lab=_LAB_MARK in variables,
    )
    for path in filter(None, (*(conf or "").split(","), keyring)):
        if why := why_not_file(path):
            return replace(access, distrusted=printable(f"its process {pid} names {path}, and {why}"))
    return replace(access, conf=conf, name=arguments.name, keyring=keyring)


def environment_of(pid: int, proc: Path = PROC) -> dict[str, str]:
    """The variables that a process was started with; none where they are not ours to see."""
    try:
        text = os.fsdecode((proc / str(pid) / "environ").read_bytes())
    except OSError:
        return {}
    return {name: value for name, _, value in (item.partition("=") for item in text.split("\0"))}


def admin_socket_of(pid: int, proc: Path = PROC) -> str | None:
    """The `.asok` socket that a Ceph process listens on; None where its open files are not ours to see."""
    try:
        links = [os.readlink(entry) for entry in (proc / str(pid) / "fd").iterdir()]  # noqa: PTH115
        table = (proc / str(pid) / "net" / "unix").read_text()
    except OSError:
        return None
    inodes = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    for line in table.splitlines()[1:]:
        fields = line.split(None, 7)
        if (
            len(fields) == 8
            and fields[3] == _LISTENING
            and fields[6] in inodes
            and fields[7].endswith(".asok")
        ):
            return fields[7]
    return None
