"""What `leadline tune emit` writes, in each format, for `emit_check.sh`: DIRECTORY gets a folder a format.

The settings are made up here: of each way to be read and set one, harmless in a network namespace of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from leadline.mounting.plan import NewMount, Option
from leadline.tuning.emitting.asking import parse_pair
from leadline.tuning.emitting.delivery import Emission
from leadline.tuning.emitting.formats import TUNING_FORMATS
from leadline.tuning.settings import Setting, read_settings

_ROWS = {
    "tcp_rmem": {"kind": "sysctl", "key": "net.ipv4.tcp_rmem"},
    "scheduler": {"kind": "sysfs", "path": "/sys/block/{device}/queue/scheduler"},
    "huge": {"kind": "sysfs", "path": "/sys/kernel/mm/transparent_hugepage/enabled"},
    "metrics": {"kind": "sysfs", "path": "/sys/module/ceph/parameters/disable_send_metrics"},
    "ring": {"kind": "ethtool", "group": "ring", "name": "rx"},
    "shards": {"kind": "ceph_config", "who": "osd", "option": "osd_op_num_shards"},
    "rasize": {"kind": "mount", "option": "rasize"},
    "pin": {"kind": "xattr", "name": "user.leadline"},
    "mitigations": {"kind": "cmdline", "parameter": "mitigations"},
}
_HOST = ("tcp_rmem=4096 131072 8388608", "scheduler@sda=none", "huge=never", "metrics=1", "ring@eth0=4096")
_APPLIED = ("tcp_rmem=4096 131072 4194304", "pin@{directory}={{{{ it's $x }}}}")  # what is tried for real
_MOUNT = NewMount("10.0.0.1:3300:/", "/mnt/my files", (Option("name=media", ""), Option("_netdev", "")))


def _settings() -> dict[str, Setting]:
    rows = {
        name: {
            "title": f"What {name} is", "roles": ["osd"], "access": access, "means": "m", "unit": "word",
            "default": "d", "needs": "live", "persist": "sysctl", "sources": ["s"], "layer": "osd",
        }
        for name, access in _ROWS.items()
    }  # fmt: skip
    return dict(read_settings(json.dumps(rows), "osd.yaml"))


def main() -> None:
    """Everything into one folder, and what may be applied into `applied`."""
    place = Path(sys.argv[1]).resolve()
    directory = place / "my directory"
    directory.mkdir(parents=True, exist_ok=True)
    everything = (
        *_HOST, "shards=8", "rasize@/mnt/my files=67108864", f"pin@{directory}=1", "mitigations=off",
    )  # fmt: skip
    applied = tuple(word.format(directory=directory) for word in _APPLIED)
    known = _settings()
    for name, words in (("all", everything), ("applied", applied)):
        asked = tuple(parse_pair(word, known) for word in words)
        for form, render in TUNING_FORMATS.items():
            folder = place / name / form
            folder.mkdir(parents=True, exist_ok=True)
            for file in render(Emission(asked, {_MOUNT.mount_point: _MOUNT})).files:
                (folder / file.name).write_text(file.text)


if __name__ == "__main__":
    main()
