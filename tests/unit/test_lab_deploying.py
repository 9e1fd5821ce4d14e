"""A topology as cephadm's service specifications, read again by Ceph's own code where it is installed."""

import json
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from leadline.errors import UsageError
from leadline.lab.deploying.cephadm import documents, specification
from leadline.lab.network.references import reference_lab
from leadline.lab.network.topology import Link, simple

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
