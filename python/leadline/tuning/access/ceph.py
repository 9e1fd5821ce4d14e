"""Settings of a cluster: options of its daemons, of pools and file systems, and its flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.interface import AccessKind, InForce, SettingReading, is_on, word_of
from leadline.tuning.settings import Setting, SettingPlace
from leadline.tuning.surroundings import TunedSurroundings

# The pool moves towards these; what it is at now follows.
_TARGETS = {"pg_num": "pg_num_target", "pgp_num": "pg_placement_num_target"}


class CephPoolAccess(AccessKind):
    """Options: `option`. Places: pools by name."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """Every pool."""
        try:
            fsid = self.around.fsid()
            names = [row["pool_name"] for row in self.around.ask("osd dump")["pools"]]
        except LeadlineError:
            return ()
        return tuple(SettingPlace(name, cluster=fsid) for name in names)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """What the pool has; an option that is not set is what the OSDs' own options say."""
        option = setting.access.options["option"]
        try:
            rows = {row["pool_name"]: row for row in self.around.ask("osd dump")["pools"]}
            if place.subject not in rows:
                return SettingReading(None, reason=f"there is no pool {place.subject}")
            if option in _TARGETS:
                return SettingReading(str(rows[place.subject][_TARGETS[option]]), "set")
            found = rows[place.subject].get("options", {})
            if option in found:
                return SettingReading(word(found[option]), "set")
            answer = self.around.ask("osd pool get", pool=place.subject, var=option)
        except LeadlineError as error:
            if "not set" in error.message or "No such file" in error.message:
                return SettingReading(None, "default", "not set: what the OSDs' options say is in force")
            return SettingReading(None, reason=error.message)
        return SettingReading(word(answer[option]), "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        option = setting.access.options["option"]
        self.around.command("osd pool set", pool=place.subject, var=option, val=value)

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """Ceph's own word for it; where an option has none of its own, 0 is it."""
        option = setting.access.options["option"]
        try:
            self.around.command("osd pool set", pool=place.subject, var=option, val="unset")
        except LeadlineError:
            self.around.command("osd pool set", pool=place.subject, var=option, val="0")

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The pool itself: another may have its name."""
        try:
            for row in self.around.ask("osd dump")["pools"]:
                if row["pool_name"] == place.subject:
                    return f"pool:{place.cluster}:{row['pool']}"
        except LeadlineError:
            return ""
        return "gone"


# Bits of the map's flags, which releases before Reef do not name (CEPH_MDSMAP_* in Ceph's ceph_fs.h).
_BITS = {"joinable": 0, "allow_new_snaps": 1, "allow_standby_replay": 5, "refuse_client_session": 6}
_INVERTED = ("joinable",)  # its bit says that it is not


class CephFsAccess(AccessKind):
    """Options: `option`. Places: file systems by name."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """Every file system."""
        try:
            fsid = self.around.fsid()
            return tuple(SettingPlace(name, cluster=fsid) for name in self._maps())
        except LeadlineError:
            return ()

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        option = setting.access.options["option"]
        try:
            found = self._maps().get(place.subject)
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        if found is None:
            return SettingReading(None, reason=f"there is no file system {place.subject}")
        if option in _BITS:
            on = bool(found["flags"] >> _BITS[option] & 1) != (option in _INVERTED)
            return SettingReading(word_of(setting, on), "set")
        if option not in found:
            return SettingReading(None, reason=f"the map of {place.subject} does not tell {option}")
        return SettingReading(word(found[option]), "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        option = setting.access.options["option"]
        val = str(is_on(value)).lower() if option in _BITS else value
        self.around.command("fs set", fs_name=place.subject, var=option, val=val)

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The file system itself: another may have its name."""
        try:
            for one in self.around.ask("fs dump")["filesystems"]:
                if one["mdsmap"]["fs_name"] == place.subject:
                    return f"fs:{place.cluster}:{one['id']}"
        except LeadlineError:
            return ""
        return "gone"

    def _maps(self) -> dict[str, dict[str, Any]]:
        return {one["mdsmap"]["fs_name"]: one["mdsmap"] for one in self.around.ask("fs dump")["filesystems"]}


class CephFlagAccess(AccessKind):
    """Options: `flag`. One place: the cluster."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """The cluster."""
        try:
            return (SettingPlace(cluster=self.around.fsid()),)
        except LeadlineError:
            return ()

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """Whether the map has it."""
        try:
            found = self.around.ask("osd dump")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        flags = found.get("flags_set") or found["flags"].split(",")
        return SettingReading(word_of(setting, setting.access.options["flag"] in flags), "set")

    def write(self, setting: Setting, _place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        self.around.command("osd set" if is_on(value) else "osd unset", key=setting.access.options["flag"])

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The cluster."""
        return f"cluster:{place.cluster}"


_WHO = re.compile(r"(global|osd|mds|mon|mgr|client)(\.[\w.-]+)?(/(class|host|rack|root):[\w.-]+)?")
_DAEMON = re.compile(r"(osd|mds|mon|mgr)\.\S+")
# Of two, the later wins.
_LEVELS = ("default", "mon", "file", "env", "cmdline", "override")


class CephConfigAccess(AccessKind):
    """Options: `who`, a section (osd, mds, global, client), and `option`. Places: sections and daemons."""

    first_is_all = True
    lasting = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """The setting's own section first, then whatever else has a value of it."""
        who, option = setting.access.options["who"], setting.access.options["option"]
        try:
            fsid = self.around.fsid()
            rows = self.around.ask("config dump")
        except LeadlineError:
            return ()
        others = [_who(row) for row in rows if row["name"] == option and _who(row) != who]
        return tuple(SettingPlace(subject, cluster=fsid) for subject in (who, *others))

    def named(self, _setting: Setting, word: str) -> SettingPlace | None:
        """A section, a daemon or a client, with a mask or without."""
        if not _WHO.fullmatch(word):
            return None
        try:
            return SettingPlace(word, cluster=self.around.fsid())
        except LeadlineError:
            return None

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """Set in this very section, or what is inherited as its default."""
        option = setting.access.options["option"]
        try:
            for row in self.around.ask("config dump"):
                if row["name"] == option and _who(row) == place.subject:
                    return SettingReading(str(row["value"]), "set")
            who = place.subject.partition("/")[0]
            if who == "global":  # of which the monitors tell what is set, and no value
                return SettingReading(word(self.around.ask("config help", key=option)["default"]), "default")
            return SettingReading(self.around.command("config get", who=who, key=option), "default")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind. What daemons do with it shows in `in_force`, some time later."""
        option = setting.access.options["option"]
        self.around.command("config set", who=place.subject, name=option, value=value)

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """See AccessKind."""
        self.around.command("config rm", who=place.subject, name=setting.access.options["option"])

    def in_force(self, setting: Setting, place: SettingPlace) -> tuple[InForce, ...]:
        """Each daemon of the section: OSDs say it themselves, of the others the manager was told."""
        option = setting.access.options["option"]
        return tuple(
            InForce(daemon, *self._of_daemon(daemon, option)) for daemon in self._daemons(place.subject)
        )

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The cluster: what is set there outlives hosts and daemons."""
        return f"cluster:{place.cluster}"

    def _daemons(self, subject: str) -> tuple[str, ...]:
        section, _, mask = subject.partition("/")
        if _DAEMON.fullmatch(section):
            return (section,)
        if mask:  # which daemons a mask means only the monitors know
            return ()
        kinds = ("osd", "mds") if section == "global" else (section,)
        return tuple(name for kind in kinds for name in self._of_kind(kind))

    def _of_kind(self, kind: str) -> Iterator[str]:
        if kind == "osd":
            for row in self.around.ask("osd dump")["osds"]:
                if row["up"]:
                    yield f"osd.{row['osd']}"
        elif kind == "mds":
            for one in self.around.ask("fs dump")["filesystems"]:
                for info in one["mdsmap"]["info"].values():
                    yield f"mds.{info['name']}"
        elif kind == "mgr":
            yield f"mgr.{self.around.ask('mgr dump')['active_name']}"
        elif kind == "mon":
            for row in self.around.ask("mon dump")["mons"]:
                yield f"mon.{row['name']}"

    def _of_daemon(self, daemon: str, option: str) -> tuple[str | None, str, str]:
        kind, _, name = daemon.partition(".")
        try:
            if kind == "osd":
                return self._of_osd(int(name), option)
            return self._shown(daemon, option)
        except LeadlineError as error:
            return None, "", error.message

    def _of_osd(self, osd: int, option: str) -> tuple[str | None, str, str]:
        """The last of the levels at which the option has a value; one that has none is as it was built."""
        row = self.around.ask_osd(osd, "config diff get", var=option)["diff"].get(option)
        if row is None:
            return word(self.around.ask_osd(osd, "config get", var=option).get(option)), "default", ""
        return word(row["final"]), next((one for one in reversed(_LEVELS) if one in row), ""), ""

    def _shown(self, daemon: str, option: str) -> tuple[str | None, str, str]:
        """As the manager was last told by the daemon."""
        for row in self.around.ask("config show", who=daemon):
            if row["name"] == option:
                return str(row["value"]), str(row.get("source", "")), ""
        return self.around.command("config show", who=daemon, key=option), "default", ""


def word(value: Any) -> str:
    """A JSON value as Ceph writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _who(row: Any) -> str:
    return f"{row['section']}/{row['mask']}" if row.get("mask") else str(row["section"])


def lives_of_daemons(around: TunedSurroundings) -> dict[str, str]:
    """What names each daemon's present process: it is another after a restart. Raises TuningError."""
    try:
        lives = {
            f"osd.{row['osd']}": str(row["public_addrs"]["addrvec"][0]["nonce"])
            for row in around.ask("osd dump")["osds"]
            if row["up"] and row["public_addrs"]["addrvec"]
        }
        for one in around.ask("fs dump")["filesystems"]:
            lives |= {f"mds.{info['name']}": str(info["gid"]) for info in one["mdsmap"]["info"].values()}
    except (KeyError, IndexError, TypeError) as error:
        raise TuningError(
            f"the monitors' maps have no {error}", "this release of Ceph is not known"
        ) from error
    return lives
