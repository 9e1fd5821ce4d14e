"""Settings that are proved: what may be, how states are entered and left, and what a manifest keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from failing_disk import FailingDisk
from pyDOE3 import fracfact

from leadline.errors import RefusedChangeError, TuningError
from leadline.observe.ceph.client import NotObservableError
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.proving.proof import ProvedSetting, as_manifest, design_of_manifest, kept, of_manifest
from leadline.tuning.proving.request import (
    _generators,
    design_of,
    fraction,
    known_settings,
    proved_settings,
    setting_value,
    split_words,
)
from leadline.tuning.proving.states import SettingStates, TargetClient, restless
from leadline.tuning.settings import Price, Setting, SettingAccess, SettingChange, SettingPlace, settings
from leadline.tuning.system import TuningSystem

DIAL = Setting(
    name="dial",
    title="A dial",
    layer="sysctl",
    roles=("client",),
    access=SettingAccess("sysctl", {"key": "vm.dial"}),
    means="",
    unit="count",
    default="1",
    needs="live",
    persist="sysctl",
    sources=("a test",),
    at_least=0,
    at_most=9,
)
PLACE = SettingPlace()
PROVED = ProvedSetting(DIAL, SettingChange("dial", PLACE, "4", "1"), {PLACE.words: "1"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The dial of a host whose root is a directory."""
    path = tmp_path / "proc" / "sys" / "vm" / "dial"
    path.parent.mkdir(parents=True)
    path.write_text("1\n")
    return path


def system_of(tmp_path: Path, setting: Setting = DIAL) -> TuningSystem:
    return TuningSystem(root=tmp_path, known={setting.name: setting}, connect=no_cluster)


def no_cluster() -> Any:
    raise NotObservableError("there is no cluster")


def states_of(tmp_path: Path, within_s: float = 5.0) -> SettingStates:
    return SettingStates(system_of(tmp_path), (PROVED,), None, within_s=within_s)


def ask(tmp_path: Path, word: str, *, allowed: tuple[str, ...] = (), **changes: Any) -> ProvedSetting:
    setting = replace(DIAL, **changes)
    return proved_settings(split_words((word,)), system_of(tmp_path, setting), None, allowed)[0]


def test_a_state_is_entered_read_back_and_left_as_it_was(tmp_path: Path, file: Path) -> None:
    states = states_of(tmp_path)
    states.enter("with")
    assert file.read_text().split() == ["4"]
    assert states.look("with") == {"dial at this host": {"wanted": "4", "found": "4"}}
    states.enter("without")
    assert file.read_text().split() == ["1"]
    states.enter("with")
    assert states.leave() == ()
    assert file.read_text().split() == ["1"]


def test_what_somebody_else_set_is_named_and_never_overwritten(tmp_path: Path, file: Path) -> None:
    states = states_of(tmp_path)
    states.enter("with")
    file.write_text("7\n")
    assert states.look("with")["dial at this host"] == {"wanted": "4", "found": "7"}
    with pytest.raises(TuningError, match="is 7 now, which neither was there before"):
        states.enter("without")
    assert states.leave() == ("dial on this host is 7 now, set by somebody else: left as it is",)
    assert file.read_text() == "7\n"


def test_what_a_crash_left_is_put_back_from_the_manifest_alone(tmp_path: Path, file: Path) -> None:
    file.write_text("4\n")
    proved = of_manifest(as_manifest((PROVED,)))
    system = TuningSystem(root=tmp_path, known={"dial": proved[0].setting}, connect=no_cluster)
    assert SettingStates(system, proved, None).leave() == ()
    assert file.read_text().split() == ["1"]


def test_what_is_asked_comes_with_what_is_there(tmp_path: Path, file: Path) -> None:
    assert ask(tmp_path, "dial=4") == PROVED


def test_sizes_of_which_a_setting_has_several_are_each_read() -> None:
    assert setting_value(settings()["net.ipv4.tcp_rmem"], "4k 131072 6M") == "4096 131072 6291456"


@pytest.mark.parametrize(
    ("word", "changes", "says"),
    [
        ("dial=12", {}, "takes no 12"),
        ("dial=much", {}, "takes a number"),
        ("dial=1", {}, "is 1 already"),
        ("deal=1", {}, "there is no setting deal"),
        ("dial=4", {"needs": "reboot"}, "not proved by leadline yet: dial needs a reboot"),
        ("dial=4", {"needs": "restart"}, "not proved by leadline yet: dial needs a restart"),
        ("dial=4", {"access": SettingAccess("cmdline", {"parameter": "x"})}, "not proved by leadline yet"),
        ("dial=4", {"irreversible": "it stays"}, "cannot be taken back"),
        ("dial=4", {"prices": (Price("durability", "a crash loses writes"),)}, "costs durability"),
        ("dial=4", {"one_of": ("1", "2")}, "it takes one of"),
    ],
)
def test_what_cannot_be_proved_is_refused_and_nothing_is_changed(
    tmp_path: Path, file: Path, word: str, changes: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(RefusedChangeError) as refused:
        ask(tmp_path, word, **changes)
    assert says in f"{refused.value.message}; {refused.value.remedy}"
    assert file.read_text() == "1\n"


def test_a_grave_price_may_be_allowed(tmp_path: Path, file: Path) -> None:
    prices = (Price("durability", "a crash loses writes"),)
    assert ask(tmp_path, "dial=4", prices=prices, allowed=("durability",)).change.value == "4"


@pytest.mark.parametrize("word", ["dial", "=4", "dial=", "dial=4\x1b[31m"])
def test_words_that_are_no_setting_with_a_value_are_refused(word: str) -> None:
    with pytest.raises(RefusedChangeError, match="NAME=VALUE"):
        split_words((word,))


class Cluster:
    """A cluster with one OSD, that takes a while to believe what it is told."""

    def __init__(self, slow: int = 0, restless: int = 0) -> None:
        self.stored: dict[str, str] = {}
        self.slow, self.restless = slow, restless
        self.own_file: dict[str, str] = {}

    def mon(self, prefix: str, **arguments: Any) -> Any:
        match prefix:
            case "status":
                self.restless -= 1
                state = "active+clean" if self.restless < 0 else "peering"
                pgmap = {"pgs_by_state": [{"state_name": state, "count": 8}]}
                return {"fsid": "f", "pgmap": pgmap, "health": {"checks": {}}}
            case "config dump":
                rows = self.stored.items()
                return [{"section": "osd", "mask": "", "name": name, "value": value} for name, value in rows]
            case "config help":
                if arguments["key"] != "osd_dial":
                    raise NotObservableError("no such option")
                return {"desc": "A dial", "type": "uint", "can_update_at_runtime": True, "min": "", "max": ""}
            case "osd dump":
                return {"osds": [{"osd": 0, "up": 1}]}
            case "versions":
                return {"overall": {"ceph version 16.2.15 (x)": 1}}
        raise NotObservableError(f"not asked in a test: {prefix}")

    def text(self, prefix: str, **arguments: Any) -> str:
        if prefix == "config set":
            self.stored[arguments["name"]] = arguments["value"]
        if prefix == "config rm":
            del self.stored[arguments["name"]]
        return self.stored.get(arguments.get("key", ""), "1")

    def osd(self, _osd: int, _prefix: str, **_arguments: Any) -> Any:
        stored = self.stored.get("osd_dial", "1")
        if stored != "1" and self.slow > 0:
            self.slow -= 1
            stored = "1"
        return {"diff": {"osd_dial": {"default": "1", "final": stored, **self.own_file}}}

    def close(self) -> None:
        """Nothing to leave."""


class AtStart(Cluster):
    """One whose OSD takes a value when it starts, and not before."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.works_with = [], "1"

    def mon(self, prefix: str, **arguments: Any) -> Any:
        match prefix:
            case "config help":
                return {"desc": "A dial", "type": "uint", "can_update_at_runtime": False}
            case "osd dump":
                addresses = {"addrvec": [{"nonce": len(self.started)}]}
                return {"osds": [{"osd": 0, "up": 1, "public_addrs": addresses}]}
            case "fs dump":
                return {"filesystems": []}
        return super().mon(prefix, **arguments)

    def osd(self, _osd: int, _prefix: str, **_arguments: Any) -> Any:
        return {"diff": {"osd_dial": {"default": "1", "final": self.works_with}}}

    def restart(self, daemon: str) -> None:
        """As a lab does it."""
        self.started.append(daemon)
        self.works_with = self.stored.get("osd_dial", "1")


def test_what_daemons_read_when_they_start_is_proved_where_they_can_be_restarted() -> None:
    cluster, asked = AtStart(), split_words(("osd_dial=4",))
    known = known_settings(asked, TuningSystem(connect=lambda: cluster))
    with pytest.raises(RefusedChangeError, match="needs a restart") as refused:
        proved_settings(asked, TuningSystem(connect=lambda: cluster, known=known), None, ())
    assert "on a lab its daemons are restarted" in refused.value.remedy
    system = TuningSystem(connect=lambda: cluster, known=known, restart=cluster.restart)
    states = SettingStates(system, proved_settings(asked, system, None, ()), None)
    states.enter("without")
    assert cluster.started == []
    states.enter("with")
    assert states.look("with") == {"osd_dial at osd.0": {"wanted": "4", "found": "4"}}
    assert states.leave() == ()
    assert (cluster.started, cluster.works_with, cluster.stored) == (["osd.0", "osd.0"], "1", {})


def test_what_is_set_stands_in_the_journal_until_it_is_put_back(tmp_path: Path, file: Path) -> None:
    journal = TuningJournal(tmp_path / "state")
    with kept(journal, system_of(tmp_path)) as own:
        states = SettingStates(system_of(tmp_path), (PROVED,), None, journal=own)
        states.enter("without")
        assert not journal.state().outstanding()
        states.enter("with")
        states.enter("without")
        states.enter("with")
        assert [one.change for one in journal.state().outstanding()] == [PROVED.change]
        assert states.leave() == ()
    assert not journal.state().outstanding()
    assert file.read_text().split() == ["1"]


def test_what_was_killed_is_put_back_even_where_its_last_word_may_still_come(
    tmp_path: Path, file: Path
) -> None:
    """What is read is as before, but a monitor may yet do what was asked of it: so it is set once more.

    So it is of a search, which puts back by the same code: `test_tune_in_doubt.py` kills both.
    """
    journal = TuningJournal(tmp_path / "state")
    with kept(journal, system_of(tmp_path)) as own:
        own.announce(PROVED, "4")
    stamp = file.stat().st_mtime_ns
    with kept(journal, system_of(tmp_path)) as later:
        assert SettingStates(system_of(tmp_path), (PROVED,), None, journal=later).leave() == ()
    assert file.stat().st_mtime_ns > stamp
    assert not journal.state().outstanding()


def test_a_proof_whose_journal_cannot_be_written_any_more_puts_back_what_it_set(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk(monkeypatch)
    with kept(TuningJournal(tmp_path / "state"), system_of(tmp_path)) as own:
        states = SettingStates(system_of(tmp_path), (PROVED,), None, journal=own)
        states.enter("with")
        assert file.read_text().split() == ["4"]
        disk.fails_at = 1
        assert states.leave() == ()
    assert file.read_text().split() == ["1"]


def test_several_settings_are_changed_as_each_state_has_them(tmp_path: Path, file: Path) -> None:
    other = file.with_name("knob")
    other.write_text("1\n")
    knob = replace(DIAL, name="knob", access=SettingAccess("sysctl", {"key": "vm.knob"}))
    proved = (
        PROVED,
        ProvedSetting(knob, SettingChange("knob", PLACE, "3", "1"), {PLACE.words: "1"}),
    )
    design = design_of("factorial", ("dial", "knob"))
    system = TuningSystem(root=tmp_path, known={"dial": DIAL, "knob": knob}, connect=no_cluster)
    states = SettingStates(system, proved, None, design=design)
    seen = {}
    for state in design.states:
        states.enter(state)
        seen[state] = (file.read_text().strip(), other.read_text().strip())
    assert seen == {
        "without": ("1", "1"),
        "with_2": ("1", "3"),
        "with_1": ("4", "1"),
        "with_1_2": ("4", "3"),
    }
    assert design_of_manifest(as_manifest(proved, design)) == design
    assert design_of_manifest(as_manifest(proved)).states["with"] == ("dial", "knob")


def proved_on(cluster: Cluster) -> tuple[TuningSystem, tuple[ProvedSetting, ...]]:
    asked = split_words(("osd_dial=4",))
    known = known_settings(asked, TuningSystem(connect=lambda: cluster))
    system = TuningSystem(connect=lambda: cluster, known=known)
    return system, proved_settings(asked, system, None, ())


class Closed(Cluster):
    """One whose OSD the target's user may not ask."""

    def osd(self, _osd: int, prefix: str, **_arguments: Any) -> Any:
        raise NotObservableError(f"osd.0 did not answer `{prefix}` for client.a: Permission denied")


def test_the_states_of_every_design_are_those_of_pydoe3() -> None:
    for count, generators in _generators().items():
        columns = fracfact(generators)
        found = fraction(generators)
        assert found == [tuple(row) for row in (columns * -columns[0]).astype(int).tolist()]
        assert {len(row) for row in found} == {count}


def test_whose_right_is_missing_is_said_with_what_to_do() -> None:
    with pytest.raises(RefusedChangeError, match="osd_dial cannot be read") as refused:
        proved_on(Closed())
    assert "as the target's own user" in refused.value.remedy
    assert "ceph auth caps" in refused.value.remedy


def test_an_option_that_no_table_has_is_taken_as_the_cluster_describes_it() -> None:
    _, proved = proved_on(Cluster())
    assert proved[0].setting.access.options == {"who": "osd", "option": "osd_dial"}
    assert (proved[0].change.before, proved[0].without) == (None, {"osd.0": "1"})


def test_what_a_daemons_own_file_says_wins_over_the_monitors_and_is_refused_at_once() -> None:
    cluster = Cluster()
    cluster.own_file = {"file": "3", "final": "3"}
    with pytest.raises(RefusedChangeError, match=r"3 at osd\.0 by its own configuration file, which wins"):
        proved_on(cluster)
    assert cluster.stored == {}


def test_a_state_is_there_once_every_daemon_has_it_and_the_cluster_is_at_rest() -> None:
    cluster = Cluster(slow=2, restless=2)
    system, proved = proved_on(cluster)
    states = SettingStates(system, proved, None)
    states.enter("with")
    assert (cluster.slow, cluster.restless) == (0, -1)
    assert states.look("with") == {"osd_dial at osd.0": {"wanted": "4", "found": "4"}}
    assert states.leave() == ()
    assert cluster.stored == {}


def test_a_value_that_a_daemon_never_takes_is_an_error_that_names_it() -> None:
    system, proved = proved_on(Cluster(slow=10**9))
    with pytest.raises(TuningError, match=r"osd_dial at osd\.0 is 1, not 4"):
        SettingStates(system, proved, None, within_s=0.3).enter("with")


def test_a_stop_is_heard_while_waiting() -> None:
    system, proved = proved_on(Cluster(slow=10**9))
    with pytest.raises(TuningError, match="stopped while waiting"):
        SettingStates(system, proved, None, lambda: True).enter("with")


def test_what_a_cluster_still_does_is_said() -> None:
    def status(state: str, *checks: str) -> dict[str, Any]:
        pgmap = {"pgs_by_state": [{"state_name": state, "count": 3}]}
        return {"pgmap": pgmap, "health": {"checks": {one: {} for one in checks}}}

    assert restless(status("active+clean+scrubbing")) == ""
    assert restless(status("active+recovering")) == "3 placement groups are not active+clean"
    assert restless(status("active+clean", "SLOW_OPS")) == "operations are slow (SLOW_OPS)"


def test_a_new_client_stands_for_those_that_each_trial_starts() -> None:
    assert TargetClient(conf="/c").words == "a new client"
    assert TargetClient(socket="/s", pid=7).words == "ceph-fuse.7"
    value, why = TargetClient(conf="/nowhere.conf").option("client_oc_size")
    assert value is None
    assert why
