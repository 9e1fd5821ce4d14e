"""What is said of any study: targets, jobs at once, caches, blocks, time, against the stored trials."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from kit import Said, checks, close, geometric, number, seconds, size

from leadline.store.tables import TrialRow
from leadline.verdict.model import Comparison
from leadline.verdict.sections.section import TextTable

_WORD = r"[\w.]+(?: \w+)?"
_TIMES = (
    r"(?P<factor>[\d,.]+)x (?:faster|slower) in (?P<work>" + _WORD + r") \((?P<sure>[\d.]+) % CI"
    r" (?:(?P<low>[\d,.]+) to (?P<high>[\d,.]+)|at least (?P<least>[\d,.]+)), (?P<blocks>\d+) blocks\)"
)


def values(said: Said, cell: str, metric: str) -> dict[int, float]:
    """A metric of a cell by block, from the stored trials."""
    return {row.block: value for row in said.counted(cell) if (value := _value(row, metric))}


def _value(row: TrialRow, metric: str) -> float | None:
    """The metrics that sentences are about, worked out from a row."""
    measured_s = row.measured_ns / 1e9
    if metric == "bandwidth":
        return (row.read_bytes + row.write_bytes) / measured_s
    if metric == "iops":
        return (row.read_operations + row.write_operations) / measured_s
    summary = json.loads(row.summary)
    if metric.endswith("_iops"):
        phase = summary.get("directions", {}).get(metric.removesuffix("_iops"))
        return phase["operations"] / (phase["elapsed_ns"] / 1e9) if phase else None
    if metric == "run_time":
        copies = [copy["wall_ns"] / 1e9 for copy in summary.get("copies", ())]
        return geometric(copies) if copies else None
    if metric.startswith("stage_time_"):
        own = [one["seconds"] for one in summary.get("stages", ()) if f"stage_time_{one['stage']}" == metric]
        return geometric(own) if own else None
    return None


def sides(comparison: Comparison) -> tuple[str, str]:
    """The ids of the two cells that were compared."""
    if "." in comparison.base:
        return comparison.base, comparison.other
    return f"{comparison.base}.{comparison.work}", f"{comparison.other}.{comparison.work}"


def ratios(said: Said, comparison: Comparison) -> list[float]:
    """Other / base in every block that both have."""
    first, second = (values(said, cell, comparison.metric) for cell in sides(comparison))
    return [second[block] / first[block] for block in sorted(first) if block in second]


def holds(said: Said, comparison: Comparison) -> None:
    """A comparison agrees with the ratios of its blocks: their mean, their number, and the way it points."""
    found = ratios(said, comparison)
    if not found:
        return  # of a metric that needs more than rows, such as a percentile
    assert comparison.blocks == len(found), comparison
    mean = geometric(found)
    assert comparison.ratio is not None
    close(comparison.ratio, mean)
    if comparison.low is None or comparison.high is None:
        assert comparison.verdict == "undecided", comparison
        return
    assert comparison.low <= mean * 1.0001, comparison
    assert comparison.high >= mean * 0.9999, comparison
    outside = comparison.low > 1 or comparison.high < 1
    assert outside == (comparison.verdict in ("faster", "slower")) or comparison.verdict == "same", comparison
    if comparison.verdict == "same":
        assert 1 - comparison.margin <= comparison.low, comparison
        assert comparison.high <= 1 / (1 - comparison.margin), comparison


def factors(text: str) -> list[tuple[str, float, float, int]]:
    """(work, from, to, blocks) of every factor in a sentence; one bound: from it on."""
    found = []
    for part in re.finditer(_TIMES, text):
        low = number(part["low"] or part["least"])
        high = number(part["high"]) if part["high"] else math.inf
        assert low <= number(part["factor"]) <= high, part[0]
        found.append((part["work"], low, high, int(part["blocks"])))
    return found


@checks("targets_compared")
def targets_compared(said: Said) -> None:
    other, base = re.findall(r"(\w+) \([^)]*\)", said.text.partition(": ")[0])
    own = [c for c in said.findings.comparisons if (c.base, c.other) == (base, other) and _leads(c.metric)]
    usable = [c for c in own if c.validity not in ("INVALID", "NOT_RUN")]
    for comparison in usable:
        holds(said, comparison)
    count = Counter(c.verdict for c in usable)
    for verdict in ("faster", "slower"):
        several = re.search(rf"{verdict} in (\d+) ", said.text)
        one = re.search(rf"x {verdict} in ", said.text)
        assert (int(several[1]) if several else int(bool(one))) == count[verdict], said.text
    for words, verdict in (("equivalent within 5 % in", "same"), ("inconclusive in", "undecided")):
        found = re.search(rf"{words} (\d+) ", said.text)
        assert (int(found[1]) if found else 0) == count[verdict], said.text
    lost = re.search(r"not comparable in (\d+) ", said.text)
    assert (int(lost[1]) if lost else 0) == len(own) - len(usable), said.text
    for work, low, high, blocks in factors(said.text):
        whole, _, part = work.partition(" ")
        (c,) = (c for c in usable if c.work == whole and (not part or c.metric == f"{part}_iops"))
        found = ratios(said, c)
        assert blocks == len(found)
        mean = math.exp(abs(fmean(map(math.log, found))))
        assert low * 0.95 <= mean <= high * 1.05, said.text


def _leads(metric: str) -> bool:
    return (
        "latency" not in metric
        and metric not in ("read_write_time", "agg_perf_by_slowest")
        and not (metric.startswith("stage_time_"))
    )


@checks("target_alone")
def target_alone(said: Said) -> None:
    target = said.text.partition(" ")[0]
    rates: dict[str, dict[str, float]] = {}
    for metric in ("bandwidth", "iops"):
        for cell in said.findings.cells:
            if cell.target == target and not cell.swept and cell.validity.state not in ("INVALID", "NOT_RUN"):
                found = list(values(said, cell.id, metric).values())
                if found and cell.kind in ("io", "transfer") and metric in cell.metrics:
                    rates.setdefault(metric, {})[cell.work] = geometric(found)
    for words, metric, read in (("highest bandwidth", "bandwidth", size), ("highest rate", "iops", _iops)):
        part = re.search(rf"{words} ([\d,.]+ \S+) \(.*?\) in ([\w.]*\w)", said.text)
        assert (part is None) == (not rates.get(metric)), said.text
        if part:
            work, most = max(rates[metric].items(), key=lambda item: item[1])
            close(read(part[1]), most)
            close(rates[metric][part[2]], rates[metric][work])


def _iops(text: str) -> float:
    return number(text.removesuffix(" IOPS").removesuffix("/s"))


@checks("job_beside_others")
def job_beside_others(said: Said) -> None:
    job, group, alone = re.match(
        r"(\w+) next to the other jobs of (\S+), compared with (\S+) alone: ", said.text
    ).groups()  # type: ignore[union-attr]
    own = [c for c in said.findings.comparisons if (c.base, c.other) == (alone, f"{group}.{job}")]
    assert own
    for comparison in own:
        holds(said, comparison)
        if _leads(comparison.metric) and comparison.verdict in ("faster", "slower"):
            mean = geometric(ratios(said, comparison))
            part = re.search(r"(?:bandwidth|operations per second) ([\d,.]+)x (higher|lower)", said.text)
            assert part, said.text
            close(number(part[1]), max(mean, 1 / mean), 2)
            assert (part[2] == "higher") == (mean > 1), said.text


@checks("rate_searched")
def rate_searched(said: Said) -> None:
    (cell,) = said.statement.cells
    rates = [json.loads(row.job).get("rate_iops") for row in said.complete(cell)]
    tried = [rate for rate in rates if rate]
    part = re.search(r" sustains ([\d,.]+) IOPS", said.text)
    if part:
        assert min(tried) * 0.97 <= number(part[1]) <= max(tried) * 1.01, said.text
    else:
        assert "sustains no tested rate" in said.text


@checks("rates_under_bound")
def rates_under_bound(said: Said) -> None:
    """The geometric mean over the blocks of the highest rate that was kept; none where no block kept one."""
    part = said.match(r"Highest rate with (?P<latency>\S+) <= (?P<bound>\S+): (?P<cells>.*)\.")
    found = dict(one.split(" ", 1) for one in re.split(r", (?=\w+\.)", part["cells"]))
    assert tuple(found) == said.statement.cells
    for cell, words in found.items():
        search = next(one["search"] for one in said.plan["cells"] if one["id"] == cell)
        assert (search["latency"], search["bound"]) == (part["latency"], part["bound"]), said.text
        kept = [json.loads(row.job)["rate_iops"] for row in said.kept(cell)]
        blocks = len({row.block for row in said.counted(cell)})
        if len(kept) == blocks:
            close(number(words.removesuffix(" IOPS")), geometric(kept))
        elif kept:
            assert words == f"none in {blocks - len(kept)} of {blocks} blocks", said.text
        else:
            assert words == "none that was tried", said.text


@checks("run_not_ended")
def run_not_ended(said: Said) -> None:
    planned = {trial["id"] for trial in said.plan["trials"]}
    assert not said.findings.complete
    assert said.result.events[-1].event != "study_finished"
    assert planned


@checks("cells_not_valid")
def cells_not_valid(said: Said) -> None:
    found = said.match(
        r"(?P<few>\d+) of (?P<all>\d+) cells? (?:could not be run|(?:is|are) (?P<state>INVALID|DOUBTFUL): .*?)"
        r" \((?P<codes>.*)\)\."
    )
    state = found.get("state", "NOT_RUN")
    own = [cell for cell in said.findings.cells if cell.validity.state == state]
    assert (int(found["few"]), int(found["all"])) == (len(own), len(said.findings.cells))
    if state == "NOT_RUN":
        assert all(not said.counted(cell.id) for cell in own), said.text
    titles = {code.title for cell in own for code in cell.validity.codes}
    assert set(found["codes"].split(", ")) == titles


@checks("few_blocks")
def few_blocks(said: Said) -> None:
    found = said.match(r"(?P<few>\d+) of (?P<all>\d+) comparisons have few blocks: .*")
    every = said.findings.comparisons
    assert int(found["all"]) == len(every)
    assert int(found["few"]) <= sum(c.blocks < 6 for c in every)


@checks("scatter_unlike")
def scatter_unlike(said: Said) -> None:
    """Of its own logarithms: further apart, or closer, than those of most others."""
    found = said.match(
        r"(?P<few>\d+) of (?P<all>\d+) comparisons vary more or less than the other cells: (?P<which>.*?)\. .*"
    )
    every = said.findings.comparisons
    assert (int(found["few"]), int(found["all"])) == (sum(c.unlike for c in every), len(every))
    for place in found["which"].split(" and ")[0].split(", "):
        other, _, work = place.partition(" in ")
        assert any((c.other, c.work) == (other, work) for c in every), said.text


@checks("skewed_blocks")
def skewed_blocks(said: Said) -> None:
    found = said.match(r"(?P<few>\d+) of (?P<all>\d+) comparisons have a few blocks far to one side .*")
    every = said.findings.comparisons
    uneven = [c for c in every if c.skewness is not None]
    assert (int(found["few"]), int(found["all"])) == (len(uneven), len(every))
    for one in uneven:
        logs = [math.log(ratio) for ratio in ratios(said, one)]
        if logs:
            mean = fmean(logs)
            third = fmean((value - mean) ** 3 for value in logs)
            assert one.skewness is not None
            assert third * one.skewness > 0, one


@checks("on_a_lab")
def on_a_lab(said: Said) -> None:
    names = [
        name for name, facts in said.result.manifest["targets"].items() if (facts["ceph"] or {}).get("lab")
    ]
    said.match(rf"{re.escape(' and '.join(names))} (?:is|are) on a lab cluster: .*")


@checks("trials_under_fault")
def trials_under_fault(said: Said) -> None:
    found = said.match(
        r"(?P<under>\d+) of (?P<all>\d+) trials? ran while a fault was active(?P<asked>, as requested)?:"
        r" (?P<named>.*?)(?: and (?P<more>\d+) more)?\."
        r"(?P<differ> The trials ran under different faults, which may explain their differences\.)?"
    )
    faults = {row.trial: json.loads(row.faults or "[]") for row in said.trials}
    under = [row for row in said.trials if faults[row.trial]]
    assert (int(found["under"]), int(found["all"])) == (len(under), len(said.trials))
    assert ("asked" in found) == all(row.under_fault for row in under)
    words = Counter(name for each in faults.values() for name in {fault["words"] for fault in each})
    named = re.findall(r"(osd\.\d stopped)(?: \((\d+) trials?\))?", found["named"])
    assert len(named) + int(found.get("more", 0)) == len(words)
    for name, count in named:
        assert words[name] == int(count or len(under))
    kinds = {frozenset((one["on"], one["words"]) for one in each) for each in faults.values()}
    assert ("differ" in found) == (len(kinds) > 1)


@checks("estimate_off")
def estimate_off(said: Said) -> None:
    found = said.match(r".* the study took (?P<taken>.*), planned (?P<planned>.*)\.")
    events = said.result.events
    begin = next(event.t_ns for event in events if event.event == "run_started")
    took_s = (events[-1].t_ns - begin) / 1e9
    assert abs(seconds(found["taken"]) - took_s) <= max(1.0, 0.02 * took_s)
    planned_s = float(said.plan["seconds"])
    assert abs(seconds(found["planned"]) - planned_s) <= max(1.0, 0.02 * planned_s)
    assert abs(took_s / planned_s - 1) > 0.5


@checks("more_blocks_tell")
def more_blocks_tell(said: Said) -> None:
    found = said.match(
        r"(?P<few>\d+) of (?P<all>\d+) comparisons? inconclusive, too few blocks: (?P<rest>.*)\."
    )
    verdicts = [c.verdict for c in said.findings.comparisons] or _of_effects(said)
    assert int(found["few"]) <= verdicts.count("undecided")
    assert int(found["all"]) == len(verdicts)
    told = [int(number) for number in re.findall(r" in (?:this|these) (\d+)(?=;|$)", found["rest"])]
    assert sum(told) == int(found["few"]), said.text


def _of_effects(said: Said) -> list[str]:
    """Of settings that were measured several at once: the verdict of each effect, as it stands in the report."""
    proof = next(one for one in said.findings.sections if one.name == "proof")
    table = next(one for one in proof.parts if isinstance(one, TextTable) and one.title == "Effects")
    return [str(row[-1]) for row in table.rows]


@checks("ratios_changed", "figures_changed")
def changed(said: Said) -> None:
    """Where a first and a last third are named, the blocks' own means agree."""
    pattern = r"(?:(\w+) of )?(\S+?)(?: in \S+)? (rose|fell) from ([\d,.]+ ?\S*) in the first third to ([\d,.]+ ?\S*) in the last"
    for own, name, verb, before, after in re.findall(pattern, said.text):
        first, last = (_plain(one) for one in (before, after))
        assert (verb == "rose") == (last > first), said.text
        if name in {cell.id for cell in said.findings.cells}:
            by_unit = "bandwidth" if "B/s" in before else "iops" if "IOPS" in before else None
            metric = own or by_unit
            if metric:
                found = values(said, name, metric)
                blocks = sorted(found)
                third = max(1, len(blocks) // 3)
                ends = [fmean(math.log(found[b]) for b in part) for part in (blocks[:third], blocks[-third:])]
                assert (ends[1] > ends[0]) == (verb == "rose"), said.text
    assert re.search(r"rose|fell|changed|after it|correlated", said.text), said.text


def _plain(text: str) -> float:
    return size(text) if "B" in text else number(text.split(maxsplit=1)[0].rstrip("."))


def _sum(rows: Sequence[TrialRow], name: str) -> float:
    return float(sum(getattr(row, name) or 0 for row in rows))


@checks("reads_from_caches", "writes_kept_back")
def caches(said: Said) -> None:
    """The share that was not seen behind this host, from the counters of the same trials."""
    read = said.statement.says == "reads_from_caches"
    target = said.text.partition(":")[0]
    work = re.search(r"(?:read in|trials of) ([\w.]*\w)(?:,| ended)", said.text)
    assert work, said.text
    rows = said.counted(f"{target}.{work[1]}")
    assert rows
    share = re.search(r"(\d+) % (?:came from|had reached only) (.*?)(?:$|,| \(| and \d|;|\.)", said.text)
    assert share, said.text
    whole = _sum(rows, "total_read_bytes" if read else "total_write_bytes")
    way, behind = ("read", "read_bytes") if read else ("write", "written_bytes")
    ceph = bool(said.result.manifest["targets"][target]["ceph"])
    passed = _sum(rows, f"osd_{behind}" if ceph else f"device_{behind}")
    cached = max(0.0, 1 - passed / whole)
    assert abs(number(share[1]) / 100 - cached) <= 0.006, f"{said.text} {way} {cached}"


@checks("writes_amplified")
def amplified(said: Said) -> None:
    found = said.match(
        r"(?P<target>\w+): the OSDs' stores wrote (?P<cost>[\d,.e+]+) bytes for each byte written in"
        r" (?P<work>\S+?)(?:, (?P<times>[\d,.]+)x the model)?\. The model gives (?P<model>[\d,.]+) \((?P<how>.*)\)\."
    )
    rows = said.complete(f"{found['target']}.{found['work']}")
    cost = _sum(rows, "store_written_bytes") / _sum(rows, "total_write_bytes")
    close(number(found["cost"]), cost)
    copies = said.result.manifest["targets"][found["target"]]["ceph"]["size"]
    close(number(found["model"]), float(copies))  # large writes: each byte once a replica
    if "times" in found:
        close(number(found["times"]), cost / copies, 2)


@checks("way_not_measured", "way_without_figure", "pair_not_asked")
def left_out(said: Said) -> None:
    words = {
        "way_not_measured": "{target} was not measured: {reason}.",
        "way_without_figure": "{target} has no value for {work}: {reason}.",
        "pair_not_asked": "{target} was not asked: {reason}.",
    }[said.statement.says]
    guest = said.result.guest()  # what a guest could not do either is told by its own reasons
    plans = [said.plan, *([guest.manifest["plan"]] if guest else [])]
    assert said.text in {words.format(**one) for plan in plans for one in plan["left_out"]}


@checks("ways_emulated")
def ways_emulated(said: Said) -> None:
    """A guest measured targets, whose rows carry the word that the sentence names."""
    guest = said.result.guest()
    assert guest is not None
    assert guest.manifest["targets"]
    word = re.match(r"Rows marked (.*?) ran in an emulated guest\. ", said.text)
    assert word, said.text
    rows = [row for one in said.findings.sections for table in one.tables for row in table.rows]
    marked = {key for row in rows for key in row.keys if word[1] in key}
    assert marked, said.text


@checks("way_to_take")
def way_to_take(said: Said) -> None:
    """Who is first, and every figure."""
    heading, _, rest = said.text.partition(": ")
    work, _, part = heading.partition(" ")
    found = dict(re.findall(r"(\w+) (?:is fastest with|has) ([\d,.]+ [\w/]+)", rest))
    first = re.match(r"(\w+) is fastest", rest)
    assert first, said.text
    means: dict[str, float] = {}
    for target, printed in found.items():
        metric = f"{part.strip(',')}_iops" if part else ("bandwidth" if "B/s" in printed else "iops")
        own = values(said, f"{target}.{work}", metric)
        if not own:
            return  # a figure that needs more than rows
        means[target] = geometric(own.values())
        close(size(printed) if "B/s" in printed else number(printed.split()[0]), means[target])
    ranked = {target: mean for target, mean in means.items() if f"for comparison {target} has" not in rest}
    beside = re.findall(r"for comparison (\w+) has", rest)
    others: Mapping[str, float] = {target: mean for target, mean in ranked.items() if target not in beside}
    assert max(others, key=lambda name: others[name]) == first[1], said.text
