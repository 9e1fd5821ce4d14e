"""Names of the metrics of a watched mount, and what is served where a look was not possible."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from leadline.watch.exporter import WatchCollector, metric_name


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("mean_read_s", "leadline_watch_mean_read_seconds"),
        ("read_bytes_per_s", "leadline_watch_read_bytes_per_second"),
        ("cpu_busy_share", "leadline_watch_cpu_busy_ratio"),
        ("client_metadata_ms", "leadline_watch_client_metadata_milliseconds"),
        ("users", "leadline_watch_users"),
    ],
)
def test_a_metric_ends_in_its_unit(figure: str, name: str) -> None:
    assert metric_name(figure) == name


def test_a_look_that_failed_leaves_no_figure_and_says_why() -> None:
    registry, collector = CollectorRegistry(), WatchCollector('/mnt/"x"\n')
    registry.register(collector)
    collector.fail("the mount does not answer")
    text = generate_latest(registry).decode()
    assert 'leadline_watch_up{path="/mnt/\\"x\\"\\n"} 0.0' in text
    assert 'problem="the mount does not answer"' in text
    assert "leadline_watch_look_seconds" not in text
