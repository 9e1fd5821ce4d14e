"""Settings of a host: below /proc/sys and /sys, of the kernel's command line, by ethtool, and by hand."""

from __future__ import annotations

import re

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.interface import AccessKind, ReadOnlyAccess, SettingReading, word_of
from leadline.tuning.settings import Setting, SettingPlace

# Letters of the options that show and set a group.
_SHOW = {"ring": "-g", "offload": "-k", "coalesce": "-c", "channels": "-l", "pause": "-a"}
# `ethtool -k` writes the long names of these.
_LONG = {
    "rx": "rx-checksumming", "tx": "tx-checksumming", "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload", "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload", "txvlan": "tx-vlan-offload", "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}  # fmt: skip
_LINE = re.compile(r"\s*([^:]+):\s*(\S+)(.*)")
_ADAPTIVE = re.compile(r"Adaptive RX: (\S+)\s+TX: (\S+)")
_CURRENT = "current hardware settings"


class EthtoolAccess(AccessKind):
    """Options: `group` (ring, offload, coalesce, channels, pause) and `name` as the program takes it."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Interfaces, of which some may not have it; the loopback is left out."""
        found = []
        for host in self.around.hosts():
            for path in self.around.match("/sys/class/net/*/mtu", host):
                name = path.split("/")[4]
                if name != "lo" and self.read(setting, SettingPlace(name, host)).known:
                    found.append(SettingPlace(name, host))
        return tuple(found)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        options = setting.access.options
        if options["group"] not in _SHOW:
            return SettingReading(None, reason=f"ethtool has no group {options['group']} here")
        try:
            printed = self.around.run(["ethtool", _SHOW[options["group"]], place.subject], place.host)
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        value, fixed = _value(printed, options["group"], options["name"])
        if value in ("", "n/a"):
            return SettingReading(None, reason=f"{place.subject} has no {options['name']}")
        return SettingReading(value, "set", "its driver does not let it be changed" if fixed else "")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        options = setting.access.options
        show = _SHOW.get(options["group"])
        if show is None:
            raise TuningError(f"{setting.name}: ethtool has no group {options['group']}", "")
        self.around.run(["ethtool", show.upper(), place.subject, options["name"], value], place.host)

    def why_not(self, setting: Setting, place: SettingPlace) -> str:
        """A feature that the driver fixes."""
        return self.read(setting, place).reason


def _value(printed: str, group: str, name: str) -> tuple[str, bool]:
    """The value, and whether the driver fixes it. Of rings and channels the largest ones stand first."""
    _, found, rest = printed.lower().partition(_CURRENT)
    text = rest if found else printed.lower()
    if group == "coalesce" and name.startswith("adaptive-"):
        both = _ADAPTIVE.search(printed)
        return (both[1] if name.endswith("rx") else both[2]) if both else "", False
    wanted = _LONG.get(name, name) if group == "offload" else name
    if group == "ring":
        wanted = wanted.replace("-", " ")
    for line in text.splitlines():
        parts = _LINE.match(line)
        if parts and parts[1].strip() == wanted:
            return parts[2], "[fixed]" in parts[3]
    return "", False


class ByHandAccess(ReadOnlyAccess):
    """Options: `words`, how it is done."""

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """This host."""
        return (SettingPlace(),)

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """Nobody can tell."""
        return SettingReading(None, reason=f"not readable here; by hand: {setting.access.options['words']}")

    def why_not(self, setting: Setting, _place: SettingPlace) -> str:
        """How it is done."""
        return f"by hand: {setting.access.options['words']}"


class CmdlineAccess(ReadOnlyAccess):
    """Options: `parameter`."""

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """This host."""
        return (SettingPlace(),)

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """The last that was given, as the kernel has it; a parameter without a value is on."""
        name = setting.access.options["parameter"]
        try:
            words = self.around.read("/proc/cmdline").split()
        except OSError as error:
            return SettingReading(None, reason=f"/proc/cmdline: {error.strerror}")
        for given in reversed(words):
            key, equals, value = given.partition("=")
            if key.replace("-", "_") == name.replace("-", "_"):
                return SettingReading(value if equals else word_of(setting, True), "set")
        return SettingReading(None, "default", "not given: the kernel's own default is in force")

    def why_not(self, setting: Setting, _place: SettingPlace) -> str:
        """It takes a reboot."""
        return (
            f"the kernel reads {setting.access.options['parameter']} at boot;"
            " leadline tune emit --format grub writes it"
        )


class SysctlAccess(AccessKind):
    """Options: `key`, with dots."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Each host that has it. One that is no network's own is this kernel's."""
        hosts = self.around.hosts() if setting.access.options["key"].startswith("net.") else ("",)
        there = tuple(host for host in hosts if self.around.match(_sysctl_path(setting), host))
        if not there and self.around.match(_sysctl_path(setting)):
            there = ("",)  # a network's own namespace does not have what is one for all
        return tuple(SettingPlace(host=host) for host in there)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        try:
            return SettingReading(
                " ".join(self.around.read(_sysctl_path(setting), place.host).split()), "set"
            )
        except FileNotFoundError:
            return SettingReading(None, reason=f"this kernel has no {setting.access.options['key']}")
        except OSError as error:
            return SettingReading(None, reason=f"{_sysctl_path(setting)}: {error.strerror}")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        self.around.write(_sysctl_path(setting), value, place.host)


def _sysctl_path(setting: Setting) -> str:
    return "/proc/sys/" + setting.access.options["key"].replace(".", "/")


_CHOSEN = re.compile(r"\[([^\]]+)\]")
_NEVER = re.compile(r"(loop|ram|zram|sr|fd)\d+$|lo$")


class SysfsAccess(AccessKind):
    """Options: `path`, in which `*` are parts such as queues that have one value together."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """The devices or interfaces that have such a file."""
        path = setting.access.options["path"]
        subject = next((word for word in ("{device}", "{interface}") if word in path), "")
        if not subject:
            return (SettingPlace(),) if self.around.match(path) else ()
        depth = path.split("/").index(subject)
        found: dict[SettingPlace, None] = {}
        for host in self.around.hosts() if subject == "{interface}" else ("",):
            for match in self.around.match(path.replace(subject, "*"), host):
                name = match.split("/")[depth]
                if not _NEVER.match(name):
                    found[SettingPlace(name, host)] = None
        return tuple(found)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind; of several files that differ there is no one value."""
        files = self._files(setting, place)
        if not files:
            return SettingReading(None, reason=f"there is no {_path(setting, place)}")
        try:
            values = {_chosen_of(self.around.read(file, place.host)) for file in files}
        except OSError as error:
            return SettingReading(None, reason=f"{_path(setting, place)}: {error.strerror}")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        if len(values) > 1:
            return SettingReading(None, reason=f"its parts differ: {', '.join(sorted(values))}")
        return SettingReading(values.pop(), "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        for file in self._files(setting, place):
            self.around.write(file, value, place.host)

    def _files(self, setting: Setting, place: SettingPlace) -> tuple[str, ...]:
        return self.around.match(_path(setting, place), place.host)


def _path(setting: Setting, place: SettingPlace) -> str:
    path = setting.access.options["path"]
    return path.replace("{device}", place.subject).replace("{interface}", place.subject)


def _chosen_of(text: str) -> str:
    """The word in brackets where all that could be chosen are listed."""
    chosen = _CHOSEN.search(text)
    return chosen[1] if chosen else " ".join(text.split())
