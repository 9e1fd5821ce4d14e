"""Keeps the observers' samples of a trial, and looks through them for a cluster in trouble meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.counters.catalogue import trial_figures
from leadline.observe.ceph.trouble import IN_ERROR, SLOW, cluster_trouble
from leadline.observe.client import Observer
from leadline.observe.model import ClusterState, Sample

_HEALTH_ERR = 2.0  # `health` of the cluster's series: 0 OK, 1 WARN, 2 ERR


def cluster_peaks(samples: Sequence[Sample]) -> dict[str, int | None]:
    """The most placement groups that were scrubbed, or not clean, at once; None where no sample says."""
    peaks: dict[str, int | None] = {}
    for figure in trial_figures():
        if figure.how == "largest_sample":
            values = [
                int(sample.value)
                for sample in samples
                if (sample.source, sample.subject, sample.metric) == figure.sample
            ]
            peaks[figure.name] = max(values, default=None)
    return peaks


class Watch:
    """A run must not add load to a cluster in trouble: HEALTH_ERR, or operations that became slow."""

    def __init__(self, observer: Observer, *, ignore_health: bool) -> None:
        self._observer = observer
        self._ignore = ignore_health
        self._kept: list[Sample] = []
        self.trouble: str | None = None

    def begin(self) -> None:
        """A trial begins: samples from before it are of no interest."""
        self._observer.drain()
        self._kept = []

    def in_trouble(self) -> bool:
        """Take in what was sampled since the last call; True once the cluster was seen in trouble."""
        fresh = self._observer.drain()
        self._kept += fresh
        for sample in fresh:
            if (sample.source, sample.subject) == ("ceph", "cluster"):
                if sample.metric == "health" and sample.value >= _HEALTH_ERR:
                    self._judge(IN_ERROR)
                if sample.metric == "slow_ops" and sample.value > 0:
                    self._judge(SLOW)
        return self.trouble is not None

    def check(self, state: ClusterState | None) -> None:
        """Judge the state at a mark. It names the checks, so that its words replace those of a sample."""
        if state is not None and (found := cluster_trouble(state.health, state.checks)):
            self._judge(found)

    def samples(self) -> list[Sample]:
        """Everything sampled since `begin`."""
        self.in_trouble()
        return self._kept

    def _judge(self, found: str) -> None:
        """Keep the first trouble, or the same one in more words."""
        if not self._ignore and (self.trouble is None or found.startswith(self.trouble)):
            self.trouble = found
