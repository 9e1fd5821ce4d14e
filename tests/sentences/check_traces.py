"""What is said of a trace, against its processes and files as they are stored."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pyarrow.parquet as pq
from check_programs import stands_for
from kit import Said, checks, close, number, seconds, size

USERS = "/data/"  # where the files of made traces that are the user's lie
_KINDS = {"reading": "read", "writing": "write", "metadata": "meta", "syncs": "sync"}
_MEASURED = {
    "small_reads": "F_READ_TIME",
    "random_reads": "F_READ_TIME",
    "read_ahead_defeated": "F_READ_TIME",
    "small_writes": "F_WRITE_TIME",
    "random_writes": "F_WRITE_TIME",
    "rewritten": "F_WRITE_TIME",
    "reread": "F_READ_TIME",
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
    "reread",
    "repeated_opens",
    "repeated_stats",
    "failed_lookups",
    "end_probes",
    "serial_reads",
    "mostly_reads",
    "mostly_writes",
    "many_small_files",
    "library_cost",
    "mostly_metadata",
    "sync_bound",
    "imbalance_copies",
    "imbalance_processes",
    "waiting_for_pages",
    "unseen_calls",
    "waiting_asleep",
    "waiting_for_locks",
    "waiting_for_others",
    "waiting_for_cpus",
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
    """Seconds that processes lived, without the tracer's own, or were in I/O where that is longer: none here has
    a child.
    """
    return sum(map(lived, processes(said)))


def lived(row: dict[str, Any]) -> float:
    """The same of one process image."""
    return max(
        (row["ended_ns"] - row["started_ns"] - (row["tracer_ns"] or 0) / (row["threads"] or 1)) / 1e9,
        sum(json.loads(row["seconds"]).values()),
    )


def rests(said: Said) -> dict[str, float]:
    """Seconds in no call on a file; of these what ran on a CPU at most, and the others, where that is known."""
    found = {"outside": 0.0, "computing": 0.0, "waiting": 0.0}
    known = True
    for one in note(said)["extra"]["copies"]:
        rows = [row for row in processes(said) if row["copy"] == one["copy"]]
        rest = sum(lived(row) - sum(json.loads(row["seconds"]).values()) for row in rows)
        known = known and "cpu_user_ns" in one
        cpu = (one.get("cpu_user_ns", 0) + one.get("cpu_system_ns", 0)) / 1e9
        found["outside"] += rest
        found["computing"] += min(rest, cpu)
        found["waiting"] += rest - min(rest, cpu)
    return (
        {"computing": found["computing"], "waiting": found["waiting"]}
        if known
        else {"outside": found["outside"]}
    )


@checks("trace_slowest")
def trace_slowest(said: Said) -> None:
    """Of processes of one program that moved bytes: the one that was in I/O for longest, and the mean.

    Those that moved them apart from all others are not counted.
    """
    found = said.match(
        r"The slowest of (?P<count>[\d,]+) processes, process (?P<pid>\d+) \(.*\), was in I/O for (?P<io>.*) of (?P<run>.*);"
        r" the mean is (?P<mean>.*)\."
    )
    every: Counter[int] = Counter()
    moved: Counter[int] = Counter()
    for row in processes(said):
        every[row["pid"]] += sum(json.loads(row["seconds"]).values())
        moved[row["pid"]] += row["bytes_read"] + row["bytes_written"]
    each = {pid: seconds for pid, seconds in every.items() if moved[pid]}
    assert 2 <= number(found["count"]) <= len(each)
    stands_for(found["io"], each[int(found["pid"])])
    if number(found["count"]) == len(each):
        assert each[int(found["pid"])] == max(each.values())
        stands_for(found["mean"], sum(each.values()) / len(each))
    stands_for(found["run"], note(said)["extra"]["wall_s"])


@checks("trace_time")
def trace_time(said: Said) -> None:
    copies = note(said)["extra"]["copies"]
    walls = [one["wall_s"] for one in copies]
    head = re.match(
        r"(?:The command ran|(\d+) copies ran at once) for (.*?)(?: on average)?(?:, and [\d,]+ process(?:es)? that it left until .*?)?( under strace)?"
        r"(?::(?: of (?P<base>.*?) of process time,)? (.*)|; (.*))\.$",
        said.text,
    )
    assert head, said.text
    assert int(head[1] or 1) == len(copies)
    stands_for(head[2], sum(walls) / len(walls))
    assert bool(head[3]) == under_strace(said)
    time, io = lives(said), spent(said)
    told = 0.0
    for share, words in re.findall(r"([\d.]+) % (\w+)", head[5] or ""):
        told += number(share)
        expected = io[_KINDS[words]] / time if words in _KINDS else rests(said)[words] / time
        assert abs(number(share) / 100 - expected) <= 0.0051, said.text
        assert not (head[3] and words not in _KINDS), said.text
    assert told <= 100.6, said.text
    if head["base"]:
        stands_for(head["base"], time)
    elif head[5]:
        assert abs(time / sum(walls) - 1) <= 0.051, "shares are of another time than that of the run"
    if head[6] and "unknown" in head[6]:
        assert note(said)["extra"]["call_cost_s"] is None
    elif head[6]:
        assert sum(io.values()) < 0.0005 * len(_KINDS) * time, said.text
    moved(said)


def moved(said: Said) -> None:
    """Bytes in the user's files, how many these are, and how many processes had them; the rest behind it."""
    rows, every = processes(said), files(said)
    own = {path: row for path, row in every.items() if path.startswith(USERS)}
    found = re.match(
        r"(.*?) read, (.*?) written in ([\d,]+) files? by ([\d,]+) process(?:es)?$",
        said.statement.evidence[0],
    )
    assert found, said.statement.evidence
    close(size(found[1]), sum(row["BYTES_READ"] for row in own.values()))
    close(size(found[2]), sum(row["BYTES_WRITTEN"] for row in own.values()))
    pids = {(row["copy"], row["pid"]) for row in rows}
    assert (number(found[3]), number(found[4])) == (len(own), len(pids))
    rest = re.match(r"besides ([\d,]+) others?: ([^(]*)(?: \((.*) read\))?$", said.statement.evidence[1])
    assert bool(rest) == (len(own) < len(every)), said.statement.evidence
    if rest:
        assert (
            number(rest[1])
            == len(every) - len(own)
            == sum(map(number, re.findall(r"(\d[\d,]*) [a-z]", rest[2])))
        )
        close(size(rest[3]) if rest[3] else 0, sum(row["bytes_read"] for row in rows) - size_of(own))


def size_of(own: dict[str, Counter[str]]) -> int:
    """Bytes that were read of some files."""
    return sum(row["BYTES_READ"] for row in own.values())


def under_strace(said: Said) -> bool:
    """Whether it is a log of strace."""
    return note(said)["source"].startswith("strace")


@checks("trace_times")
def trace_times(said: Said) -> None:
    """Of strace only: the cost that it took out, or that it took none."""
    assert under_strace(said)
    cost = note(said)["extra"]["call_cost_s"]
    taken = re.search(r", ([\d.]+) (us|ms) a call at most", said.text)
    assert bool(taken) == (cost is not None), said.text
    if taken:
        assert abs(number(taken[1]) * {"us": 1e-6, "ms": 1e-3}[taken[2]] - cost) <= 0.01 * cost


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


@checks("trace_unseen")
def trace_unseen(said: Said) -> None:
    """Each process that is named differs by what is said, and more than the bounds; none that differs is left out."""
    differ = {
        (row["executable"], row["pid"], row["unseen_read"] or 0, row["unseen_written"] or 0)
        for row in processes(said)
        if abs(row["unseen_read"] or 0) > 512 << 10 or abs(row["unseen_written"] or 0) > 4096
    }
    parts = said.statement.evidence[0].split("; ")
    beyond = re.fullmatch(r"and (\d+) more process(?:es)?", parts[-1])
    named = parts[:-1] if beyond else parts
    assert len(named) + (int(beyond[1]) if beyond else 0) == len(differ) > 0
    for part in named:
        found = re.fullmatch(r"(.*) \(pid (\d+)\): (.*) than was recorded", part)
        assert found, part
        (own,) = (one for one in differ if one[:2] == (found[1], int(found[2])))
        told = {
            way: (amount, sign)
            for amount, sign, way in re.findall(r"([\d.]+ \w+) (more|less) (\w+)", found[3])
        }
        for way, value in (("read", own[2]), ("written", own[3])):
            if not value:
                assert way not in told, part
                continue
            close(size(told[way][0]), abs(value))
            assert (told[way][1] == "more") == (value > 0), part
    assert said.findings.state != "VALID"


def rule(said: Said) -> None:
    """Of a rule: a cost within what was measured of its kind and within the run, and its share; examples with
    the files' own counters."""
    name = said.statement.says.removeprefix("rule_")
    time, io = lives(said), spent(said)
    run = max(one["wall_s"] for one in note(said)["extra"]["copies"])
    cost = re.search(
        r": up to (?:([\d.]+ [a-z][\w. ]*?)(?: of the run|, ([\d.]+) % of all process time)?|([\d.]+) % of all process time,"
        r" at most ([\w. ]+) of the run) \(estimate",
        said.text,
    )
    if cost:
        by_file = files(said)
        measured = (
            sum(row[_MEASURED[name]] for row in by_file.values()) if name in _MEASURED else sum(io.values())
        )
        measured = time if name.startswith(("imbalance", "waiting", "unseen")) else measured
        share = cost[2] or cost[3]
        whole = number(share) / 100 * time if cost[3] else seconds(cost[1])
        slack = 0.006 * time if cost[3] else 1
        assert whole <= max(measured, 0.001) * 1.01 + slack, said.text
        assert seconds(cost[1] or cost[4]) <= run * 1.01 + 1, said.text
        if share:
            assert number(share) <= 100, said.text
        if cost[4]:
            assert seconds(cost[4]) >= number(share) / 100 * run - 0.006 * run - 0.6, said.text
        elif share:
            assert abs(number(share) / 100 * time - whole) <= 0.02 * whole + 0.006 * time + 0.6
    else:
        assert "its cost is not known" in said.text, said.text
    for example in said.statement.evidence:
        _example(said, name, example)


def _is_small(counts: Counter[str]) -> bool:
    return 0 < counts["BYTES_READ"] + counts["BYTES_WRITTEN"] <= 64 << 10


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
    every = files(said)
    if name in ("mostly_reads", "mostly_writes"):
        way = name.removeprefix("mostly_")
        found = re.search(rf"([\d,]+) {way} of", example)
        assert found, example
        assert number(found[1]) == sum(one[way.upper()] for one in every.values()), example
    if name == "many_small_files":
        small = [one for path, one in every.items() if path.startswith(USERS) and _is_small(one)]
        assert number(example.split(" ", 1)[0]) == len(small), example
    if name == "library_cost":
        found = re.search(r"on ([\d,]+) libraries", example)
        assert found, example
        assert number(found[1]) == sum(not path.startswith(USERS) for path in every), example
    if name == "mostly_metadata":
        opens, stats, count = re.findall(r"([\d,]+) (?:opens|stats|paths)", words or example)
        assert number(opens) == sum(one["OPENS"] for one in every.values()), example
        assert number(stats) == sum(one["STATS"] for one in every.values()), example
        assert number(count) == len(every), example


for _name in RULES:
    checks(f"rule_{_name}")(rule)


@checks("trace_ended")
def trace_ended(said: Said) -> None:
    found = said.match(r"(?:The command|Copy (?P<copy>\d+)) (?:was|ended with) (?P<how>.*)\.")
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
    found = said.match(r"(?P<count>\d+) smaller findings? (?:is|are) in the report\.")
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
