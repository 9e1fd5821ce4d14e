"""Every format by its name, and what each is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leadline.tuning.emitting.ansible import ansible
from leadline.tuning.emitting.ceph import ceph, cephadm
from leadline.tuning.emitting.delivery import Emission, Rendered
from leadline.tuning.emitting.host_files import grub, modprobe, sysctl, udev
from leadline.tuning.emitting.mounts import fstab, systemd
from leadline.tuning.emitting.puppet import puppet
from leadline.tuning.emitting.salt import salt
from leadline.tuning.emitting.tuned import tuned

TUNING_FORMATS: Mapping[str, Callable[[Emission], Rendered]] = {
    "sysctl": sysctl,
    "udev": udev,
    "tuned": tuned,
    "modprobe": modprobe,
    "grub": grub,
    "systemd": systemd,
    "fstab": fstab,
    "ceph": ceph,
    "cephadm": cephadm,
    "salt": salt,
    "ansible": ansible,
    "puppet": puppet,
}
