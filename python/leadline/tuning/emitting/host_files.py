"""Files of the host that hold values: sysctl.d, udev rules, modprobe.d, tmpfiles.d and GRUB's defaults."""

from __future__ import annotations

import re
from collections.abc import Callable

from leadline.tuning.emitting.carrying import (
    NotCarriedError,
    device_attribute,
    gather,
    module_parameter,
    of_each_device,
    plain,
)
from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    Emission,
    Rendered,
    comments,
    hashed,
)

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
