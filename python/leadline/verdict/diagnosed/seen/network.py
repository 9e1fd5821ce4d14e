"""Links, ports and connections."""

from __future__ import annotations

from statistics import median

from leadline.store.tables import TrialRow
from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.values import Figures

# Of a port's rate, what its counters show when it is full: headers are counted once a packet, but sent with
# each segment (MTU 1500; docs/observers.md).
_CARRIED = 0.956
_SEGMENT_BYTES = 1448.0


def of_network(trial: TrialRow, samples: Samples) -> Figures:
    """Ports of a lab's switches, and this host's interfaces where they have a speed."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    shares = {
        port: max(samples.middle("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
        / (rate * _CARRIED)
        for port, rate in rates.items()
        if rate > 0
    }
    port = max(shares, key=lambda one: shares[one], default=None)
    seconds = (trial.ramp_ns + trial.measured_ns) / 1e9
    carried = max(trial.interface_sent_bytes or 0, trial.interface_received_bytes or 0)
    limit = trial.wire_limit_bytes_per_s
    faults = [samples.total("host", "", metric) for metric in ("errors", "drops")]
    resent = samples.by_subject("daemon", "", "resent_segments")
    sent = sum(samples.mean("wire", one, "tx_bytes_per_s") or 0.0 for one in samples.subjects("wire"))
    worst = max(resent, key=lambda one: resent[one], default=None)
    return {
        "port": port,
        "port_share": shares[port] if port is not None else None,
        "port_rate": rates[port] if port is not None else None,
        "slowest_port": min(rates, key=lambda one: rates[one], default=None),
        "slowest_port_factor": median(rates.values()) / min(rates.values()) if rates else None,
        "ports_share": _fullest_in_turn(samples),
        "link_share": carried / seconds / limit if limit and seconds > 0 else None,
        "link_faults_per_s": sum(one for one in faults if one is not None),
        "resent_per_s": sum(resent.values()) if resent else None,
        "resent_at": worst,
        "resent_share": min(sum(resent.values()) * _SEGMENT_BYTES / sent, 1.0)
        if resent and sent > 0
        else None,
    }


def _fullest_in_turn(samples: Samples) -> float | None:
    """How full whichever port was fullest at each moment was: a write of shards waits for the slowest."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    moments: dict[int, float] = {}
    for metric in ("tx_bytes_per_s", "rx_bytes_per_s"):
        for subject, at, value in samples.moments("wire", metric):
            if rates.get(subject):
                moments[at] = max(moments.get(at, 0.0), value / rates[subject] / _CARRIED)
    return min(median(moments.values()), 1.0) if moments else None
