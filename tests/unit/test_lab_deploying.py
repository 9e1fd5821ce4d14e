"""A topology as cephadm's service specifications, read again by Ceph's own code where it is installed."""

import contextlib
import json
import shlex
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from leadline.cli.main import run_command_line
from leadline.errors import UsageError
from leadline.lab.deployment import documents, script, specification
from leadline.lab.network.topology import Link, simple
from leadline.lab.network.topology_file import reference_lab

_PYTHON = "/usr/bin/python3"  # Debian's, which has Ceph's modules
_READ = (
    "import json, sys\n"
    "from ceph.deployment.service_spec import ServiceSpec\n"
    "from ceph.deployment.hostspec import HostSpec\n"
    "for one in json.load(sys.stdin):\n"
    "    host = one['service_type'] == 'host'\n"
    "    spec = (HostSpec if host else ServiceSpec).from_json(dict(one))\n"
    "    spec.validate()\n"
    "    print(json.dumps(spec.to_json()))\n"
)


def _references() -> list[str]:
    return ["castor", "fermilab", "opencast", "suse"]


@pytest.mark.parametrize("name", _references())
def test_ceph_reads_each_reference_as_it_was_meant(name: str) -> None:
    module = Path("/usr/lib/python3/dist-packages/ceph/deployment/service_spec.py")
    if not module.exists():
        pytest.skip("python3-ceph-common is not installed")
    topology = reference_lab(name, "").topology
    written = list(YAML(typ="safe").load_all(specification(topology, {"node1": "10.0.0.1"})))
    done = subprocess.run(
        [_PYTHON, "-c", _READ], check=False, input=json.dumps(written), text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one.get("placement", {}).get("hosts") for one in read] == [
        one.get("placement", {}).get("hosts") for one in written
    ]


def test_metadata_has_osds_of_its_own_class() -> None:
    found = [one for one in documents(reference_lab("suse", "").topology, {}) if one["service_type"] == "osd"]
    assert {one["crush_device_class"]: one["placement"]["hosts"] for one in found} == {
        "data": [f"node{number}" for number in range(1, 10)],
        "metadata": ["control1", "control2"],
    }


def test_what_cephadm_has_no_service_for_is_said() -> None:
    assert "# not in this file: smb on gateway1" in specification(reference_lab("suse", "").topology, {})


def test_a_name_that_cephadm_refuses_is_refused() -> None:
    from dataclasses import replace

    made = simple(3, 0, 1, 3, Link(), Link())
    odd = replace(made, hosts=(replace(made.hosts[0], name="a_b"), *made.hosts[1:]))
    with pytest.raises(UsageError, match="a_b"):
        list(documents(odd, {}))


def commands_of(name: str, mount: str = "/mnt/cephfs") -> list[list[str]]:
    asked = reference_lab(name, "")
    text = script(asked.topology, asked.erasure, mount)
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    return [shlex.split(line) for line in text.splitlines() if line and not line.startswith(("#", "set "))]


@pytest.mark.parametrize("name", _references())
def test_every_pool_is_made_once_and_after_what_it_names(name: str) -> None:
    made: list[str] = []
    for words in commands_of(name):
        match words:
            case ["ceph", "osd", "crush", "rule", "create-replicated", rule, *_]:
                made.append(f"rule {rule}")
            case ["ceph", "osd", "erasure-code-profile", "set", profile, *_]:
                made.append(f"profile {profile}")
            case ["ceph", "osd", "pool", "create", pool, "replicated", rule, *_]:
                assert f"rule {rule}" in made
                made.append(pool)
            case ["ceph", "osd", "pool", "create", pool, "erasure", profile]:
                assert f"profile {profile}" in made
                made.append(pool)
            case ["ceph", "fs", "new", _, *pools]:
                assert {*pools} <= {*made}
            case ["ceph", "fs", "add_data_pool", _, pool] | ["setfattr", "-n", _, "-v", pool, _]:
                assert pool in made
    assert len(made) == len({*made})
    assert {"meta", "data", "ecdata", "objects", "striped"} <= {*made}


def test_what_the_topology_says_of_metadata_and_codes_is_in_the_commands() -> None:
    words = commands_of("suse")
    assert ["ceph", "osd", "pool", "create", "meta", "replicated", "metadata", "--size", "2"] in words
    profile = next(one for one in words if "erasure-code-profile" in one)
    assert profile[4:] == ["k6m3", "k=6", "m=3", "crush-failure-domain=host", "crush-device-class=data"]


def test_a_place_with_a_space_stays_one_word() -> None:
    assert ["mkdir", "-p", "/mnt/my files/erasure"] in commands_of("suse", "/mnt/my files")


def run(tmp_path: Path, *words: str) -> tuple[int, str]:
    with contextlib.chdir(tmp_path):
        code = run_command_line(["deploy", "emit", *words])
    return code, (tmp_path / "out").read_text() if (tmp_path / "out").exists() else ""


def test_a_file_is_overwritten_only_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--reference", "suse", "-o", "out")[0] == 0
    code, kept = run(tmp_path, "--reference", "suse", "--format", "commands", "-o", "out")
    assert code == 2
    assert kept.startswith("# written by")
    assert "is there already" in capsys.readouterr().err
    code, written = run(tmp_path, "--reference", "suse", "--format", "commands", "-o", "out", "--force")
    assert (code, written[:9]) == (0, "#!/bin/sh")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reference", "suse", "--lab", "x"), "both name a cluster"),
        (("--reference", "sus"), "did you mean suse"),
        (("--reference", "suse", "--mount", "relative", "--format", "commands"), "no path for commands"),
        (("--reference", "suse", "--mount", "/a\nb", "--format", "commands"), "no path for commands"),
        (("--reference", "suse", "--mount", "/a"), "no path for commands"),
        (("--topology", "nowhere.yaml"), "cannot be read"),
    ],
)
def test_what_cannot_be_written_out_is_said(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *words)[0] == 2
    assert says in capsys.readouterr().err
