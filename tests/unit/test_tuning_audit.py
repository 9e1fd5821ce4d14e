"""An audit says what the table says of what was read, in the order of what limits the work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leadline.cli.change.audit_view import directions
from leadline.cli.main import run_command_line
from leadline.errors import UsageError
from leadline.knowledge.findings import Finding
from leadline.tuning.access.interface import InForce, SettingReading
from leadline.tuning.audit import AuditAsked, Audited, SettingSeen, audit, target
from leadline.tuning.fleet import where_words
from leadline.tuning.messages import access_words, find_setting, paragraphs
from leadline.tuning.settings import ROLES, Role, Setting, SettingPlace, settings
from leadline.tuning.system import read_settings_here
from leadline.verdict.diagnosis.causes import FIGURES

VERSIONS = {"kernel": "6.1.0", "ceph": "16.2.15"}
HERE = SettingPlace()
WINDOW = Finding("client_cache_full", "the client's cache of data", "", "", share=0.9)
AHEAD = Finding("read_ahead", "the read-ahead of the client", "", "", share=0.4)


def seen(name: str, value: str | None, place: SettingPlace = HERE, given: bool | None = True) -> SettingSeen:
    return SettingSeen(settings()[name], place, value, given, "" if value is not None else "not told")


def audited(
    *found: SettingSeen,
    causes: Iterable[Finding] = (),
    works: Iterable[str] = (),
    roles: tuple[Role, ...] = ROLES,
    states: dict[str, bool] | None = None,
    versions: dict[str, str] = VERSIONS,
) -> Audited:
    known = {one.setting.name: one.setting for one in found}
    asked = AuditAsked(
        versions, roles, frozenset(works), tuple(causes), lambda name, _place: (states or {}).get(name)
    )
    return audit(known, found, asked)


def rows(found: Audited) -> list[tuple[str, str, str]]:
    return [(row.kind, row.setting.name, row.to) for row in found.rows]


def test_a_dangerous_value_comes_first_with_what_to_put_back() -> None:
    found = audited(seen("client_oc_size", "209715200"), seen("nocrc", "true"), causes=[WINDOW])
    assert rows(found) == [("dangerous", "nocrc", "false"), ("recommended", "client_oc_size", "838860800")]
    assert found.dangerous


def test_nothing_is_recommended_without_a_cause_but_what_is_advised_always() -> None:
    found = audited(seen("client_oc_size", "209715200"), seen("fs.aio-max-nr", "65536"))
    assert rows(found) == [("recommended", "fs.aio-max-nr", "1048576")]
    assert not found.dangerous
    assert found.to_prove == ()


def test_the_larger_cause_comes_first() -> None:
    both = seen("rasize", "8388608"), seen("client_oc_size", "209715200")
    assert [name for _, name, _ in rows(audited(*both, causes=[AHEAD, WINDOW]))] == [
        "client_oc_size",
        "rasize",
    ]
    assert [name for _, name, _ in rows(audited(*both, causes=[AHEAD]))] == ["rasize"]


def test_what_is_as_good_already_is_not_recommended() -> None:
    assert rows(audited(seen("rasize", "134217728"), causes=[AHEAD])) == []
    assert rows(audited(seen("fs.aio-max-nr", "2097152"))) == []
    low = Finding("memory_short", "the memory of this host", "", "", share=0.5)
    assert rows(audited(seen("vm.swappiness", "1"), causes=[low])) == []
    assert rows(audited(seen("vm.swappiness", "60"), causes=[low])) == [
        ("recommended", "vm.swappiness", "10")
    ]


def test_a_multiple_ends_at_what_is_allowed() -> None:
    one = settings()["objecter_inflight_ops"]
    (told,) = one.advice
    assert target(one, told, "1024") == "4096"
    assert target(one, told, "900000") == "1048576"
    assert target(one, told, "1048576") == ""
    assert target(one, told, "many") == ""


def test_read_ahead_is_not_for_work_that_writes() -> None:
    assert rows(audited(seen("rasize", "8388608"), causes=[AHEAD], works=["write"])) == []
    assert rows(audited(seen("rasize", "8388608"), causes=[AHEAD], works=["write", "read"])) != []


def test_settings_of_other_roles_are_left_out() -> None:
    assert rows(
        audited(seen("ms_crc_data", "false"), seen("client_permissions", "false"), roles=("osd",))
    ) == [("dangerous", "ms_crc_data", "true")]


def test_what_does_nothing_any_more_is_said_where_it_was_set() -> None:
    assert rows(audited(seen("net.ipv4.tcp_low_latency", "1", given=None))) == [
        ("obsolete", "net.ipv4.tcp_low_latency", "")
    ]
    assert rows(audited(seen("net.ipv4.tcp_low_latency", "0", given=None))) == []
    old = audited(seen("net.ipv4.tcp_low_latency", "1", given=None), versions={"kernel": "4.12"})
    assert [kind for kind, _, _ in rows(old)] == ["advice"]


def test_advice_that_does_not_hold_is_named_with_its_document() -> None:
    (row,) = audited(seen("net.core.netdev_max_backlog", "250000", given=None)).rows
    assert row.kind == "advice"
    assert "SUSE, CephFS for Media and Entertainment Workloads (2019), section 8.4" in row.why


def test_what_mclock_takes_back_is_without_effect_under_mclock_only() -> None:
    reef = {"ceph": "18.2.1"}
    found = seen("osd_max_backfills", "4")
    assert [kind for kind, _, _ in rows(audited(found, versions=reef, states={"mclock": True}))] == [
        "refused"
    ]
    assert rows(audited(found, versions=reef, states={"mclock": False})) == []


def test_what_is_refused_here_is_not_recommended() -> None:
    cause = Finding("read_modify_write", "reads before writes of erasure coding", "", "", share=0.8)
    pool = SettingPlace("data", cluster="f")
    found = seen("allow_ec_optimizations", "false", pool)
    fresh = {"used_pool": False, "erasure": True, "replicated": False, "odd_chunks": False}
    to = [("recommended", "allow_ec_optimizations", "true")]
    assert rows(audited(found, causes=[cause], states=fresh, versions={"ceph": "20.2.1"})) == to
    used = {**fresh, "used_pool": True}
    assert rows(audited(found, causes=[cause], states=used, versions={"ceph": "20.2.0"})) == []
    assert rows(audited(found, causes=[cause], states=used, versions={"ceph": "20.2.1"})) == to
    assert rows(audited(found, causes=[cause], states={}, versions={"ceph": "20.2.0"})) == []
    assert rows(audited(found, causes=[cause], states=fresh, versions={"ceph": "16.2.15"})) == []


def test_shards_of_an_erasure_coded_pool_are_no_missing_copies() -> None:
    pool = seen("size", "2", SettingPlace("data", cluster="f"))
    assert audited(pool, states={"erasure": False}).dangerous
    assert not audited(pool, states={"erasure": True}).dangerous


def test_places_with_the_same_to_say_are_one_row() -> None:
    found = audited(*(seen("tso", "off", SettingPlace(f"eth{number}"), None) for number in range(5)))
    (row,) = found.rows
    assert where_words(row.places, ()) == "eth0, eth1, eth2 and 2 more"


def test_what_has_a_grave_price_is_not_proposed_for_a_first_proof() -> None:
    cause = Finding("client_cache_full", "a full write cache of the client", "", "", share=0.5)
    found = audited(
        seen("client_oc_max_dirty", "104857600"), seen("client_oc_size", "209715200"), causes=[cause]
    )
    assert {name for _, name, _ in rows(found)} == {"client_oc_max_dirty", "client_oc_size"}
    assert [row.setting.name for row in found.to_prove] == ["client_oc_size"]


def test_what_is_advised_always_is_applied_where_that_takes_effect() -> None:
    on_cluster = SettingPlace("osd", cluster="f")
    found = audited(
        seen("fs.aio-max-nr", "65536"),  # at once
        seen("client_oc", "false", SettingPlace("/mnt")),  # by a new mount
        seen("bluestore_cache_size", "1", on_cluster),
        seen("vm.swappiness", "60"),  # by a cause only
    )
    assert {name for kind, name, _ in rows(found) if kind == "recommended"} >= {"fs.aio-max-nr", "client_oc"}
    assert [row.setting.name for row in found.to_apply] == ["fs.aio-max-nr"]


def test_what_could_not_be_read_is_never_taken_for_a_value() -> None:
    found = audited(seen("client_oc_size", None), causes=[WINDOW])
    assert rows(found) == []
    assert [one.setting.name for one in found.unknown] == ["client_oc_size"]


def test_what_only_a_hand_can_read_is_recommended_where_its_cause_is_named() -> None:
    full = Finding("client_thread", "one thread of the client", "", "", share=0.8)
    assert rows(audited(seen("client-kind", None), causes=[full])) == [
        ("recommended", "client-kind", "kernel")
    ]
    assert rows(audited(seen("client-kind", None))) == []


def test_what_is_not_here_is_recommended_from_its_default() -> None:
    known = {"client_oc_size": settings()["client_oc_size"]}
    found = audit(known, (), AuditAsked(VERSIONS, ROLES, causes=(WINDOW,)))
    assert [(row.to, where_words(row.places, ())) for row in found.rows] == [("838860800", "not here")]
    assert found.to_prove == ()


@dataclass
class FakeSystem:
    """Readings by setting; what daemons have beside that."""

    readings: dict[str, SettingReading]
    daemons: dict[str, tuple[InForce, ...]] = field(default_factory=dict)

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        return (SettingPlace("osd", cluster="f"),) if setting.name in self.readings else ()

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        return self.readings[setting.name]

    def in_force(self, setting: Setting, _place: SettingPlace) -> tuple[InForce, ...]:
        return self.daemons.get(setting.name, ())


def test_what_a_daemon_s_own_file_says_is_seen_where_it_is_dangerous() -> None:
    system = FakeSystem(
        {"ms_crc_data": SettingReading("true", "default")},
        {"ms_crc_data": (InForce("osd.0", "true", "default"), InForce("osd.1", "false", "file"))},
    )
    read = read_settings_here(system, [settings()["ms_crc_data"]], VERSIONS)  # type: ignore[arg-type]
    assert [(one.place.subject, one.value, one.given) for one in read] == [
        ("osd.0", "true", False),
        ("osd.1", "false", True),
    ]


def test_a_default_that_nobody_tells_is_that_of_the_release() -> None:
    system = FakeSystem(
        {"osd_op_queue_cut_off": SettingReading(None, "default"), "mtu": SettingReading(None)}
    )
    read = read_settings_here(system, settings().values(), VERSIONS)  # type: ignore[arg-type]
    assert {(one.setting.name, one.value, one.given) for one in read} == {
        ("osd_op_queue_cut_off", "high", False),
        ("mtu", None, None),
    }


def test_settings_that_this_release_does_not_have_are_not_asked_for() -> None:
    system = FakeSystem({"bluestore_elastic_shared_blobs": SettingReading("true", "default")})
    assert read_settings_here(system, settings().values(), VERSIONS) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ({"rw": "randread"}, {"read"}),
        ({"rw": "randwrite"}, {"write"}),
        ({"rw": "randrw"}, {"read", "write"}),
        ({"works": {"a": {"rw": "write"}}, "factors": {"rw": ["read", "rw"]}}, {"read", "write"}),
        ({"rwmixread": "80", "bs": "read"}, set()),
    ],
)
def test_which_ways_data_go_is_told_by_rw(job: dict[str, object], found: set[str]) -> None:
    assert directions([job]) == found


def test_every_setting_can_be_explained() -> None:
    for one in settings().values():
        _is_explained(one)


def _is_explained(one: Setting) -> None:
    said = "\n".join(paragraphs(one, VERSIONS, FIGURES, {}))
    assert "{" not in access_words(one).replace("{device}", "").replace("{interface}", "")
    for words in (one.title, one.means, *(price.words for price in one.prices), *one.sources):
        assert words in said
    assert all(told.words in said for told in one.advice)


def test_a_name_that_is_nearly_right_is_met_with_the_right_one() -> None:
    for wrong, right in (
        ("tcp_low_latency", "net.ipv4.tcp_low_latency"),
        ("osd_op_num_shard", "osd_op_num_shards"),
        ("NOCRC ", "nocrc"),
    ):
        with pytest.raises(UsageError) as caught:
            find_setting(wrong, settings())
        assert right in caught.value.remedy
    with pytest.raises(UsageError) as caught:
        find_setting("qqqqqqqqq", settings())
    assert "did you mean" not in caught.value.remedy


def test_list_prints_json_of_what_serves_a_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tune", "list", "--for", "mds_one_rank", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "leadline.settings/1"
    assert "max_mds" in {one["name"] for one in document["settings"]}
    assert all("mds_one_rank" in one["serves"] for one in document["settings"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--for", "read_ahaed"], "did you mean read_ahead?"),
        (["explain", "no_crc"], "nocrc"),
        (["explain", "nocrc", "--ceph", "squid"], "no version"),
        (["list", "--layer", "kernel"], "kernel"),
        (["audit", "--no-ceph", "--lab"], "two answers"),
        (["audit", "--no-ceph", "--for", "no-such-study"], "no-such-study"),
        (["list", "--settings", "/nonexistent.yaml"], "/nonexistent.yaml"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["tune", *words]) == 2
    assert said in capsys.readouterr().err


def test_explain_says_what_a_release_makes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tune", "explain", "allow_ec_optimizations", "--ceph", "16.2.15"]) == 0
    assert "NOT HERE" in capsys.readouterr().out
    assert run_command_line(["tune", "explain", "net.ipv4.tcp_low_latency", "--kernel", "6.1"]) == 0
    assert "OBSOLETE" in capsys.readouterr().out
    assert run_command_line(["tune", "explain", "net.ipv4.tcp_low_latency", "--kernel", "4.12"]) == 0
    assert "OBSOLETE" not in capsys.readouterr().out


def test_audit_of_a_host_without_a_cluster_says_what_would_lead_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        """
own.zero:
  layer: sysctl
  title: Zero on purpose
  roles: [client]
  access: {kind: sysctl, key: kernel.ostype}
  means: A value that every Linux has.
  unit: word
  default: other
  needs: live
  persist: sysctl
  danger: [{one_of: [Linux], words: for this test}]
  sources: ["ours"]
"""
    )
    words = ["tune", "audit", "--no-ceph", "--role", "client", "--for", "quick"]
    run_command_line(words)
    assert "leadline run quick" in capsys.readouterr().out
    assert run_command_line([*words, "--settings", str(own), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["rows"][0]["setting"] == "own.zero"
    assert document["rows"][0]["value"] == "Linux"
    assert document["rows"][0]["to"] == "other"
