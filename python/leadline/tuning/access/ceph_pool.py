"""Options of pools."""

from __future__ import annotations

from leadline.errors import LeadlineError
from leadline.tuning.access.ceph_config import word
from leadline.tuning.access.interface import AccessKind, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

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
