"""`leadline watch` on the lab's mount under a known load names what goes on, with the tracer and without."""

from __future__ import annotations

import json

import pytest

from leadline import lab as leadline_lab
from mount_loads import load
from support import Command

pytestmark = pytest.mark.ceph


@pytest.mark.parametrize("options", [(), ("--no-bpf",)], ids=["tracer", "counters"])
@pytest.mark.parametrize("name", ["small_writes", "metadata", "write_stream"])
def test_a_known_load_is_the_first_that_is_named(
    lab: leadline_lab.Lab, leadline: Command, name: str, options: tuple[str, ...]
) -> None:
    place = lab.status().targets["replicated"] / f"watched-{name}-{len(options)}"
    place.mkdir()
    with load(name, place) as program:
        done = leadline("watch", str(place), "--for", "3s", "--json", *options)
    place.rmdir()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["load"][0]["rule"] == name, found
    assert program.pid in [row["pid"] for row in found["processes"]]
    assert found["figures"]["health"] is not None
    assert found["figures"]["wire_sent_bytes_per_s"] > 0
