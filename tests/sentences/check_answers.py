"""What the first screen answers, and what a regression check says, worked out again from the stored trials."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from check_studies import values
from kit import Said, close, geometric, number, seconds, size

from leadline.store.own import read_acks
from leadline.store.reader import Result
from leadline.verdict.model import Findings, Regression, Statement

_FACTOR = r"at least (?:([\d,.]+)x|([\d.]+) %)"
_STATES = re.compile(
    r"\((?:Doubts could change (\d+) of (\d+) cells)?(?:, )?(?:(\d+) of (\d+) INVALID or not run)?\.\)$"
)
# `15x in read_4k (CI 11 to 20)`, and of a single workload `15x slower than local in read_4k (CI 11 to 20)`
_TIMES = re.compile(
    r"([\d,.]+)x(?: (?:faster|slower) than \w+)? in ([\w.]+(?: \w+)?)"
    r"(?: \(CI (?:([\d,.]+) to ([\d,.]+)|[^)]*)\))?"
)


def hold_answer(findings: Findings, result: Result) -> None:
    """Every claim of the answer; AssertionError where one is more than the trials give."""
    if findings.answer is None:
        return
    rows = result.trials() if (result.path / "trials").exists() else []
    said = Said(Statement("headline", findings.answer.text, says="answer"), findings, result, rows)
    text = said.statement.text
    _states(said)
    _against_base(said)
    _over_works(said)
    _first(said)
    _alone(said)
    _highest(said)
    _last_acks(said)
    assert "nan" not in re.findall(r"[a-z]+", text), text
    assert not re.search(r"\d{10,}", text.replace(",", "")), text


def _states(said: Said) -> None:
    """How many cells are DOUBTFUL, INVALID or were not run."""
    found = _STATES.search(said.statement.text)
    states = [cell.validity.state for cell in said.findings.cells]
    if found and found[0] != "(.)":
        bad = sum(state in ("INVALID", "NOT_RUN") for state in states)
        assert (found[1] is None) or int(found[2]) == len(states)
        assert (found[1] is None) or 0 < int(found[1]) <= states.count("DOUBTFUL")
        assert (found[3] is None) or (int(found[3]), int(found[4])) == (bad, len(states))
    elif said.findings.kind == "study" and set(states) & {"INVALID", "NOT_RUN"}:
        assert re.search(r"No cell can be relied on|No answer", said.statement.text), said.statement.text
    elif said.findings.kind == "study" and "DOUBTFUL" in states and said.findings.answer:
        codes = {code.code for cell in said.findings.cells for code in cell.validity.codes}
        assert codes & set(said.findings.answer.footnotes), "doubts that are neither counted nor footnotes"


def _factor(times: str, percent: str) -> float:
    return number(times) if times else 1 + number(percent) / 100


def _by_block(said: Said, target: str, row: str) -> Mapping[int, float]:
    """What a row of a target is asked for in each block, where rows of trials give it."""
    work, _, part = row.partition(" ")
    cell = f"{target}.{work}"
    for metric in (f"{part}_iops",) if part else ("bandwidth", "iops", "run_time"):
        if any(one.id == cell and metric in one.metrics for one in said.findings.cells):
            return values(said, cell, metric)
    return {}


def _mean(said: Said, target: str, row: str) -> float | None:
    """The geometric mean of it."""
    found = _by_block(said, target, row)
    return geometric(found.values()) if found else None


def _against_base(said: Said) -> None:
    """`x is slower than y in 2 of 5 workloads: 3.1x in a (CI 2 to 4) and 1.2x in b (CI …)`: so it is."""
    clause = r"(\w+) is ((?:[\d.,]+x )?(?:faster|slower) than (\w+)[^;.]*(?:[.](?=\d)[^;.]*|; [^.;]*)*)"
    for other, rest, base in re.findall(clause, said.statement.text):
        for part in rest.split("; "):
            verdict = re.search(r"(faster|slower) than", part)
            for factor, row, low, high in _TIMES.findall(part) if verdict else ():
                sides = [_by_block(said, target, row) for target in (other, base)]
                both = set(sides[0]) & set(sides[1])
                if not both:
                    continue
                ratio = geometric(sides[0][b] for b in both) / geometric(sides[1][b] for b in both)
                rate = _is_rate(said, f"{other}.{row.partition(' ')[0]}")
                better = ratio if rate else 1 / ratio
                assert verdict is not None
                assert (better > 1) == (verdict[1] == "faster"), said.statement.text
                times = max(better, 1 / better)
                assert abs(number(factor) - times) <= 0.06 * times, said.statement.text
                if low:
                    assert number(low) * 0.9 <= times <= number(high) * 1.1, said.statement.text


def _over_works(said: Said) -> None:
    """`Over 22 workloads together x is slower than y: at least 1.4x on average.`: so it is."""
    said_so = rf"Over (\d+) workloads together (\w+) is (faster|slower) than (\w+): {_FACTOR} on average\."
    figures = said.findings.answer.figures if said.findings.answer else ()
    for count, other, verdict, base, times, percent in re.findall(said_so, said.statement.text):
        anchors = {(one.work, one.metric): one for one in figures if one.target == base and one.leads}
        sides: list[tuple[Mapping[int, float], Mapping[int, float], bool]] = []
        for one in figures:
            anchor = anchors.get((one.work, one.metric))
            if one.target != other or not one.leads or anchor is None:
                continue
            if not {one.state, anchor.state} & {"INVALID", "NOT_RUN"}:
                known = [values(said, cell, one.metric) for cell in (one.cell, anchor.cell)]
                sides.append((known[0], known[1], one.higher_is_better))
        assert len(sides) == int(count), said.statement.text
        blocks = set.intersection(*(set(first) & set(second) for first, second, _ in sides))
        assert len(blocks) >= 3, said.statement.text
        logarithms = [
            math.log(first[block] / second[block]) * (1 if higher else -1)
            for first, second, higher in sides
            for block in blocks
        ]
        mean = math.exp(math.fsum(logarithms) / len(logarithms))
        assert (mean > 1) == (verdict == "faster"), said.statement.text
        assert _factor(times, percent) <= max(mean, 1 / mean) * 1.005, said.statement.text


def _is_rate(said: Said, cell: str) -> bool:
    return said.cell(cell).kind in ("io", "metadata")


def _first(said: Said) -> None:
    """`Best: x in a and b (at least 1.3x ahead)`: no other target has more there."""
    part = re.search(r"Best: (.*?)\.(?: |$)", said.statement.text)
    for claim in part[1].split("; ") if part else ():
        found = re.match(rf"(\w+) in (.*) \({_FACTOR} ahead\)", claim)
        if found is None:
            continue
        for row in re.split(r", | and (?!\d)", re.sub(r" and \d+ more$", "", found[2])):
            every = {view.name: _mean(said, view.name, row) for view in said.findings.targets}
            known: Mapping[str, float] = {name: mean for name, mean in every.items() if mean}
            usable = {
                name: mean
                for name, mean in known.items()
                if said.cell(f"{name}.{row.partition(' ')[0]}").validity.state not in ("INVALID", "NOT_RUN")
            }
            best = (max if _is_rate(said, f"{found[1]}.{row.partition(' ')[0]}") else min)(
                (name for name in usable if name != "local" or found[1] == "local"),
                key=lambda name: usable[name],
            )
            assert best == found[1], said.statement.text


def _alone(said: Said) -> None:
    """`x gives 12 MiB/s in a, 100 IOPS in b`."""
    for target, rest in re.findall(r"(\w+) gives (.*?)\.(?: [A-Z(]|$)", said.statement.text):
        for printed, row in re.findall(r"([\d,.]+ \S+) in ([\w.]*\w(?: \w+)?)", rest):
            work, _, part = row.partition(" ")
            metric = f"{part}_iops" if part else "bandwidth" if "B/s" in printed else "iops"
            if re.search(r"B/s|IOPS", printed):
                mean = geometric(values(said, f"{target}.{work}", metric).values())
                told = size(printed) if "B/s" in printed else number(printed.split()[0])
                assert abs(told - mean) <= 0.006 * mean, said.statement.text


def _highest(said: Said) -> None:
    """`Highest plateau: x 12 MiB/s (grid, ...), y ...`: of each target about the most of its sweeps' cells."""
    part = re.search(r"Highest plateau: (.*?)\.(?: [A-Z]|$| \w+ is bound)", said.statement.text)
    if part is None:
        return
    claims = re.findall(r"(\w+) ([\d,.]+ \wiB/s) \((\w+), ", part[1])
    assert claims, said.statement.text
    rates = [size(rate) for _, rate, _ in claims]
    assert rates == sorted(rates, reverse=True), said.statement.text
    states = {cell.id: cell.validity.state for cell in said.findings.cells}
    for target, rate, sweep in claims:
        most: dict[str, float] = {}
        for cell in said.plan["cells"]:
            usable = states.get(cell["id"], "NOT_RUN") not in ("INVALID", "NOT_RUN")
            if cell["swept"] and cell["target"] == target and usable:
                found = list(values(said, cell["id"], "bandwidth").values())
                name = cell["swept"]["name"]
                most[name] = max([most.get(name, 0.0), *([geometric(found)] if found else [])])
        assert abs(math.log(size(rate) / most[sweep])) < 0.25, said.statement.text
        assert max(most.values()) < 1.25 * most[sweep], said.statement.text


def _last_acks(said: Said) -> None:
    """`Last ack after the last request of files: 6.18 s on x, 1.26 s on y.`: the means of their trials."""
    part = re.search(r"Last ack after the last request of (\S+): (.*?)\.(?: [A-Z(]|$)", said.statement.text)
    for printed, target in re.findall(r"([\d,.]+ \S+) on (\w+)", part[2]) if part else ():
        cell = f"{target}.{part[1]}" if part else ""
        late = []
        for row in said.complete(cell):
            acks = read_acks(said.result, row.trial)
            assert acks is not None
            late.append(float(acks.acked_ns.max() - acks.submitted_ns.max()) / 1e9)
        close(seconds(printed), geometric(late))


def hold_regression(found: Regression, baseline: Said, new: Said) -> None:
    """Each check's gain or loss has the sign of the means, and passes as its interval lies."""
    for check in found.checks:
        assert not re.search(r"\d{8,}", check.words.replace(",", "")), check
        cell = check.name
        if check.passed in ("missing", "invalid") or check.metric not in ("bandwidth", "iops"):
            continue
        sides = [values(one, cell, check.metric) for one in (baseline, new)]
        if not all(sides):
            continue
        ratio = geometric(sides[1].values()) / geometric(sides[0].values())
        word = re.match(r"(gain|loss) of ", check.words)
        assert word is None or (word[1] == "gain") == (ratio >= 1), check
        if check.low is not None and check.high is not None:
            assert check.low <= ratio * 1.0001, check
            assert check.high >= ratio * 0.9999, check
            lost = sorted((1 - check.low, 1 - check.high))
            expected = "lost" if lost[0] > found.allow else "holds" if lost[1] <= found.allow else "undecided"
            assert check.passed == expected, check
        elif math.isfinite(ratio):
            assert check.passed == "undecided", check
