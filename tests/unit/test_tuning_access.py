"""How settings are read by each kind of access: what the kernel, ethtool and Ceph print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tuned_system import fake_system, make_root, setting

from leadline.errors import RefusedChangeError, TuningError
from leadline.tuning.access.interface import same_value
from leadline.tuning.access.mounts import FuseAccess
from leadline.tuning.settings import SettingPlace
from leadline.tuning.surroundings import TunedSurroundings
from leadline.tuning.system import TuningSystem

_RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t512
RX Mini:\tn/a
TX:\t\t256
"""
_OFFLOADS = """Features for eth0:
rx-checksumming: on
tcp-segmentation-offload: off
\ttx-tcp-segmentation: off
generic-receive-offload: on
large-receive-offload: off [fixed]
"""
_COALESCING = """Coalesce parameters for eth0:
Adaptive RX: on  TX: off
rx-usecs: 3
rx-frames: n/a
"""
_MOUNTS = (
    "24 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "36 24 0:52 / /mnt/ceph rw,noatime - ceph 10.0.0.1:/ rw,name=admin,acl,wsync,rasize=8388608\n"
    "37 24 0:53 / /mnt/fuse rw,relatime - fuse.ceph-fuse ceph-fuse rw,user_id=0\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small host with mounts and an interface."""
    found = make_root(tmp_path / "root")
    for name, text in {"proc/self/mountinfo": _MOUNTS, "sys/class/net/eth0/mtu": "1500\n"}.items():
        path = found / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return found


@pytest.fixture
def ethtool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name; the file that has what was asked of it."""
    place, asked = tmp_path / "bin", tmp_path / "asked"
    place.mkdir()
    printed = {"-g": _RINGS, "-k": _OFFLOADS, "-c": _COALESCING}
    cases = "".join(f"{option}) cat <<'EOF'\n{text}EOF\n;;\n" for option, text in printed.items())
    program = place / "ethtool"
    program.write_text(f'#!/bin/sh\necho "$@" >>{asked}\ncase "$1" in\n{cases}-l) exit 95;;\nesac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    return asked


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("ring", "rx", "512"),
        ("ring", "tx", "256"),
        ("ring", "rx-mini", None),
        ("offload", "tso", "off"),
        ("offload", "gro", "on"),
        ("offload", "lro", "off"),
        ("coalesce", "rx-usecs", "3"),
        ("coalesce", "rx-frames", None),
        ("coalesce", "adaptive-rx", "on"),
        ("coalesce", "adaptive-tx", "off"),
        ("channels", "combined", None),
    ],
)
@pytest.mark.usefixtures("ethtool")
def test_what_ethtool_prints_is_read_as_it_is_now_and_not_as_it_could_be(
    root: Path, group: str, name: str, value: str | None
) -> None:
    one = setting(name, "ethtool", {"group": group, "name": name})
    read = fake_system(root).read(one, SettingPlace("eth0"))

    assert read.value == value
    assert read.known == (value is not None)


def test_what_a_driver_fixes_is_refused_and_the_rest_is_set_by_its_own_letter(
    root: Path, ethtool: Path
) -> None:
    system = fake_system(root)
    fixed = setting("lro", "ethtool", {"group": "offload", "name": "lro"})
    ring = setting("rx", "ethtool", {"group": "ring", "name": "rx"})

    assert "does not let it be changed" in system.why_not(fixed, SettingPlace("eth0"))
    assert system.why_not(ring, SettingPlace("eth0")) == ""
    system.kind(ring).write(ring, SettingPlace("eth0"), "1024")
    assert ethtool.read_text().splitlines()[-1] == "-G eth0 rx 1024"


def test_a_program_that_is_missing_is_the_reason(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    one = setting("rx", "ethtool", {"group": "ring", "name": "rx"})

    assert fake_system(root).read(one, SettingPlace("eth0")).reason == "the program ethtool is not installed"


@pytest.mark.parametrize(
    ("option", "one_of", "place", "value"),
    [
        ("noatime", ("true", "false"), "/mnt/ceph", "true"),
        ("noatime", ("true", "false"), "/", "false"),
        ("wsync", ("true", "false"), "/mnt/ceph", "true"),
        ("noacl", ("true", "false"), "/mnt/ceph", "false"),
        ("rasize", None, "/mnt/ceph", "8388608"),
        ("noatime", ("true", "false"), "/mnt/none", None),
    ],
)
def test_options_of_mounts_are_read_from_the_table_of_mounts(
    root: Path, option: str, one_of: tuple[str, ...] | None, place: str, value: str | None
) -> None:
    one = setting(option, "mount", {"option": option}, one_of=one_of)

    assert fake_system(root).read(one, SettingPlace(place)).value == value


def test_only_mounts_of_the_kernel_s_own_clients_have_their_options(root: Path) -> None:
    system = fake_system(root)
    places = {
        name: [place.subject for place in system.places(setting(name, "mount", {"option": name}))]
        for name in ("rasize", "noatime")
    }

    assert places == {"rasize": ["/mnt/ceph"], "noatime": ["/", "/mnt/ceph"]}


def test_a_file_of_several_choices_tells_the_one_in_brackets_and_parts_that_differ_have_no_value(
    root: Path,
) -> None:
    system = fake_system(root)
    assert system.read(system.setting("scheduler"), SettingPlace("sda")).value == "mq-deadline"
    queues = root / "sys/class/net/eth0/queues"
    for queue, mask in (("rx-0", "3"), ("rx-1", "3")):
        (queues / queue).mkdir(parents=True)
        (queues / queue / "rps_cpus").write_text(f"{mask}\n")
    rps = setting("rps", "sysfs", {"path": "/sys/class/net/{interface}/queues/rx-*/rps_cpus"})
    assert [place.subject for place in system.places(rps)] == ["eth0"]
    assert system.read(rps, SettingPlace("eth0")).value == "3"

    (queues / "rx-1" / "rps_cpus").write_text("1\n")

    assert system.read(rps, SettingPlace("eth0")).reason == "its parts differ: 1, 3"


def test_parameters_of_the_kernel_are_read_and_never_set(root: Path) -> None:
    system = fake_system(root)
    given = system.setting("mitigations")
    absent = setting("iommu", "cmdline", {"parameter": "iommu"})

    assert system.read(given, SettingPlace()).value == "off"
    assert system.read(absent, SettingPlace()).origin == "default"
    with pytest.raises(RefusedChangeError):
        system.kind(given).write(given, SettingPlace(), "auto")


def test_a_value_that_a_file_does_not_take_is_the_kernel_s_own_word(root: Path) -> None:
    system = fake_system(root)
    with pytest.raises(TuningError, match="does not take"):
        system.kind(system.setting("backlog")).around.write("/proc/sys", "1")


def test_what_has_no_place_of_its_own_is_named_with_the_reason() -> None:
    silent = TuningSystem(connect=None, conf=Path("/nonexistent/ceph.conf"), known={})
    one = setting("backfills", "ceph_config", {"who": "osd", "option": "osd_max_backfills"})

    assert silent.places(one) == ()
    assert silent.read(one, SettingPlace("osd")).reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("4096 131072\t6291456", "4096 131072 6291456", True),
        ("1.0", "1", True),
        ("true", "1", True),
        ("off", "false", True),
        ("none", "NONE", True),
        ("1", "2", False),
        ("", None, False),
        ("true", "2", False),
    ],
)
def test_one_value_in_two_spellings_is_one_value(one: str, other: str | None, same: bool) -> None:
    assert same_value(one, other) is same


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_a_mount_that_goes_while_it_is_asked_has_no_value_and_the_reason(
    answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [{"diff": {"client_oc": {"default": True}}}, {"client_oc": "true"}][:answers]

    def ask(_access: FuseAccess, place: SettingPlace, *_words: str, **_named: object) -> object:
        if not left:
            raise TuningError(f"no ceph-fuse is mounted at {place.subject}", "")
        return left.pop(0)

    monkeypatch.setattr(FuseAccess, "_ask", ask)
    one = setting("client_oc", "fuse", {"option": "client_oc"})
    (found,) = FuseAccess(TunedSurroundings()).in_force(one, SettingPlace("/mnt/gone"))
    known = answers == 2
    assert found.value == ("true" if known else None)
    assert found.origin == ("default" if known else "")
    assert found.reason == ("" if known else "no ceph-fuse is mounted at /mnt/gone")
