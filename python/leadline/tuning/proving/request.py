"""From `NAME=VALUE` to what is proved, and in which states several settings are measured. Nothing is changed.

What cannot be proved here is refused. Several are measured as one set, one by one, or in a fraction of all
their combinations in which each setting's own effect can be told.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import product
from typing import Any

from leadline.errors import LeadlineError, RefusedChangeError
from leadline.tuning.access.interface import same_value
from leadline.tuning.proving.proof import OWN_MOUNT, WITH, WITHOUT, DesignKind, ProofDesign, ProvedSetting
from leadline.tuning.proving.states import TargetClient, seen
from leadline.tuning.rows import in_bytes
from leadline.tuning.settings import Needs, Setting, SettingAccess, SettingChange, SettingPlace, Unit
from leadline.tuning.system import TuningSystem, version_key
from leadline.tuning.validity import dangerous
from leadline.yamlio.yaml_source import read_yaml

FACTORIAL_BLOCKS = 4  # an even number: states are measured in one order and then in the reverse


def design_of(kind: DesignKind, names: Sequence[str]) -> ProofDesign:
    """The states in which these settings are proved. Raises RefusedChangeError where there are too many."""
    if kind == "factorial" and len(names) > 1:
        return _factorial(names)
    if kind == "one_by_one" and len(names) > 1:
        states = {f"{WITH}_{at}": (name,) for at, name in enumerate(names, start=1)}
        return ProofDesign("one_by_one", {WITHOUT: (), **states})
    return ProofDesign("together", {WITHOUT: (), WITH: tuple(names)})


def _factorial(names: Sequence[str]) -> ProofDesign:
    """The smallest fraction in which no setting's effect is mixed up with that of two others together."""
    generators = _generators()
    most = max(generators)
    if len(names) > most:
        raise RefusedChangeError(
            f"{len(names)} settings are more than the {most} that one proof takes",
            "prove them in groups, the likely ones first; or: --one-by-one",
        )
    states = {}
    for row in fraction(generators[len(names)]):
        on = tuple(name for name, level in zip(names, row, strict=True) if level > 0)
        numbers = (str(names.index(name) + 1) for name in on)
        states["_".join((WITH, *numbers)) if on else WITHOUT] = on
    return ProofDesign("factorial", states)


def fraction(generators: str) -> list[tuple[int, ...]]:
    """The states of a design, by the level (-1 or 1) of each column; in the first of them all are -1.

    Every combination of the single letters is a state, and a word's level is the product of its letters'.
    """
    words = generators.split()
    letters = sorted(word for word in words if len(word) == 1)
    states = [
        [math.prod(levels[letters.index(letter)] for letter in word) for word in words]
        for levels in product((-1, 1), repeat=len(letters))
    ]
    return [tuple(-level * first for level, first in zip(state, states[0], strict=True)) for state in states]


def _generators() -> dict[int, str]:
    """By number of settings, the columns of its design."""
    text = files("leadline.tuning.proving").joinpath("designs.yaml").read_text(encoding="utf-8")
    table = read_yaml(text, "designs.yaml", {}).value["generators"]
    return {int(count): str(words) for count, words in table.items()}


# What an option's name begins with tells whose it is; Ceph's own word of services is empty for most.
_SECTIONS = {"osd": "osd", "bluestore": "osd", "mds": "mds", "client": "client", "fuse": "client"}
_SECTIONS |= {"objecter": "client", "mon": "mon", "mgr": "mgr"}
_UNITS: dict[str, Unit] = {"size": "bytes", "secs": "s", "millisecs": "ms", "bool": "switch"}
_UNITS |= {"uint": "count", "int": "count", "float": "count"}
_KINDS = ("ceph_config", "sysctl")
_LIVE: tuple[Needs, ...] = ("live", "reopen")
_ANEW: tuple[Needs, ...] = ("reconnect", "remount")  # each trial of a library's target does that by itself


def split_words(words: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` words. Raises RefusedChangeError."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not (name and sign and value.strip()) or not value.isprintable():
            raise RefusedChangeError(f"--with {word!r} is no NAME=VALUE", "write: --with osd_max_backfills=4")
        if name in found:
            raise RefusedChangeError(
                f"--with {name} is given twice", "one value of a setting is proved at a time"
            )
        found[name] = value.strip()
    return found


def known_settings(names: Collection[str], system: TuningSystem) -> Mapping[str, Setting]:
    """The table, and of what is not in it Ceph's own options, as the cluster describes them."""
    known = {name: _by_monitors(one) for name, one in system.known.items()}
    for name in names:
        if name not in known and (option := _of_ceph(name, system)) is not None:
            known[name] = option
    return known


def _by_monitors(setting: Setting) -> Setting:
    """A client's own option is set where the monitors keep it: they tell running clients and new ones."""
    if setting.access.kind != "fuse":
        return setting
    option = setting.access.options["option"]
    return replace(setting, access=SettingAccess("ceph_config", {"who": "client", "option": option}))


def proved_settings(
    asked: Mapping[str, str], system: TuningSystem, client: TargetClient | None, allowed: Collection[str]
) -> tuple[ProvedSetting, ...]:
    """What is proved, with what is in force without it. Raises RefusedChangeError, TuningError."""
    found = tuple(_proved(name, value, system, client) for name, value in asked.items())
    _refuse_exclusive(found)
    for one in found:
        _refuse_dangerous(one.setting, system, allowed)
    return found


def _refuse_exclusive(found: Collection[ProvedSetting]) -> None:
    for one in found:
        for other in found:
            if other.setting.name in one.setting.excludes:
                raise RefusedChangeError(
                    f"{one.setting.name} and {other.setting.name} exclude each other", "prove one at a time"
                )


def _proved(name: str, text: str, system: TuningSystem, client: TargetClient | None) -> ProvedSetting:
    setting = system.setting(name)
    value = setting_value(setting, text)
    _refuse_unprovable(setting, client, restarts=system.restart is not None)
    place = next(iter(system.places(setting)), None)
    if place is None:
        raise RefusedChangeError(f"{name} has no place here", "see that its host or cluster answers")
    if why := system.why_not(setting, place):
        raise RefusedChangeError(f"{name} cannot be set on {place.words}: {why}", "")
    return _with_before(setting, place, value, system, client)


def _unread(name: str, where: str, reason: str) -> RefusedChangeError:
    """Of a setting that could not be read, at a daemon or at all; who may not is told how to be allowed."""
    remedy = "nothing was changed"
    if "Permission denied" in reason:
        remedy += (
            "; options of Ceph are read and set as the target's own user: `ceph auth get client.NAME` shows"
            " what it may, `ceph auth caps` lets it do more (docs/tuning-prove.md)"
        )
    return RefusedChangeError(f"{name} cannot be read{f' at {where}' if where else ''}: {reason}", remedy)


def _with_before(
    setting: Setting, place: SettingPlace, value: str, system: TuningSystem, client: TargetClient | None
) -> ProvedSetting:
    reading = system.read(setting, place)
    if not reading.known:
        raise _unread(setting.name, "", reading.reason)
    _refuse_overridden(setting, place, system)
    without = {}
    for where, (now, reason) in seen(system, setting, place, client).items():
        if now is None:
            raise _unread(setting.name, where, reason)
        if same_value(now, value):
            raise RefusedChangeError(
                f"{setting.name} is {now} already at {where}", "there is nothing to prove: name another value"
            )
        without[where] = now
    return ProvedSetting(setting, SettingChange(setting.name, place, value, reading.before), without)


def needs_mounts(names: Collection[str], known: Mapping[str, Setting]) -> bool:
    """Whether one of these is an option of a client that a mount of ceph-fuse has for life."""
    return any(
        known[name].access.kind == "fuse" and known[name].needs in _ANEW
        if name in known
        else _SECTIONS.get(name.partition("_")[0]) == "client"
        for name in names
    )


def client_option(name: str, setting: Setting | None) -> str:
    """Ceph's option of a client that a setting is; None: of no table. Raises RefusedChangeError."""
    if setting is None and _SECTIONS.get(name.partition("_")[0]) == "client":
        return name
    if setting is None or (setting.access.options.get("who") != "client" and setting.access.kind != "fuse"):
        raise RefusedChangeError(
            f"{name} is no option of a client, and is proved otherwise than those that need a mount",
            "prove it by itself",
        )
    return str(setting.access.options["option"])


def mounted_settings(
    asked: Mapping[str, str],
    system: TuningSystem,
    client: TargetClient,
    mount_point: str,
    allowed: Collection[str],
) -> tuple[ProvedSetting, ...]:
    """What is proved by mounts of its own, with what the mount in use has. Raises RefusedChangeError."""
    found = []
    for name, text in asked.items():
        setting = system.setting(name)
        option = client_option(name, setting)
        value = setting_value(setting, text)
        _refuse_dangerous(setting, system, allowed)
        now, reason = client.option(option)
        if now is None:
            raise RefusedChangeError(
                f"{name} cannot be read at {mount_point}: {reason}", "nothing was changed"
            )
        if same_value(now, value):
            raise RefusedChangeError(
                f"{name} is {now} already at {mount_point}", "there is nothing to prove: name another value"
            )
        change = SettingChange(name, SettingPlace(mount_point), value, None)
        found.append(ProvedSetting(setting, change, {OWN_MOUNT: now}))
    _refuse_exclusive(found)
    return tuple(found)


def searched_setting(
    name: str,
    texts: Sequence[str],
    system: TuningSystem,
    client: TargetClient | None,
    allowed: Collection[str],
) -> tuple[ProvedSetting, tuple[str, ...]]:
    """A setting of which these values may be tried, with what is in force without, and the values as they
    are set. Raises RefusedChangeError, TuningError."""
    setting = system.setting(name)
    values = tuple(setting_value(setting, text) for text in texts)
    _refuse_unprovable(setting, client, restarts=False)  # each proposal would restart them
    _refuse_dangerous(setting, system, allowed)
    versions = system.versions()
    for value in values:
        if (danger := dangerous(setting, value, versions)) is not None:
            raise RefusedChangeError(f"{name}={value} is dangerous: {danger.words}", "leave it out")
    place = next(iter(system.places(setting)), None)
    if place is None:
        raise RefusedChangeError(f"{name} has no place here", "see that its host or cluster answers")
    if why := system.why_not(setting, place):
        raise RefusedChangeError(f"{name} cannot be set on {place.words}: {why}", "")
    _refuse_overridden(setting, place, system)
    reading = system.read(setting, place)
    if not reading.known:
        raise _unread(name, "", reading.reason)
    without = {}
    for where, (now, reason) in seen(system, setting, place, client).items():
        if now is None:
            raise _unread(name, where, reason)
        without[where] = now
    return ProvedSetting(setting, SettingChange(name, place, "", reading.before), without), values


def _refuse_overridden(setting: Setting, place: SettingPlace, system: TuningSystem) -> None:
    """What the monitors keep never comes into force where a daemon has the option from elsewhere."""
    if setting.access.kind != "ceph_config":
        return
    for one in system.in_force(setting, place):
        if one.origin in _STRONGER:
            raise RefusedChangeError(
                f"{setting.name} is {one.value} at {one.daemon} by {_STRONGER[one.origin]}, which wins over "
                "what the monitors keep",
                "take it out there, and prove it then; nothing was changed",
            )


_STRONGER = {
    "file": "its own configuration file",
    "env": "its environment",
    "cmdline": "its command line",
    "override": "a change at run time",
}


def setting_value(setting: Setting, text: str) -> str:
    """As it is set: sizes in bytes, within its bounds. Raises RefusedChangeError."""
    value = in_bytes(setting, text)
    if setting.one_of is not None and not any(same_value(value, one) for one in setting.one_of):
        raise RefusedChangeError(
            f"{setting.name} takes no {text!r}", f"it takes one of: {', '.join(setting.one_of)}"
        )
    if setting.at_least is None and setting.at_most is None:
        return value
    try:
        numbers = [float(part) for part in value.split()]
    except ValueError:
        raise RefusedChangeError(f"{setting.name} takes a number, not {text!r}", "") from None
    low, high = setting.at_least, setting.at_most
    if any((low is not None and one < low) or (high is not None and one > high) for one in numbers):
        bounds = f"from {'any' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"
        raise RefusedChangeError(f"{setting.name} takes no {text}", f"it takes {bounds} ({setting.unit})")
    return value


def _refuse_unprovable(setting: Setting, client: TargetClient | None, *, restarts: bool = False) -> None:
    """What proofs do not do yet, each with what to do instead."""
    if setting.access.kind not in _KINDS:
        raise RefusedChangeError(
            f"not proved by leadline yet: {setting.name}, which is set by {setting.access.kind}",
            "set it by hand, and compare a result before with one after: leadline compare",
        )
    if setting.needs in _ANEW and client is not None and client.anew:
        return
    if setting.needs == "restart" and setting.access.kind == "ceph_config" and restarts:
        return
    if setting.needs not in _LIVE:
        in_lab = "; on a lab its daemons are restarted" if setting.needs == "restart" else ""
        by_library = (
            "; on ceph-fuse, and as cephfs:// or rados://, the proof has own clients where this is enough; "
            "else mount it with and without, as two targets of one study: leadline run"
        )
        raise RefusedChangeError(
            f"not proved by leadline yet: {setting.name} needs {_NEEDS[setting.needs]} to take effect",
            "set it by hand, and compare a result before with one after: leadline compare"
            + (by_library if setting.needs in _ANEW else in_lab),
        )


_NEEDS: dict[Needs, str] = {
    "reconnect": "new connections",
    "remount": "a new mount",
    "restart": "a restart of its daemons",
    "reboot": "a reboot",
    "new_osd": "new OSDs",
    "new_file": "new files",
    "by_hand": "a hand",
}


def _refuse_dangerous(setting: Setting, system: TuningSystem, allowed: Collection[str]) -> None:
    if setting.irreversible:
        raise RefusedChangeError(
            f"{setting.name} cannot be taken back: {setting.irreversible}", "a proof takes everything back"
        )
    for price in setting.grave:
        if price.kind not in allowed:
            raise RefusedChangeError(
                f"{setting.name} costs {price.kind}: {price.words}",
                f"nothing was changed; where that is meant: --allow {price.kind}",
            )
    versions = system.versions()
    for one in setting.refused:
        have = versions.get(one.of)
        if have is None or one.state:
            continue
        key = version_key(have)
        since, until = version_key(one.since), version_key(one.until)
        if (not since or key >= since) and (not until or key < until):
            raise RefusedChangeError(f"{setting.name} is refused with {one.of} {have}: {one.words}", "")


def _of_ceph(name: str, system: TuningSystem) -> Setting | None:
    """An option that the table does not have, from what the cluster says of it; None where it has none."""
    try:
        said = system.around.ask("config help", key=name)
    except LeadlineError:
        return None
    section = _SECTIONS.get(name.partition("_")[0])
    if section is None:
        raise RefusedChangeError(
            f"not proved by leadline yet: {name}: its name does not show whose option it is",
            "osd_, bluestore_, mds_, client_, objecter_, mon_ and mgr_ are known",
        )
    return Setting(
        name=name,
        title=str(said.get("desc") or name),
        layer="client" if section == "client" else "osd" if section == "osd" else "mds",
        roles=(),
        access=SettingAccess("ceph_config", {"who": section, "option": name}),
        means=str(said.get("long_desc") or said.get("desc") or ""),
        unit=_UNITS.get(str(said.get("type")), "word"),
        default=str(said.get("default", "")),
        needs=_needs(said, section),
        persist="ceph",
        sources=("Ceph, `ceph config help`",),
        one_of=tuple(map(str, said.get("enum_values") or ())) or None,
        at_least=_number(said.get("min")),
        at_most=_number(said.get("max")),
    )


def _needs(said: Mapping[str, Any], section: str) -> Needs:
    """A client's option is taken to need a new client: Ceph says of many that they change at runtime, which
    only means that the new value is stored."""
    if section == "client":
        return "remount"
    return "live" if said.get("can_update_at_runtime") else "restart"


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
