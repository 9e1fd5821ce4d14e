"""A cluster in trouble ends a run, whether a sample or a mark shows it."""

from __future__ import annotations

import json

import pytest
from builders import cluster_state

from leadline.observe.reading import ClusterState, Sample
from leadline.run.watches import Watch


class Samples:
    """Stands for the observers: hands out what it was given."""

    def __init__(self, *rows: tuple[str, str, float]) -> None:
        self.rows = [Sample(0, "ceph", subject, metric, value, "") for subject, metric, value in rows]

    def drain(self) -> list[Sample]:
        rows, self.rows = self.rows, []
        return rows


def watch(*rows: tuple[str, str, float], ignore_health: bool = False) -> Watch:
    return Watch(Samples(*rows), ignore_health=ignore_health)  # type: ignore[arg-type]


def test_warnings_and_other_figures_are_no_trouble() -> None:
    assert not watch(
        ("cluster", "health", 1.0), ("cluster", "slow_ops", 0.0), ("osd.1", "health", 2.0)
    ).in_trouble()


def test_an_error_in_a_sample_is_trouble_and_the_sample_is_kept() -> None:
    found = watch(("cluster", "health", 2.0))
    assert found.in_trouble()
    assert found.trouble == "the cluster is in HEALTH_ERR"
    assert len(found.samples()) == 1


def test_slow_operations_are_trouble() -> None:
    found = watch(("cluster", "slow_ops", 3.0))
    assert found.in_trouble()
    assert found.trouble == "the cluster reports slow operations"


def test_a_mark_shows_trouble_with_its_checks() -> None:
    found = watch()
    checks = {"MON_DOWN": "1/3 mons down"}
    state = json.loads(cluster_state(health="HEALTH_ERR", checks=checks))
    found.check(ClusterState.from_json(state))
    assert found.trouble == "the cluster is in HEALTH_ERR (MON_DOWN: 1/3 mons down)"


@pytest.mark.parametrize("code", ["SLOW_OPS", "REQUEST_STUCK", "MDS_SLOW_REQUEST"])
def test_the_mark_after_a_sample_names_the_check_that_fired(code: str) -> None:
    found = watch(("cluster", "slow_ops", 1.0))
    assert found.in_trouble()
    checks = {"OSD_FLAGS": "noout flag(s) set", code: "1 slow, mon.a among them"}
    found.check(ClusterState.from_json(json.loads(cluster_state(health="HEALTH_WARN", checks=checks))))
    assert found.trouble == f"the cluster reports slow operations ({code}: 1 slow, mon.a among them)"
    found.check(ClusterState.from_json(json.loads(cluster_state())))
    assert found.trouble.endswith("mon.a among them)")


def test_it_is_ignored_when_asked() -> None:
    assert not watch(("cluster", "health", 2.0), ignore_health=True).in_trouble()


def test_samples_from_before_a_trial_are_dropped() -> None:
    found = watch(("cluster", "health", 0.0))
    found.begin()
    assert found.samples() == []
