"""Checkers of what is said of the hosts of a study, from the tables by host."""

from __future__ import annotations

from math import exp, log
from statistics import fmean, median

from kit import Said, checks

from leadline.store.by_host import read_by_host

_SLOWER = 0.95  # what `straggler` in codes.yaml asks for


def _ratios(said: Said, cell: str) -> dict[str, float]:
    """Each host's rate by the others' median, the mean over blocks: another way than the product's."""
    rows = read_by_host(said.result)
    logs: dict[str, list[float]] = {}
    for trial in said.complete(cell):
        rates = {row.host: row.bytes / row.measured_ns for row in rows[trial.trial]}
        for host, rate in rates.items():
            logs.setdefault(host, []).append(log(rate))
    if len(logs) == 3:  # the slower one of the two others stands for both
        slower = {
            host: min((other for other in logs if other != host), key=lambda other: fmean(logs[other]))
            for host in logs
        }
        return {host: exp(fmean(own) - fmean(logs[slower[host]])) for host, own in logs.items()}
    away = {
        host: fmean(
            value - median(others[at] for name, others in logs.items() if name != host)
            for at, value in enumerate(own)
        )
        for host, own in logs.items()
    }
    return {host: exp(mean) for host, mean in away.items()}


@checks("host_slower")
def host_slower(said: Said) -> None:
    found = said.match(
        r"Host (?P<host>\S+) is slower than the others(?: in (?P<some>\d+) of (?P<all>\d+) cells;)? in"
        r" (?P<cell>\S+): (?P<ratio>[\d.]+)x slower than their median"
        r" \((?P<sure>[\d.]+) % CI (?P<bounds>[^,]+), (?P<blocks>\d+) blocks\)\."
    )
    host, cell = found["host"], found["cell"]
    assert cell in said.statement.cells
    ratio = _ratios(said, cell)[host]
    assert abs(1 / ratio - float(found["ratio"])) <= 0.051 / ratio
    assert ratio <= _SLOWER
    assert int(found["blocks"]) == len(said.complete(cell)) > 1
    assert 95 <= float(found["sure"]) < 100
    bounds = [float(part) for part in found["bounds"].removeprefix("at least ").split(" to ")]
    assert bounds[0] >= 1
    assert len(bounds) < 2 or bounds[0] * 0.95 <= 1 / ratio <= bounds[1] * 1.05
    for other in said.statement.cells:
        others = _ratios(said, other)[host]
        assert ratio - 1e-9 <= others <= _SLOWER, "the cell that is named is the one where it is slowest"
    if "some" in found:
        assert int(found["some"]) == len(said.statement.cells) > 1
        assert int(found["all"]) == len({row.cell for row in said.trials})


@checks("hosts_slower_more")
def hosts_slower_more(said: Said) -> None:
    found = said.match(
        r"(?P<more>\d+) more hosts are slower than the others\. The slowest of them, (?P<host>\S+),"
        r" is (?P<ratio>[\d.]+)x slower than their median\."
    )
    named = [one.text.split()[1] for one in said.findings.statements if one.says == "host_slower"]
    every = [_ratios(said, cell) for cell in said.statement.cells]
    slow = {host: min(one[host] for one in every) for host in every[0]}
    rest = {host: ratio for host, ratio in slow.items() if ratio <= _SLOWER and host not in named}
    assert int(found["more"]) <= len(rest)
    assert found["host"] not in named
    assert abs(1 / slow[found["host"]] - float(found["ratio"])) <= 0.051 / slow[found["host"]]
    assert all(slow[host] <= slow[found["host"]] for host in named)
