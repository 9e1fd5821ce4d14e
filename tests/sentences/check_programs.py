"""What is said of programs, pipelines and replays, against the accounts of their copies and stages."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
from check_studies import holds
from kit import Said, checks, close, geometric, listed, number, seconds, size

_SHARE_ALLOWED = 0.005  # of shares that are printed as whole percents


def copies(said: Said, cell: str) -> dict[int, list[dict[str, Any]]]:
    """The accounts of the copies of a cell, by block."""
    return {row.block: json.loads(row.summary)["copies"] for row in said.complete(cell)}


def run_times(said: Said, cell: str) -> dict[int, float]:
    """The run time of a copy by block, the geometric mean of the copies."""
    return {
        block: geometric(one["wall_ns"] / 1e9 for one in own) for block, own in copies(said, cell).items()
    }


def run_time(said: Said, cell: str) -> float:
    """The same over the blocks."""
    return geometric(run_times(said, cell).values())


def spans(run: str) -> tuple[float, float]:
    """The times that a printed duration may stand for: it is rounded to its last unit."""
    last = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
    found = re.findall(r"(hour|minute|second)", run)
    value, unit = seconds(run), last[found[-1]] if found else 0.0
    if found == ["second"] and "." in run:
        unit = 0.01
    slack = max(0.5 * unit, 0.006 * value) if unit else 0.006 * value
    return value - slack, value + slack


def stands_for(printed: str, expected: float) -> None:
    """A printed duration is that of so many seconds."""
    low, high = spans(printed)
    assert low <= expected <= high, f"{printed} was said, {expected} s it is"


def named(said: Said, series: str, count: int) -> str:
    """The cell of so many copies on a target."""
    return f"{series.partition(' ')[0]}.run_{count}"


def _count(words: str) -> int:
    return 1 if words == "one copy" else int(words.split(maxsplit=1)[0])


_COPIES = r"one copy|\d+ copies"


@checks("copies_took")
def copies_took(said: Said) -> None:
    found = said.match(r"(?P<series>.*?): a copy took (?P<parts>.*)\.")
    part = re.compile(rf"(?P<took>[^(),]+?) with (?P<copies>{_COPIES}) \((?P<sure>[^()]*)\)(?:, )?")
    assert "".join(one[0] for one in part.finditer(found["parts"])) == found["parts"], said.text
    for one in part.finditer(found["parts"]):
        cell = named(said, found["series"], _count(one["copies"]))
        stands_for(one["took"], run_time(said, cell))
        blocks = re.search(r"(\d+) blocks?", one["sure"])
        assert blocks is not None, said.text
        assert int(blocks[1]) == len(run_times(said, cell)), said.text
        if one["sure"].startswith("95 % CI "):
            low, high = (
                spans(bound)
                for bound in one["sure"].removeprefix("95 % CI ").rpartition(",")[0].split(" to ")
            )
            assert low[0] <= run_time(said, cell) <= high[1], said.text


@checks("copies_growth")
def copies_growth(said: Said) -> None:
    """Block by block, and only where every block agrees with the interval's side."""
    found = said.match(
        rf"(?P<series>\w+): (?:with (?P<most>{_COPIES}) a copy takes (?P<times>[\d,.e+]+)x as long as with"
        rf" (?P<least>{_COPIES}) \([\d.]+ % CI (?P<low>[\d,.e+]+) to (?P<high>[\d,.e+]+),"
        r" (?P<blocks>\d+) blocks\); all together have (?P<work>[\d,.e+]+)x the throughput \(CI .*\)"
        rf"|with .*? a copy takes (?:as long as with|[\d,.]+x as long as with) .*?{_COPIES}(?: \([\d.]+ % CI at|, within) .*|whether a copy takes longer with (?P<more>{_COPIES}) than with"
        rf" (?P<fewer>{_COPIES}) is inconclusive \((?P<why>.*)\))\."
    )
    if "times" not in found:
        return
    most, least = _count(found["most"]), _count(found["least"])
    longer, shorter = (run_times(said, named(said, found["series"], count)) for count in (most, least))
    ratios = [longer[block] / shorter[block] for block in longer if block in shorter]
    assert int(found["blocks"]) == len(ratios), said.text
    times = geometric(ratios)
    close(number(found["times"]), times, 3 if times < 1.99 else 2)
    close(number(found["work"]), most / least / times, 3 if most / least / times < 1.99 else 2)
    low, high = number(found["low"]), number(found["high"])
    assert low * 0.95 <= times <= high * 1.05, said.text
    assert low > 1 or high < 1, said.text


@checks("copies_model")
def copies_model(said: Said) -> None:
    """Fitted to more numbers of copies than it has parameters, and as far off as it says."""
    found = said.match(
        r"(?P<series>\w+), a model and no measurement: T\(N\) = C max\(1, N / (?P<cpus>\d+)\) \+ s min\(N, \d+\) with C ="
        r" (?P<c>[\d,.e+-]+) s of computing and s = (?P<s>[\d,.e+-]+) s that copies spend one after the other, fitted to"
        r" N = (?P<fitted>[\d, ]+?)(?:; beyond that it is off by up to (?P<off>[\d.]+) %(?: ?: it does not hold here)?)?\."
    )
    counts = [int(one) for one in found["fitted"].split(", ")]
    assert len(counts) > 2, said.text
    compute, shared, cpus = number(found["c"]), number(found["s"]), int(found["cpus"])
    worst = 0.0
    for cell in said.statement.cells:
        count = int(cell.rpartition("_")[2])
        by_model = compute * max(1, count / cpus) + min(count, cpus) * shared
        if count > cpus:
            worst = max(worst, abs(run_time(said, cell) / by_model - 1))
    if "off" in found:
        assert abs(worst - number(found["off"]) / 100) <= 0.003 + 0.01 * worst, said.text


@checks("io_and_run_time")
def io_and_run_time(said: Said) -> None:
    base, other = (cell.partition(".")[0] for cell in said.statement.cells)
    parts = dict(
        (target, (spent, run))
        for spent, run, target in re.findall(
            r"([\w. ]+?) of ([\d\w. ]+?) on (\w+)", said.text.partition(": ")[2]
        )
    )
    assert set(parts) == {base, other}, said.text
    for cell in said.statement.cells:
        stands_for(parts[cell.partition(".")[0]][1].strip(), run_time(said, cell))
    changes = [c for c in said.findings.comparisons if f"{c.base}.{c.work}" == said.statement.cells[0]]
    for words, metric in (("that is", "read_write_time"), ("The run time itself is", "run_time")):
        part = re.search(rf"{words} ([\d.e+]+) % (more|less)", said.text)
        own = next((c for c in changes if c.other == other and c.metric == metric), None)
        if part and own and own.ratio:
            assert (own.ratio >= 1) == (part[2] == "more"), said.text
            assert abs(abs(100 * (own.ratio - 1)) - number(part[1])) <= 0.006 * number(part[1]) + 0.01, (
                said.text
            )
            holds(said, own)


@checks("cpus_saturated", "cpus_of_others")
def cpus(said: Said) -> None:
    """The CPUs that the copies used, by their own accounts."""
    series = said.text.partition(":")[0]
    for line in said.statement.evidence:
        words, share = re.match(rf"({_COPIES}): .*used (\d+) % of them", line).groups()  # type: ignore[union-attr]
        rows = said.complete(named(said, series, _count(words)))
        each = []
        for row in rows:
            spent = row.cpu_user_ns + row.cpu_system_ns + (row.client_cpu_ns or 0)
            each.append(spent / row.measured_ns / json.loads(row.summary)["cpus"])
        assert abs(min(1.0, fmean(each)) - number(share) / 100) <= _SHARE_ALLOWED + 1e-9, line


@checks("copies_bound")
def copies_bound(said: Said) -> None:
    """Of the run time of a copy, as its processes' rows have it; the mean over copies and trials."""
    found = said.match(
        rf"(?P<series>.*?): with (?P<copies>{_COPIES}), calls on files take (?P<io>[\d.]+) % of the run time"
        r"(?: and computing (?P<compute>[\d.]+) %)?: the copies wait for the storage\."
    )
    shares = []
    for row in said.complete(named(said, found["series"], _count(found["copies"]))):
        file = said.result.path / "processes" / f"{row.trial}.parquet"
        rows = pq.read_table(file).to_pylist()
        spent = [sum(json.loads(one["seconds"]).values()) / (one["ended_ns"] / 1e9) for one in rows]
        shares.append(fmean(spent))
    assert abs(fmean(shares) - number(found["io"]) / 100) <= 2 * _SHARE_ALLOWED, said.text
    assert fmean(shares) >= 0.49, said.text


@checks("copies_untraced", "copies_trace_gaps")
def untraced(said: Said) -> None:
    usable = {c.id for c in said.findings.cells if c.validity.state not in ("INVALID", "NOT_RUN")}
    rows = [row for row in said.trials if row.cell in usable and row.state == "complete"]
    key = "trace_error" if said.statement.says == "copies_untraced" else "trace_lost"
    own = {row.trial: value for row in rows if (value := json.loads(row.summary).get(key))}
    if key == "trace_error":
        found = said.match(r"(?P<few>\d+) of (?P<all>\d+) trials have no trace, though one was asked for\.")
        assert (int(found["few"]), int(found["all"])) == (len(own), len(rows))
    told = {line.partition(":")[0] for line in said.statement.evidence if line[:1] == "t"}
    assert told == own.keys()


@checks("copies_did_not_do_the_same")
def did_not_do_the_same(said: Said) -> None:
    found = said.match(
        r"Copies did not all do the same: one (?P<verb>read|wrote) (?P<low>.*?) in (?P<a>\S+) and (?P<high>.*?) in (?P<b>\S+)\."
    )
    assert size(found["low"]) < size(found["high"]), said.text
    for cell, printed in ((found["a"], found["low"]), (found["b"], found["high"])):
        close(size(printed), moved(said, cell, found["verb"]))


def moved(said: Said, cell: str, verb: str) -> float:
    """Bytes of a copy: by the trace where there is one, else by its own calls; amounts have the plain mean."""
    found = []
    for row in said.complete(cell):
        traced = said.result.path / "processes" / f"{row.trial}.parquet"
        column = {"read": "bytes_read", "wrote": "bytes_written"}[verb]
        account = {"read": "read_bytes", "wrote": "write_bytes"}[verb]
        own = json.loads(row.summary)["copies"]
        if traced.is_file():
            table = pq.read_table(traced)
            total = sum(table[column].to_pylist())
        else:
            total = sum(one[account] for one in own)
        found.append(total / len(own))
    return fmean(found)


@checks("processes_left")
def processes_left(said: Said) -> None:
    found = said.match(r"(?P<count>\d+) processes outlived the copies that started them, and were ended\.")
    usable = {c.id for c in said.findings.cells if c.validity.state not in ("INVALID", "NOT_RUN")}
    rows = (row for row in said.trials if row.cell in usable and row.state == "complete")
    assert int(found["count"]) == sum(json.loads(row.summary).get("left_running", 0) for row in rows)


def stages(said: Said, cell: str, *, whole: bool = True) -> Iterator[list[dict[str, Any]]]:
    """The rows of table `stages` of each trial of a cell; of those that came to their end where there are any."""
    rows = [row for row in said.trials if row.cell == cell]
    good = [row for row in rows if row.state == "complete"]
    for row in good if whole and good else rows:
        file = said.result.path / "stages" / f"{row.trial}.parquet"
        if file.is_file():
            yield pq.read_table(file).to_pylist()


def _took(row: dict[str, Any]) -> float:
    return float(row["ended_ns"] - row["started_ns"]) / 1e9


_COMPARED = re.compile(
    r"([\w ]+): ([\d,.e-]+) s and ([\d,.e-]+) s: ([\d,.e-]+) s (longer|shorter) \((.*), [\d.]+ %, blocks: (\d+)\)"
)


@checks("stages_compared")
def stages_compared(said: Said) -> None:
    """Plain means over the blocks that both have; what is called longer has no end below 0."""
    first, second = said.statement.cells
    names = [cell.partition(".")[0] for cell in (first, second)]
    assert said.text.startswith(f"{names[1]} compared with {names[0]}: the whole is "), said.text
    block_of = {row.trial: row.block for row in said.trials if row.state == "complete"}
    sides = []
    for cell in (first, second):
        trials = [trial for trial in stages(said, cell) if trial[0]["trial"] in block_of]
        sides.append({block_of[trial[0]["trial"]]: trial for trial in trials})
    blocks = sorted(sides[0].keys() & sides[1].keys())
    told = re.findall(r"(?<=[:;] )(the whole|\w+) is ([\d,.e-]+) s (longer|shorter)", said.text)
    for line in said.statement.evidence:
        read = _COMPARED.fullmatch(line)
        assert read, line
        stage, *printed, way, interval, count = read.groups()
        assert int(count) == len(blocks), line
        means = [fmean(_stage_s(side[block], stage) for block in blocks) for side in sides]
        for value, expected in zip(printed, (*means, abs(means[1] - means[0])), strict=True):
            assert abs(number(value) - expected) <= 0.006 * max(means) + 1e-9, line
        assert way == ("longer" if means[1] >= means[0] else "shorter") or printed[2] == "0", line
        if stage in {name for name, *_ in told}:
            assert not re.search("longer|shorter", interval), f"called certain, and it is not: {line}"
    for stage, value, way in told:
        line = next(line for line in said.statement.evidence if line.startswith(f"{stage}:"))
        assert f": {value} s {way} (" in line, said.text


def _stage_s(trial: list[dict[str, Any]], stage: str) -> float:
    if stage == "the whole":
        return (max(row["ended_ns"] for row in trial) - min(row["started_ns"] for row in trial)) / 1e9
    return fmean(_took(row) for row in trial if row["stage"] == stage)


@checks("stages_bound")
def stages_bound(said: Said) -> None:
    (cell,) = said.statement.cells
    for line in said.statement.evidence:
        stage, share, busy = re.match(  # type: ignore[union-attr]
            r"(\w+): (\d+) % of its time in calls on files of the target, ([\d.e+-]+) CPUs busy with it", line
        ).groups()
        rows = [row for trial in stages(said, cell) for row in trial if row["stage"] == stage]
        whole_s = sum(map(_took, rows))
        io_s = sum(row["read_s"] + row["write_s"] + row["meta_s"] for row in rows)
        cpu_s = sum(row["cpu_user_ns"] + row["cpu_system_ns"] for row in rows) / 1e9
        assert abs(io_s / whole_s - number(share) / 100) <= _SHARE_ALLOWED + 1e-9, line
        assert abs(cpu_s / whole_s - number(busy)) <= 0.06 * number(busy), line
        if "is reading, writing and metadata." in said.text:
            assert io_s / whole_s > 0.3, line
        elif said.text.endswith(" is CPU."):
            assert cpu_s / whole_s > 0.5, line


@checks("stages_read_again")
def read_again(said: Said) -> None:
    (cell,) = said.statement.cells
    for stage, times in re.findall(r"(\w+) reads its input ([\d.]+) times(?=[;.])", said.text):
        passes = [
            fmean(row["passes"] for row in trial if row["stage"] == stage) for trial in stages(said, cell)
        ]
        close(number(times), fmean(passes))
        assert number(times) > 1, said.text


@checks("stages_add_up", "stages_do_not_add_up")
def add_up(said: Said) -> None:
    target = said.text.partition(":")[0]
    by_trial = {trial[0]["trial"]: trial for trial in stages(said, f"{target}.media")}
    for line in said.statement.evidence:
        trial, inside, whole = re.match(  # type: ignore[union-attr]
            r"(\w+), client 1: ([\d.]+) s in stages, .*?; ([\d.]+) s from the first start to the last end",
            line,
        ).groups()
        rows = by_trial[trial]
        assert abs(sum(map(_took, rows)) - float(inside)) <= 0.001, line
        end = max(row["ended_ns"] for row in rows) - min(row["started_ns"] for row in rows)
        assert abs(end / 1e9 - float(whole)) <= 0.001, line
        rest = float(whole) - float(inside)
        assert said.statement.says == "stages_do_not_add_up" or rest <= max(2.0, 0.1 * float(whole)), line


@checks("stage_copies")
def stage_copies(said: Said) -> None:
    found = said.match(r"(?P<target>\w+): (?P<stage>\w+) copies, since links do not work there\.")
    rows = [
        row
        for trial in stages(said, f"{found['target']}.media")
        for row in trial
        if row["stage"] == found["stage"]
    ]
    why = {one["why"] for row in rows for one in json.loads(row["details"]) if one.get("how") == "copy"}
    assert why == set(said.statement.evidence)


@checks("digests_differ")
def digests_differ(said: Said) -> None:
    found = said.match(
        r"(?P<target>\w+): what was read is not what was written: digests differ in (?P<trial>\w+)\."
    )
    rows = pq.read_table(said.result.path / "stages" / f"{found['trial']}.parquet").to_pylist()
    digests = defaultdict(set)
    for row in rows:
        for one in json.loads(row["details"]):
            if "digest" in one:
                digests[one["digest"]].add(row["stage"])
    assert len(digests) > 1
    for line in said.statement.evidence:
        stage, digest = line.split(": ")
        assert stage in digests[digest], line


@checks("pipeline_failed")
def pipeline_failed(said: Said) -> None:
    found = said.match(
        r"(?P<target>\w+): (?P<trial>\w+) (?:failed in (?P<stage>\w+): (?P<why>.*?)|did not come to its end)\."
        r"(?: (?P<done>.*) had been measured before\.)?"
    )
    rows = pq.read_table(said.result.path / "stages" / f"{found['trial']}.parquet").to_pylist()
    done = [row["stage"] for row in rows if row["state"] == "complete"]
    assert (listed(found["done"]) if "done" in found else []) == done
    broken = [row["stage"] for row in rows if row["state"] != "complete"]
    assert ([found["stage"]] if "stage" in found else []) == broken


@checks("picture_enlarged")
def enlarged(said: Said) -> None:
    found = said.match(
        r"(?P<stages>.*) makes? a larger picture than the source has \((?P<width>\d+) wide\): done all the same\."
    )
    wide = {
        row["stage"]
        for cell in said.findings.cells
        for trial in stages(said, cell.id)
        for row in trial
        if row["enlarges"]
    }
    assert set(listed(found["stages"])) == wide
    assert int(found["width"]) == said.plan["cells"][0]["job"]["source_width"]
