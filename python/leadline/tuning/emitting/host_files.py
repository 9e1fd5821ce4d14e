"""Files of a host that keep its settings over a boot, each as its program reads it; a profile of tuned."""

from __future__ import annotations

import re
from collections.abc import Callable

from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    Emission,
    NotCarriedError,
    Rendered,
    comments,
    device_attribute,
    gather,
    hashed,
    module_parameter,
    of_each_device,
    plain,
)

TUNED_PATH = "/etc/tuned/leadline/tuned.conf"
_NETWORK = frozenset({"ring", "coalesce", "features", "pause", "channels"})


def tuned(emission: Emission) -> Rendered:
    """One file; `tuned-adm profile PRESENT leadline` puts it on top of the profile in force."""
    kept, left = gather(emission.asked, "tuned", _tuned_line)
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
    return Rendered((DeliveredFile(TUNED_PATH, head + body),) if kept else (), left)


def _tuned_line(one: AskedValue) -> tuple[str, str]:
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


_Effect = tuple[tuple[str, ...], ...]
HEAD = "# written by `leadline tune emit`\n"
SYSCTL = "/etc/sysctl.d/90-leadline.conf"
UDEV = "/etc/udev/rules.d/90-leadline.rules"
MODPROBE = "/etc/modprobe.d/leadline.conf"
TMPFILES = "/etc/tmpfiles.d/leadline.conf"
GRUB = "/etc/default/grub.d/90-leadline.cfg"
_DEVICE = re.compile(r"[A-Za-z0-9_.:*-]+")  # of a match; udev would take more, and mean patterns by it
_NOT_IN_OPTIONS, _NOT_IN_CMDLINE = " \"'#\\", " \"'$`\\#"
_WORD = re.compile(r"[A-Za-z0-9_.,:/@+-]+")
ETHTOOL = {
    "ring": "-G",
    "coalesce": "-C",
    "features": "-K",
    "offload": "-K",
    "pause": "-A",
    "channels": "-L",
}


def sysctl_key(one: AskedValue) -> str:
    """The key, with the place's own name where it has one; slashes where that holds dots."""
    key = one.setting.access.options["key"]
    found = re.search(r"\{(\w+)\}", key)
    if not found:
        return key
    if not one.subject:
        raise NotCarriedError(f"it needs its {found[1]}: {one.setting.name}@{found[1].upper()}={one.value}")
    name = plain(one.subject, "/= \t", "the name")
    return key.replace(".", "/").replace(found[0], name) if "." in name else key.replace(found[0], name)


def sysctl(emission: Emission) -> Rendered:
    """sysctl.d(5): one value a line."""
    return _lines(
        emission,
        "sysctl",
        SYSCTL,
        lambda one: f"{sysctl_key(one)} = {one.value}",
        (("sysctl", "-p", SYSCTL),),
    )


def udev(emission: Emission) -> Rendered:
    """udev(7): a rule for each value, matched by subsystem and name."""
    effect = (
        ("udevadm", "control", "--reload"),
        ("udevadm", "trigger", "--action=change", "--subsystem-match=block", "--subsystem-match=net"),
    )
    return _lines(emission, "udev", UDEV, _rule, effect)


def _rule(one: AskedValue) -> str:
    if one.setting.access.kind == "ethtool":
        return (
            f'{_match("net", one.subject)}, RUN+="/usr/sbin/ethtool {" ".join(ethtool_words(one, "$name"))}"'
        )
    found = device_attribute(one.setting)
    if found is None:
        raise NotCarriedError(
            "udev reaches files of /sys/block and /sys/class/net, and no patterns among them"
        )
    subsystem, attribute = found
    value = plain(one.value, '"\\', "the value").replace("$", "$$").replace("%", "%%")
    return f'{_match(subsystem, one.subject)}, ATTR{{{attribute}}}="{value}"'


def _match(subsystem: str, subject: str) -> str:
    if subject and not _DEVICE.fullmatch(subject):
        raise NotCarriedError(
            f"{subject!r} is no name of a device: only letters, digits and _ . : - * are matched"
        )
    if subject:
        name = f'KERNEL=="{subject}"' if subsystem == "block" else f'NAME=="{subject}"'
    else:
        name = (
            'ENV{DEVTYPE}=="disk", KERNEL!="loop*|ram*|zram*|sr*|fd*"'
            if subsystem == "block"
            else 'KERNEL!="lo"'
        )
    return f'ACTION=="add|change", SUBSYSTEM=="{subsystem}", {name}'


def ethtool_words(one: AskedValue, interface: str) -> tuple[str, str, str, str]:
    """The words after `ethtool`. Raises NotCarriedError."""
    group, name = one.setting.access.options["group"], one.setting.access.options["name"]
    if group not in ETHTOOL:
        raise NotCarriedError(f"of ethtool's {group} no file of udev is written")
    if not _WORD.fullmatch(one.value):
        raise NotCarriedError(f"the value {one.value!r} is not one plain word")
    return (ETHTOOL[group], interface, name, one.value)


def modprobe(emission: Emission) -> Rendered:
    """modprobe.d(5): options of modules, from when they are loaded the next time."""

    def line(one: AskedValue) -> str:
        found = module_parameter(one.setting)
        if found is None:
            raise NotCarriedError("it is no parameter of a module")
        return f"options {found[0]} {found[1]}={plain(one.value, _NOT_IN_OPTIONS, 'the value')}"

    return _lines(emission, "modprobe", MODPROBE, line, ())


def tmpfiles(emission: Emission, form: str = "systemd") -> Rendered:
    """tmpfiles.d(5): values of the host below /sys, written at boot."""

    def line(one: AskedValue) -> str:
        if one.setting.access.kind != "sysfs" or of_each_device(one.setting):
            raise NotCarriedError("tmpfiles.d has no place for it")
        value = plain(one.value, "\\\"'", "the value").replace("%", "%%")
        return f"w {one.setting.access.options['path']} - - - - {value}"

    return _lines(emission, form, TMPFILES, line, (("systemd-tmpfiles", "--create", TMPFILES),))


def grub(emission: Emission) -> Rendered:
    """A file that GRUB's defaults take in, at whose end the kernel's command line grows."""

    def line(one: AskedValue) -> str:
        return f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {cmdline(one)}"'

    return _lines(emission, "grub", GRUB, line, (("update-grub",),))


def cmdline(one: AskedValue) -> str:
    """The kernel's parameter. Raises NotCarriedError for what a shell or the kernel would take apart."""
    parameter = one.setting.access.options["parameter"]
    return f"{parameter}={plain(one.value, _NOT_IN_CMDLINE, 'the value')}"


def _lines(
    emission: Emission, form: str, path: str, line: Callable[[AskedValue], str], effect: _Effect
) -> Rendered:
    kept, left = gather(emission.asked, form, line)
    body = "".join(f"\n{hashed(comments(one))}{text}\n" for one, text in kept)
    files = (DeliveredFile(path, HEAD + body, effect),) if kept else ()
    return Rendered(files, left)
