"""The system as kinds of access meet it: root, network namespaces, cluster, programs; all with deadlines.

Tests hand in another root and another cluster. Nothing here knows what a lab is.

Whether a cluster is worse off than before a change, by its own health checks and placement groups.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from leadline.errors import LeadlineError, RefusedChangeError, TargetError, TuningError
from leadline.observe.ceph.parse import cluster_trouble
from leadline.tuning.settings import SettingPlace

if TYPE_CHECKING:
    from collections.abc import Iterator


IGNORE_HEALTH = "mend the cluster first; --ignore-health goes on all the same"
_RANK = {"HEALTH_OK": 0, "HEALTH_WARN": 1, "HEALTH_ERR": 2}


@dataclass(frozen=True)
class HealthSeen:
    """Checks by code with their severity and words; placement groups that serve nobody."""

    status: str
    checks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    groups_inactive: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HealthSeen:
        """The inverse of `as_json`."""
        checks = {code: (str(check[0]), str(check[1])) for code, check in value["checks"].items()}
        return cls(str(value["status"]), checks, int(value["groups_inactive"]))


def health_of(around: TunedSurroundings) -> HealthSeen:
    """What the cluster says now. Raises TuningError where it does not answer."""
    answer = around.ask("status")
    checks = {
        code: (str(check.get("severity", "")), str(check.get("summary", {}).get("message", "")))
        for code, check in answer.get("health", {}).get("checks", {}).items()
        if not check.get("muted")
    }
    groups = answer.get("pgmap", {}).get("pgs_by_state", ())
    inactive = sum(int(one["count"]) for one in groups if "active" not in one["state_name"].split("+"))
    return HealthSeen(str(answer.get("health", {}).get("status", "unknown")), checks, inactive)


def in_trouble(seen: HealthSeen) -> str:
    """Why nothing may be added or changed there, in words, as a run judges it; "" where nothing is wrong."""
    return cluster_trouble(seen.status, {code: words for code, (_, words) in seen.checks.items()})


def refuse_in_trouble(around: TunedSurroundings, remedy: str = IGNORE_HEALTH) -> None:
    """Raises RefusedChangeError where the cluster is in trouble, TuningError where it does not answer."""
    if why := in_trouble(health_of(around)):
        raise RefusedChangeError(f"{why}: nothing was changed", remedy)


def worsened(before: HealthSeen, now: HealthSeen, expected: Iterable[str] = ()) -> tuple[str, ...]:
    """In words, what is worse now. `expected` are checks that a change itself brings about."""
    found = []
    for code, (severity, words) in now.checks.items():
        was = before.checks.get(code)
        if code not in expected and (was is None or _RANK.get(severity, 1) > _RANK.get(was[0], 1)):
            found.append(f"{code}: {words}")
    if now.groups_inactive > before.groups_inactive:
        found.append(f"{now.groups_inactive} placement groups are not active")
    return tuple(found)


_ERASURE, _REPLICATED = 3, 1  # types of pools in Ceph's osd_types.h
_PAGE_BYTES = 4096


def holds(name: str, around: TunedSurroundings, place: SettingPlace) -> bool | None:
    """Whether a condition holds there; None where nobody can tell, or it has no such name."""
    if name not in _STATES:
        return None
    try:
        return _STATES[name](around, place)
    except (LeadlineError, KeyError, TypeError, ValueError, StopIteration):
        return None


def _pool(around: TunedSurroundings, place: SettingPlace) -> dict[str, Any]:
    rows: list[dict[str, Any]] = around.ask("osd dump")["pools"]
    return next(row for row in rows if row["pool_name"] == place.subject)


def _used_pool(around: TunedSurroundings, place: SettingPlace) -> bool:
    pools = around.ask("df")["pools"]
    return bool(next(one for one in pools if one["name"] == place.subject)["stats"]["objects"])


def _option(around: TunedSurroundings, option: str) -> str:
    """As the first OSD that is up has it in force."""
    up = next(row["osd"] for row in around.ask("osd dump")["osds"] if row["up"])
    return str(around.ask_osd(up, "config get", var=option)[option])


def _mclock(around: TunedSurroundings, _place: SettingPlace) -> bool:
    return _option(around, "osd_op_queue") == "mclock_scheduler"


def _builtin_profile(around: TunedSurroundings, place: SettingPlace) -> bool:
    return _mclock(around, place) and _option(around, "osd_mclock_profile") != "custom"


def _odd_chunks(around: TunedSurroundings, place: SettingPlace) -> bool:
    pool = _pool(around, place)
    if pool["type"] != _ERASURE:
        return False
    profile = around.ask("osd erasure-code-profile get", name=pool["erasure_code_profile"])
    chunk = int(pool["stripe_width"]) // int(profile["k"])
    return chunk % _PAGE_BYTES != 0


_STATES: Mapping[str, Callable[[TunedSurroundings, SettingPlace], bool]] = {
    "used_pool": _used_pool,
    "erasure": lambda around, place: _pool(around, place)["type"] == _ERASURE,
    "replicated": lambda around, place: _pool(around, place)["type"] == _REPLICATED,
    "used_osd": lambda _around, _place: True,  # who asks has one
    "mclock": _mclock,
    "builtin_profile": _builtin_profile,
    "odd_chunks": _odd_chunks,
}


_T = TypeVar("_T")
DEADLINE_S = 5.0
_CONNECT_S = 5.0
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
_FILE_BYTES_MAX = 1 << 20


class AskedCluster(Protocol):
    """What is asked of a cluster: `observe.ceph.client.Cluster`, or a test's own."""

    def mon(self, prefix: str, **arguments: Any) -> Any:
        """A monitor's JSON answer."""

    def text(self, prefix: str, **arguments: Any) -> str:
        """A monitor's answer as it stands; also commands that act."""

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        """An OSD's JSON answer."""

    def close(self) -> None:
        """Leave it."""


@dataclass
class TunedSurroundings:
    """One host, with the network namespaces that count as hosts of their own, and one cluster.

    `namespaces` are files of network namespaces by the name of their host (`lab:NAME/MEMBER`).
    """

    conf: Path | None = None
    client_name: str | None = None
    root: Path = Path("/")
    namespaces: Mapping[str, Path] = field(default_factory=dict)
    connect: Callable[[], AskedCluster] | None = None
    _cluster: AskedCluster | None = field(default=None, repr=False)
    _no_cluster: str = field(default="", repr=False)
    _fsid: str = field(default="", repr=False)

    # Files

    def path(self, absolute: str) -> Path:
        """Where a path of the system is."""
        return self.root / absolute.lstrip("/")

    def look(self, question: Callable[[], _T], about: str, host: str = "") -> _T:
        """What `question` returns, asked in a fork with a deadline, in that host's network and /sys.

        Raises OSError as the question does, TuningError where there is no answer.
        """
        from leadline.observe.hang_guard import in_fork

        namespace = self._namespace(host)

        def asked(_: object) -> _T:
            with _inside(namespace):
                return question()

        try:
            return in_fork(asked, about, DEADLINE_S)
        except TargetError as error:
            raise TuningError(error.message, error.remedy) from error

    def _namespace(self, host: str) -> str:
        if not host:
            return ""
        if host not in self.namespaces:
            raise TuningError(f"{host} is not there any more", "see `leadline lab list`")
        return str(self.namespaces[host])

    def read(self, absolute: str, host: str = "") -> str:
        """The text of a small file of the kernel's. Raises OSError or TuningError."""
        path = self.path(absolute)

        def text() -> str:
            with path.open("rb") as file:
                return file.read(_FILE_BYTES_MAX).decode("utf-8", "replace")

        return text() if _never_hangs(absolute, host) else self.look(text, str(path), host)

    def write(self, absolute: str, text: str, host: str = "") -> None:
        """One write of a file of the kernel's. Raises TuningError with what the kernel says."""
        path = self.path(absolute)

        def put() -> None:
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, text.encode() + b"\n")
            finally:
                os.close(descriptor)

        try:
            self.look(put, str(path), host)
        except OSError as error:
            raise TuningError(
                f"{path} does not take {text!r}: {error.strerror}",
                "run this as root" if os.geteuid() else "",
            ) from error

    def match(self, pattern: str, host: str = "") -> tuple[str, ...]:
        """The absolute paths that a pattern names, sorted; none where nothing answers."""
        base, relative = self.root, pattern.lstrip("/")

        def names() -> list[str]:
            return sorted(str(one.relative_to(base)) for one in base.glob(relative))

        try:
            found = names() if _never_hangs(pattern, host) else self.look(names, pattern, host)
        except (OSError, LeadlineError):
            return ()
        return tuple(f"/{one}" for one in found)

    # Hosts

    def hosts(self) -> tuple[str, ...]:
        """Whose network is meant: of a lab with hosts those, else this host."""
        return tuple(self.namespaces) or ("",)

    def life(self, host: str) -> str:
        """Names this boot of the kernel, or this very namespace; "" where it is not there."""
        if host:
            try:
                found = self.namespaces[host].stat()
            except (KeyError, OSError):
                return "gone"
            return f"net:{found.st_dev}:{found.st_ino}:{self.life('')}"
        try:
            return "boot:" + self.read("/proc/sys/kernel/random/boot_id").strip()
        except (OSError, LeadlineError):
            return ""

    # Programs

    def run(self, command: Sequence[str], host: str = "", deadline_s: float = 10.0) -> str:
        """What a program printed. Raises TuningError where it is missing, fails or takes too long."""
        from leadline.observe.hang_guard import finish

        if shutil.which(command[0]) is None:
            raise TuningError(f"the program {command[0]} is not installed", f"apt-get install {command[0]}")
        entered = ["nsenter", f"--net={self._namespace(host)}"] if host else []
        # Where this program is killed, what it started must not go on by itself: a revert may come next.
        done = finish(["setpriv", "--pdeathsig", "KILL", *entered, *command], deadline_s)
        words = " ".join(command[:6])
        if done.exit_code is None:
            raise TuningError(f"no answer within {deadline_s:g} s from: {words}", "see what it waits for")
        if done.exit_code != 0:
            said = (done.errors or done.output).decode("utf-8", "replace").strip().splitlines()
            raise TuningError(f"{words} failed: {said[-1] if said else f'exit code {done.exit_code}'}", "")
        return done.output.decode("utf-8", "replace")

    # The cluster

    def cluster(self) -> AskedCluster:
        """The cluster, connected to when it is first asked. Raises TuningError with the reason."""
        from leadline.observe.ceph.client import NotObservableError, connect

        if self._cluster is None:
            if self._no_cluster:
                raise TuningError(self._no_cluster, "see `leadline doctor`")
            try:
                if self.connect is not None:
                    self._cluster = self.connect()
                else:
                    conf = None if self.conf is None else str(self.conf)
                    self._cluster = connect(conf, self.client_name, None, _CONNECT_S)
            except NotObservableError as error:
                self._no_cluster = str(error)
                raise TuningError(self._no_cluster, "see `leadline doctor`") from error
        return self._cluster

    def ask(self, prefix: str, **arguments: Any) -> Any:
        """A monitor's JSON answer. Raises TuningError."""
        return self._asked(lambda cluster: cluster.mon(prefix, **arguments))

    def ask_osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        """An OSD's JSON answer. Raises TuningError."""
        return self._asked(lambda cluster: cluster.osd(osd, prefix, **arguments))

    def command(self, prefix: str, **arguments: Any) -> str:
        """A monitor's plain answer; also for commands that act. Raises TuningError with its own words."""
        return self._asked(lambda cluster: cluster.text(prefix, **arguments))

    def _asked(self, question: Callable[[AskedCluster], _T]) -> _T:
        from leadline.observe.ceph.client import NotObservableError

        try:
            return question(self.cluster())
        except NotObservableError as error:
            raise TuningError(error.message, error.remedy) from error

    def fsid(self) -> str:
        """The cluster's identity. Raises TuningError where it does not answer."""
        if not self._fsid:
            self._fsid = str(self.ask("status")["fsid"])
        return self._fsid

    def again(self) -> None:
        """Forget that a cluster did not answer: the next question connects anew."""
        self._no_cluster = ""

    def close(self) -> None:
        """Leave the cluster."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def _never_hangs(absolute: str, host: str) -> bool:
    """What the kernel says of itself is read at once; a fork for each would take most of the time."""
    return not host and absolute.startswith(("/proc/", "/sys/"))


def _inside(namespace: str) -> Any:
    return _own_network(namespace) if namespace else nullcontext()


@contextmanager
def _own_network(namespace: str) -> Iterator[None]:
    """In a fork: that network namespace, with a /sys that shows its devices. The fork ends with it."""
    from leadline.observe.network.sockets import entered

    library = ctypes.CDLL(None, use_errno=True)
    with entered(namespace):
        if library.unshare(_CLONE_NEWNS) == 0:
            library.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
            library.mount(b"sysfs", b"/sys", b"sysfs", ctypes.c_ulong(0), None)
        yield
