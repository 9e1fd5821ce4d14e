"""A data centre as somebody wrote it (YAML, format leadline.topology/1), read with the line of each value.

leadline brings some along: the clusters of published documents in small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from leadline.errors import SpecError, UsageError
from leadline.foreign import read_plain, reason_of
from leadline.lab.network.checks import MTU_MAX, MTU_MIN, available_bytes, dealt, expand, wrongs
from leadline.lab.network.topology import (
    COMPUTED_MAX,
    MEMBERS_MAX,
    MTU_DEFAULT,
    LabClient,
    LabHost,
    Link,
    MachineLimits,
    Switch,
    Topology,
    roles_of,
)
from leadline.lab.spec import OSDS_MAX, parse_erasure
from leadline.units import parse_bit_rate
from leadline.yamlio.fields import Rate, Size, Whole, guarded
from leadline.yamlio.problems import Vocabulary, suggest, translate
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, Document, DocumentKind, Path, read_yaml

FORMAT = "leadline.topology/1"
ERASURE_DEFAULT = (2, 1)
_MANUAL = "see docs/lab-topology.md"
_KIND = DocumentKind(noun="topology", manual=_MANUAL, example="see docs/lab-topology.md for an example")
_CPU_MAX = 1024.0


def _cores(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _CPU_MAX:
        raise SpecError(f"{value!r} is no number of cores", "write a number above 0, for example 0.5 or 2")
    return float(value)


def _some_memory(value: object) -> object:
    if value in (0, "0"):
        raise SpecError("no memory is no machine", "write a size such as 2G, or leave it out for no limit")
    return value


def _erasure(value: object) -> tuple[int, int]:
    try:
        return parse_erasure(value if isinstance(value, str) else repr(value))
    except UsageError as error:
        raise SpecError(error.message.removeprefix("--ec "), error.remedy) from error


def _nothing_is_empty(value: object) -> object:
    return {} if value is None else value


_BitRate = Annotated[int, BeforeValidator(guarded(parse_bit_rate))]
_Mtu = Annotated[int, Whole(MTU_MIN, MTU_MAX)]
_Cores = Annotated[float, BeforeValidator(guarded(_cores))]
_Memory = Annotated[Size, BeforeValidator(guarded(_some_memory))]
_Erasure = Annotated[tuple[int, int], BeforeValidator(guarded(_erasure))]


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _DescribedSwitch(_Described):
    uplink: str = ""
    rate: _BitRate = 0
    mtu: _Mtu | None = None


class _DescribedDisk(_Described):
    read: Rate = 0
    write: Rate = 0


class _DescribedBack(_Described):
    switch: str
    link: _BitRate = 0
    mtu: _Mtu | None = None


class _DescribedMember(_Described):
    switch: str
    link: _BitRate = 0
    mtu: _Mtu | None = None
    cpu: _Cores = 0.0
    memory: _Memory = 0


class _DescribedHost(_DescribedMember):
    osds: Annotated[int, Whole(0, OSDS_MAX)] = 0
    runs: tuple[str, ...] | None = None
    disk: Annotated[_DescribedDisk, BeforeValidator(_nothing_is_empty)] = _DescribedDisk()
    cluster: _DescribedBack | None = None


class _DescribedCentre(_Described):
    format: Literal["leadline.topology/1"] = "leadline.topology/1"
    source: str = Field("", max_length=200)
    scaled: tuple[str, ...] = ()
    ec: _Erasure | None = None
    osd_size: Size = 0
    mtu: _Mtu = MTU_DEFAULT
    striped: Literal["replicated", "erasure"] = "replicated"
    subvolume: str = ""
    metadata: tuple[str, ...] = ()
    switches: dict[str, Annotated[_DescribedSwitch, BeforeValidator(_nothing_is_empty)]]
    hosts: dict[str, _DescribedHost]
    clients: dict[str, _DescribedMember] = Field(default_factory=dict)


_SECTIONS: dict[str, type[_Described]] = {
    "switches": _DescribedSwitch,
    "hosts": _DescribedHost,
    "clients": _DescribedMember,
}
_INNER: dict[str, type[_Described]] = {"disk": _DescribedDisk, "cluster": _DescribedBack}
_Item = TypeVar("_Item", bound=_Described)


@dataclass(frozen=True)
class AskedLab:
    """A topology, and what its file says of the lab besides; "" and 0 where it does not."""

    topology: Topology
    erasure: tuple[int, int]
    osd_size_bytes: int = 0
    subvolume: str = ""


def load_topology(
    file: FilePath, environment: Mapping[str, str], erasure: str = "", *, made_here: bool = True
) -> AskedLab:
    """The topology of a file. Raises SpecError with file and line for whatever is wrong in it."""
    try:
        text = read_plain(file, SOURCE_MAX_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"cannot be read: {why}", "give a YAML file", source=str(file)) from None
    return read_topology(text, str(file), environment, erasure, made_here=made_here)


def read_topology(
    text: str, source: str, environment: Mapping[str, str], erasure: str = "", *, made_here: bool = True
) -> AskedLab:
    """The topology of a text; one to be `made_here` fits this machine. `erasure` is K+M as asked elsewhere.

    Raises SpecError with source and line for whatever is wrong in it.
    """
    document = read_yaml(text, source, environment, _KIND)
    if not isinstance(document.value, dict):
        document.fail((), "a topology is a mapping of keys", _KIND.example)
    try:
        written = _DescribedCentre.model_validate(document.value)
    except ValidationError as error:
        translate(error, document, Vocabulary(_known, _MANUAL))
    asked = _erasure_of(document, written, erasure)
    reader = _CentreReader(document, written, MEMBERS_MAX if made_here else COMPUTED_MAX)
    topology = reader.topology()
    for wrong in wrongs(topology, asked, available_bytes() if made_here else None, made_here=made_here):
        document.fail(reader.written_path(wrong.path), wrong.message, wrong.remedy)
    return AskedLab(topology, asked, written.osd_size, written.subvolume)


def _known(path: Path) -> Sequence[str]:
    """The keys that may stand where the last one of `path` does."""
    if len(path) == 1:
        return tuple(_DescribedCentre.model_fields)
    model = _INNER.get(str(path[-2]), _SECTIONS.get(str(path[0]))) if len(path) > 2 else None
    return tuple(model.model_fields) if model else ()


def _erasure_of(document: Document, written: _DescribedCentre, asked: str) -> tuple[int, int]:
    wanted = parse_erasure(asked) if asked else None
    if wanted and written.ec and wanted != written.ec:
        document.fail(("ec",), f"the file says {written.ec[0]}+{written.ec[1]}, --ec {asked}", "use one")
    return wanted or written.ec or ERASURE_DEFAULT


class _CentreReader:
    """Expands ranges of names; `origins` remembers where each name was written."""

    def __init__(self, document: Document, written: _DescribedCentre, most: int) -> None:
        self.document = document
        self.most = most
        self.written = written
        self.origins: dict[str, Path] = {}

    def topology(self) -> Topology:
        """The values, which may still contradict each other."""
        written = self.written
        switches = tuple(self._all("switches", written.switches, self._switch))
        hosts = tuple(self._all("hosts", written.hosts, self._host))
        clients = tuple(self._all("clients", written.clients, self._client))
        if all(host.runs is None for host in written.hosts.values()):
            hosts = tuple(
                replace(host, runs=roles_of(number, len(hosts))) for number, host in enumerate(hosts)
            )
        return Topology(
            switches,
            hosts,
            clients,
            scaled=written.scaled,
            source=written.source,
            metadata=tuple(
                name
                for index, text in enumerate(written.metadata)
                for name in self._expanded(text, ("metadata", index))
            ),
            striped_erasure=written.striped == "erasure",
        )

    def written_path(self, path: tuple[str, ...]) -> Path:
        """Where what a check names was written: in a range, as a rule."""
        origin = self.origins.get(path[1]) if len(path) > 1 else None
        return path if origin is None else (*origin, *path[2:])

    def _all(
        self, section: str, items: Mapping[str, _Item], make: Callable[[Path, str, int, int, _Item], Any]
    ) -> Iterator[Any]:
        for key, item in items.items():
            path: Path = (section, key)
            names = self._expanded(key, path)
            for index, name in enumerate(names):
                if name in self.origins:
                    line = self.document.place(self.origins[name]).line
                    self.document.fail(path, f"the name {name} is taken in line {line}", "choose another")
                self.origins[name] = path
                yield make(path, name, index, len(names), item)

    def _expanded(self, text: str, path: Path) -> tuple[str, ...]:
        try:
            return expand(text, self.most)
        except SpecError as error:
            self.document.fail(path, error.message, error.remedy)

    def _dealt(self, path: Path, text: str, index: int, count: int) -> str:
        """One of several switches: `switch: switch[1-3]` deals a range of members out over them."""
        return dealt(self._expanded(text, path), index, count) if "[" in text else text

    def _mtu(self, own: int | None) -> int:
        return self.written.mtu if own is None else own

    def _switch(self, path: Path, name: str, index: int, count: int, item: _DescribedSwitch) -> Switch:
        if not item.uplink:
            for key in ("rate", "mtu"):
                if key in item.model_fields_set:
                    self.document.fail((*path, key), f"is of an uplink, and {name} has none", "add `uplink`")
        above = self._dealt((*path, "uplink"), item.uplink, index, count)
        return Switch(name, above, Link(item.rate, self._mtu(item.mtu)) if above else Link())

    def _host(self, path: Path, name: str, index: int, count: int, item: _DescribedHost) -> LabHost:
        back = item.cluster
        apart = (*path, "cluster", "switch")
        return LabHost(
            name,
            self._dealt((*path, "switch"), item.switch, index, count),
            Link(item.link, self._mtu(item.mtu)),
            osds=item.osds,
            runs=item.runs or (),
            limits=MachineLimits(item.cpu, item.memory, item.disk.read, item.disk.write),
            cluster_switch="" if back is None else self._dealt(apart, back.switch, index, count),
            cluster_link=Link() if back is None else Link(back.link, self._mtu(back.mtu)),
        )

    def _client(self, path: Path, name: str, index: int, count: int, item: _DescribedMember) -> LabClient:
        return LabClient(
            name,
            self._dealt((*path, "switch"), item.switch, index, count),
            Link(item.link, self._mtu(item.mtu)),
            MachineLimits(item.cpu, item.memory),
        )


def reference_names() -> tuple[str, ...]:
    """What `--reference` takes, sorted."""
    folder = resources.files("leadline") / "lab" / "references"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def reference_text(name: str) -> str:
    """The YAML of one. Raises UsageError with the nearest name."""
    if name not in reference_names():
        raise UsageError(f"{name!r} is no cluster that leadline knows", suggest(name, reference_names()))
    return (resources.files("leadline") / "lab" / "references" / f"{name}.yaml").read_text(encoding="utf-8")


def reference_lab(name: str, erasure: str = "") -> AskedLab:
    """One of them, checked against this machine. Raises UsageError where it has not the memory."""
    asked = read_topology(reference_text(name), f"{name} (built-in)", {}, erasure)
    return replace(asked, topology=replace(asked.topology, reference=name))
