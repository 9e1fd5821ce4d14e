"""What a host can reach, from tables of mounts and a cluster's own words; nothing hangs the list."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.errors import TargetError
from leadline.observe.hang_guard import ChildAnswer
from leadline.observe.mounts import reachable
from leadline.observe.mounts.mountinfo import Mount
from leadline.observe.mounts.reachable import (
    ClusterAccess,
    places_of,
    reachable_in_cluster,
    reachable_mounts,
)
from leadline.study.target import TargetFacts, parse_target


def _mount(place: str, file_system: str) -> Mount:
    return Mount(1, 0, 0, 9, "/", place, ("rw",), file_system, "source", ())


def test_interfaces_of_the_kernel_are_no_places_and_the_root_is_measured_below_var_tmp() -> None:
    mounts = [
        _mount("/", "ext4"),
        _mount("/proc", "proc"),
        _mount("/sys/fs/cgroup", "tmpfs"),
        _mount("/dev", "devtmpfs"),
        _mount("/dev/shm", "tmpfs"),
        _mount("/mnt/c", "ceph"),
        _mount("/mnt/n", "nfs4"),
        _mount("/mnt/n", "cifs"),
    ]
    assert places_of(mounts) == ("/var/tmp", "/dev/shm", "/mnt/c", "/mnt/n")


def test_mount_that_does_not_answer_is_listed_with_its_reason_beside_the_others() -> None:
    def look(place: str, _deadline_s: float) -> TargetFacts:
        if place == "/mnt/hung":
            raise TargetError("/mnt/hung: no answer within 5 s", "See its server.")
        return TargetFacts("local", "ext4", "ext4 on vda", free_bytes=1 << 30)

    found = reachable_mounts([_mount("/mnt/hung", "nfs4"), _mount("/a/data", "ext4")], look)
    assert [(item.name, item.reason) for item in found] == [
        ("hung", "/mnt/hung: no answer within 5 s"),
        ("data", ""),
    ]
    assert found[1].words == "ext4 on vda, 1 GiB free"


def test_mounts_of_one_name_become_targets_of_different_names() -> None:
    def look(_place: str, _deadline_s: float) -> TargetFacts:
        return TargetFacts("local", "ext4", "ext4 on vda")

    found = reachable_mounts([_mount("/a/Data!", "ext4"), _mount("/b/data", "ext4")], look)
    assert [item.name for item in found] == ["data", "data-2"]
    assert all(parse_target(f"{item.name}={item.where}").url == item.where for item in found)


_CLUSTER: dict[str, Any] = {
    "pools": [
        {"name": "meta", "protection": "3 replicas", "erasure": False, "applications": ["cephfs"]},
        {"name": "data", "protection": "3 replicas", "erasure": False, "applications": ["cephfs"]},
        {"name": "free", "protection": "2 replicas", "erasure": False, "applications": []},
        {"name": ".mgr", "protection": "3 replicas", "erasure": False, "applications": ["mgr"]},
    ],
    "file_systems": [{"name": "fs a", "pools": ["data"], "metadata_pool": "meta"}],
}


def test_pools_and_file_systems_are_targets_that_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ChildAnswer((_CLUSTER,), None, 0, "")
    monkeypatch.setattr(reachable, "ask_child", lambda *_: answer)
    found = {item.name: item for item in reachable_in_cluster(ClusterAccess("/l/ceph.conf", "bench"))}
    targets = {name: parse_target(f"{name}={item.where}").url for name, item in found.items()}
    assert targets["cephfs-fs-a"] == "cephfs:///?conf=/l/ceph.conf&user=bench&fs=fs%20a"
    assert targets["rados-free"] == "rados://free?conf=/l/ceph.conf&user=bench"
    # Among the objects of a file system ours are kept apart, and a manager's pool is nobody's to write to.
    assert targets["rados-data"] == "rados://data/leadline?conf=/l/ceph.conf&user=bench"
    assert not {"rados-meta", "rados-mgr"} & set(targets)


def test_cluster_that_does_not_answer_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ChildAnswer(({"reason": "the cluster does not answer client.x"},), None, 0, "")
    monkeypatch.setattr(reachable, "ask_child", lambda *_: answer)
    with pytest.raises(TargetError, match=r"does not answer client\.x") as error:
        reachable_in_cluster(ClusterAccess(user="x"))
    assert "--keyring" in error.value.remedy
