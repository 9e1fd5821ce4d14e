"""One answer over many hosts: each judged by its own readings, versions and roles, and all compared.

Asks nobody: what hosts and cluster said is handed in. It and settings as plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from leadline.tuning.audit import AuditAsked, Audited, AuditRow, SettingSeen, audit, in_order
from leadline.tuning.settings import Role, Setting, SettingPlace
from leadline.tuning.validity import Versions, default_on, exists, obsolete, same_value

LIST_FORMAT = "leadline.settings/1"
AUDIT_FORMAT = "leadline.audit/1"


def setting_json(one: Setting, versions: Versions) -> dict[str, Any]:
    """All that its row says, and what that is on these versions."""
    old = obsolete(one, versions)
    return {
        **asdict(one),
        "access": {"kind": one.access.kind, **one.access.options},
        "here": {
            "default": default_on(one, versions),
            "exists": exists(one, versions),
            "obsolete": None if old is None else old.words,
        },
    }


def audit_json(found: Audited, versions: Versions, hosts: Sequence[HostRead] = ()) -> dict[str, Any]:
    """The rows in their order, what is set, and what could not be read; `hosts` where others were audited."""
    told = [
        {
            "name": one.name,
            "roles": list(one.roles),
            "versions": dict(one.versions),
            "problem": one.problem or None,
        }
        for one in hosts
    ]
    return {
        "format": AUDIT_FORMAT,
        "versions": dict(versions),
        "rows": [row.as_json() for row in found.rows],
        "set": [_seen_json(one) for one in found.set_here],
        "unknown": [{**_seen_json(one), "reason": one.reason} for one in found.unknown],
    } | ({"hosts": told} if hosts else {})


def _seen_json(one: SettingSeen) -> dict[str, Any]:
    return {"setting": one.setting.name, "place": asdict(one.place), "value": one.value}


_SHOWN = 3  # hosts, places or values; the others are counted
_COMPARED = "comparison of the hosts"
_Values = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class HostRead:
    """A host of an audit: what it said, or the `problem`, in words that follow its name."""

    name: str
    roles: tuple[Role, ...]
    versions: Versions
    seen: tuple[SettingSeen, ...] = ()
    problem: str = ""


def audit_hosts(
    known: Mapping[str, Setting], hosts: Sequence[HostRead], cluster: Sequence[SettingSeen], asked: AuditAsked
) -> Audited:
    """Judge hosts and their cluster together; `asked` has the cluster's versions and which of it is meant."""
    own = {name: one for name, one in known.items() if not one.of_cluster}
    of_cluster = {name: one for name, one in known.items() if one.of_cluster}
    there = [one for one in hosts if not one.problem]
    found = [audit(of_cluster, cluster, asked)]
    found += [audit(own, one.seen, replace(asked, versions=one.versions, roles=one.roles)) for one in there]
    somewhere = {one.setting.name for host in there for one in host.seen}
    rows = [row for one in found for row in one.rows if row.places or row.setting.name not in somewhere]
    return Audited(
        in_order([*rows, *_differing(own, there, asked)]),
        tuple(seen for one in found for seen in one.set_here),
        tuple(seen for one in found for seen in one.unknown),
    )


def _differing(
    known: Mapping[str, Setting], hosts: Sequence[HostRead], asked: AuditAsked
) -> Iterator[AuditRow]:
    """Settings whose values are not the same on all hosts of a role, at the places that have one name."""
    values: dict[str, dict[str, dict[str, str]]] = {}  # setting, subject, host
    for host in hosts:
        for one in host.seen:
            if one.value is not None:
                values.setdefault(one.setting.name, {}).setdefault(one.place.subject, {})[host.name] = (
                    one.value
                )
    for setting in (known[name] for name in values if name in known):
        subjects: dict[_Values, list[str]] = {}
        for subject, by_host in values[setting.name].items():
            for parted in _parted(setting, by_host, hosts):
                subjects.setdefault(parted, []).append(subject)
        cause = next((one for one in asked.causes if one.name in setting.serves), None)
        for parted, at in subjects.items():
            odd = _odd(parted)
            places = tuple(
                SettingPlace(subject, host) for _, those in odd for host in those for subject in at
            )
            value = odd[0][0] if len(odd) == 1 else None
            yield AuditRow(
                "differs",
                setting,
                places,
                value,
                _parted_words(parted),
                _COMPARED,
                cause=cause,
                values=parted,
            )


def _parted(setting: Setting, by_host: Mapping[str, str], hosts: Sequence[HostRead]) -> Iterator[_Values]:
    """Which hosts have which value, where those of one role have several; of the largest roles only."""
    found: dict[frozenset[str], _Values] = {}
    for role in setting.roles:
        group = [one.name for one in hosts if role in one.roles and one.name in by_host]
        classes: dict[str, list[str]] = {}
        for name in group:
            same = next((value for value in classes if same_value(value, by_host[name])), by_host[name])
            classes.setdefault(same, []).append(name)
        if len(classes) > 1:
            ordered = sorted(classes.items(), key=lambda one: -len(one[1]))
            found[frozenset(group)] = tuple((value, tuple(those)) for value, those in ordered)
    for names, parted in found.items():
        if not any(names < other for other in found):
            yield parted


def _odd(parted: _Values) -> _Values:
    """Those that most hosts do not agree with; all of them where no value is the most hosts'."""
    return parted[1:] if len(parted[0][1]) > len(parted[1][1]) else parted


def _parted_words(parted: _Values) -> str:
    """`node07 has 1; the other 11 have 0`."""
    odd = _odd(parted)
    words = [f"{names_words(those)} {_has(those)} {value}" for value, those in odd[:_SHOWN]]
    more = [f"{len(odd) - _SHOWN} further values on other hosts"] if len(odd) > _SHOWN else []
    if len(odd) == len(parted):
        return ", ".join([*words, *more])
    value, most = parted[0]
    others = f"the other {len(most)} have" if len(most) > 1 else f"{most[0]} has"
    return f"{', '.join([*words, *more])}; {others} {value}"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def names_words(names: Sequence[str]) -> str:
    """`node1, node2, node3 and 4 more`."""
    if len(names) <= _SHOWN + 1:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"


def where_words(places: Iterable[SettingPlace], hosts: Sequence[HostRead]) -> str:
    """The places by their hosts, all of these in a word; without `hosts` those of this host's own audit."""
    on: dict[tuple[str, str], list[str]] = {}  # the hosts of a subject of a cluster's, or of none
    for place in places:
        on.setdefault((place.subject, place.cluster), []).append(place.host)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (subject, cluster), names in on.items():
        together.setdefault((cluster, tuple(names)), []).append(subject)
    words = []
    for (cluster, those), subjects in together.items():
        whole = "the cluster" if cluster else _hosts_words(those, hosts)
        named = [subject for subject in subjects if subject]
        words.append(" on ".join(part for part in (names_words(named) if named else "", whole) if part))
    if not words:
        return "not here"
    more = len(words) - _SHOWN
    found = ", ".join(one or "this host" for one in words[:_SHOWN])
    return found + (f" and {more} more places" if more > 0 else "")


def _hosts_words(names: Sequence[str], hosts: Sequence[HostRead]) -> str:
    """ "" is this host, which no other is to be told from."""
    read = [one.name for one in hosts if not one.problem]
    if len(read) > 1 and set(names) == set(read):
        silent = " that answered" if len(read) < len(hosts) else ""
        return f"both hosts{silent}" if len(read) == 2 else f"all {len(read)} hosts{silent}"
    return names_words(names)
