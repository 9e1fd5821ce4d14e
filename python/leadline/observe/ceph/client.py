"""Talks to a cluster at small cost: librados and libcephfs by dlopen, admin sockets directly.

No key is ever part of an answer or a message.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leadline.errors import ObserverError
from leadline.foreign import parse_c_json

_OPTION_BYTES = 1 << 16
_ANSWER_BYTES_MAX = 64 << 20  # perf dumps are tens of KiB; a corrupt length must not take all memory


class NotObservableError(ObserverError):
    """A question that has no answer here; the message is the reason that a report shows."""


def _load(name: str, package: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name, use_errno=True)
    except OSError:
        raise NotObservableError(f"{package} is not installed") from None


def _why(code: int, what: str) -> str:
    return f"{what}: {os.strerror(-code) if code < 0 else f'code {code}'}"


class Cluster:
    """One librados connection with timeouts, made by `connect`; several threads may use it."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, who: str) -> None:
        self._library, self._handle, self._who = library, handle, who

    @property
    def handle(self) -> ctypes.c_void_p:
        """The rados_t, for libcephfs."""
        return self._handle

    def mon(self, prefix: str, **arguments: Any) -> Any:
        """A monitor's (or, through it, the active manager's) JSON answer."""
        return self._command("the monitors", self._library.rados_mon_command, (), prefix, arguments)

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        """One OSD's JSON answer, as `ceph tell osd.N` gives it."""
        call = self._library.rados_osd_command
        return self._command(f"osd.{osd}", call, (ctypes.c_int(osd),), prefix, arguments)

    def text(self, prefix: str, **arguments: Any) -> str:
        """A monitor's answer as it stands: commands that act answer with nothing that is JSON.

        Raises NotObservableError with the monitor's own words.
        """
        code, answer, status = self._ask(self._library.rados_mon_command, (), prefix, arguments)
        if code != 0:
            said = status.decode("utf-8", "replace").strip() or os.strerror(abs(code))
            raise NotObservableError(f"the monitors refused `{prefix}` for {self._who}: {said}")
        return answer.decode("utf-8", "replace").strip()

    def option(self, name: str) -> str:
        """An option as this very client has it: what the monitors sent it when it connected included."""
        return _option(self._library, self._handle, name)

    def close(self) -> None:
        """Leave the cluster; the object is of no use afterwards."""
        if self._handle:
            self._library.rados_shutdown(self._handle)
            self._handle = ctypes.c_void_p()

    def _command(
        self, whom: str, call: Any, target: tuple[Any, ...], prefix: str, extra: Mapping[str, Any]
    ) -> Any:
        code, answer, _ = self._ask(call, target, prefix, extra)
        if code != 0:
            raise NotObservableError(_why(code, f"{whom} did not answer `{prefix}` for {self._who}"))
        return _decode(answer, f"{whom} `{prefix}`")

    def _ask(
        self, call: Any, target: tuple[Any, ...], prefix: str, extra: Mapping[str, Any]
    ) -> tuple[int, bytes, bytes]:
        """The code, the answer and the words beside it."""
        return _asked(call, self._library.rados_buffer_free, (self._handle, *target), prefix, extra)


def _asked(
    call: Any, free: Any, target: tuple[Any, ...], prefix: str, extra: Mapping[str, Any]
) -> tuple[int, bytes, bytes]:
    """The code, the answer and the words beside it, of a command to `target`; `free` gives memory back."""
    text = json.dumps({"prefix": prefix, "format": "json", **extra}).encode()
    commands = (ctypes.c_char_p * 1)(text)
    output, output_bytes = ctypes.c_void_p(), ctypes.c_size_t()
    status, status_bytes = ctypes.c_void_p(), ctypes.c_size_t()
    code = call(
        *target,
        commands,
        ctypes.c_size_t(1),
        None,
        ctypes.c_size_t(0),
        ctypes.byref(output),
        ctypes.byref(output_bytes),
        ctypes.byref(status),
        ctypes.byref(status_bytes),
    )
    return code, _take(free, output, output_bytes), _take(free, status, status_bytes)


def _take(free: Any, pointer: ctypes.c_void_p, length: ctypes.c_size_t) -> bytes:
    if not pointer.value:
        return b""
    try:
        return ctypes.string_at(pointer.value, length.value)
    finally:
        free(pointer)


def _decode(answer: bytes, what: str) -> Any:
    try:
        return parse_c_json(answer)
    except ValueError:
        raise NotObservableError(f"{what} answered with what is no JSON") from None


def connect(conf: str | None, name: str | None, keyring: str | None, deadline_s: float = 2.0) -> Cluster:
    """Connect as `name` (client.admin by default). Raises NotObservableError with the reason."""
    library = _load("librados.so.2", "librados2")
    who = name or "client.admin"
    handle = _configured(library, conf, who)
    try:
        for option, value in _options(keyring, deadline_s):
            library.rados_conf_set(handle, option.encode(), value.encode())
        code = library.rados_connect(handle)
        if code != 0:
            raise NotObservableError(_why(code, f"the cluster does not answer {who}"))
    except BaseException:
        library.rados_shutdown(handle)
        raise
    return Cluster(library, handle, who)


def _configured(library: ctypes.CDLL, conf: str | None, who: str) -> ctypes.c_void_p:
    """A handle that has read its configuration. The cluster is called as the file is: `$cluster` in it."""
    handle = ctypes.c_void_p()
    cluster = cluster_name(conf).encode()
    code = library.rados_create2(ctypes.byref(handle), cluster, who.encode(), ctypes.c_uint64(0))
    if code != 0:
        raise NotObservableError(_why(code, f"librados refuses the name {who}"))
    code = library.rados_conf_read_file(handle, conf.encode() if conf else None)
    if code != 0:
        library.rados_shutdown(handle)
        raise NotObservableError(_why(code, f"{conf or 'the default ceph.conf'} cannot be read"))
    return handle


def _option(library: ctypes.CDLL, handle: ctypes.c_void_p, name: str) -> str:
    found = ctypes.create_string_buffer(_OPTION_BYTES)
    code = library.rados_conf_get(handle, name.encode(), found, ctypes.c_size_t(_OPTION_BYTES))
    if code != 0:
        raise NotObservableError(_why(code, f"librados does not tell {name}"))
    return os.fsdecode(found.value)


def cluster_name(conf: str | None) -> str:
    """What Ceph calls a cluster by the first of its configuration's files: the name without `.conf`."""
    stem, dot, _ = Path((conf or "").split(",")[0]).name.rpartition(".conf")
    return stem if dot and stem else "ceph"


def configured(option: str, conf: str | None, name: str | None, value: str | None = None) -> str:
    """An option as Ceph itself reads it from `conf`, or `value` in its place, metavariables resolved.

    Asks no cluster. Raises NotObservableError with the reason.
    """
    library = _load("librados.so.2", "librados2")
    handle = _configured(library, conf, name or "client.admin")
    try:
        if value is not None:
            library.rados_conf_set(handle, option.encode(), os.fsencode(value))
        return _option(library, handle, option)
    finally:
        library.rados_shutdown(handle)


def _options(keyring: str | None, deadline_s: float) -> list[tuple[str, str]]:
    """Timeouts; no log, no socket and no messages of this observer's own client; few threads."""
    seconds = f"{max(1, round(deadline_s))}"
    options = [
        ("client_mount_timeout", seconds),
        ("rados_mon_op_timeout", seconds),
        ("rados_osd_op_timeout", seconds),
        ("log_file", ""),
        ("log_to_stderr", "false"),
        ("err_to_stderr", "false"),
        ("admin_socket", ""),
        ("ms_async_op_threads", "1"),
    ]
    return [*options, ("keyring", keyring)] if keyring else options


class MetadataServers:
    """Asks MDS daemons through libcephfs, without mounting anything."""

    def __init__(self, cluster: Cluster) -> None:
        self._library = _load("libcephfs.so.2", "libcephfs2")
        self._mount = ctypes.c_void_p()
        code = self._library.ceph_create_from_rados(ctypes.byref(self._mount), cluster.handle)
        if code == 0:
            code = self._library.ceph_init(self._mount)
        if code != 0:
            raise NotObservableError(_why(code, "libcephfs cannot start"))

    def ask(self, mds: str, prefix: str, **arguments: Any) -> Any:
        """The JSON answer of the MDS with this name or rank."""
        call, free = self._library.ceph_mds_command, self._library.ceph_buffer_free
        code, answer, _ = _asked(call, free, (self._mount, mds.encode()), prefix, arguments)
        if code != 0:
            raise NotObservableError(_why(code, f"mds.{mds} did not answer `{prefix}`"))
        return _decode(answer, f"mds.{mds} `{prefix}`")

    def close(self) -> None:
        """Give the library's memory back."""
        if self._mount:
            self._library.ceph_release(self._mount)
            self._mount = ctypes.c_void_p()


def ask_socket(path: str, pid: int, prefix: str, deadline_s: float = 2.0, **arguments: Any) -> Any:
    """A daemon's JSON answer on its admin socket, if it is process `pid` that listens there.

    Sent: the command and a zero byte; received: a 4-byte big-endian length, and JSON.
    """
    command = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode() + b"\0"
    until = time.monotonic() + deadline_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(deadline_s)
            connection.connect(path)
            _require_peer(connection, pid)
            connection.sendall(command)
            (length,) = struct.unpack(">I", _exactly(connection, 4, until))
            if length > _ANSWER_BYTES_MAX:
                raise NotObservableError(f"the admin socket announces {length} bytes")
            answer = _exactly(connection, length, until)
    except TimeoutError:
        raise NotObservableError(f"the admin socket did not answer within {deadline_s:g} s") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise NotObservableError(f"the admin socket cannot be asked: {reason}") from None
    return _decode(answer, f"the admin socket's `{prefix}`")


def _require_peer(connection: socket.socket, pid: int) -> None:
    """The kernel says who listens: the path alone could by now be another's."""
    peer = struct.Struct("iII")
    found, _, _ = peer.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, peer.size))
    if found != pid:
        raise NotObservableError(f"process {found} listens on the admin socket, and not process {pid}")


def _exactly(connection: socket.socket, count: int, until: float) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise NotObservableError("the admin socket closed before its answer was complete")
        parts += part
    return bytes(parts)


def answered(
    conf: str | None,
    name: str | None,
    keyring: str | None,
    deadline_s: float,
    ask: Callable[[Cluster], dict[str, Any]],
) -> dict[str, Any]:
    """What `ask` says of a cluster, connected to for it alone; else the `reason` why it says nothing."""
    try:
        cluster = connect(conf, name, keyring, deadline_s)
        try:
            return ask(cluster)
        finally:
            cluster.close()
    except (NotObservableError, KeyError, TypeError, ValueError) as error:
        return {"reason": str(error)}


def contents_of_cluster(
    conf: str | None, name: str | None, keyring: str | None, deadline_s: float
) -> dict[str, Any]:
    """`pools` (name, protection, applications) and `file_systems` (name, pools); else the `reason`."""
    return answered(conf, name, keyring, deadline_s, _contents)


def _contents(cluster: Cluster) -> dict[str, Any]:
    pools = cluster.mon("osd dump")["pools"]
    file_systems = cluster.mon("fs ls")
    return {
        "pools": [
            {
                "name": pool["pool_name"],
                "protection": _protection_words(pool),
                "erasure": bool(pool.get("erasure_code_profile")),
                "applications": list(pool.get("application_metadata") or {}),
            }
            for pool in pools
        ],
        "file_systems": [
            {"name": one["name"], "pools": one["data_pools"], "metadata_pool": one["metadata_pool"]}
            for one in file_systems
        ],
    }


def _protection_words(pool: Mapping[str, Any]) -> str:
    if pool.get("erasure_code_profile"):
        return f"erasure-coded, profile {pool['erasure_code_profile']}"
    return f"{pool['size']} replica{'' if pool['size'] == 1 else 's'}"
