"""What was seen of a trial, as the one row of figures that causes are judged by.

A figure that was not observable is None: no condition on it holds. docs/diagnosis.md has the list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from leadline.store.tables import LatencyRow, SeriesRow, TrialRow
from leadline.verdict.diagnosed.samples import Samples, outlier

Figure = float | str | None
Figures = dict[str, Figure]

# Of a port's rate, what its counters show when it is full: headers are counted once a packet, but sent with
# each segment (MTU 1500; docs/observers.md).
_CARRIED = 0.956
_SEGMENT_BYTES = 1448.0
_FULL_CHECKS = (
    "OSD_NEARFULL",
    "OSD_BACKFILLFULL",
    "OSD_FULL",
    "POOL_NEAR_FULL",
    "POOL_NEARFULL",
    "POOL_FULL",
)
_OPERATIONS = ("operations_read", "operations_written")


def figures_of(
    trial: TrialRow,
    latency: Sequence[LatencyRow],
    series: Sequence[SeriesRow],
    asked: int | None,
    *,
    behind_server: bool = False,
) -> Figures:
    """All figures of a trial; `asked` is how many operations each host asks to have in flight, where it does.

    `behind_server`: a gateway answers, whose own work is in no figure.
    """
    samples = Samples(trial, series)
    found = _load(trial, latency, None if asked is None else asked * (trial.hosts or 1))
    found["behind_server"] = float(behind_server)
    for part in (_host(trial, samples), _client(samples), _network(trial, samples), _osds(samples)):
        found |= part
    found |= _slow_osd(samples)
    found |= _servers(samples)
    found |= _blocked(samples)
    found |= _metadata(samples)
    found |= _cluster(trial, samples)
    return found | _between(found)


def _load(trial: TrialRow, latency: Sequence[LatencyRow], asked: int | None) -> Figures:
    seconds = trial.measured_ns / 1e9
    operations = trial.read_operations + trial.write_operations
    moved = trial.read_bytes + trial.write_bytes
    whole = [row for row in latency if row.interval == -1]
    means = {
        clock: _mean([row for row in whole if row.clock == clock and row.direction in ("read", "write")])
        for clock in ("submission", "total")
    }
    mean_s = means["total"]
    rate = operations / seconds if seconds > 0 else None
    return {
        "seconds": seconds,
        "operations_per_s": rate,
        "bytes_per_s": moved / seconds if seconds > 0 else None,
        "request_bytes": moved / operations if operations else None,
        "write_share": trial.write_operations / operations if operations else None,
        "syncs_per_write": trial.sync_operations / trial.write_operations if trial.write_operations else None,
        "latency_s": mean_s,
        "submission_share": _ratio(means["submission"], mean_s),
        "sync_latency_s": _mean([row for row in whole if row.direction == "sync" and row.clock == "total"]),
        "asked": None if asked is None else float(asked),
        "in_flight": None if mean_s is None or rate is None else mean_s * rate,
        "engine_share": trial.busy_share_max,
    }


def _mean(rows: Sequence[LatencyRow]) -> float | None:
    """Seconds, over all operations of these histograms."""
    operations = sum(row.operations for row in rows)
    return sum(row.mean_ns * row.operations for row in rows) / operations / 1e9 if operations else None


def _ratio(part: Figure, whole: Figure) -> float | None:
    return part / whole if isinstance(part, float) and isinstance(whole, float) and whole > 0 else None


def _host(trial: TrialRow, samples: Samples) -> Figures:
    """This host, which bears the load; on a lab it bears the servers, too."""
    cores = {
        one: samples.mean("host", one, "busy") for one in samples.subjects("host", "cpu") if one != "cpu"
    }
    available = samples.values("host", "memory", "available")
    return {
        "cpu_share": trial.cpu_busy_share,
        "core_share": max((value for value in cores.values() if value is not None), default=None),
        "steal_share": trial.cpu_steal_share,
        "other_cpu_share": trial.other_cpu_share,
        "throttled_per_s": samples.mean("host", "cgroup", "throttled"),
        "memory_stalled_share": samples.mean("host", "pressure", "memory_full"),
        "io_stalled_share": samples.mean("host", "pressure", "io_full"),
        "memory_available": min(available, default=None),
        "device_share": max(
            (samples.mean("host", one, "busy") or 0.0 for one in _disks(samples)), default=None
        ),
    }


def _disks(samples: Samples) -> list[str]:
    return [one for one in samples.subjects("host") if samples.values("host", one, "operations_written")]


def _client(samples: Samples) -> Figures:
    """ceph-fuse, or the kernel's client."""
    threads = {
        one.partition("/")[2].rpartition(".")[0]: value
        for one, value in samples.by_subject("client", "ceph-fuse", "cpu").items()
        if "/" in one
    }
    busiest = max(threads, key=lambda one: threads[one], default=None)
    daemon = next((one for one in samples.subjects("client", "ceph-fuse") if "/" not in one), "")
    return {
        "client_thread": busiest,
        "client_thread_share": threads[busiest] if busiest is not None else None,
        "client_cores": samples.mean("client", daemon, "cpu"),
        "client_in_flight": samples.mean("client", daemon, "operations_in_flight"),
        "client_blocked_per_s": samples.mean("client", daemon, "writes_blocked"),
        "client_resent_per_s": samples.mean("client", daemon, "operations_resent"),
        "client_reply_s": _ms(samples.mean("client", daemon, "reply_latency")),
    }


def _ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _network(trial: TrialRow, samples: Samples) -> Figures:
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


def _osds(samples: Samples) -> Figures:
    """All OSDs together, by their operations."""

    def over_all(metric: str, by: tuple[str, ...]) -> float | None:
        parts = []
        for osd in samples.subjects("ceph", "osd."):
            value = samples.weighted("ceph", osd, metric, by)
            count = sum(samples.mean("ceph", osd, name) or 0.0 for name in by)
            if value is not None:
                parts.append((value, count))
        total = sum(count for _, count in parts)
        if not parts or total <= 0:
            return _ms(fmean(value for value, _ in parts)) if parts else None
        return _ms(sum(value * count for value, count in parts) / total)

    written, read = ("operations_written",), ("operations_read",)
    whole, process = over_all("op_write_latency", written), over_all("op_write_process_latency", written)
    writes = samples.total("ceph", "osd.", "operations_written")
    commit = over_all("store_commit_latency", written)
    return {
        "osd_operations_per_s": samples.total("ceph", "osd.", "operations_written"),
        "osd_write_s": whole,
        "osd_write_queue_s": None if whole is None or process is None else max(whole - process, 0.0),
        "osd_write_prepare_s": over_all("op_write_prepare_latency", written),
        "osd_peers_s": None
        if whole is None or process is None or commit is None
        else max(process - commit, 0.0),
        "osd_read_s": over_all("op_read_latency", read),
        "osd_store_commit_s": commit,
        "osd_aio_wait_s": over_all("store_aio_wait_latency", written),
        "osd_kv_queued_s": over_all("store_kv_queued_latency", written),
        "osd_kv_sync_s": over_all("kv_sync_latency", written),
        "osd_store_throttle_s": over_all("store_throttle_latency", written),
        "osd_deferred_share": _ratio(samples.total("ceph", "osd.", "deferred_writes"), writes),
        "osd_penalty_reads": _ratio(samples.total("ceph", "osd.", "penalty_reads"), writes),
        "recovery_per_s": samples.total("ceph", "osd.", "recovery"),
    }


def _slow_osd(samples: Samples) -> Figures:
    """The OSD that takes longer than the others, and what its store waits for."""
    factors: dict[str, float] = {}
    for metric in ("subop_write_latency", "store_commit_latency", "op_write_latency", "op_read_latency"):
        found = outlier(samples.by_subject("ceph", "osd.", metric))
        if found is not None:
            factors[found[0]] = max(factors.get(found[0], 0.0), found[1])
    name = max(factors, key=lambda one: factors[one], default=None)
    load = samples.by_subject("ceph", "osd.", "operations_written") or samples.by_subject(
        "ceph", "osd.", "operations_read"
    )
    own = {metric: samples.mean("ceph", name or "", metric) for metric in _OWN}
    busy = max(load, key=lambda one: load[one], default=None)
    return {
        "slow_osd": name,
        "slow_osd_factor": factors[name] if name is not None else None,
        **{f"slow_osd_{figure}": _ms(own[metric]) for metric, figure in _OWN.items()},
        "loaded_osd": busy,
        "loaded_osd_factor": load[busy] * len(load) / sum(load.values())
        if busy is not None and sum(load.values()) > 0
        else None,
    }


_OWN = {
    "store_commit_latency": "commit_s",
    "kv_sync_latency": "kv_sync_s",
    "store_aio_wait_latency": "aio_wait_s",
    "kv_commit_latency": "kv_commit_s",
}


def _servers(samples: Samples) -> Figures:
    """Processes of Ceph's daemons, where they run on this host."""
    found: Figures = {}
    for kind in ("osd", "mds", "mon", "mgr"):
        whole = [one for one in samples.subjects("daemon", f"{kind}.") if "/" not in one]
        throttled = {one: samples.mean("daemon", one, "throttled") or 0.0 for one in whole}
        stopped = {one: samples.mean("daemon", one, "stopped") or 0.0 for one in whole}
        threads = {
            one: value for one, value in samples.by_subject("daemon", f"{kind}.", "cpu").items() if "/" in one
        }
        most = max(throttled, key=lambda one: throttled[one], default=None)
        still = max(stopped, key=lambda one: stopped[one], default=None)
        thread = max(threads, key=lambda one: threads[one], default=None)
        found |= {
            f"{kind}_throttled": most,
            f"{kind}_throttled_per_s": throttled[most] if most is not None else None,
            f"{kind}_stopped": still,
            f"{kind}_stopped_share": stopped[still] if still is not None else None,
            f"{kind}_thread": None if thread is None else thread.rpartition(".")[0],
            f"{kind}_thread_share": threads[thread] if thread is not None else None,
            f"{kind}_cores": samples.total("daemon", f"{kind}.", "cpu") if whole else None,
        }
    return found


def _blocked(samples: Samples) -> Figures:
    """The OSD that waits for its device most, beside the others."""
    shares = {
        one: samples.mean("daemon", one, "blocked") or 0.0
        for one in samples.subjects("daemon", "osd.")
        if samples.values("daemon", one, "blocked")
    }
    name = max(shares, key=lambda one: shares[one], default=None)
    others = [share for one, share in shares.items() if one != name]
    return {
        "blocked_osd": name,
        "blocked_osd_share": shares[name] if name is not None else None,
        "blocked_others_share": median(others) if others else None,
    }


def _metadata(samples: Samples) -> Figures:
    """Metadata servers, those that answered requests."""
    served = {
        one: value
        for one, value in samples.by_subject("ceph", "mds.", "client_requests").items()
        if value > 0
    }
    name = max(served, key=lambda one: served[one], default="")
    return {
        "mds_requests_per_s": sum(served.values()) if samples.subjects("ceph", "mds.") else None,
        "mds_reply_s": _ms(samples.weighted("ceph", name, "reply_latency", ("client_requests",))),
        "mds_journal_s": _ms(samples.mean("ceph", name, "journal_latency")),
        "mds_caps": samples.mean("ceph", name, "caps"),
        "mds_inodes": samples.mean("ceph", name, "inodes"),
    }


def _cluster(trial: TrialRow, samples: Samples) -> Figures:
    """Its state at both ends of the trial, and what was sampled between."""
    states = [state for text in (trial.start_state, trial.end_state) if (state := json.loads(text))]
    checks = {name: text for state in states for name, text in (state.get("checks") or {}).items()}
    flags = sorted({flag for state in states for flag in (state.get("flags") or ())})
    down = [
        state["osds"] - state["osds_up"]
        for state in states
        if state.get("osds") is not None and state.get("osds_up") is not None
    ]
    up = samples.values("ceph", "cluster", "osds_up")
    known = [state["osds"] for state in states if state.get("osds") is not None]
    if up and known:
        down.append(known[0] - min(up))
    full = [name for name in _FULL_CHECKS if name in checks]
    seen = bool(states)
    return {
        "health_checks": ", ".join(sorted(checks)) if seen else None,
        "flags": ", ".join(flags)
        if seen and any(state.get("flags") is not None for state in states)
        else None,
        "osds_down": float(max(down)) if down else None,
        "pgs_not_clean": trial.pgs_not_clean_max,
        "pgs_scrubbing": trial.pgs_scrubbing_max,
        "recovering": float(any(state.get("recovering") for state in states)) if seen else None,
        "full_checks": ", ".join(full) if seen else None,
        "full_count": float(len(full)) if seen else None,
        "slow_ops": samples.most("ceph", "cluster", "slow_ops"),
        "cache_oversized": float("MDS_CACHE_OVERSIZED" in checks) if seen else None,
        "monitors_down": float("MON_DOWN" in checks) if seen else None,
    }


def _between(found: Mapping[str, Figure]) -> Figures:
    """What is left of the client's latency once the OSDs' own is taken off: the way there, and the client."""
    writes = found["write_share"]
    latency = found["latency_s"]
    if not isinstance(writes, float) or not isinstance(latency, float):
        return {"osd_s": None, "outside_osd_share": None}
    osd = found["osd_write_s"] if writes >= 0.5 else found["osd_read_s"]
    if not isinstance(osd, float):
        return {"osd_s": None, "outside_osd_share": None}
    return {"osd_s": osd, "outside_osd_share": max(1.0 - osd / latency, 0.0) if latency > 0 else None}
