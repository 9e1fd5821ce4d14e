"""What `tune emit` and `mount plan --emit` write, for `emit_check.sh`: DIRECTORY gets a folder a format.

The settings are made up here: of each way to be read and set one, harmless in a network namespace of its own.
The names in `hostile` make the file `canary` where a tool executes what it should only read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from leadline.mounting.emit import FORMS, unit_name
from leadline.mounting.plan import NewMount, Option
from leadline.tuning.emitting.asking import parse_pair
from leadline.tuning.emitting.delivery import Emission
from leadline.tuning.emitting.tools import TUNING_FORMATS
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
_TEMPLATES = {
    "ansible": "{{{{ lookup('pipe', 'touch {}') }}}}",
    "salt": "{{{{ salt['cmd.run']('touch {}') }}}}",
}
_FILES = {"ansible": "tasks.yml", "salt": "hostile.sls", "fstab": "fstab", "puppet": "hostile.pp"}
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
    _hostile(place, known)


def _hostile(place: Path, known: dict[str, Setting]) -> None:
    """A mount, and a setting of a mount, whose names are templates, quotes and the beginnings of comments."""
    for form, write in FORMS.items():
        template = _TEMPLATES.get(form, "$(touch {}) `touch {}`").format(*2 * [place / "canary"])
        point = f"/mnt/it's # {template} %n"
        mount = NewMount(f"10.0.0.1:3300:/{template}", point, _MOUNT.options)
        folder = place / "hostile" / form
        folder.mkdir(parents=True)
        (folder / _FILES.get(form, unit_name(point))).write_text(write(mount))
        asked = (parse_pair(f"rasize@{point}=1", known), parse_pair(f"shards={template}", known))
        for file in TUNING_FORMATS[form](Emission(asked, {point: mount})).files:
            (folder / "tuned" / form).mkdir(parents=True, exist_ok=True)
            (folder / "tuned" / form / file.name).write_text(file.text)
    play = [
        {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.include_tasks": "tasks.yml"}]}
    ]
    (place / "hostile" / "ansible" / "play.yml").write_text(json.dumps(play))


if __name__ == "__main__":
    main()
