"""Links, ports and connections."""

from __future__ import annotations

from statistics import median, median_low

from leadline.store.tables import TrialRow
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.target import jobs_of
from leadline.verdict.diagnosis.seen.values import Figures, seconds

# Of a port's rate, what its counters show when it is full: headers are counted once a packet, but sent with
# each segment (MTU 1500; docs/observers.md).
CARRIED = 0.956
_SEGMENT_BYTES = 1448.0


def of_network(trial: TrialRow, samples: Samples) -> Figures:
    """Ports of a lab's switches, and this host's interfaces where they have a speed."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    shares = {
        port: max(samples.middle("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
        / (rate * CARRIED)
        for port, rate in rates.items()
        if rate > 0
    }
    # Hosts with OSDs are meant to be alike; a client's link may well be narrower.
    equals = {one: rates[one] for one in samples.by_subject("wire", "", "osds") if rates.get(one)}
    port = max(shares, key=lambda one: shares[one], default=None)
    lasted_s = (trial.ramp_ns + trial.measured_ns) / 1e9
    carried = max(trial.interface_sent_bytes or 0, trial.interface_received_bytes or 0)
    limit = trial.wire_limit_bytes_per_s
    faults = [samples.total("host", "", metric) for metric in ("errors", "drops")]
    resent = samples.by_subject("daemon", "", "resent_segments")
    sent = sum(samples.mean("wire", one, "tx_bytes_per_s") or 0.0 for one in samples.subjects("wire"))
    worst = max(resent, key=lambda one: resent[one], default=None)
    sent_s = None if trial.wire_sent_bytes is None else trial.wire_sent_bytes / (lasted_s or 1.0)
    received_s = None if trial.wire_received_bytes is None else trial.wire_received_bytes / (lasted_s or 1.0)
    own = max((one for one in (sent_s, received_s) if one is not None), default=None)
    return {
        "port": port,
        "port_share": shares[port] if port is not None else None,
        "port_own_share": _own_share(trial, samples, port, own),
        "link_own_share": own * lasted_s / carried if own is not None and carried > 0 else None,
        "port_rate": rates[port] if port is not None else None,
        "slowest_port": min(equals, key=lambda one: equals[one], default=None),
        "slowest_port_factor": median(equals.values()) / min(equals.values()) if equals else None,
        "ports_share": _fullest_in_turn(samples),
        "link_share": carried / lasted_s / limit if limit and lasted_s > 0 else None,
        "link_faults_per_s": sum(one for one in faults if one is not None),
        "resent_per_s": sum(resent.values()) if resent else None,
        "resent_at": worst,
        "resent_share": min(sum(resent.values()) * _SEGMENT_BYTES / sent, 1.0)
        if resent and sent > 0
        else None,
    }


def _own_share(trial: TrialRow, samples: Samples, port: str | None, own: float | None) -> float | None:
    """Of what a client's port carried the part that this trial moved, by sockets or by its own bytes."""
    if port is None or not samples.values("wire", port, "clients"):
        return None
    carried = max(samples.middle("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
    moved = (trial.read_bytes + trial.write_bytes) * 1e9 / trial.measured_ns if trial.measured_ns else 0.0
    return min(max(own or 0.0, moved) / carried, 1.0) if carried > 0 and not (trial.hosts or 1) > 1 else None


def _fullest_in_turn(samples: Samples) -> float | None:
    """How full whichever port was fullest at each moment was: a write of shards waits for the slowest."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    moments: dict[int, float] = {}
    for metric in ("tx_bytes_per_s", "rx_bytes_per_s"):
        for subject, at, value in samples.moments("wire", metric):
            if rates.get(subject):
                moments[at] = max(moments.get(at, 0.0), value / rates[subject] / CARRIED)
    return min(median(moments.values()), 1.0) if moments else None


_STUCK = 2  # segments in a row that nobody answers: one happens by chance


def of_connections(trial: TrialRow, samples: Samples) -> Figures:
    """TCP connections of this host, and of those that servers here are on."""
    places = samples.subjects("tcp")
    stuck = {
        one: sum(value >= _STUCK for value in values) / len(values)
        for one in places
        if (values := samples.values("tcp", one, "unanswered"))
    }
    full = samples.by_subject("tcp", "", "receiver_full")
    where = max(stuck, key=lambda one: stuck[one], default=None)
    place = max(full, key=lambda one: full[one], default=None)
    return {
        "round_trip_s": seconds(samples.middle("tcp", "here", "round_trip")),
        "round_trip_least_s": seconds(samples.middle("tcp", "here", "round_trip_least")),
        "unanswered_share": stuck[where] if where is not None else None,
        "unanswered_at": where,
        "connections_per_s": _made_anew(trial, samples),
        "receiver_full_share": full[place] if place is not None else None,
        "receiver_full_at": place,
    }


def _made_anew(trial: TrialRow, samples: Samples) -> float | None:
    """Connections a second that OSDs made in place of others, once the trial has begun.

    None where something else may have opened them: programs and people whose connections nobody knows, or a
    trial too short to be told from its own beginning. Each job may connect to each OSD once.
    """
    jobs = jobs_of(trial) * (trial.hosts or 1)
    places = samples.by_subject("ceph", "osd.", "connections_made")
    made = {
        one: median_low([max(rate - jobs / seconds, 0.0) for rate, seconds in found])
        for one in places
        if (found := samples.steady("ceph", one, "connections_made"))
    }
    if not jobs or not made:
        return None
    most = max(made.values())
    if made.keys() <= set(samples.subjects("daemon", "osd.")):
        return most
    # Others use such a cluster, and connect as they like. So this host must have connected as often.
    own = samples.usual("tcp", "here", "new_connections")
    return None if own is None else min(most, own)
