"""`leadline doctor` and the checks behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.cli.machine import doctor
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
    done = CliRunner().invoke(doctor.command)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "io_uring" in done.output
    assert max(map(len, done.output.splitlines())) <= 100


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
    checks = doctor._program_checks(lambda _name: None)
    assert {check.state for check in checks} == {"missing"}
    assert any("apt-get install" in check.remedy and "chromium" in check.remedy for check in checks)


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
