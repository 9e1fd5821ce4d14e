"""What is said of a trace, against its processes and files as they are stored."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pyarrow.parquet as pq
from check_programs import stands_for
from kit import Said, checks, close, number, seconds, size

_KINDS = {"reading": "read", "writing": "write", "metadata": "meta", "syncs": "sync"}
_MEASURED = {
    "small_reads": "F_READ_TIME",
    "random_reads": "F_READ_TIME",
    "read_ahead_defeated": "F_READ_TIME",
    "small_writes": "F_WRITE_TIME",
    "random_writes": "F_WRITE_TIME",
    "rewritten": "F_WRITE_TIME",
    "repeated_opens": "F_META_TIME",
    "repeated_stats": "F_META_TIME",
    "failed_lookups": "F_META_TIME",
}


RULES = (
    "small_reads",
    "small_writes",
    "random_reads",
    "read_ahead_defeated",
    "random_writes",
    "misaligned",
    "rewritten",
    "repeated_opens",
    "repeated_stats",
    "failed_lookups",
    "mostly_metadata",
    "sync_bound",
    "imbalance_copies",
    "imbalance_processes",
    "bound_by_compute",
)


def processes(said: Said) -> list[dict[str, Any]]:
    """Every process of the trace."""
    (file,) = (said.result.path / "processes").iterdir()
    return pq.read_table(file).to_pylist()


def files(said: Said) -> dict[str, Counter[str]]:
    """The counters of each path, over all processes."""
    (file,) = (said.result.path / "files").iterdir()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in pq.read_table(file).to_pylist():
        for name, value in row.items():
            if name.isupper() and value is not None:
                found[row["path"]][name] += value
    return found


def note(said: Said) -> dict[str, Any]:
    """What the trace says of itself as a whole."""
    (file,) = (said.result.path / "processes").iterdir()
    found: dict[str, Any] = json.loads(pq.read_schema(file).metadata[b"leadline.trace"])
    return found


def spent(said: Said) -> dict[str, float]:
    """Seconds in I/O by kind, over all processes."""
    found: Counter[str] = Counter()
    for row in processes(said):
        found.update(json.loads(row["seconds"]))
    return dict(found)


def lives(said: Said) -> float:
    """Seconds that processes lived, or were in I/O where that is longer: none here has a child."""
    return sum(
        max((row["ended_ns"] - row["started_ns"]) / 1e9, sum(json.loads(row["seconds"]).values()))
        for row in processes(said)
    )


@checks("trace_time")
def trace_time(said: Said) -> None:
    copies = note(said)["extra"]["copies"]
    walls = [one["wall_s"] for one in copies]
    head = re.match(
        r"(?:The command ran|(\d+) copies ran at once) for (.*?)(?: on average)?: (.*)\.$", said.text
    )
    assert head, said.text
    assert int(head[1] or 1) == len(copies)
    stands_for(head[2], sum(walls) / len(walls))
    time, io = lives(said), spent(said)
    told = 0.0
    for share, words in re.findall(r"([\d.]+) % (\w+)", head[3]):
        told += number(share)
        expected = max(0.0, 1 - sum(io.values()) / time) if words == "computing" else io[_KINDS[words]] / time
        assert abs(number(share) / 100 - expected) <= 0.0051, said.text
    assert told <= 100.6, said.text
    rows = processes(said)
    moved = re.match(
        r"(.*?) read, (.*?) written by ([\d,]+) process(?:es)? in ([\d,]+) files?", said.statement.evidence[0]
    )
    assert moved, said.statement.evidence
    close(size(moved[1]), sum(row["bytes_read"] for row in rows))
    close(size(moved[2]), sum(row["bytes_written"] for row in rows))
    assert (number(moved[3]), number(moved[4])) == (len(rows), len(files(said)))


@checks("trace_empty")
def trace_empty(said: Said) -> None:
    assert not processes(said)
    assert said.findings.state == "INVALID"


@checks("trace_lost")
def trace_lost(said: Said) -> None:
    found = said.match(r"(?P<count>[\d,]+) records were lost; .*")
    assert number(found["count"]) == sum(sum(json.loads(row["lost"]).values()) for row in processes(said))


@checks("trace_warning")
def trace_warning(said: Said) -> None:
    assert said.text in note(said)["warnings"]


@checks("trace_blind")
def trace_blind(said: Said) -> None:
    notes = Counter(text for row in processes(said) for text in json.loads(row["notes"]))
    kind = "io_uring" if "io_uring" in said.text else "static child /bin/busybox"
    count = re.search(r"(\d+) process", said.text)
    assert count, said.text
    assert int(count[1]) == notes[kind]


def rule(said: Said) -> None:
    """Of a rule: a cost within what was measured of its kind and within the run, and its share; examples with
    the files' own counters."""
    name = said.statement.says.removeprefix("rule_")
    time, io = lives(said), spent(said)
    cost = re.search(r": up to ([\w. ]+?)(?:, ([\d.]+) % of all process time)? \(estimate", said.text)
    if cost:
        by_file = files(said)
        measured = (
            sum(row[_MEASURED[name]] for row in by_file.values()) if name in _MEASURED else sum(io.values())
        )
        if name.startswith("imbalance"):
            measured = time
        assert seconds(cost[1]) <= max(measured, 0.001) * 1.01 + 1, said.text
        assert seconds(cost[1]) <= time * 1.01 + 1, said.text
        if cost[2]:
            assert number(cost[2]) <= 100, said.text
            assert (
                abs(number(cost[2]) / 100 * time - seconds(cost[1]))
                <= 0.02 * seconds(cost[1]) + 0.006 * time + 0.6
            )
    for example in said.statement.evidence:
        _example(said, name, example)


def _example(said: Said, name: str, example: str) -> None:
    path, _, words = example.partition(": ")
    own = files(said).get(path)
    counts = [number(one) for one in re.findall(r"([\d,]+) (?:reads|writes|stats|times|of)", words)]
    expected = {
        "small_reads": "READS",
        "small_writes": "WRITES",
        "repeated_opens": "OPENS",
        "repeated_stats": "STATS",
    }
    if name in expected and own is not None:
        found = re.search(r"(?:opened )?([\d,]+)", words)
        assert found
        assert number(found[1]) == own[expected[name]], example
    if own is not None and name in ("random_reads", "random_writes"):
        assert counts[0] <= counts[1], example
    if name == "mostly_metadata":
        every = files(said).values()
        opens, stats, count = re.findall(r"([\d,]+) (?:opens|stats|files)", words or example)
        assert number(opens) == sum(one["OPENS"] for one in every), example
        assert number(stats) == sum(one["STATS"] for one in every), example
        assert number(count) == len(files(said)), example


for _name in RULES:
    checks(f"rule_{_name}")(rule)


@checks("trace_ended")
def trace_ended(said: Said) -> None:
    found = said.match(r"(?:The command|Copy (?P<copy>\d+)) ended with (?P<how>.*)\.")
    ends = {
        one["copy"]: f"killed by signal {one['status']}"
        if one["end"] == "signal"
        else f"exit code {one['status']}"
        for one in note(said)["extra"]["copies"]
    }
    assert ends[int(found.get("copy", 0))] == found["how"]
    assert found["how"] != "exit code 0"


@checks("trace_overlapped", "trace_remainder")
def overlapped(said: Said) -> None:
    """Either threads were in I/O for longer than their process lived, or requests were beside the program."""
    beside = any(
        text.startswith(("asynchronous I/O", "io_uring"))
        for row in processes(said)
        for text in json.loads(row["notes"])
    )
    longer = any(
        sum(json.loads(row["seconds"]).values()) > (row["ended_ns"] - row["started_ns"]) / 1e9
        for row in processes(said)
    )
    assert (beside or longer) == (said.statement.says == "trace_overlapped"), said.text


@checks("trace_more_findings")
def more_findings(said: Said) -> None:
    found = said.match(r"(?P<count>\d+) smaller findings? stands? in the report\.")
    assert int(found["count"]) > 0


@checks("trace_replayed")
def trace_replayed(said: Said) -> None:
    replay = said.result.manifest["replay"]
    coverage = replay["coverage"]
    found = said.match(
        r"(?P<done>[\d,]+) of (?P<all>[\d,]+) calls of (?P<title>.*?)(?:, (?P<bytes>[\d.]+ \S+) or (?P<share>[\d.]+)% of the"
        r" bytes)?, were repeated by (?P<threads>\d+) threads?, .*"
    )
    assert (number(found["done"]), number(found["all"])) == (coverage["calls_replayed"], coverage["calls"])
    if "bytes" in found:
        close(size(found["bytes"]), coverage["bytes_replayed"])
        assert abs(number(found["share"]) / 100 - coverage["bytes_replayed"] / coverage["bytes"]) <= 0.0006
    assert int(found["threads"]) == replay["threads"]
