"""What a user says of the hosts of a study: `node[1-10]`, `hosts.yaml`, or the address of a Dask scheduler.

Read into frozen values; every error names file and line. What is written here is described in
`docs/many-hosts.md`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from leadline.errors import LeadlineError, SpecError
from leadline.foreign import read_plain, reading
from leadline.study.target import check_name, check_url
from leadline.tuning.settings import ROLES
from leadline.units import format_count
from leadline.yamlio.fields import Duration, Truth, Whole, guarded
from leadline.yamlio.problems import Vocabulary, translate
from leadline.yamlio.yaml_source import Document, DocumentKind, read_yaml

_BYTES_MAX = 256 << 10
_MANUAL = "see docs/many-hosts.md"
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SCHEDULER = re.compile(r"(tcp|tls)://[^\s/]+:[0-9]{1,5}")
HOSTS_MAX = 4096
_SSH_WORDS = {  # what `ssh.ssh_command` gives to ssh, each a plain value
    "username": str,
    "port": int,
    "client_keys": list,
    "known_hosts": str,
    "config": list,
}


@dataclass(frozen=True)
class TlsFiles:
    """PEM files, at the same paths on this host and on all others: who signs, and what each shows."""

    ca: str
    cert: str
    key: str | None = None


@dataclass(frozen=True)
class HostAsked:
    """One host as written. `address` is for SSH, None where a scheduler knows the host by its name.

    `roles` are what it is (`tuning.settings.ROLES`), none where the file does not say. `through` is a command
    that runs its call server in place of SSH: for a lab's client.
    """

    name: str
    address: str | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    ssh: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostsAsked:
    """Which hosts, and how they are reached. Times are seconds.

    `needs` is what of it runs in leadline's own Python on each host, in words; "" where its agent can do all.
    `scheduler` is the address of one of Dask's that runs; without it the `hosts` are reached by SSH. `tls`
    and `plain_tcp`, which allows what nobody encrypts, are for a scheduler. `same_machine` allows several
    hosts on one machine. `workers` is how many are waited for, at most for `wait_s`.
    """

    hosts: tuple[HostAsked, ...] = ()
    scheduler: str | None = None
    tls: TlsFiles | None = None
    plain_tcp: bool = False
    same_machine: bool = False
    workers: int | None = None
    clock_s: float = 5.0
    answer_s: float = 30.0
    wait_s: float = 60.0
    source: str = "--scheduler"
    needs: str = "what is asked of them"

    def as_json(self) -> dict[str, Any]:
        """Plain values for the manifest."""
        plain = asdict(self)
        del plain["needs"]  # it is asked of the study
        for host in plain["hosts"]:
            del host["through"]  # no command is taken from a manifest
        return plain

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HostsAsked:
        """The inverse of `as_json`. Raises ResultError where it is damaged."""
        with reading("what the manifest says of its hosts"):
            hosts = tuple(
                HostAsked(**{**one, "roles": tuple(one.get("roles", ())), "through": ()})
                for one in value["hosts"]
            )
            tls = None if value["tls"] is None else TlsFiles(**value["tls"])
            known = {name: one for name, one in value.items() if name in cls.__dataclass_fields__}
            return cls(**{**known, "hosts": hosts, "tls": tls})


def _check_host_name(value: object) -> str:
    if not isinstance(value, str) or not _HOST_NAME.fullmatch(value):
        raise SpecError(
            f"{value!r} is no name of a host",
            "names have up to 63 of A-Z, a-z, 0-9, dot, _ and -, and begin with a letter or digit",
        )
    return value


def plain_name(value: object) -> bool:
    """Whether a host may be called so: the name becomes part of paths."""
    return isinstance(value, str) and _HOST_NAME.fullmatch(value) is not None


def check_scheduler(value: object) -> str:
    """The address itself. Raises SpecError."""
    if not isinstance(value, str) or not _SCHEDULER.fullmatch(value):
        raise SpecError(
            f"{value!r} is no address of a Dask scheduler",
            "write tls://HOST:PORT or tcp://HOST:PORT, as the scheduler printed it when it started",
        )
    return value


def _check_targets(value: object) -> object:
    if isinstance(value, dict):
        return {check_name(name): check_url(url) for name, url in value.items()}
    return value


def _check_ssh(value: object) -> object:
    for name, given in (value if isinstance(value, dict) else {}).items():
        wanted = _SSH_WORDS.get(name)
        if wanted is None:
            raise SpecError(f"{name!r} is no option of SSH here", f"known are {', '.join(_SSH_WORDS)}")
        if not isinstance(given, wanted) or (wanted is int and isinstance(given, bool)):
            raise SpecError(f"{name}: {given!r} is of the wrong kind", f"write a {wanted.__name__}")
    return value


def _check_roles(value: object) -> object:
    """One word, or a list of them."""
    words = [value] if isinstance(value, str) else value
    for one in words if isinstance(words, list) else ():
        if one not in ROLES:
            raise SpecError(f"{one!r} is no role of a host", f"known are {', '.join(ROLES)}")
    return words


_Roles = Annotated[list[str], BeforeValidator(guarded(_check_roles))]
_Ssh = Annotated[dict[str, Any], BeforeValidator(guarded(_check_ssh))]
_Targets = Annotated[dict[str, str], BeforeValidator(guarded(_check_targets))]
_Scheduler = Annotated[str, BeforeValidator(guarded(check_scheduler))]


class _HostsSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _WrittenHost(_HostsSection):
    address: str | None = None
    targets: _Targets = {}
    python: str | None = None
    ssh: _Ssh = {}
    roles: _Roles = []


class _WrittenTls(_HostsSection):
    ca: str
    cert: str
    key: str | None = None


class _WrittenHosts(_HostsSection):
    hosts: dict[Annotated[str, BeforeValidator(guarded(_check_host_name))], _WrittenHost] = {}
    scheduler: _Scheduler | None = None
    workers: Annotated[int, Whole(1, HOSTS_MAX)] | None = None
    tls: _WrittenTls | None = None
    plain_tcp: Truth = False
    same_machine: Truth = False
    python: str | None = None
    ssh: _Ssh = {}
    clock_limit: Duration = Field(default=5_000_000_000, gt=0)
    answer_within: Duration = Field(default=30_000_000_000, gt=0)
    wait: Duration = Field(default=60_000_000_000, gt=0)


_TOP, _HOST, _TLS = (tuple(model.model_fields) for model in (_WrittenHosts, _WrittenHost, _WrittenTls))
_KIND = DocumentKind("hosts file", _MANUAL, "write `hosts:` and below it a line for each, or `scheduler: …`")


def _known(path: tuple[str | int, ...]) -> tuple[str, ...]:
    if len(path) == 1:
        return _TOP
    return _TLS if path[0] == "tls" else _HOST if path[0] == "hosts" and len(path) == 3 else ()


_WORDS = Vocabulary(
    _known, _MANUAL, {"name": "hosts", "nodes": "hosts", "host": "address", "user": "ssh", "role": "roles"}
)


def load_hosts(path: Path) -> HostsAsked:
    """The hosts that a file names. Raises SpecError with file and line."""
    with reading(path, "write one as in docs/many-hosts.md", SpecError):
        text = read_plain(path, _BYTES_MAX).decode()
    return read_hosts(text, str(path), os.environ)


def read_hosts(text: str, source: str, environment: Mapping[str, str]) -> HostsAsked:
    """The hosts that a document names. Raises SpecError with its line for whatever is wrong."""
    document = read_yaml(text, source, environment, _KIND)
    if not isinstance(document.value, dict):
        document.fail((), "no mapping", _KIND.example)
    value = {name: part for name, part in document.value.items()}
    if isinstance(value.get("hosts"), dict):  # `alpha:` alone is a host of that address
        value["hosts"] = {name: {} if one is None else one for name, one in value["hosts"].items()}
    try:
        found = _WrittenHosts.model_validate(value)
    except ValidationError as error:
        translate(error, document, _WORDS)
    _check_whole(found, document)
    hosts = tuple(
        HostAsked(
            name,
            None if found.scheduler else one.address or name,
            one.targets,
            one.python or found.python,
            {**found.ssh, **one.ssh},
            tuple(dict.fromkeys(one.roles)),
        )
        for name, one in found.hosts.items()
    )
    return HostsAsked(
        hosts,
        found.scheduler,
        None if found.tls is None else TlsFiles(**found.tls.model_dump()),
        found.plain_tcp,
        found.same_machine,
        found.workers or len(hosts) or None,
        found.clock_limit / 1e9,
        found.answer_within / 1e9,
        found.wait / 1e9,
        source,
    )


def _check_whole(found: _WrittenHosts, document: Document) -> None:
    """What the keys say together."""
    if not found.hosts and found.scheduler is None:
        document.fail(("hosts",), "no host is named", "name some, or `scheduler: tls://HOST:PORT`")
    if len(found.hosts) > HOSTS_MAX:
        document.fail(
            ("hosts",), f"{len(found.hosts)} hosts are named", f"at most {HOSTS_MAX} are known here"
        )
    if found.hosts and found.workers is not None and found.workers != len(found.hosts):
        document.fail(
            ("workers",),
            f"{format_count(found.workers, 'worker')} for {format_count(len(found.hosts), 'host')} by name",
            "leave it out",
        )
    _check_scheduler_alone(found, document)
    seen: dict[tuple[str, object], str] = {}
    for name, one in found.hosts.items():
        port = {**found.ssh, **one.ssh}.get("port", 22)
        other = seen.setdefault((one.address or name, port), name)
        if other != name and found.scheduler is None and not found.same_machine:
            document.fail(
                ("hosts", name, "address"),
                f"{one.address or name} is listed twice, as {other} and as {name}",
                "keep one of them; or write `same_machine: true` where that is meant",
            )


def _check_scheduler_alone(found: _WrittenHosts, document: Document) -> None:
    """What is for SSH has no meaning with a scheduler that runs already, and TLS none without one."""
    if found.scheduler is None:
        for key in ("tls", "plain_tcp"):
            if getattr(found, key):
                document.fail((key,), "is for a Dask scheduler: SSH encrypts by itself", "leave it out")
        return
    for key in ("ssh", "python"):
        if getattr(found, key):
            document.fail((key,), "is for hosts that are reached by SSH", "leave it or `scheduler` out")
    for name, one in found.hosts.items():
        for key in ("address", "ssh", "python"):
            if getattr(one, key):
                place = ("hosts", name, key)
                document.fail(place, "the scheduler knows its workers itself", "leave it out")


_LISTED = re.compile(r"(?:([A-Za-z_][\w.-]*)@)?([\w.-]*)(?:\[([0-9,-]+)\]([\w.-]*))?", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def is_list(text: str) -> bool:
    """Whether the value of --hosts names hosts, as `node[1-10]` does: a file has a slash or `.yaml`."""
    return bool(text) and "/" not in text and not text.endswith((".yaml", ".yml"))


def listed_hosts(text: str) -> HostsAsked:
    """The hosts of a list as Slurm writes them: `node[1-3,07-10],gw,me@edge`. Raises SpecError."""
    hosts: dict[str, HostAsked] = {}
    for part in re.split(r",(?![^\[]*\])", text):
        found = _LISTED.fullmatch(part)
        if found is None or not part:
            raise SpecError(
                f"{part!r} is no name of a host",
                "write node1,node2 or node[1-10]; write a file as ./NAME",
                source="--hosts",
            )
        user, before, ranges, after = found.groups()
        for middle in _numbers(ranges) if ranges else ("",):
            address = name = _check_host_name(f"{before}{middle}{after or ''}")
            if name in hosts:
                raise SpecError(f"{name} is listed twice", "keep one of them", source="--hosts")
            hosts[name] = HostAsked(name, address, ssh={"username": user} if user else {})
        if len(hosts) > HOSTS_MAX:
            raise SpecError(f"{text!r} names more than {HOSTS_MAX} hosts", "name fewer", source="--hosts")
    return HostsAsked(tuple(hosts.values()), workers=len(hosts), source=f"--hosts {text}")


def _numbers(ranges: str) -> Iterator[str]:
    """Each number of `1-3,07-10`, as long as its range is written."""
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if found is None or last < first or last - first >= HOSTS_MAX:
            raise SpecError(
                f"[{ranges}] is no range of numbers", "write [1-10] or [1,3,5-7]", source="--hosts"
            )
        yield from (f"{number:0{len(found[1])}}" for number in range(first, last + 1))


def asked_hosts(
    file: Path | str | None,
    scheduler: str | None,
    workers: int | None,
    *,
    plain_tcp: bool,
    same_machine: bool,
) -> HostsAsked | None:
    """What options of a command line say together; None where they name no hosts. Raises UsageError."""
    if file is not None and scheduler is not None:
        raise SpecError(
            "--hosts and --scheduler both name hosts", "give one; a hosts file may name a scheduler"
        )
    if file is None and scheduler is None:
        if workers is not None or plain_tcp or same_machine:
            raise SpecError(
                "--workers, --plain-tcp and --same-machine are for many hosts",
                "name them: --hosts node[1-10], --hosts FILE or --scheduler ADDRESS",
            )
        return None
    if file is not None:
        asked = listed_hosts(file) if isinstance(file, str) else load_hosts(file)
    else:
        try:
            asked = HostsAsked(scheduler=check_scheduler(scheduler))
        except LeadlineError as error:
            raise SpecError(error.message, error.remedy, source="--scheduler") from None
    if workers is not None and asked.hosts and workers != len(asked.hosts):
        raise SpecError(
            f"--workers {workers}, and {asked.source} names {len(asked.hosts)} hosts", "leave --workers out"
        )
    return replace(
        asked,
        workers=workers or asked.workers,
        plain_tcp=plain_tcp or asked.plain_tcp,
        same_machine=same_machine or asked.same_machine,
    )
