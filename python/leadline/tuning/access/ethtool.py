"""Rings, offloads, channels and interrupt moderation of network interfaces, by the program ethtool."""

from __future__ import annotations

import re

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.interface import AccessKind, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

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
