"""`leadline doctor` and the checks behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.cli import installation
from leadline.cli.machine import doctor
from leadline.errors import UsageError
from leadline.observe import capabilities


def test_document_lists_every_check_with_a_remedy_where_something_is_missing() -> None:
    done = CliRunner().invoke(doctor.command, ["--json"])
    assert done.exit_code == 0
    document = json.loads(done.output)
    assert document["format"] == "leadline.doctor/1"
    assert {check["group"] for check in document["checks"]} >= {
        "leadline",
        "machine",
        "kernel",
        "storage",
        "Ceph",
    }
    for check in document["checks"]:
        assert check["state"] in ("works", "limited", "missing")
        assert check["state"] != "missing" or check["remedy"]


def test_table_is_plain_where_no_terminal_is() -> None:
    for words in ([], ["--all"]):
        done = CliRunner().invoke(doctor.command, words)
        assert done.exit_code == 0
        assert "\x1b" not in done.output
        assert "io_uring" in done.output
        assert max(map(len, done.output.splitlines())) <= 100


def test_the_first_screen_names_what_works_and_has_rows_for_the_rest_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = [
        capabilities.Capability("leadline", "engine psync", "works", "reads", "I/O"),
        capabilities.Capability("leadline", "charts", "missing", "no file", "pages", "Install it."),
        capabilities.Capability("kernel", "FUSE", "works", "it opens", "ceph-fuse"),
    ]
    monkeypatch.setattr(doctor, "_leadline_checks", lambda: checks)
    monkeypatch.setattr(doctor, "_path_checks", list)
    monkeypatch.setattr(capabilities, "machine_checks", lambda _places: [])
    monkeypatch.setattr(installation, "installation_checks", list)
    printed = CliRunner().invoke(doctor.command).output
    assert printed.startswith(
        "2 of 3 parts work, 0 with limits, 1 missing.\nengines:    psync\nkernel:     FUSE\n"
    )
    assert "no file. It is needed for pages." in printed
    assert "Install it." in printed
    assert "it opens" not in printed
    assert "it opens" in CliRunner().invoke(doctor.command, ["--all"]).output


def test_without_the_load_engine_doctor_says_how_it_is_got(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "leadline._core", None)
    done = CliRunner().invoke(doctor.command)
    assert isinstance(done.exception, UsageError)
    assert "load engine cannot be loaded" in done.exception.message
    assert done.exception.remedy == installation.remedy()


def test_an_installation_without_a_part_or_an_extra_says_how_it_is_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "leadline"
    (package / "lib").mkdir(parents=True)
    monkeypatch.setattr(installation, "PACKAGE", package)
    (package / "lib" / "libleadline_tracer.so").touch()  # empty: it was not built
    found = {check.name: check for check in installation.installation_checks()}
    for part in ("tracer", "XRootD reader", "charts"):
        assert (found[part].state, found[part].remedy) == ("missing", installation.remedy())
    assert "make wheel" in installation.remedy()
    (tmp_path / "pyproject.toml").touch()
    assert "make setup" in installation.remedy()
    monkeypatch.setattr(installation, "find_spec", lambda _name: None)
    (tmp_path / "install.sh").touch()
    for prefix, words in ((tmp_path, "pip install"), (tmp_path / "python", "The bundle has no extras.")):
        monkeypatch.setattr(sys, "prefix", str(prefix))
        extra = next(one for one in installation.installation_checks() if one.name == "hosts")
        assert (extra.state, extra.remedy.startswith(words)) == ("missing", True)
        assert "leadline[hosts]" in extra.remedy


def test_missing_library_names_its_package() -> None:
    def absent(_name: str) -> object:
        raise OSError

    check = capabilities.library("librados.so.2", "librados2", "state", absent)
    assert check.state == "missing"
    assert "librados2" in check.remedy


def test_missing_fuse_device(tmp_path: Path) -> None:
    check = capabilities.fuse(tmp_path / "fuse")
    assert check.state == "missing"
    assert "modprobe" in check.remedy


def test_missing_program_names_its_package() -> None:
    (check,) = doctor._program_checks(lambda _name: None)
    assert (check.name, check.state) == ("fio", "missing")
    assert "apt-get install" in check.remedy


def test_place_that_cannot_be_a_target(tmp_path: Path) -> None:
    check = capabilities.place("nowhere", str(tmp_path / "absent"))
    assert check.state == "missing"
    assert check.remedy


def test_an_emulated_machine_is_told_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADLINE_EMULATED_HOST", "a guest without KVM")
    check = next(one for one in capabilities.machine_checks({}) if one.name == "host")
    assert check.state == "limited"
    assert "a guest without KVM" in check.why
    assert "emulated_host" in check.remedy


def test_what_the_kernel_cannot_do_for_a_lab_comes_with_what_would_allow_it() -> None:
    checks = [*doctor._network_checks(), *doctor._limit_checks()]
    assert {check.group for check in checks} == {"lab"}
    assert {check.name for check in checks} >= {"delay and loss (netem)", "cpu limits", "disk limits"}
    for check in checks:
        assert check.why
        assert bool(check.remedy) == (check.state != "works")


def test_a_library_that_a_target_needs_comes_with_the_command_that_installs_it() -> None:
    lacking = [
        {"name": name, "available": False, "words": "", "reason": "it is not there"}
        for name in ("rados", "io_uring")
    ]
    rados, ring = doctor._engine_checks(lacking)
    assert rados.used_for == "targets that begin with rados://"
    assert rados.remedy == capabilities.installation_of(["librados2"])
    assert ring.used_for == "I/O through io_uring"


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "dnf install librados2 libnfs-utils"),
        ({"ID": "fedora"}, "dnf install librados2 libnfs-utils"),
        ({"ID": "debian"}, "apt-get install --no-install-recommends librados2 libnfs13"),
        ({}, "apt-get install --no-install-recommends librados2 libnfs13"),
    ],
)
def test_packages_are_named_as_the_system_names_them(release: dict[str, str], command: str) -> None:
    assert capabilities.installation_of(["librados2", "libnfs13"], lambda: release) == command
