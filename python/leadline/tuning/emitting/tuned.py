"""A profile of tuned: kernel settings, files below /sys, network interfaces and the kernel's command line."""

from __future__ import annotations

from leadline.tuning.emitting.carrying import NotCarriedError, gather, plain
from leadline.tuning.emitting.delivery import AskedValue, DeliveredFile, Emission, Rendered, comments, hashed
from leadline.tuning.emitting.host_files import HEAD, cmdline, ethtool_words, sysctl_key

PATH = "/etc/tuned/leadline/tuned.conf"
_NETWORK = frozenset({"ring", "coalesce", "features", "pause", "channels"})


def tuned(emission: Emission) -> Rendered:
    """One file; `tuned-adm profile PRESENT leadline` puts it on top of the profile in force."""
    kept, left = gather(emission.asked, "tuned", _line)
    sections: dict[str, list[str]] = {}
    for one, (section, line) in kept:
        sections.setdefault(section, []).append(f"{hashed(comments(one))}{line}\n")
    body = "".join(
        f"\n[{name.partition(chr(10))[0]}]\n{name.partition(chr(10))[2]}{''.join(lines)}"
        for name, lines in sections.items()
    )
    head = (
        f"{HEAD}# apply: tuned-adm profile PRESENT leadline\n[main]\nsummary=settings chosen with leadline\n"
    )
    return Rendered((DeliveredFile(PATH, head + body),) if kept else (), left)


def _line(one: AskedValue) -> tuple[str, str]:
    """The section, with the lines that begin it, and the line."""
    plain(one.value, "#${}\\", "the value")
    kind = one.setting.access.kind
    if kind == "sysctl":
        return "sysctl", f"{sysctl_key(one)}={one.value}"
    if kind == "sysfs":
        path = one.setting.access.options["path"]
        name = plain(one.subject or "*", "/ =#${}[]", "the name")
        return "sysfs", f"{path.replace('{device}', name).replace('{interface}', name)}={one.value}"
    if kind == "cmdline":
        return (
            "bootloader",
            f"cmdline_leadline_{one.setting.access.options['parameter'].replace('.', '_')}=+ {cmdline(one)}",
        )
    return _network(one)


def _network(one: AskedValue) -> tuple[str, str]:
    _, interface, name, value = ethtool_words(one, one.subject or "*")
    group = one.setting.access.options["group"]
    if group not in _NETWORK:
        raise NotCarriedError(f"tuned has no {group} of network interfaces")
    plain(interface, " ,=#${}[]\\", "the interface")
    section = f"net_{''.join(letter if letter.isalnum() else '_' for letter in interface)}_{group}"
    devices = "" if interface == "*" else f"devices={interface}\n"
    return f"{section}\ntype=net\n{devices}", f"{group}={name} {value}"
