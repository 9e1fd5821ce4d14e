"""What is said of a media platform's notes and of published figures, against the files they came in."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from check_programs import stands_for
from kit import Said, checks, geometric, listed, number
from scipy.stats import ttest_ind


def workflows(said: Said) -> list[dict[str, Any]]:
    """The workflows as they are stored."""
    found: list[dict[str, Any]] = json.loads((said.result.path / "workflows.json").read_text())["workflows"]
    return found


def took(operation: dict[str, Any]) -> float | None:
    """Seconds of an operation; None where a time is lacking."""
    begin, end = operation["started_ns"], operation["completed_ns"]
    return None if begin is None or end is None or end < begin else (end - begin) / 1e9


def done(said: Said) -> list[tuple[dict[str, Any], dict[str, Any], float]]:
    """(workflow, operation, seconds) of everything that came to its end."""
    return [
        (one, operation, seconds)
        for one in workflows(said)
        for operation in one["operations"]
        if (seconds := took(operation)) is not None and operation["state"] == "succeeded"
    ]


@checks("workflows_time")
def workflows_time(said: Said) -> None:
    every = workflows(said)
    found = said.match(
        r"(?P<count>\d+) workflows? \((?P<states>.*?)\)(?:; of the time in operations that succeeded most was spent in (?P<most>.*))?\."
    )
    assert int(found["count"]) == len(every)
    states = Counter(one["state"] for one in every)
    told = {state: int(count) for count, state in re.findall(r"(\d+) (\w+)", found["states"])}
    assert told == states
    sums: Counter[str] = Counter()
    for _, operation, seconds in done(said):
        sums[operation["name"]] += seconds
    for name, share in re.findall(r"(\w+) (\d+)%", found.get("most", "")):
        assert abs(number(share) / 100 - sums[name] / sum(sums.values())) <= 0.0051, said.text


@checks("workflows_changed")
def workflows_changed(said: Said) -> None:
    """Only what succeeded on both sides is judged; the way it changed is that of the means."""
    change_ns = said.result.manifest["since_change_ns"]
    sides: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    sized = all(one["bytes"] for one, _, _ in done(said))
    for one, operation, seconds in done(said):
        value = seconds / (one["bytes"] / 1e9) if sized else seconds
        sides[operation["name"]][operation["started_ns"] >= change_ns].append(value)
    told = re.findall(r"(\w+) is (?:at least )?([\d.,]+)(?: to ([\d.,]+))? times (faster|slower)", said.text)
    rest = [
        name
        for part in re.findall(r"(?:inconclusive|equivalent within \d+%): ([\w, ]+)", said.text)
        for name in listed(part)
    ]
    assert told or rest, said.text
    for name in (*(one[0] for one in told), *rest):
        assert min(map(len, sides[name])) > 1, said.text
    for name, low, high, verdict in told:
        before, after = sides[name]
        ratio = geometric(after) / geometric(before)
        assert (ratio > 1) == (verdict == "slower"), said.text
        assert number(low) * 0.995 <= max(ratio, 1 / ratio), said.text
        assert not high or max(ratio, 1 / ratio) <= number(high) * 1.005, said.text
        assert welch(before, after) < 0.05, said.text


def welch(first: Sequence[float], second: Sequence[float]) -> float:
    """The p value that logarithms have one mean, by scipy."""
    found = ttest_ind([math.log(one) for one in first], [math.log(one) for one in second], equal_var=False)
    return float(found.pvalue)


@checks("operations_not_done")
def operations_not_done(said: Said) -> None:
    every = Counter()
    for one in workflows(said):
        for operation in one["operations"]:
            every[operation["name"], operation["state"] == "failed"] += operation["state"] in (
                "failed",
                "running",
            )
    for name, words in re.findall(r"(\w+) ((?:failed|did not end) [^;.]*)", said.text.partition(": ")[2]):
        for verb, failed in (("failed", True), ("did not end", False)):
            part = re.search(rf"{verb} (once|[\d,]+ times)", words)
            told = 0 if part is None else 1 if part[1] == "once" else int(number(part[1].split()[0]))
            assert told == every[name, failed], said.text


@checks("workflows_on_one_side")
def on_one_side(said: Said) -> None:
    change_ns = said.result.manifest["since_change_ns"]
    few = Counter((operation["name"], operation["started_ns"] >= change_ns) for _, operation, _ in done(said))
    assert not any(few[name, False] > 1 and few[name, True] > 1 for name, _ in few), said.text


@checks("workflows_sizes_unknown")
def sizes_unknown(said: Said) -> None:
    assert not all(one["bytes"] for one in workflows(said))


@checks("workflows_queued")
def queued(said: Said) -> None:
    found = said.match(r"Operations waited (?P<waited>.*) in queues, (?P<share>\d+)% of their time\.")
    known = [(op["queue_ns"] / 1e9, seconds) for _, op, seconds in done(said) if op["queue_ns"] is not None]
    waited, worked = sum(one for one, _ in known), sum(one for _, one in known)
    stands_for(found["waited"], waited)
    assert abs(number(found["share"]) / 100 - waited / (waited + worked)) <= 0.0051


@checks("workflows_unfinished")
def unfinished(said: Said) -> None:
    found = re.match(r"(\d+) of (\d+) workflows? ", said.text)
    assert found, said.text
    every = workflows(said)
    assert (int(found[1]), int(found[2])) == (sum(one["state"] != "succeeded" for one in every), len(every))


@checks("operations_lack_times")
def lack_times(said: Said) -> None:
    found = re.match(r"(\d+) operations? ", said.text)
    assert found, said.text
    every = [op for one in workflows(said) for op in one["operations"]]
    assert int(found[1]) == sum(took(op) is None and op["state"] in ("succeeded", "failed") for op in every)


@checks("workflows_empty")
def empty(said: Said) -> None:
    found = re.match(r"(\d+) workflows? without", said.text)
    assert found, said.text
    assert int(found[1]) == sum(not one["operations"] for one in workflows(said))


@checks("workflows_do_not_add_up")
def do_not_add_up(said: Said) -> None:
    found = re.match(r"In (\d+) workflows? the operations do not add up", said.text)
    assert found, said.text
    off = []
    for one in workflows(said):
        times = [(op["started_ns"], op["completed_ns"]) for op in one["operations"]]
        begins, ends = ([t[i] for t in times if t[i] is not None] for i in (0, 1))
        if one["state"] == "succeeded" and begins and ends:
            inside = sum(seconds for op in one["operations"] if (seconds := took(op)) is not None)
            if abs((max(ends) - min(begins)) / 1e9 - inside) > 60:
                off.append(one["id"])
    assert int(found[1]) == len(off)
    assert all(line.partition(":")[0] in off for line in said.statement.evidence)


@checks("document_checked")
def document_checked(said: Said) -> None:
    found = said.match(
        r"(?P<all>\d+) checks? of the document's values: (?P<good>\d+) agree, (?P<bad>\d+) do not\."
        r"(?: Of (?P<claims>\d+) claims? with a value, the tables do not bear out (?P<failed>\d+)\.)?"
    )
    assert int(found["good"]) + int(found["bad"]) == int(found["all"])
    doubts = sum(one.says == "document_doubt" for one in said.findings.statements)
    assert doubts or not int(found["bad"]) + int(found.get("failed", 0)), said.text


@checks("document_doubt")
def document_doubt(said: Said) -> None:
    """Numbered one after the other, with figures that do differ where it sets one against another."""
    every = [one.text for one in said.findings.statements if one.says == "document_doubt"]
    assert every[int(re.match(r"\[(\d+)\] ", said.text)[1]) - 1] == said.text  # type: ignore[index]
    for first, second in re.findall(r"([\d.,]+) is printed, ([\d.,]+) ", said.text):
        assert number(first) != number(second), said.text


@checks("document_not_measured")
def not_measured(said: Said) -> None:
    assert said.result.published
