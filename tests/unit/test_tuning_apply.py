"""Changes hold all or none is left; what was changed is put back, and nothing of others'."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tuned_system import FakeCluster, fake_system, make_root

from leadline.errors import LeadlineError, RefusedChangeError, SpecError, TuningError
from leadline.tuning.changing import holding
from leadline.tuning.changing.applying import Applied, DeadMansSwitch, Pace, apply
from leadline.tuning.changing.checks import UNHEALTHY, check, parse_plan, parse_words, resolve
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.settings import SettingChange, SettingPlace
from leadline.tuning.system import TuningSystem

_QUICK = Pace(settle_s=0.0, hold_s=0.0, watch_s=0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small host."""
    return make_root(tmp_path / "root")


@pytest.fixture
def cluster() -> FakeCluster:
    """A cluster that is well."""
    return FakeCluster()


@pytest.fixture
def system(root: Path, cluster: FakeCluster) -> TuningSystem:
    """Both of them."""
    return fake_system(root, cluster)


@pytest.fixture
def journal(tmp_path: Path) -> TuningJournal:
    """A journal that nothing was written to."""
    return TuningJournal(tmp_path / "state")


def _changes(system: TuningSystem, *words: str, on: tuple[str, ...] = ()) -> list[SettingChange]:
    return resolve(system, parse_words(words, on))[0]


def _apply(system: TuningSystem, journal: TuningJournal, *words: str, **more: Any) -> Applied:
    on = more.pop("on", ())
    pace = more.pop("pace", _QUICK)
    return apply(system, _changes(system, *words, on=on), journal=journal, pace=pace, **more)


def _sysctl(root: Path, key: str) -> Path:
    return root / "proc/sys" / key.replace(".", "/")


def _everything(root: Path, cluster: FakeCluster) -> Any:
    files = {str(path): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}
    return files, dict(cluster.config), set(cluster.flags), json.dumps(cluster.pools), json.dumps(cluster.fs)


def test_what_is_applied_is_in_force_and_revert_puts_everything_back(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    before = _everything(root, cluster)

    words = ("backlog=4096", "backfills=3", "noscrub=true", "fast_read=true", "ranks=2", "replay=true")
    done = _apply(system, journal, *words, "compression=force")

    assert _sysctl(root, "net.core.somaxconn").read_text() == "4096\n"
    assert cluster.config == {("osd", "osd_max_backfills"): "3"}
    assert "noscrub" in cluster.flags
    assert cluster.pools["data"] == {"fast_read": "1", "compression_mode": "force"}
    assert cluster.fs == {"max_mds": 2, "flags": 18 | 32}
    assert [one.before for one in done.changes] == ["128", None, "false", "0", "1", "false", None]
    assert not revert(system, journal).left
    assert _everything(root, cluster) == before
    assert not journal.state().outstanding()


def test_what_is_in_force_already_is_not_changed(system: TuningSystem, journal: TuningJournal) -> None:
    done = _apply(system, journal, "backlog=128", "swappiness=60.0")

    assert not done.changes
    assert len(done.already) == 2
    assert not journal.path.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("backlg=4096",), "there is no setting backlg"),
        (("backlog=0",), "at least 1"),
        (("backlog=1 2",), "one number"),
        (("backlog=many",), "is no number"),
        (("scheduler=bfq",), "one of none, mq-deadline"),
        (("newer=1",), "not of this release (kernel 6.1.0-18): came with 99"),
        (("backlog=4096", "backlog=1024"), "changed twice"),
        (("nocrc=1",), "it costs integrity: no checksums"),
        (("for_ever=1",), "it cannot be taken back"),
        (("firmware=1",), "by hand: in its set-up"),
        (("mitigations=auto",), "emit --format grub"),
        (("read_ahead=4096",), "at 2 places"),
    ],
)
def test_what_speaks_against_a_change_is_found_before_any_is_made(
    system: TuningSystem,
    journal: TuningJournal,
    root: Path,
    cluster: FakeCluster,
    words: tuple[str, ...],
    says: str,
) -> None:
    before = _everything(root, cluster)

    with pytest.raises(RefusedChangeError) as refused:
        _apply(system, journal, "swappiness=1", *words)

    assert says in str(refused.value)
    assert _everything(root, cluster) == before
    assert not journal.path.exists()


def test_settings_that_exclude_each_other_are_refused_at_one_place_only(
    system: TuningSystem, journal: TuningJournal
) -> None:
    both = [
        SettingChange("scheduler", SettingPlace("sda"), "none"),
        SettingChange("read_ahead", SettingPlace("sda"), "4096"),
    ]
    with pytest.raises(RefusedChangeError, match="cannot be changed together with scheduler"):
        check(system, both)

    apart = [both[0], SettingChange("read_ahead", SettingPlace("sdb"), "4096")]
    assert len(check(system, apart).changes) == 2


def test_a_release_on_which_a_setting_is_refused_is_told_from_another(root: Path) -> None:
    place = SettingPlace("data", cluster="x")
    wanted = [SettingChange("crashes", place, "true")]

    with pytest.raises(RefusedChangeError, match=r"refused .ceph 20.2.0.: OSDs crash"):
        check(fake_system(root, FakeCluster("20.2.0")), wanted)
    assert len(check(fake_system(root, FakeCluster("20.2.1")), wanted).changes) == 1


@pytest.mark.parametrize(("word", "price"), [("nocrc=1", "integrity"), ("for_ever=1", "irreversible")])
def test_a_price_is_taken_only_by_its_own_name(
    system: TuningSystem, journal: TuningJournal, word: str, price: str
) -> None:
    with pytest.raises(RefusedChangeError):
        _apply(system, journal, word, allowed=("durability", "security"))

    assert _apply(system, journal, word, allowed=(price,)).changes


def test_only_root_changes_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    known = fake_system(Path("/")).known
    real = TuningSystem(known=known)

    assert real.why_not(known["backlog"], SettingPlace()) == "that needs root"


def test_every_place_that_is_named_gets_its_own_change(
    system: TuningSystem, journal: TuningJournal, root: Path
) -> None:
    done = _apply(system, journal, "read_ahead=4096", on=("all",))

    assert [one.place.subject for one in done.changes] == ["sda", "sdb"]
    assert (root / "sys/block/loop0/queue/read_ahead_kb").read_text() == "128\n"


def test_a_place_that_is_not_there_is_named_with_those_that_are(system: TuningSystem) -> None:
    with pytest.raises(RefusedChangeError, match="read_ahead has no value of its own on sdz") as refused:
        _changes(system, "read_ahead=1", on=("sdz",))
    assert "sda, sdb" in str(refused.value)


def test_a_value_that_does_not_hold_puts_back_all_of_the_run(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    before = _everything(root, cluster)
    cluster.taken_back.add("osd_max_backfills")

    with pytest.raises(
        TuningError, match=r"osd.0, osd.1 works with 1 although 3 was accepted.*mClock"
    ) as failed:
        _apply(system, journal, "backlog=4096", "backfills=3")

    assert "all was put back" in str(failed.value)
    assert _everything(root, cluster) == before


def test_a_daemon_s_own_file_goes_before_the_monitors_and_is_named(
    system: TuningSystem, journal: TuningJournal, cluster: FakeCluster
) -> None:
    cluster.own_file["osd_max_backfills"] = "7"

    with pytest.raises(TuningError, match=r"osd.0, osd.1 has 7 from its own configuration file"):
        _apply(system, journal, "backfills=3")
    assert not cluster.config


def test_what_the_system_refuses_in_the_midst_puts_back_what_was_done(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    before = _everything(root, cluster)
    refused = SettingChange("backfills", SettingPlace("osd", cluster="x"), "-3")

    with pytest.raises(TuningError, match="error parsing value"):
        apply(system, [*_changes(system, "backlog=4096"), refused], journal=journal, pace=_QUICK)
    assert _everything(root, cluster) == before


def test_a_cluster_that_is_worse_off_gets_everything_back_at_once(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    before = _everything(root, cluster)
    cluster.checks = {"OLD": ("HEALTH_WARN", "it was so before")}
    cluster.checks_after_change = {"SLOW_OPS": ("HEALTH_WARN", "3 slow ops")}

    with pytest.raises(TuningError, match="the cluster is worse off since: SLOW_OPS: 3 slow ops") as failed:
        _apply(system, journal, "backlog=4096", "backfills=3")
    assert "OLD" not in str(failed.value)
    assert _everything(root, cluster) == before


@pytest.mark.parametrize(
    ("code", "severity", "says"),
    [
        ("PG_DAMAGED", "HEALTH_ERR", "the cluster is in HEALTH_ERR (PG_DAMAGED: some words)"),
        ("SLOW_OPS", "HEALTH_WARN", "the cluster reports slow operations (SLOW_OPS: some words)"),
    ],
)
def test_a_cluster_in_trouble_is_changed_only_by_name(
    system: TuningSystem, journal: TuningJournal, cluster: FakeCluster, code: str, severity: str, says: str
) -> None:
    """As a run adds no load there; what is of this host alone is no matter of the cluster."""
    cluster.checks = {code: (severity, "some words")}
    with pytest.raises(RefusedChangeError) as refused:
        _apply(system, journal, "backlog=4096", "backfills=3")
    assert says in refused.value.message
    assert "--ignore-health" in refused.value.remedy
    assert not cluster.config
    assert _apply(system, journal, "swappiness=1").changes
    with pytest.raises(RefusedChangeError):
        check(system, _changes(system, "backfills=3"))

    assert _apply(system, journal, "backfills=3", allowed=(UNHEALTHY,)).changes


def test_the_warning_that_a_flag_is_set_is_no_worsening(
    system: TuningSystem, journal: TuningJournal, cluster: FakeCluster
) -> None:
    cluster.checks_after_change = {"OSDMAP_FLAGS": ("HEALTH_WARN", "noscrub flag(s) set")}

    assert _apply(system, journal, "noscrub=true").changes
    cluster.checks.clear()
    with pytest.raises(TuningError, match="OSDMAP_FLAGS"):
        _apply(system, journal, "backfills=3")


def test_somebody_who_changes_it_at_the_same_time_is_found_and_everything_put_back(
    system: TuningSystem, journal: TuningJournal, root: Path
) -> None:
    place = _sysctl(root, "net.core.somaxconn")

    def interfere(_: str) -> None:
        place.write_text("777\n")

    with pytest.raises(
        TuningError, match="was set to 4096 and then read 777: somebody else changed it"
    ) as failed:
        _apply(system, journal, "backlog=4096", "swappiness=1", say=interfere)
    assert "not everything could be put back" in str(failed.value)
    assert place.read_text() == "777\n"
    assert _sysctl(root, "vm.swappiness").read_text() == "60\n"


def test_what_somebody_else_has_set_since_is_named_and_overwritten_only_by_force(
    system: TuningSystem, journal: TuningJournal, root: Path
) -> None:
    place = _sysctl(root, "net.core.somaxconn")
    _apply(system, journal, "backlog=4096", "swappiness=1")
    place.write_text("777\n")

    found = revert(system, journal)

    assert found.foreign
    assert "somebody else has set it to 777 since; it was 128, and we set 4096" in found.left[0]
    assert place.read_text() == "777\n"
    assert _sysctl(root, "vm.swappiness").read_text() == "60\n"
    assert not revert(system, journal, force=True).left
    assert place.read_text() == "128\n"


def test_what_is_forgotten_stays_as_it_is(system: TuningSystem, journal: TuningJournal, root: Path) -> None:
    _apply(system, journal, "backlog=4096")
    _sysctl(root, "net.core.somaxconn").write_text("777\n")

    revert(system, journal, forget=True)

    assert not journal.state().outstanding()
    assert _sysctl(root, "net.core.somaxconn").read_text() == "777\n"


def test_two_runs_are_put_back_in_turn(system: TuningSystem, journal: TuningJournal, root: Path) -> None:
    _apply(system, journal, "backlog=4096")
    _apply(system, journal, "backlog=8192")

    assert not revert(system, journal).left
    assert _sysctl(root, "net.core.somaxconn").read_text() == "128\n"


def test_after_a_reboot_live_values_are_gone_and_the_cluster_s_are_put_back(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    _apply(system, journal, "backlog=4096", "backfills=3")
    _sysctl(root, "kernel.random.boot_id").write_text("boot-two\n")
    _sysctl(root, "net.core.somaxconn").write_text("4096\n")  # from sysctl.d, which is not ours

    found = revert(fake_system(root, cluster), journal)

    assert len(found.gone) == 1
    assert len(found.back) == 1
    assert _sysctl(root, "net.core.somaxconn").read_text() == "4096\n"
    assert not cluster.config
    assert not journal.state().outstanding()


def test_a_cluster_that_does_not_answer_leaves_its_changes_for_later(
    root: Path, journal: TuningJournal, cluster: FakeCluster
) -> None:
    _apply(fake_system(root, cluster), journal, "backlog=4096", "backfills=3")
    cluster.silent = True

    found = revert(fake_system(root, cluster), journal)

    assert "the cluster does not answer" in found.left[0]
    assert _sysctl(root, "net.core.somaxconn").read_text() == "128\n"
    cluster.silent = False
    assert not revert(fake_system(root, cluster), journal).left
    assert not cluster.config


def test_a_change_that_was_announced_and_may_be_under_way_is_put_back_whatever_it_reads(
    system: TuningSystem, journal: TuningJournal, cluster: FakeCluster
) -> None:
    """A monitor may do what a killed program asked of it after the value was read."""
    _apply(system, journal, "backfills=3")
    lines = [line for line in journal.path.read_text().splitlines() if '"done"' not in line]
    journal.path.write_text("\n".join(lines) + "\n")
    cluster.config.clear()
    cluster.asked.clear()

    assert not revert(system, journal).left
    assert "config rm" in cluster.asked


def test_a_setting_that_needs_a_restart_says_so_or_has_it(
    root: Path, journal: TuningJournal, cluster: FakeCluster
) -> None:
    without = _apply(fake_system(root, cluster), journal, "shards=4")
    assert without.pending == ("shards on osd on the cluster takes effect with a restart of osd.0, osd.1",)
    revert(fake_system(root, cluster), journal)
    restarted: list[str] = []

    def restart(daemon: str) -> None:
        restarted.append(daemon)
        cluster.restart(int(daemon[-1]))

    done = _apply(fake_system(root, cluster, restart=restart), journal, "shards=4")
    assert restarted == ["osd.0", "osd.1"]
    assert not done.pending
    assert cluster.started_with == {(0, "osd_op_num_shards"): "4", (1, "osd_op_num_shards"): "4"}
    cluster.own_file["osd_op_num_shards"] = "7"
    with pytest.raises(TuningError, match="from its own configuration file"):
        _apply(fake_system(root, cluster), journal, "shards=5")


def test_two_at_once_are_refused_and_the_first_is_named(system: TuningSystem, journal: TuningJournal) -> None:
    other = TuningJournal(journal.directory)
    with (
        other.locked(),
        pytest.raises(RefusedChangeError, match=f"process {os.getpid()} is changing settings"),
    ):
        _apply(system, journal, "backlog=4096")


def test_a_switch_that_cannot_be_started_changes_nothing(
    system: TuningSystem, journal: TuningJournal, root: Path, cluster: FakeCluster
) -> None:
    before = _everything(root, cluster)

    def start(_run: str, _within_s: float) -> None:
        raise RefusedChangeError("the process could not be started", "")

    with pytest.raises(LeadlineError, match="could not be started"):
        _apply(system, journal, "backlog=4096", switch=DeadMansSwitch(60.0, start))
    assert _everything(root, cluster) == before


@pytest.mark.parametrize(("event", "says"), [("confirmed", "confirmed"), ("ended", "undone by another")])
def test_a_switch_ends_when_its_run_is_confirmed_or_put_back(
    system: TuningSystem, journal: TuningJournal, event: str, says: str
) -> None:
    run = _apply(system, journal, "backlog=4096").run
    if event == "ended":
        revert(system, journal)
    journal.say(event, run=run, how="put back")

    assert holding.wait(journal, run, 60.0) == says


def test_a_switch_that_nobody_confirms_puts_everything_back(
    system: TuningSystem, journal: TuningJournal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _apply(system, journal, "backlog=4096").run
    monkeypatch.setattr(holding, "reached", lambda *_: system)

    assert holding.wait(journal, run, 0.0) == "put back: nobody confirmed it in time"
    assert _sysctl(root, "net.core.somaxconn").read_text() == "128\n"
    assert "nobody confirmed" in journal.state().runs[run].ended


def test_a_switch_puts_everything_back_when_the_cluster_gets_worse(
    system: TuningSystem,
    journal: TuningJournal,
    root: Path,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _apply(system, journal, "backlog=4096", "backfills=3").run
    monkeypatch.setattr(holding, "reached", lambda *_: system)
    cluster.checks = {"PG_AVAILABILITY": ("HEALTH_WARN", "8 pgs inactive")}

    assert "the cluster is worse off: PG_AVAILABILITY" in holding.wait(journal, run, 600.0)
    assert not cluster.config


def _torn(text: str) -> str:
    return text + '{"t_ns": 1, "event": "changing", "run": "x", "numb'


def _zeros(text: str) -> str:
    return text + "\0" * 64 + "\n"


@pytest.mark.parametrize("damage", [_torn, _zeros])
def test_a_journal_whose_last_line_was_torn_is_read_and_written_on(
    system: TuningSystem, journal: TuningJournal, root: Path, damage: Callable[[str], str]
) -> None:
    _apply(system, journal, "backlog=4096")
    journal.path.write_text(damage(journal.path.read_text()))

    _apply(system, journal, "swappiness=1")

    assert not revert(system, journal).left
    assert _sysctl(root, "net.core.somaxconn").read_text() == "128\n"
    assert _sysctl(root, "vm.swappiness").read_text() == "60\n"


def test_a_damaged_line_in_the_midst_is_named_and_nothing_is_done(
    system: TuningSystem, journal: TuningJournal, root: Path
) -> None:
    _apply(system, journal, "backlog=4096")
    lines = journal.path.read_text().splitlines()
    lines[2] = lines[2].replace('"number"', "number", 1)
    journal.path.write_text("\n".join(lines) + "\n")

    with pytest.raises(TuningError, match="line 3, is damaged"):
        revert(system, journal)
    assert _sysctl(root, "net.core.somaxconn").read_text() == "4096\n"


def test_a_journal_of_another_version_or_that_others_may_write_is_not_believed(
    system: TuningSystem, journal: TuningJournal
) -> None:
    _apply(system, journal, "backlog=4096")
    journal.path.chmod(0o666)
    with pytest.raises(RefusedChangeError, match="others may write"):
        revert(system, journal)
    journal.path.chmod(0o600)
    journal.path.write_text('{"event": "journal", "format": "leadline.tuning/9"}\n')
    with pytest.raises(RefusedChangeError, match=r"leadline\.tuning/9"):
        revert(system, journal)


def test_a_journal_is_set_aside_once_everything_in_it_was_put_back(
    system: TuningSystem, journal: TuningJournal
) -> None:
    for _ in range(3):
        _apply(system, journal, "backlog=4096")
        revert(system, journal)

    assert len(journal.state().runs) == 1
    assert sorted(path.name for path in journal.directory.iterdir()) == [
        "journal-previous.jsonl", "journal.jsonl", "lock",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("settings:\n  backlog: 4096\n  backlog: 1\n", "line 3.*given twice"),
        ("settings:\n  read_ahead: {value: 1, at: sda}\n", "line 2.*unknown key"),
        ("settings:\n  backlog: [1, 2]\n", "line 2.*one value"),
        ("backlog: 4096\n", "neither `settings` nor `changes`"),
        (
            "changes:\n  - {setting: a, value: 1, place: {subject: x}}\n  - {setting: a}\n",
            "line 3.*no change",
        ),
        ("- {setting: a, value: 1, place: sda}\n", "line 1.*no place"),
        ("settings: {}\n", "a mapping of settings"),
        ("settings:\n  - backlog\n", "a mapping of settings"),
        ("settings:\n  backlog:\n", "one value"),
    ],
)
def test_a_plan_that_is_wrong_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        parse_plan(text, "plan.yaml")


def test_what_speaks_against_a_plan_names_the_line_that_asks_for_it(system: TuningSystem) -> None:
    asked = parse_plan("settings:\n  swappiness: 1\n  backlog: 0\n", "plan.yaml")
    changes, where = resolve(system, asked)

    with pytest.raises(RefusedChangeError, match=r"plan\.yaml, line 3: backlog on this host"):
        check(system, changes, where=where)
    with pytest.raises(RefusedChangeError, match=r"plan\.yaml, line 2: there is no setting nonesuch"):
        resolve(system, parse_plan("settings:\n  nonesuch: 1\n", "plan.yaml"))


def test_a_plan_that_was_printed_and_words_with_places_name_the_same_changes(system: TuningSystem) -> None:
    text = (
        '{"format": "x", "changes": [{"setting": "read_ahead", "value": 4096, "place": {"subject": "sdb"}}]}'
    )

    printed = resolve(system, parse_plan(text, "plan.json"))[0]

    assert printed == resolve(system, parse_words(("read_ahead@sdb=4096",), ()))[0]
    assert printed == resolve(system, parse_plan("settings:\n  read_ahead: {value: 4096, on: sdb}\n", "p"))[0]


@pytest.mark.parametrize("word", ["backlog", "=1", "backlog="])
def test_a_word_that_is_no_change_is_refused(word: str) -> None:
    with pytest.raises(SpecError, match="is no change"):
        parse_words((word,), ())
