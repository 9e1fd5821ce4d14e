"""What a setting is, in sentences: what `leadline tune explain` prints, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline.errors import UsageError
from leadline.tuning.audit import by_words
from leadline.tuning.settings import Advice, Setting, SettingValidity
from leadline.tuning.validity import Versions, default_on, exists, obsolete

NEEDS: Mapping[str, str] = {
    "live": "nothing: it holds at once",
    "reconnect": "new connections",
    "reopen": "the interface or file to be opened anew",
    "remount": "a new mount",
    "restart": "a restart of the daemon",
    "reboot": "a reboot",
    "new_osd": "an OSD that is made anew",
    "new_file": "files that are made afterwards",
    "by_hand": "a hand",
}
PERSISTS: Mapping[str, str] = {
    "sysctl": "a file in /etc/sysctl.d",
    "udev": "a rule of udev",
    "grub": "the kernel's command line (GRUB)",
    "modprobe": "a file in /etc/modprobe.d",
    "systemd": "a unit of systemd",
    "link": "a .link file of systemd, or the network's own configuration",
    "fstab": "/etc/fstab",
    "ceph": "the monitors' configuration, or ceph.conf",
    "cluster": "the cluster itself",
    "by_hand": "a hand",
}
_WAYS = {"up": "rises", "down": "falls"}


def find_setting(name: str, known: Mapping[str, Setting]) -> Setting:
    """The setting of this name. Raises UsageError with the names that are near."""
    if name in known:
        return known[name]
    import difflib

    plain = name.strip().lower().replace(" ", "_")
    inside = [one for one in known if plain and (plain in one or one.rpartition(".")[2] == plain)]
    near = list(dict.fromkeys([*inside, *difflib.get_close_matches(plain, known, n=4, cutoff=0.6)]))[:4]
    remedy = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"there is no setting {name!a}", f"{remedy}leadline tune list has all of them")


def paragraphs(
    one: Setting, versions: Versions, figures: Mapping[str, str], causes: Mapping[str, str]
) -> Iterator[str]:
    """What it is, what it costs and moves, what documents advise and whether that holds."""
    yield f"{one.name}: {one.title}"
    yield f"  {one.means}"
    yield f"Default: {_default(one, versions)}; {range_words(one)}."
    yield f"Of: {', '.join(one.roles)} ({one.layer.replace('_', ' ')}). Read by {access_words(one)}."
    yield f"To take effect it needs {NEEDS[one.needs]}; it is kept by {PERSISTS[one.persist]}."
    for price in one.prices:
        grave = ", so that it needs a flag of its own" if price in one.grave else ""
        yield f"Trade-off: {price.kind}{grave}: {price.words}."
    if one.irreversible:
        yield f"IRREVERSIBLE: {one.irreversible}."
    yield from _here(one, versions)
    for danger in one.danger:
        values = danger_values(danger.one_of, danger.below, danger.above)
        yield f"DANGEROUS {span_words(one.of, danger.since, danger.until)}: {values}: {danger.words}."
    if one.excludes:
        yield f"Not together with {', '.join(one.excludes)}."
    for move in one.moves:
        words = figures.get(move.figure, "a column of each trial")
        yield f"If it works as meant, {move.figure} {_WAYS[move.direction]} ({words})."
    if one.serves:
        yield f"It can mend: {', '.join(f'{causes.get(name, name)} ({name})' for name in one.serves)}."
    yield from (advice_words(told) for told in one.advice)
    yield f"Sources: {'; '.join(one.sources)}."


def _default(one: Setting, versions: Versions) -> str:
    found = default_on(one, versions)
    older = [f"{was.value} before {one.of} {was.until}" for was in one.was]
    return f"{found}" + (f" ({', '.join(older)}; {one.default} today)" if older else "")


def range_words(one: Setting) -> str:
    """What it may be, in words."""
    if one.one_of is not None:
        return f"one of {', '.join(one.one_of)}"
    parts = [
        f"{words} {number:.15g}"
        for words, number in (("at least", one.at_least), ("at most", one.at_most))
        if number is not None
    ]
    number = f"{one.parts} numbers, " if one.parts > 1 else ""
    return f"{number}{one.unit}" + (f", {', '.join(parts)}" if parts else "")


def access_words(one: Setting) -> str:
    """Where it is read and set."""
    options = one.access.options
    words = {
        "sysctl": "sysctl {key}",
        "sysfs": "{path}",
        "ethtool": "ethtool ({group}, {name})",
        "ceph_config": "ceph config get {who} {option}",
        "ceph_pool": "ceph osd pool get POOL {option}",
        "ceph_fs": "ceph fs get NAME ({option})",
        "ceph_flag": "ceph osd dump, its flags ({flag})",
        "fuse": "the socket of ceph-fuse, config get {option}",
        "mount": "/proc/self/mountinfo ({option})",
        "xattr": "getfattr -n {name} DIRECTORY",
        "cmdline": "/proc/cmdline ({parameter})",
        "by_hand": "hand: {words}",
    }[one.access.kind]
    for key, value in options.items():
        words = words.replace(f"{{{key}}}", value)
    return words


def _here(one: Setting, versions: Versions) -> Iterator[str]:
    have = versions.get(one.of, "")
    if exists(one, versions) is False:
        yield f"NOT HERE: {one.of} {have} does not have it: {one.valid[0].words}."
    old = obsolete(one, versions)
    if old is not None:
        yield f"OBSOLETE: {old.words}."
    for why in one.refused:
        yield f"REFUSED {validity_words(why)}: {why.words}{f' [{why.source}]' if why.source else ''}."


def validity_words(one: SettingValidity) -> str:
    """Of which versions it is said, and on which condition."""
    from leadline.tuning.settings import STATES

    span = span_words(one.of, one.since, one.until)
    return f"{span}, where {STATES[one.state]}" if one.state else span


def span_words(of: str, since: str, until: str) -> str:
    """From which version to which."""
    if since:
        return f"from {of} {since} to before {until}" if until else f"from {of} {since} on"
    return f"before {of} {until}" if until else "on every version"


def danger_values(one_of: tuple[str, ...], below: float | None, above: float | None) -> str:
    """The values that are dangerous."""
    parts = [" or ".join(one_of)] if one_of else []
    parts += [
        f"{words} {number:.15g}"
        for words, number in (("below", below), ("above", above))
        if number is not None
    ]
    return ", ".join(parts)


def advice_words(told: Advice) -> str:
    """Who advises what, and whether it holds."""
    what = told.value if told.times is None else f"{told.times:g} times what is in force"
    state = "It holds" if told.holds else "It does not hold (any more)"
    return f"{by_words(told)}: {what}. {state}: {told.words}."
