"""Targets with a pool of their own: what may be written, which are refused, whose directory is whose."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import SpecError, TargetError
from leadline.observe.ceph.pools import PoolPlacement, failure_domains, require_pool, set_pool
from leadline.observe.mounts import layouts
from leadline.run.workspace import MARK, Workspace, is_name_of, make_workspace, workspace_of
from leadline.study.study import Study, parse_study
from leadline.study.target import CephAccess, Target, TargetFacts, parse_layouts, parse_targets, with_layouts
from leadline.study.yaml_source import read_study

ID = "0abcdef1"
TREE = [
    {"id": -1, "name": "default", "type": "root", "children": [-2, -3, -4]},
    {"id": -2, "name": "a", "type": "host", "children": [0, 1]},
    {"id": -3, "name": "b", "type": "host", "children": [2]},
    {"id": -4, "name": "c", "type": "host", "children": []},
    {"id": 0, "name": "osd.0", "type": "osd", "crush_weight": 1.0, "device_class": "hdd"},
    {"id": 1, "name": "osd.1", "type": "osd", "crush_weight": 1.0, "device_class": "ssd"},
    {"id": 2, "name": "osd.2", "type": "osd", "crush_weight": 1.0, "device_class": "hdd", "status": "down"},
]
MOUNTED = TargetFacts(
    access="ceph-fuse",
    file_system="fuse.ceph-fuse",
    words="CephFS through ceph-fuse, pool data (3 replicas), no quota",
    ceph=CephAccess(pool="data", protection="replicated", size=3),
)


def _rule(kind: str, root: str = "default") -> dict[str, Any]:
    chosen = {"op": "chooseleaf_indep", "num": 0, "type": kind}
    return {"rule_id": 1, "steps": [{"op": "take", "item_name": root}, chosen, {"op": "emit"}]}


def _placement(**changes: Any) -> PoolPlacement:
    known: dict[str, Any] = {
        "found": True,
        "pools": ("data", "ec", "other"),
        "file_systems": (("fs", ("data", "ec")),),
        "protection": "erasure",
        "size": 3,
        "k": 2,
        "m": 1,
        "failure_domain": "host",
        "domains": 3,
    }
    return PoolPlacement(**{**known, **changes})


def _with(monkeypatch: pytest.MonkeyPatch, placement: PoolPlacement | None, pool: str = "ec") -> TargetFacts:
    monkeypatch.setattr(layouts, "_placement", lambda _ceph, _pool: placement)
    return layouts.with_layout(MOUNTED, Target("e", "/mnt/x", pool=pool), tries=False)


def test_a_pool_takes_the_place_of_the_directorys(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _with(monkeypatch, _placement())
    assert found.ceph is not None
    assert (found.ceph.pool, found.ceph.protection_words, found.ceph.failure_domain) == (
        "ec",
        "EC 2+1",
        "host",
    )
    assert found.words == (
        "CephFS through ceph-fuse, pool ec (erasure-coded 2+1) by a layout of the study's own, no quota"
    )
    assert MOUNTED.ceph is not None
    assert MOUNTED.ceph.protection_words == "3x"


def test_of_a_cluster_that_cannot_be_asked_nothing_is_taken_from_the_other_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _with(monkeypatch, None)
    assert found.ceph is not None
    assert (found.ceph.pool, found.ceph.protection_words) == ("ec", None)


@pytest.mark.parametrize(
    ("placement", "pool", "message", "remedy"),
    [
        (_placement(found=False), "ecc", "no pool ecc", "did you mean ec?"),
        (_placement(), "other", "none of the data pools of file system fs", "fs add_data_pool fs other"),
        (
            _placement(overwrites=False),
            "ec",
            "takes no overwrites",
            "ceph osd pool set ec allow_ec_overwrites",
        ),
        (_placement(domains=2), "ec", "2 of the 3 that it needs", "add 1 host;"),
        (_placement(k=8, m=3, size=11), "ec", r"erasure-coded 8\+3.*another host", "add 8 hosts;"),
    ],
)
def test_a_pool_that_will_not_do_is_refused_with_what_would(
    monkeypatch: pytest.MonkeyPatch, placement: PoolPlacement, pool: str, message: str, remedy: str
) -> None:
    with pytest.raises(TargetError, match=message) as caught:
        _with(monkeypatch, placement, pool)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("url", ["/var/tmp", "null://"])
def test_only_a_mounted_directory_of_a_cluster_takes_a_pool(url: str) -> None:
    facts = TargetFacts(access="local", file_system="ext4", words="ext4 on vda")
    with pytest.raises(TargetError, match="can have no pool ec: it is ext4 on vda"):
        layouts.with_layout(facts, Target("e", url, pool="ec"))


@pytest.mark.parametrize(
    ("rule", "domain", "domains"),
    [
        (_rule("host"), "host", 2),
        (_rule("osd"), "osd", 3),
        (_rule("host", "default~ssd"), "host", 1),
        (_rule("rack"), "rack", 0),
        (_rule("host", "gone"), "host", None),
        (None, None, None),
        ({"steps": [*_rule("host")["steps"], *_rule("osd")["steps"]]}, None, None),
    ],
)
def test_failure_domains_are_counted_where_an_osd_is(
    rule: dict[str, Any] | None, domain: str | None, domains: int | None
) -> None:
    assert failure_domains(rule, TREE) == (domain, domains)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["ec"], "the pool is missing"),
        (["ec="], "no name of a pool"),
        (["ec=a b"], "no name of a pool"),
        (["E=a"], "no name of a target"),
        (["ec=a", "ec=b"], "given two pools"),
    ],
)
def test_a_wrong_layout_is_named(texts: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_layouts(texts)
    assert caught.value.source == f"--layout {texts[-1]}"


def test_a_layout_is_of_a_target_that_there_is() -> None:
    targets = parse_targets(["rep=/mnt", "ec=/mnt"])
    assert with_layouts(targets, {"ec": "p"})["ec"] == Target("ec", "/mnt", pool="p")
    with pytest.raises(SpecError, match="'ce' is no target of this run"):
        with_layouts(targets, {"ce": "p"})


def _study(targets: str) -> Study:
    text = f"format: leadline.study/1\ntargets: {targets}\nworks:\n  a: {{rw: read}}\n"
    return parse_study(read_study(text, "x.yaml", {}))


def test_a_study_may_say_pools_and_is_read_back_the_same() -> None:
    study = _study("{rep: /mnt, ec: {at: /mnt, pool: p}}")
    assert study.own_targets() == {"rep": Target("rep", "/mnt"), "ec": Target("ec", "/mnt", pool="p")}
    assert study.as_json()["targets"] == {"rep": "/mnt", "ec": {"at": "/mnt", "pool": "p"}}
    assert Study.from_json(study.as_json()) == study


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ("{ec: {at: /mnt, pol: p}}", "did you mean pool?"),
        ("{ec: {pool: p}}", "the key is missing"),
        ("{ec: {at: /mnt, pool: 7}}", "no name of a pool"),
        ("{ec: {at: 'zzz://x', pool: p}}", "is no scheme"),
        ("{ec: 5}", "neither a path nor a URL"),
        ("{ec: [a]}", "neither a path nor a URL"),
    ],
)
def test_a_wrong_place_in_a_study_is_named_with_its_line(targets: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        _study(targets)
    assert words in str(caught.value) + str(caught.value.remedy)
    assert caught.value.line == 2


def test_targets_of_one_path_work_in_directories_of_their_own(tmp_path: Path) -> None:
    rep, ec = Target("rep", str(tmp_path)), Target("ec", str(tmp_path), pool="p")
    assert workspace_of(rep, ID).directory == f"{tmp_path}/leadline-{ID}"
    assert workspace_of(ec, ID).directory == f"{tmp_path}/leadline-{ID}-ec"
    assert workspace_of(ec, ID).study_id == ID
    assert not rep.may_share(ec)
    assert is_name_of(f"leadline-{ID}-ec", ID)
    assert not is_name_of(f"leadline-{ID}0", ID)


@pytest.mark.parametrize(
    "name", [f"leadline-{ID}-", f"leadline-{ID}-.", f"leadline-{ID}-a.b", f"leadline-{ID}-A"]
)
def test_no_other_name_is_a_directory_of_a_study(name: str) -> None:
    with pytest.raises(TargetError, match="no directory that a study works in"):
        Workspace(f"/x/{name}")


def test_where_no_layout_can_be_set_nothing_is_left(tmp_path: Path) -> None:
    place = workspace_of(Target("ec", str(tmp_path), pool="p"), ID)
    with pytest.raises(TargetError, match=r"has no layouts|layout cannot be set"):
        make_workspace(place, ID, "p")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "message", "remedy"),
    [
        (errno.EACCES, "may not set layouts", "needs p"),
        (errno.EPERM, "may not set layouts", "needs p"),
        (errno.EINVAL, "keeps no files in a pool p", "ceph fs add_data_pool"),
        (errno.EOPNOTSUPP, "no directory of a mounted CephFS", "leave the pool out"),
        (errno.EIO, "Input/output error", "mount"),
    ],
)
def test_what_a_file_system_answers_to_a_layout_is_said(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str, remedy: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(TargetError, match=message) as caught:
        set_pool(0, "p", "/mnt/x")
    assert remedy in caught.value.remedy


def test_a_file_that_lies_in_another_pool_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getxattr", lambda *_: b"data")
    require_pool(tmp_path / MARK, "data")
    with pytest.raises(TargetError, match="kept in pool data, and pool ec was asked for"):
        require_pool(tmp_path / MARK, "ec")
