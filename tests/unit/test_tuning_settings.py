"""The table of settings: every row says what it must, of figures, causes and options that there are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from leadline.errors import SpecError
from leadline.store.tables import TrialRow, columns
from leadline.tuning.rows import read_rows, wrong_value
from leadline.tuning.settings import Setting, read_settings, settings, settings_with
from leadline.tuning.validity import (
    applies,
    dangerous,
    default_on,
    exists,
    obsolete,
    refused,
    same_value,
)
from leadline.verdict.diagnosis.causes import FIGURES, causes

ROW = """
own.setting:
  layer: sysctl
  title: A setting of ours
  roles: [osd]
  access: {kind: sysctl, key: own.setting}
  means: It does something.
  unit: count
  at_least: 1
  at_most: 9
  default: "3"
  needs: live
  persist: sysctl
  sources: ["ours"]
"""
NEW_CEPH, OLD_CEPH = {"ceph": "20.2.0", "kernel": "6.12"}, {"ceph": "16.2.15", "kernel": "5.10"}


@pytest.fixture(scope="module")
def table() -> dict[str, Setting]:
    return dict(settings())


def test_there_are_as_many_settings_as_were_asked_for(table: dict[str, Setting]) -> None:
    assert len(table) >= 90


def test_each_setting_of_the_documents_is_answered(table: dict[str, Setting]) -> None:
    suse = """
        power-profile hyper-threading read_ahead_kb nr_requests device-write-cache
        scsi_mod.use_blk_mq intel_idle.max_cstate processor.max_cstate idle nospec spectre_v2
        pti spec_store_bypass_disable l1tf mitigations mtu pci-max-read-request rps_cpus rx-ring
        tx-ring net.ipv4.tcp_low_latency net.ipv4.tcp_fastopen net.ipv4.tcp_rmem
        net.ipv4.tcp_wmem net.ipv4.tcp_timestamps net.ipv4.tcp_sack net.core.netdev_max_backlog
        net.core.somaxconn net.core.rmem_max net.core.wmem_max debug_ms debug_mds debug_osd
        debug_optracker debug_auth debug_asok debug_bluestore debug_bluefs debug_bdev
        debug_kstore debug_rocksdb debug_eventtrace debug_none debug_rados debug_client
        debug_perfcounter debug_finisher osd_memory_target osd_memory_cache_min
        bluestore_min_alloc_size osd_op_num_threads_per_shard mds_cache_memory_limit noacl
        noatime nodiratime nocrc
    """
    answered = {
        name: {one.name for one in table.values() for told in one.advice if name in told.by.split()}
        for name in ("SUSE", "Opencast")
    }
    assert answered["SUSE"] == set(suse.split())
    assert answered["Opencast"] == {"client-kind", "noatime", "wsync", "context"}


def test_what_moves_is_a_figure_of_a_trial(table: dict[str, Setting]) -> None:
    known = {field.name for field in columns(TrialRow)} | set(FIGURES)
    wrong = {(one.name, move.figure) for one in table.values() for move in one.moves} - {
        (one.name, move.figure) for one in table.values() for move in one.moves if move.figure in known
    }
    assert wrong == set()


def test_what_is_served_is_a_cause_of_diagnose(table: dict[str, Setting]) -> None:
    known = {cause.name for cause in causes()}
    assert {cause for one in table.values() for cause in one.serves} <= known


def test_what_is_excluded_is_a_setting_that_excludes_it_too_or_stands_alone(
    table: dict[str, Setting],
) -> None:
    for one in table.values():
        assert set(one.excludes) <= set(table), one.name
        assert one.name not in one.excludes


def test_what_costs_integrity_durability_or_security_is_grave(table: dict[str, Setting]) -> None:
    for name in ("mitigations", "nocrc", "ms_crc_data", "bluestore_csum_type", "write_cache", "iommu"):
        assert table[name].grave, name
    assert not table["mtu"].grave


def test_a_default_is_a_value_that_the_setting_may_have(table: dict[str, Setting]) -> None:
    for one in table.values():
        if one.unit not in ("word", "switch") and one.default[0].isdigit() and " " not in one.default:
            assert wrong_value(one, one.default) == "", one.name
        for old in one.was:
            assert wrong_value(one, old.value) == "", one.name


def test_no_default_is_dangerous(table: dict[str, Setting]) -> None:
    assert [one.name for one in table.values() if dangerous(one, one.default, {})] == []


def test_each_danger_names_values_that_can_be_set(table: dict[str, Setting]) -> None:
    for one in table.values():
        for danger in one.danger:
            for value in danger.one_of:
                assert wrong_value(one, value) == "", (one.name, value)


@pytest.mark.skipif(shutil.which("ceph-conf") is None, reason="NOT RUN: ceph-common is not installed")
def test_options_of_ceph_are_those_of_the_installed_one_with_its_defaults(table: dict[str, Setting]) -> None:
    shown = subprocess.run(
        ["ceph-conf", "--show-config", "-c", "/dev/null"], capture_output=True, text=True, check=True
    )
    known = dict(line.split(" = ", 1) for line in shown.stdout.splitlines() if " = " in line)
    printed = subprocess.run(["ceph-conf", "--version"], capture_output=True, text=True, check=True)
    versions = {"ceph": printed.stdout.split()[2]}
    options = [one for one in table.values() if one.access.kind in ("ceph_config", "fuse")]
    assert len(options) > 50
    for one in options:
        option = one.access.options["option"]
        assert (option in known) == (exists(one, versions) is not False), option
        if option in known and option not in ("bluestore_rocksdb_options",):
            assert same_value(default_on(one, versions), known[option]), (option, known[option])


def test_a_version_decides_between_since_and_until() -> None:
    (one,) = [one for one in settings()["bluestore_elastic_shared_blobs"].refused]
    answers = {
        version: applies(one, {"ceph": version}) for version in ("18.2.7", "19.2.0", "19.2.3", "19.2.4")
    }
    assert answers == {"18.2.7": False, "19.2.0": True, "19.2.3": True, "19.2.4": False}
    assert applies(one, {}) is None


def test_a_kernel_s_own_name_is_read_as_its_version() -> None:
    low = settings()["net.ipv4.tcp_low_latency"]
    assert obsolete(low, {"kernel": "4.13.16-generic"}) is None
    assert obsolete(low, {"kernel": "6.1.0-18-amd64"}) is not None
    assert default_on(settings()["nowsync"], {"kernel": "5.15.0-91-generic"}) == "false"
    assert default_on(settings()["nowsync"], {"kernel": "5.16"}) == "true"


def test_optimised_erasure_coding_is_refused_on_a_used_pool_of_20_2_0_only() -> None:
    one = settings()["allow_ec_optimizations"]
    states = {"used_pool": True, "replicated": False, "odd_chunks": False}
    assert refused(one, NEW_CEPH, states) is not None
    assert refused(one, NEW_CEPH, {**states, "used_pool": False}) is None
    assert refused(one, {"ceph": "20.2.1"}, states) is None
    assert refused(one, {"ceph": "20.2.1"}, {**states, "odd_chunks": True}) is not None
    assert exists(one, OLD_CEPH) is False
    assert one.irreversible


def test_a_default_is_dangerous_on_the_releases_that_crash_with_it() -> None:
    one = settings()["bluestore_elastic_shared_blobs"]
    found = {
        version: dangerous(one, "true", {"ceph": version}) is not None for version in ("19.2.3", "19.2.4")
    }
    assert found == {"19.2.3": True, "19.2.4": False}


def test_a_state_that_nobody_could_look_at_counts_as_met() -> None:
    assert refused(settings()["allow_ec_optimizations"], NEW_CEPH, {"replicated": False}) is not None
    assert refused(settings()["osd_max_backfills"], {"ceph": "18.2.1"}, {}) is not None
    assert refused(settings()["osd_max_backfills"], {"ceph": "16.2.15"}, {}) is None


@pytest.mark.parametrize(
    ("name", "value", "bad"),
    [
        ("net.ipv4.tcp_rmem", "10240 87380 2147483647", True),
        ("net.ipv4.tcp_rmem", "4096\t131072\t6291456", False),
        ("mitigations", "off", True),
        ("mitigations", "auto,nosmt", False),
        ("ms_crc_data", "0", True),
        ("size", "2", True),
        ("size", "3", False),
        ("osd_mclock_max_capacity_iops_ssd", "212.5", True),
        ("osd_mclock_max_capacity_iops_ssd", "21500.000000", False),
    ],
)
def test_a_dangerous_value_is_told(name: str, value: str, bad: bool) -> None:
    assert (dangerous(settings()[name], value, {}) is not None) == bad


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("vm.swappiness", "201", "at most 200"),
        ("vm.swappiness", "many", "no number"),
        ("net.ipv4.tcp_rmem", "4096 131072", "3 numbers"),
        ("osd_memory_target", "1024", "at least 939524096"),
        ("osd_mclock_profile", "fast", "must be one of"),
        ("net.ipv4.tcp_congestion_control", "a\nb", "printable"),
        ("vm.swappiness", "10", ""),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456", ""),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_would_be_right(name: str, value: str, words: str) -> None:
    said = wrong_value(settings()[name], value)
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("needs: live", "needs: sometimes", 12, "not one of them"),
        ("  unit: count\n", "", 2, "unit: the key is missing"),
        ("default:", "defualt:", 11, "did you mean default?"),
        ("key: own.setting}", "path: x}", 6, "unknown key"),
        ("kind: sysctl", "kind: registry", 6, "not one of them"),
        ("roles: [osd]", "roles: [osd, king]", 5, "not one of them"),
        ("roles: [osd]", "roles: []", 5, "empty"),
        ("roles: [osd]", "roles: osd", 5, "a list is needed"),
        ("at_least: 1", "at_least: one", 9, "a number is needed"),
        ("at_least: 1", "at_least: 10", 10, "less than at_least"),
        ("layer: sysctl", "layer: kernel", 3, "not one of them"),
        ("  layer: sysctl\n", "", 2, "layer: the key is missing"),
        ("own.setting:\n", "OWN:\n", 2, "no name of a setting"),
        ('  sources: ["ours"]', "  sources: [7]", 14, "words are needed"),
        ("persist: sysctl", "persist: sysctl\n  danger: [{words: bad}]", 14, "no value is dangerous"),
        (
            "persist: sysctl",
            "persist: sysctl\n  valid: [{of: kernel, since: new, words: x}]",
            14,
            "no version",
        ),
        ("persist: sysctl", "persist: sysctl\n  prices: [{kind: money, words: x}]", 14, "not one of them"),
        (
            "persist: sysctl",
            'persist: sysctl\n  advice: [{value: "30", by: SUSE 1, words: x}]',
            14,
            "at most 9",
        ),
        ("persist: sysctl", "persist: sysctl\n  advice: [{by: SUSE 1, words: x}]", 14, "value or times"),
        (
            "persist: sysctl",
            'persist: sysctl\n  advice: [{value: "3", by: a friend, words: x}]',
            14,
            "no known document",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_line_and_key(old: str, new: str, line: int, said: str) -> None:
    assert old in ROW
    with pytest.raises(SpecError) as caught:
        list(read_settings(ROW.replace(old, new, 1), "own.yaml"))
    assert "own.yaml" in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.line == line


def test_a_user_s_file_adds_settings(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(ROW)
    found = settings_with(own)
    assert len(found) == len(settings()) + 1
    assert not found["own.setting"].built_in
    assert found["mtu"].built_in


def test_a_user_s_file_cannot_say_something_else_of_what_is_built_in(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(ROW.replace("own.setting:", "vm.swappiness:", 1))
    with pytest.raises(SpecError, match="built in"):
        settings_with(own)


@pytest.mark.parametrize("text", ["", "- a\n", "7\n", "a: b: c\n", "\x00"])
def test_a_file_that_is_no_list_of_settings_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text)
    with pytest.raises(SpecError, match=r"own\.yaml"):
        settings_with(own)


def test_a_layer_is_said_once() -> None:
    with pytest.raises(SpecError, match="the file names the layer"):
        list(read_rows(ROW, "sysctl.yaml", "sysctl"))
