"""Mounts of a proof's own, one for each state, and what clients have in force.

Each is made like the mount that the target is on: the same cluster, user, root and options, but for the
settings of its state. Nothing of the cluster, nor of the mount in use, is changed. The kernel ends each with
the process that made it, so that also after kill -9 none is left.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import RefusedChangeError, ResultError, TuningError
from leadline.observe.mounts.fuse_client import arguments_again, environment_of, find_client
from leadline.observe.mounts.mountinfo import Mount, mount_of, read_mounts
from leadline.trusted import why_not_place
from leadline.tuning.access.interface import same_value
from leadline.tuning.proving.proof import OWN_MOUNT, ProofDesign, ProvedSetting
from leadline.tuning.proving.states import TargetClient, not_as_wanted

MOUNTS_MAX = 8  # each is a process with a cache of its own
_FILE_SYSTEM = "fuse.ceph-fuse"
_MOUNTED_WITHIN_S, _GONE_WITHIN_S, _LOOK_EVERY_S = 60.0, 20.0, 0.1
_WORDS_OF_FAILURE = 400
_NAME = re.compile(r"leadline-mounts-[0-9a-f]{12}")


def new_directory() -> str:
    """Where mounts are to be made, under a name that nobody can foresee."""
    return str(Path(tempfile.gettempdir(), f"leadline-mounts-{secrets.token_hex(6)}"))


@dataclass(frozen=True)
class ProofMounts:
    """`present` is the mount point that the target is on, and `below` where in it; the mounts of the states
    are made in `directory`, each with its `options`, Ceph's own, by state."""

    present: str
    below: str
    directory: str
    options: Mapping[str, Mapping[str, str]]

    def path(self, state: str) -> str:
        """Where the target is in that state."""
        return str(Path(self.directory, state, self.below))

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        options = {state: dict(one) for state, one in self.options.items()}
        return {
            "present": self.present,
            "below": self.below,
            "directory": self.directory,
            "options": options,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProofMounts:
        """The inverse of `as_json`. Raises ResultError where it is damaged."""
        try:
            options = {
                str(state): {str(name): str(text) for name, text in one.items()}
                for state, one in value["options"].items()
            }
            found = cls(str(value["present"]), str(value["below"]), str(value["directory"]), options)
        except (KeyError, TypeError, AttributeError) as error:
            raise ResultError(f"what the result says of its mounts is damaged: {error}", "") from None
        names = [name for one in options.values() for name in one]
        if not found.directory.startswith("/") or not _NAME.fullmatch(Path(found.directory).name):
            raise ResultError(
                f"what the result says of its mounts is damaged: {found.directory} is not their directory",
                "",
            )
        if not all(name.replace("_", "").isalnum() for name in names) or any(
            "/" in one or one in (".", "..") for one in options
        ):
            raise ResultError("what the result says of its mounts is damaged: no names", "")
        return found


def fuse_mount_of(path: str) -> Mount | None:
    """The mount of a ceph-fuse that holds this path; it is not touched."""
    mount = mount_of(os.path.abspath(path), read_mounts())  # noqa: PTH100 - links are not followed: it may hang
    return mount if mount is not None and mount.file_system == _FILE_SYSTEM else None


def proof_mounts(
    path: str, mount: Mount, directory: str, design: ProofDesign, values: Mapping[str, str]
) -> ProofMounts:
    """What is to be mounted so that `path` is there in each state. Raises RefusedChangeError."""
    if len(design.states) > MOUNTS_MAX:
        raise RefusedChangeError(
            f"{len(design.states)} states are {len(design.states)} mounts, more than {MOUNTS_MAX}",
            "prove fewer settings that need a mount at a time, or add --together or --one-by-one",
        )
    below = os.path.relpath(os.path.abspath(path), mount.mount_point)  # noqa: PTH100
    options = {state: {name: values[name] for name in on} for state, on in design.states.items()}
    return ProofMounts(mount.mount_point, "" if below == "." else below, directory, options)


@contextmanager
def mounted(wanted: ProofMounts) -> Iterator[dict[str, TargetClient]]:
    """All of them, for as long as it takes; by state, how its client is asked. Raises TuningError."""
    mount = fuse_mount_of(wanted.present)
    if mount is None or mount.mount_point != wanted.present:
        raise TuningError(
            f"no ceph-fuse is mounted at {wanted.present} any more, which the proof's mounts are made like",
            "mount it there, and go on then",
        )
    access = find_client(mount)
    if access.client_pid is None or access.distrusted:
        raise TuningError(
            f"the ceph-fuse of {wanted.present} is not to be asked: {access.distrusted or 'it is not seen'}",
            "prove it as the account whose mount it is",
        )
    with ExitStack() as stack:
        if why := why_not_place(Path(wanted.directory)):
            raise TuningError(
                f"nothing is mounted in {wanted.directory}: {why}",
                "set TMPDIR to a directory of this account's",
            )
        _directory(wanted.directory)
        stack.callback(_remove, wanted)
        clients = {}
        for state, options in wanted.options.items():
            point = Path(wanted.directory, state)
            _directory(str(point))
            stack.enter_context(_one(access.client_pid, wanted.present, point, options))
            client = client_at(str(point))
            if client is None:
                raise TuningError(f"the ceph-fuse of {point} cannot be asked what it has in force", "")
            clients[state] = client
        yield clients


def _is_mounted(point: Path) -> bool:
    return any(one.mount_point == str(point) for one in read_mounts())


def _directory(path: str) -> None:
    """One of ours, which nobody else may have put there meanwhile."""
    Path(path).mkdir(mode=0o700, exist_ok=True)
    seen = os.lstat(path)
    if seen.st_uid != os.geteuid() or not Path(path).is_dir() or Path(path).is_symlink():
        raise TuningError(f"{path} is not this account's directory", "see who made it, and remove it")


def _remove(wanted: ProofMounts) -> None:
    """What was made there, and nothing else."""
    directory = Path(wanted.directory)
    for state in wanted.options:
        for suffix in (".asok", ".log"):
            with suppress(OSError):
                (directory / f"{state}{suffix}").unlink()
        with suppress(OSError):  # in use as a mount, or somebody has put something there
            (directory / state).rmdir()
    with suppress(OSError):
        directory.rmdir()


@contextmanager
def _one(pid: int, present: str, point: Path, options: Mapping[str, str]) -> Iterator[None]:
    """One mount at `point`, like that of process `pid`."""
    if _is_mounted(point):
        raise TuningError(f"something is mounted at {point} already", "end what mounted it: umount it")
    program = shutil.which("ceph-fuse")
    if program is None:
        raise TuningError("ceph-fuse is not installed here", "install Debian's package ceph-fuse")
    words = [
        *("setpriv", "--pdeathsig", "TERM", "--", program, "-f"),
        *arguments_again(pid, present),
        f"--admin-socket={point}.asok",
        *(f"--{name}={value}" for name, value in options.items()),
        str(point),
    ]
    variables = {name: text for name, text in environment_of(pid).items() if name in _VARIABLES}
    log = Path(f"{point}.log")
    with log.open("wb") as errors:
        # A session of its own: Ctrl-C at a terminal must not unmount what is still written to.
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=f"/proc/{pid}/cwd",
            env={"PATH": os.environ.get("PATH", os.defpath), **variables},
            start_new_session=True,
        )
    try:
        _wait_mounted(process, point, log)
        yield
    finally:
        _unmount(process, point)


_VARIABLES = ("CEPH_CONF", "CEPH_ARGS", "CEPH_KEYRING", "LEADLINE_LAB")


def _wait_mounted(process: subprocess.Popen[bytes], point: Path, log: Path) -> None:
    until = time.monotonic() + _MOUNTED_WITHIN_S
    while not any(one.mount_point == str(point) and one.file_system == _FILE_SYSTEM for one in read_mounts()):
        ended = process.poll() is not None
        if ended or time.monotonic() > until:
            said = log.read_text(errors="replace").strip()[-_WORDS_OF_FAILURE:]
            why = f"it ended with {process.returncode}" if ended else f"not within {_MOUNTED_WITHIN_S:g} s"
            raise TuningError(
                f"ceph-fuse could not mount at {point}: {why}" + (f": {said}" if said else ""),
                "nothing else was changed",
            )
        time.sleep(_LOOK_EVERY_S)


def _unmount(process: subprocess.Popen[bytes], point: Path) -> None:
    """Whatever happens, nothing of it stays: what is busy for long is unmounted lazily."""
    until = time.monotonic() + _GONE_WITHIN_S
    unmount = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    while _is_mounted(point):
        late = time.monotonic() > until
        lazily = ["-l" if os.geteuid() == 0 else "-z"] if late else []
        subprocess.run([*unmount, *lazily, str(point)], capture_output=True, check=False, timeout=60)
        if late:
            break
        time.sleep(_LOOK_EVERY_S)
    try:
        process.wait(timeout=_GONE_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


class MountedStates:
    """`run.model.States` of mounts: each state is there all the time, and is only looked at."""

    def __init__(
        self, proved: Sequence[ProvedSetting], clients: Mapping[str, TargetClient], wanted: ProofMounts
    ) -> None:
        self._proved, self._clients, self._wanted = tuple(proved), clients, wanted

    def enter(self, state: str) -> None:
        """See `States`. Raises TuningError where a mount has not what it was made with."""
        if lacking := not_as_wanted(self.look(state)):
            raise TuningError(lacking, "see what else sets it: the mount was made with it")

    def look(self, state: str) -> Mapping[str, Any]:
        """See `States`."""
        wanted, found = self._wanted.options[state], {}
        for one in self._proved:
            name = one.setting.access.options["option"]
            value, reason = self._clients[state].option(name)
            meant = wanted.get(name, one.without[OWN_MOUNT])
            found[f"{one.setting.name} at {OWN_MOUNT}"] = {
                "wanted": meant,
                "found": meant if same_value(value, meant) else value,
                **({"reason": reason} if reason else {}),
            }
        return found

    def leave(self) -> tuple[str, ...]:
        """See `States`. They are unmounted once the study's files are gone, which lie in them."""
        return ()


def client_at(path: str) -> TargetClient | None:
    """The client of the mount that holds this path now; None where none can be asked."""
    mount = fuse_mount_of(path)
    found = None if mount is None else find_client(mount)
    if found is None or found.client_socket is None:
        return None
    return TargetClient(found.conf, found.name, found.keyring, found.client_socket, found.client_pid)
