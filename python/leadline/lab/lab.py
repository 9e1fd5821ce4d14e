"""A lab as one object: started, opened, inspected, taken down. What other code uses of this package."""

from __future__ import annotations

import os
import random
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.lab import bridge, mounts, record, registry, requirements, targets
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import process, stop
from leadline.lab.cluster.cluster import Builder, build
from leadline.lab.cluster.command import CephCommand
from leadline.lab.gateways import starter
from leadline.lab.inject import engine
from leadline.lab.inject.injection import Injection
from leadline.lab.journal import LabJournal
from leadline.lab.network import links, members
from leadline.lab.network import make as network
from leadline.lab.network.checks import check_topology
from leadline.lab.network.links import NetworkStatus
from leadline.lab.paths import choose_run_directory, labs_home
from leadline.lab.record import LabRecord
from leadline.lab.spec import DEFAULT_NAME, LabSpec, check_directory, check_name, check_spec
from leadline.lab.status import LabStatus, inspect
from leadline.lab.targets import LabTarget
from leadline.trusted import require_own_place

# An empty cluster takes about 30 MiB for each OSD; below this nothing could be measured either.
_FREE_BYTES_MIN = 2 << 30


def _silent(_: str) -> None:
    return


@dataclass(frozen=True)
class Lab:
    """A lab that exists: `record` is what its file said when it was opened."""

    record: LabRecord

    @property
    def directory(self) -> Path:
        """Where everything of the lab is."""
        return self.record.directory

    @property
    def variables(self) -> dict[str, str]:
        """The environment for programs that belong to the lab and end with it."""
        return process.environment(self.record.fsid, self.directory, os.environ)

    @property
    def ceph(self) -> CephCommand:
        """The `ceph` command of this lab."""
        return CephCommand(self.record.paths.conf, self.variables)

    def status(self) -> LabStatus:
        """What the lab is doing now. Logs that grew beyond their bound are cut on the way."""
        with suppress(OSError):
            process.trim_logs(self.record.paths.logs)
        return inspect(record.read_record(self.directory), self.variables)

    def network_status(self) -> NetworkStatus | None:
        """What passes each link of a lab with hosts, over half a second; None where there are none.

        Raises LabError where its network cannot be asked.
        """
        lab = record.read_record(self.directory)
        return None if lab.network is None else links.measure(lab.network, lab.paths, self.variables)

    def targets(self) -> list[LabTarget]:
        """Every way to reach this lab's storage, there or with the reason why not."""
        return targets.targets_of(record.read_record(self.directory))

    def shell_lines(self) -> str:
        """Lines for a shell's `eval` that point programs at this lab; of secrets, only the files' names."""
        lab = record.read_record(self.directory)
        values = targets.cluster_variables(lab) | {"CEPH_ARGS": "--id admin"} | targets.gateway_variables(lab)
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())

    def targets_from(self, client: str) -> list[LabTarget]:
        """Every way to this lab's storage from a client of its own. Raises UsageError where it is none."""
        lab = record.read_record(self.directory)
        return targets.targets_of(lab, members.client_of(lab, client).name)

    def targets_from_all(self) -> dict[str, list[LabTarget]]:
        """The same for every client, when all work at once: gateways of a kind are dealt out over them."""
        return targets.targets_of_all(record.read_record(self.directory))

    def mount(self, client: str, root: str = "/") -> tuple[Path, bool]:
        """Mounts `root` of the file system as a client; its mount point, and False where it was there.

        Raises UsageError for no client of a lab with hosts, LabError where it does not mount.
        """
        with self._changed() as journal:
            made = members.mount_client(journal, client, root)
            return journal.record.paths.client_mount(client), made

    def unmount(self, client: str) -> bool:
        """Undoes `mount`; False where nothing was mounted. Raises LabError where it is in use."""
        with self._changed() as journal:
            members.client_of(journal.record, client)
            return members.unmount_client(journal, client)

    @contextmanager
    def _changed(self) -> Iterator[LabJournal]:
        with record.locked(self.directory):
            yield LabJournal(record.read_record(self.directory), self.variables)

    def restart_gateway(self, name: str, say: Callable[[str], None] = _silent) -> None:
        """Ends a gateway that was started with the lab, if it runs, and starts it on the same port.

        Raises UsageError where it was not asked for, LabError where it does not start.
        """
        with self._changed() as journal:
            lab = journal.record
            if name not in lab.gateway_names:
                raise UsageError(f"lab {lab.name} was started without --gateways {name}", "Start it with.")
            chance = random.Random()  # noqa: S311 - ports, not secrets
            starter.restart(starter.Starter(journal, say, chance), name)

    def restart_daemon(self, name: str) -> None:
        """Ends a daemon such as osd.1 and starts it anew; who needs it waits for it.

        Raises UsageError where the lab has no such daemon, LabError where it does not end or start.
        """
        with self._changed() as journal:
            journal.restart(name)

    def inject(
        self, kind: str, on: str = "", options: Mapping[str, str] | None = None, for_s: float | None = None
    ) -> Injection:
        """Does a fault to the lab, which stays until `clear` or the lab's end, as `engine.inject` has it."""
        return engine.inject(self.directory, os.environ, kind, on, options, for_s)

    def clear(self, identifiers: Sequence[str] = ()) -> list[LabError]:
        """Undoes these faults, or all; returns why any could not be. Raises UsageError for an unknown one."""
        return engine.clear(self.directory, os.environ, identifiers)[1]

    def down(self, say: Callable[[str], None] = _silent) -> None:
        """Removes the lab: mounts, processes, files. Repeatable; raises LabError for what would not go."""
        stop.remove(self.directory, self.variables, say)


def open(name_or_directory: str | Path = "", variables: Mapping[str, str] = os.environ) -> Lab:
    """The lab of this name or in this directory (a Path, or text with a `/`); "" where there is only one.

    Raises UsageError where there is none.
    """
    if isinstance(name_or_directory, Path):
        directory: Path | None = registry.place_of(name_or_directory)
    elif name_or_directory:
        directory = registry.resolve(name_or_directory, variables)
    else:
        directory = registry.default_directory(variables)
    if directory is None:
        raise UsageError("there is no lab", "Start one with `leadline lab up`.")
    return Lab(record.read_record(directory))


def start(spec: LabSpec, say: Callable[[str], None] = _silent) -> Lab:
    """Starts a lab and returns when all its placement groups are active+clean and it is mounted.

    Raises UsageError where what was asked cannot be (nothing is left behind), LabError where a part did
    not start: then all processes are ended, and the files stay, for their logs, until `lab down`.
    """
    name, directory = _place(spec)
    spec = replace(spec, name=name, directory=directory)
    check_spec(spec)
    check_topology(spec)
    requirements.require_packages(mount=spec.mount)
    if spec.mount:
        mounts.require_fuse()
    if spec.bridge:
        bridge.require()
    if spec.topology is not None:
        network.require()
    made = _prepare(directory)
    with record.locked(directory):
        if not record.is_unborn(directory):
            raise UsageError(f"{directory} is in use meanwhile", "Choose another --dir.")
        try:
            _check_file_system(directory)
            if spec.topology is not None:
                wanted = [member.limits for member in spec.topology.members]
                ControlGroups("").require(wanted, directory)
            registry.claim(name, directory, os.environ)
        except (UsageError, LabError):
            (directory / record.LOCK).unlink()
            if made:
                directory.rmdir()
            registry.release(directory, os.environ)
            raise
        return _start_in(spec, name, directory, made, say)


def _start_in(spec: LabSpec, name: str, directory: Path, made: bool, say: Callable[[str], None]) -> Lab:
    fsid = str(uuid.uuid4())
    lab = LabRecord(
        name=name,
        fsid=fsid,
        spec=spec,
        directory=directory,
        run_directory=choose_run_directory(directory, fsid, os.environ),
        made_directory=made,
        owner_uid=os.geteuid(),
        created_unix_s=time.time(),
    )
    journal = LabJournal(lab, process.environment(fsid, directory, os.environ))
    try:
        journal.update()
        build(Builder(journal, say, random.Random(fsid)))  # noqa: S311 - ports, not secrets
        journal.update(state="up")
    except (LabError, OSError) as error:
        _stop_failed(journal)
        if isinstance(error, LabError):
            raise
        raise LabError(
            f"lab {name}: {error.filename or directory}: {error.strerror or error}",
            f"`leadline lab down {directory}` removes what is left.",
        ) from error
    except BaseException:  # interrupted: nobody will look at the logs
        say("interrupted: removing the lab")
        stop.stop_processes(journal.record, journal.variables, _silent)
        stop.remove_files(journal.record, say)
        registry.release(directory, os.environ)
        raise
    return Lab(journal.record)


def _stop_failed(journal: LabJournal) -> None:
    """Nothing of a failed lab may go on running unseen; its files stay, for the logs that the error names."""
    with suppress(LabError, OSError):  # the first error is the one to report
        journal.update(state="failed")
        stop.stop_processes(journal.record, journal.variables, _silent)


def _place(spec: LabSpec) -> tuple[str, Path]:
    """The lab's name and directory, from what was given of the two. Raises UsageError for one of others."""
    if spec.name:
        check_name(spec.name)
    if spec.directory is None:
        name = spec.name or DEFAULT_NAME
        registry.forget_gone(os.environ)
        require_own_place(labs_home(os.environ) / name, "--dir")
        return name, registry.resolve(name, os.environ)
    require_own_place(spec.directory, "--dir")  # each link on the way, too
    directory = spec.directory.resolve()
    check_directory(directory)
    return spec.name or registry.free_name(directory, os.environ), directory


def _prepare(directory: Path) -> bool:
    """Makes the lab's directory, or takes an empty one; True where it was made. Refuses any other."""
    try:
        directory.mkdir(parents=True, mode=0o700)
        _require_own_parents(directory)
    except FileExistsError:
        _require_empty(directory)
        return False
    except OSError as error:
        raise UsageError(f"{directory} cannot be made: {error.strerror}", "Choose another --dir.") from error
    return True


def _require_own_parents(directory: Path) -> None:
    """Another account may have been the first to make one."""
    try:
        require_own_place(directory, "--dir")
    except UsageError:
        with suppress(OSError):
            directory.rmdir()
        raise


def _require_empty(directory: Path) -> None:
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", "Choose another --dir.")
    with record.own_directory(
        directory
    ):  # `lab down` would not believe what is in a directory that others may write
        pass
    try:
        names = os.listdir(directory)  # noqa: PTH208
    except OSError as error:
        raise UsageError(f"{directory} cannot be read: {error.strerror}", "Choose another --dir.") from error
    if record.FILE in names:
        raise UsageError(
            f"there is already a lab in {directory}",
            f"Use it, or remove it with `leadline lab down {directory}`, or choose another NAME.",
        )
    if names and not record.is_unborn(directory):
        raise UsageError(f"{directory} is not empty and not a lab", "Choose another --dir.")


def _check_file_system(directory: Path) -> None:
    """BlueStore opens its file with O_DIRECT: where that fails, an OSD would only abort later."""
    space = os.statvfs(directory)
    if space.f_bavail * space.f_frsize < _FREE_BYTES_MIN:
        raise UsageError(
            f"{directory} has less than {_FREE_BYTES_MIN >> 30} GiB of free space", "Choose another --dir."
        )
    probe = directory / f"{record.FILE}.new"
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError as error:
        raise UsageError(
            f"{directory} is on a file system without direct I/O, which BlueStore needs ({error.strerror})",
            "Choose another --dir, for example below /var/tmp.",
        ) from error
    finally:
        probe.unlink(missing_ok=True)
