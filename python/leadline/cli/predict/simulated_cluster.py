"""A topology file as the cluster that a simulation computes with."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.cli.explain.model_wires import cables_of
from leadline.simulation.model import SimulatedCluster


def cluster_of(file: Path, device: str, machine_cores: float) -> SimulatedCluster:
    """Raises SpecError with file and line for what is wrong in it."""
    from leadline.lab.network.topology_file import load_topology

    shape = load_topology(file, os.environ, made_here=False).topology
    above, rates, behind = cables_of(shape)
    homes = tuple(
        host.name for host in shape.hosts if host.name not in shape.metadata for _ in range(host.osds)
    )
    return SimulatedCluster(
        above,
        rates,
        homes,
        (device,) * len(homes),
        tuple(client.name for client in shape.clients),
        behind,
        cores={host.name: host.limits.cpu for host in shape.hosts if host.limits.cpu},
        disks={
            host.name: (host.limits.disk_read_bytes_s, host.limits.disk_write_bytes_s)
            for host in shape.hosts
            if host.limits.disk_read_bytes_s or host.limits.disk_write_bytes_s
        },
        proxies={
            role: tuple(host.name for host in shape.hosts if role in host.runs) for role in shape.gateways
        },
        machine_cores=machine_cores,
    )
