"""A system to be tuned that is no real one: a root with /proc/sys and /sys, a cluster that is an object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.observe.ceph.client import NotObservableError
from leadline.tuning.settings import Price, Setting, SettingAccess, SettingValidity
from leadline.tuning.system import TuningSystem

FSID = "11111111-2222-3333-4444-555555555555"


def setting(name: str, kind: str, options: Mapping[str, str], **fields: Any) -> Setting:
    """A setting with as little as it needs."""
    given = {
        "title": name, "layer": "sysctl", "roles": (), "means": "", "unit": "word", "default": "",
        "needs": "live", "persist": "by_hand", "sources": (),
    } | fields  # fmt: skip
    return Setting(name=name, access=SettingAccess(kind, options), **given)


def known_settings(*more: Setting) -> dict[str, Setting]:
    """Two sysctls, one of a device, three of Ceph, and more."""
    found = (
        setting(
            "backlog", "sysctl", {"key": "net.core.somaxconn"}, unit="count", at_least=1, at_most=65535,
            default="128",
        ),
        setting("swappiness", "sysctl", {"key": "vm.swappiness"}, unit="count", at_least=0, at_most=200),
        setting(
            "read_ahead", "sysfs", {"path": "/sys/block/{device}/queue/read_ahead_kb"}, unit="KiB", at_least=0
        ),
        setting(
            "scheduler", "sysfs", {"path": "/sys/block/{device}/queue/scheduler"},
            one_of=("none", "mq-deadline"), excludes=("read_ahead",),
        ),
        setting("backfills", "ceph_config", {"who": "osd", "option": "osd_max_backfills"}, unit="count"),
        setting(
            "shards", "ceph_config", {"who": "osd", "option": "osd_op_num_shards"}, unit="count",
            needs="restart",
        ),
        setting("noscrub", "ceph_flag", {"flag": "noscrub"}, unit="switch", one_of=("true", "false")),
        setting("fast_read", "ceph_pool", {"option": "fast_read"}, unit="switch", one_of=("true", "false")),
        setting("compression", "ceph_pool", {"option": "compression_mode"}),
        setting("ranks", "ceph_fs", {"option": "max_mds"}, unit="count"),
        setting("replay", "ceph_fs", {"option": "allow_standby_replay"}, unit="switch"),
        setting(
            "nocrc", "sysctl", {"key": "vm.swappiness"}, unit="count", default="60",
            prices=(Price("integrity", "no checksums"),),
        ),
        setting(
            "for_ever", "sysctl", {"key": "vm.swappiness"}, unit="count", irreversible="the pool keeps it"
        ),
        setting(
            "newer", "sysctl", {"key": "vm.swappiness"}, unit="count",
            valid=(SettingValidity("kernel", "99.0", "", "came with 99"),),
        ),
        setting(
            "crashes", "ceph_pool", {"option": "allow_ec_optimizations"}, unit="switch",
            refused=(SettingValidity("ceph", "20.2.0", "20.2.1", "OSDs crash", "used_pool"),),
        ),
        setting("firmware", "by_hand", {"words": "in its set-up"}),
        setting("mitigations", "cmdline", {"parameter": "mitigations"}),
    )  # fmt: skip
    return {one.name: one for one in (*found, *more)}


def make_root(root: Path) -> Path:
    """The files of a small host."""
    files = {
        "proc/sys/net/core/somaxconn": "128\n",
        "proc/sys/vm/swappiness": "60\n",
        "proc/sys/kernel/osrelease": "6.1.0-18\n",
        "proc/sys/kernel/random/boot_id": "boot-one\n",
        "proc/cmdline": "ro quiet mitigations=off\n",
        "sys/block/sda/queue/read_ahead_kb": "128\n",
        "sys/block/sda/queue/scheduler": "none [mq-deadline]\n",
        "sys/block/sdb/queue/read_ahead_kb": "128\n",
        "sys/block/loop0/queue/read_ahead_kb": "128\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


class FakeCluster:
    """Answers as a cluster of two OSDs does. `taken_back`: options whose values the OSDs do not keep;
    `own_file`: values that each OSD has from its configuration file."""

    def __init__(self, version: str = "16.2.15") -> None:
        self.version = version
        self.config: dict[tuple[str, str], str] = {}
        self.taken_back: set[str] = set()
        self.own_file: dict[str, str] = {}
        self.defaults = {"osd_max_backfills": "1", "osd_op_num_shards": "0"}
        self.flags = {"sortbitwise"}
        self.pools: dict[str, dict[str, Any]] = {"data": {"fast_read": "0"}}
        self.fs: dict[str, Any] = {"max_mds": 1, "flags": 18}
        self.checks: dict[str, tuple[str, str]] = {}
        self.checks_after_change: dict[str, tuple[str, str]] = {}
        self.nonces = {0: 100, 1: 101}
        self.at_start = {"osd_op_num_shards"}
        self.started_with: dict[tuple[int, str], str] = {}
        self.silent = False
        self.keys: dict[str, str] = {}
        self.asked: list[str] = []

    def mon(self, prefix: str, **arguments: Any) -> Any:
        """See AskedCluster."""
        self._heard(prefix)
        return getattr(self, "_" + prefix.replace(" ", "_").replace("-", "_"))(**arguments)

    def text(self, prefix: str, **arguments: Any) -> str:
        """See AskedCluster."""
        self._heard(prefix)
        answer = getattr(self, "_" + prefix.replace(" ", "_").replace("-", "_"))(**arguments)
        if prefix.rpartition(" ")[2] in ("set", "rm", "unset") and not prefix.startswith("config-key"):
            self.checks |= self.checks_after_change
        return str(answer or "")

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        """See AskedCluster."""
        self._heard(prefix)
        option = str(arguments["var"])
        default = self.defaults.get(option, "")
        if prefix == "config get":
            return {option: default}
        row: dict[str, Any] = {"default": default, "final": default}
        mon = self.config.get((f"osd.{osd}", option), self.config.get(("osd", option)))
        if option in self.at_start and (osd, option) in self.started_with:
            row["final"] = self.started_with[osd, option]
        elif mon is not None and option not in self.taken_back and option not in self.at_start:
            row |= {"mon": mon, "final": mon}
        if option in self.own_file:
            row |= {"file": self.own_file[option], "final": self.own_file[option]}
        return {"diff": {option: row} if row != {"default": default, "final": default} else {}}

    def close(self) -> None:
        """See AskedCluster."""

    def restart(self, osd: int) -> None:
        """It reads anew what it looks at when it starts."""
        self.nonces[osd] += 1000
        for option in self.at_start:
            value = self.config.get((f"osd.{osd}", option), self.config.get(("osd", option)))
            if value is not None:
                self.started_with[osd, option] = value
            else:
                self.started_with.pop((osd, option), None)

    def _heard(self, prefix: str) -> None:
        self.asked.append(prefix)
        if self.silent:
            raise NotObservableError("the cluster does not answer")

    def _status(self) -> Any:
        checks = {
            code: {"severity": severity, "summary": {"message": words}}
            for code, (severity, words) in self.checks.items()
        }
        groups = [{"state_name": "active+clean", "count": 8}]
        graver = "HEALTH_ERR" if "HEALTH_ERR" in [one for one, _ in self.checks.values()] else "HEALTH_WARN"
        health = {"status": graver if checks else "HEALTH_OK", "checks": checks}
        return {"fsid": FSID, "health": health, "pgmap": {"pgs_by_state": groups}}

    def _versions(self) -> Any:
        return {"overall": {f"ceph version {self.version} (abc) pacific (stable)": 3}}

    def _config_dump(self) -> Any:
        return [
            {"section": section, "name": name, "value": value, "mask": ""}
            for (section, name), value in self.config.items()
        ]

    def _config_get(self, who: str, key: str) -> str:
        return self.config.get((who.partition(".")[0], key), self.defaults.get(key, ""))

    def _config_set(self, who: str, name: str, value: str) -> None:
        if not value.isdigit():
            raise NotObservableError(f"error parsing value: {value!r}")
        self.config[who, name] = value

    def _config_rm(self, who: str, name: str) -> None:
        self.config.pop((who, name), None)

    def _config_key_set(self, key: str, val: str) -> None:
        self.keys[key] = val

    def _config_key_rm(self, key: str) -> None:
        self.keys.pop(key, None)

    def _config_key_dump(self, key: str) -> Any:
        return {name: value for name, value in self.keys.items() if name.startswith(key)}

    def _osd_dump(self) -> Any:
        osds = [
            {"osd": osd, "up": 1, "public_addrs": {"addrvec": [{"nonce": nonce}]}}
            for osd, nonce in self.nonces.items()
        ]
        pools = [
            {
                "pool_name": name, "pool": 1, "pg_num_target": 8, "pg_placement_num_target": 8,
                "options": {key: value for key, value in row.items() if key != "fast_read"},
                "erasure_code_profile": "", "type": 1, "stripe_width": 0,
            }
            for name, row in self.pools.items()
        ]  # fmt: skip
        return {"osds": osds, "pools": pools, "flags": ",".join(self.flags), "flags_set": sorted(self.flags)}

    def _df(self) -> Any:
        return {"pools": [{"name": name, "stats": {"objects": 5}} for name in self.pools]}

    def _fs_dump(self) -> Any:
        return {"filesystems": [{"id": 1, "mdsmap": {"fs_name": "fs", "info": {}, **self.fs}}]}

    def _fs_set(self, fs_name: str, var: str, val: str) -> None:
        assert fs_name == "fs"
        if var == "allow_standby_replay":
            self.fs["flags"] = self.fs["flags"] | 32 if val == "true" else self.fs["flags"] & ~32
        else:
            self.fs[var] = int(val)

    def _osd_set(self, key: str) -> None:
        self.flags.add(key)

    def _osd_unset(self, key: str) -> None:
        self.flags.discard(key)

    def _osd_pool_get(self, pool: str, var: str) -> Any:
        if var not in self.pools[pool]:
            raise NotObservableError(f"option '{var}' is not set on pool '{pool}'")
        return {"pool": pool, var: int(self.pools[pool][var])}

    def _osd_pool_set(self, pool: str, var: str, val: str) -> None:
        if val == "unset":
            self.pools[pool].pop(var, None)
        else:
            self.pools[pool][var] = "1" if val == "true" else "0" if val == "false" else val


def fake_system(root: Path, cluster: FakeCluster | None = None, **more: Any) -> TuningSystem:
    """A system of such a root and cluster."""
    found = cluster or FakeCluster()
    return TuningSystem(root=root, known=known_settings(), connect=lambda: found, **more)


def without_checksums(journal: bytes) -> str:
    """The same journal as the version before wrote it: so tests may change what it says."""
    records = [json.loads(line) for line in journal.rstrip(b"\0").splitlines()]
    for one in records:
        del one["sum"]
    records[0]["format"] = "leadline.tuning/1"
    return "".join(json.dumps(one) + "\n" for one in records)
