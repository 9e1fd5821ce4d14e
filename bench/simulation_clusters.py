"""Published clusters as the model takes them, for simulation.py and simulation_inferred.py alike."""

from __future__ import annotations

from leadline.simulation.model import SimulatedCluster

GBIT = 1e9 / 8 * 0.956  # MTU 1500 without headers
_SWITCHES, _HOSTS, _CLIENTS, _DISKS, _PROXIES = 6, 45, 40, 12, 12


def even(
    hosts: int, osds: int, device: str, clients: int, link: float, client_link: float
) -> SimulatedCluster:
    """Hosts and clients on one switch; Gbit/s."""
    names, users = [f"host{n}" for n in range(hosts)], [f"client{n}" for n in range(clients)]
    homes = tuple(name for name in names for _ in range(osds))
    return SimulatedCluster(
        {"core": "", **dict.fromkeys(names + users, "core")},
        {**dict.fromkeys(names, link * GBIT), **dict.fromkeys(users, client_link * GBIT)},
        homes,
        (device,) * len(homes),
        tuple(users),
    )


def castor(
    uplink: float = 10.0,
    switches: int = _SWITCHES,
    *,
    clients_below: bool = False,
    proxies_below: bool = False,
) -> SimulatedCluster:
    """540 disks in 45 hosts behind uplinks of so many Gbit/s; clients and proxies below them or the core."""
    hosts, users = [f"host{n}" for n in range(_HOSTS)], [f"client{n}" for n in range(_CLIENTS)]
    proxies = [f"proxy{n}" for n in range(_PROXIES)] if proxies_below else []
    above_hosts = [f"switch{n}" for n in range(switches)]
    above: dict[str, str] = {"core": "", **dict.fromkeys(above_hosts, "core"), **dict.fromkeys(users, "core")}
    below = [hosts, *([users] if clients_below else []), proxies]
    above |= {name: above_hosts[n % switches] for names in below for n, name in enumerate(names)}
    rates = dict.fromkeys([*hosts, *users, *proxies], 10 * GBIT)
    rates |= dict.fromkeys(above_hosts, uplink * GBIT)
    homes = tuple(host for host in hosts for _ in range(_DISKS))
    roles = {"xrootd": tuple(proxies)} if proxies else {}
    return SimulatedCluster(above, rates, homes, ("hdd",) * len(homes), tuple(users), proxies=roles)
