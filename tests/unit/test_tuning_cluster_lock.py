"""The lock of a cluster: one changes its settings at a time, from whichever host and by whichever journal."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tuned_system import FakeCluster, fake_system, make_root

from leadline.errors import RefusedChangeError, TuningError, UsageError
from leadline.tuning.changing import cluster_lock
from leadline.tuning.changing.applying import Pace, apply
from leadline.tuning.changing.checks import parse_words, resolve
from leadline.tuning.changing.cluster_lock import ClusterLock, LockHolder, break_lock, holders
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.proving.proof import ProvedSetting, kept
from leadline.tuning.settings import SettingChange, SettingPlace
from leadline.tuning.system import TuningSystem

_QUICK = Pace(settle_s=0.0, hold_s=0.0, watch_s=0.0)
_KEY = "leadline/tuning-lock/"


@pytest.fixture
def cluster() -> FakeCluster:
    """A cluster that is well."""
    return FakeCluster()


@pytest.fixture
def system(tmp_path: Path, cluster: FakeCluster) -> TuningSystem:
    """A host of it."""
    return fake_system(make_root(tmp_path / "root"), cluster)


def _apply(
    system: TuningSystem, place: Path, *words: str, say: Callable[[str], None] = lambda _: None
) -> None:
    changes = resolve(system, parse_words(words or ("backfills=3",), ()))[0]
    apply(system, changes, journal=TuningJournal(place), pace=_QUICK, say=say)


def _held(cluster: FakeCluster, lock: str = "other", **changes: Any) -> None:
    """By a process of another host, for a minute more."""
    now = time.time()
    row = {"host": "node7", "user": "ops", "pid": 77, "began_unix_s": now - 60, "until_unix_s": now + 60}
    cluster.keys[_KEY + lock] = json.dumps(row | {"process": "elsewhere 5"} | changes)


def test_two_journals_change_a_cluster_one_after_the_other(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    """The second begins while the first is at work."""
    refused: list[str] = []

    def second(_: str) -> None:
        with pytest.raises(RefusedChangeError) as problem:
            _apply(system, tmp_path / "b", "noscrub=true")
        refused.append(str(problem.value))

    _apply(system, tmp_path / "a", say=second)

    assert f"process {os.getpid()} of " in refused[0]
    assert "is changing settings of this cluster: nothing was changed" in refused[0]
    assert "noscrub" not in cluster.flags
    assert not cluster.keys
    _apply(system, tmp_path / "b", "noscrub=true")
    assert "noscrub" in cluster.flags


def test_what_is_of_this_host_alone_takes_no_lock_of_the_cluster(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    _held(cluster)
    _apply(system, tmp_path / "a", "swappiness=1")


def test_of_two_that_write_at_once_both_see_the_other_and_none_goes_on(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    real = cluster._config_key_set

    def both(key: str, val: str) -> None:
        real(key, val)
        _held(cluster)

    cluster._config_key_set = both  # type: ignore[method-assign]
    with pytest.raises(RefusedChangeError, match="process 77 of ops on node7"):
        _apply(system, tmp_path / "a")
    assert list(cluster.keys) == [f"{_KEY}other"]
    assert not cluster.config


def test_a_lock_whose_time_is_over_counts_no_more_and_goes(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    _held(cluster, until_unix_s=time.time() - 1)
    _apply(system, tmp_path / "a")
    assert not cluster.keys


def test_the_lock_of_a_process_of_this_host_that_was_killed_counts_no_more(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    ClusterLock(system.around).take()
    ((key, text),) = cluster.keys.items()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.read(reading, 1)
        os._exit(0)
    here, started = cluster_lock._here(), cluster_lock._started(pid)
    cluster.keys[key] = json.dumps(json.loads(text) | {"pid": pid, "process": f"{here} {started}"})
    with pytest.raises(RefusedChangeError, match=f"process {pid} "):
        _apply(system, tmp_path / "a")
    os.write(writing, b"x")
    os.waitpid(pid, 0)

    _apply(system, tmp_path / "a")
    assert not cluster.keys


@pytest.mark.parametrize("text", ["", "5", "[]", '{"pid": "x"}', '{"a": ' * 2000, "null"])
def test_a_lock_that_cannot_be_read_holds_until_it_is_broken_by_name(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path, text: str
) -> None:
    cluster.keys[f"{_KEY}odd"] = text
    with pytest.raises(RefusedChangeError, match="lock odd, which cannot be read") as refused:
        _apply(system, tmp_path / "a")
    assert "leadline tune status --break-lock odd" in refused.value.remedy

    assert break_lock(system.around, "odd").id == "odd"
    _apply(system, tmp_path / "a")


def test_a_lock_is_broken_by_its_name_alone_and_not_while_its_process_is_seen_to_run(
    system: TuningSystem, cluster: FakeCluster
) -> None:
    _held(cluster)
    with pytest.raises(UsageError, match="no lock 'nonesuch'"):
        break_lock(system.around, "nonesuch")
    assert break_lock(system.around, "other") == LockHolder(
        "other",
        "node7",
        "ops",
        77,
        *[pytest.approx(time.time() + at, abs=30) for at in (-60, 60)],
        "elsewhere 5",
    )
    ClusterLock(system.around).take()
    (own,) = holders(system.around)
    with pytest.raises(UsageError, match="is running on this host"):
        break_lock(system.around, own.id)


def test_an_apply_whose_lock_is_broken_puts_everything_back(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    passed_s = [0.0]
    monkeypatch.setattr(cluster_lock.time, "time", lambda: real() + passed_s[0])

    def broken(_: str) -> None:
        passed_s[0] += cluster_lock.APPLY_S / 2
        cluster.keys.clear()

    with pytest.raises(TuningError, match=r"was broken: somebody else may change.*all was put back"):
        _apply(system, tmp_path / "a", "backfills=3", "noscrub=true", say=broken)
    assert not cluster.config
    assert "noscrub" not in cluster.flags


def test_a_lock_is_renewed_long_before_it_ends(
    system: TuningSystem, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    passed_s = [0.0]
    monkeypatch.setattr(cluster_lock.time, "time", lambda: real() + passed_s[0])
    lock = ClusterLock(system.around, 100.0)
    lock.take()
    (first,) = holders(system.around)
    lock.renew()
    assert holders(system.around) == (first,)
    passed_s[0] = 30.0
    lock.renew()
    (later,) = holders(system.around)
    assert later == replace(first, until_unix_s=later.until_unix_s)
    assert later.until_unix_s == pytest.approx((first.until_unix_s or 0) + 30.0, abs=20)
    lock.release()
    assert not cluster.keys


def test_revert_goes_on_whoever_holds_the_cluster(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    _apply(system, tmp_path / "a")
    _held(cluster)

    assert not revert(system, TuningJournal(tmp_path / "a")).left
    assert not cluster.config


def test_a_proof_holds_the_cluster_from_its_first_change_to_its_end(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    setting = system.setting("backfills")
    proved = ProvedSetting(setting, SettingChange("backfills", SettingPlace("osd", cluster="x"), "3"), {})
    _held(cluster)
    with kept(TuningJournal(tmp_path / "a"), system) as journal:
        with pytest.raises(RefusedChangeError, match="node7"):
            journal.announce(proved, "3")
        cluster.keys.clear()
        journal.announce(proved, "3")
        assert len(cluster.keys) == 1
    assert not cluster.keys


def test_who_may_not_write_the_lock_changes_nothing(
    system: TuningSystem, cluster: FakeCluster, tmp_path: Path
) -> None:
    def refused(key: str, val: str) -> None:
        raise TuningError("the monitors refused `config-key set` for client.few: access denied")

    cluster._config_key_set = refused  # type: ignore[method-assign]
    with pytest.raises(RefusedChangeError, match="access denied: nothing was changed"):
        _apply(system, tmp_path / "a")
    assert not cluster.config
