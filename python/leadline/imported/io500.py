"""The summary of an IO500 run (`result_summary.txt`) as published figures, with what must hold between them.

The score is the geometric mean of four bandwidths and of eight rates, and the root of their product
(io500.org, "Rules"; `calc_score` in main.c of its source). Phases that visit the same files visit as many.
The forms are those of all public submissions from 2017 on: the script's (`[RESULT] BW phase 1 ...`) and the
program's. What was printed as GB/s is GiB/s: both divide IOR's MiB/s by 1024. IO500 copies the metrics of IOR
and mdtest into its summary, so that their logs, where they lie beside it, confirm or refute each phase.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.foreign import read_plain
from leadline.imported.tables import TableMaker

LOG_BYTES_MAX = 1 << 20
_OPERATIONS = {
    "write": "File creation",
    "stat": "File stat",
    "read": "File read",
    "delete": "File removal",
}
_LARGEST = re.compile(r"^Max (?:Write|Read):\s+(\d{1,12}(?:\.\d{1,9})?) MiB/sec", re.MULTILINE)


def read_logs(directory: Path) -> dict[str, str]:
    """The texts of a run's logs by phase: `ior-easy-write.txt`, or `ior_easy_write.txt` of the script.

    One that is missing, too large or unreadable confirms nothing, and is left out.
    """
    found = {}
    for phase in _phases():
        for name in (phase.replace("_", "-"), phase):
            try:
                data = read_plain(directory / f"{name}.txt", LOG_BYTES_MAX)
            except OSError:
                continue
            found[phase] = data.decode("utf-8", "replace")
            break
    return found


def _phases() -> Iterator[str]:
    for size in ("easy", "hard"):
        yield from (f"ior_{size}_{kind}" for kind in ("write", "read"))
        yield from (f"mdtest_{size}_{kind}" for kind in _OPERATIONS)


def logged_metrics(logs: Mapping[str, str], phases: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(phase, value, unit) of each phase whose log has one other than 0, as it is printed there."""
    for phase in phases:
        program, _, rest = phase.partition("_")
        kind = rest.rpartition("_")[2]
        text = logs.get(phase, "")
        if program == "ior":
            match = _LARGEST.search(text) or re.search(
                rf"^{kind} +(\d{{1,12}}(?:\.\d{{1,9}})?) ", text, re.MULTILINE
            )
        else:
            match = re.search(
                rf"^ +{_OPERATIONS.get(kind, kind)} *:? +(\d{{1,12}}(?:\.\d{{1,9}})?) ", text, re.MULTILINE
            )
        if match is not None and float(match[1]) > 0:
            yield phase, match[1], "MiB/s" if program == "ior" else "IOPS"


BYTES_MAX = 1 << 20
SUMMARY = "result_summary.txt"
_FIGURE = r"(\d{1,12}(?:\.\d{1,9})?)"
_PHASE = re.compile(
    rf"\[(RESULT[^\]]{{0,20}}|\s*)\]\s+(?:(?:BW|IOPS)\s+phase\s+\d{{1,3}}\s+)?([A-Za-z0-9_-]{{1,40}})\s+"
    rf"{_FIGURE}\s+(GiB/s|GB/s|kIOPS|kiops)\s*:\s*time\s+{_FIGURE}\s+\S+(.*)"
)
_SCORE = re.compile(  # [SCOREX] is the extended run's
    rf"\[SCORE([^\]X]{{0,20}})\]\s+Bandwidth\s+{_FIGURE}\s+Gi?B/s\s*:\s*IOPS\s+{_FIGURE}\s+kiops\s*:"
    rf"\s*TOTAL\s+{_FIGURE}(.*)",
    re.IGNORECASE,
)
_INVALID = re.compile("invalid", re.IGNORECASE)
_UNITS = {"GiB/s": "GiB/s", "GB/s": "GiB/s", "kIOPS": "kIOPS", "kiops": "kIOPS"}
_FORM = "`[RESULT] ior-easy-write 1.0 GiB/s : time 300 seconds`"
_BANDWIDTHS = ("ior_easy_write", "ior_hard_write", "ior_easy_read", "ior_hard_read")
_RATES = (
    *("mdtest_easy_write", "mdtest_hard_write", "find", "mdtest_easy_stat", "mdtest_hard_stat"),
    *("mdtest_easy_delete", "mdtest_hard_read", "mdtest_hard_delete"),
)
# Phases that go over what the first of them wrote, and in which table they are.
_SAME = (
    ("bandwidth", "ior_easy_write", ("ior_easy_read",)),
    ("bandwidth", "ior_hard_write", ("ior_hard_read",)),
    ("metadata", "mdtest_easy_write", ("mdtest_easy_stat", "mdtest_easy_delete")),
    ("metadata", "mdtest_hard_write", ("mdtest_hard_stat", "mdtest_hard_read", "mdtest_hard_delete")),
)
_RANDOM = "ior_rnd4K_easy_read"
# A phase's time has all that its program did: starts, trees made and removed. So its rate times its time is
# more than it visited, by up to 58 times in the public submissions. Beyond 100 times a figure is misprinted.
_MORE = "100"
_LOG_NEAR = "1.01"  # the script made some rates anew of rounded times
_NEAR = 0.02


@dataclass(frozen=True)
class _Phase:
    value: str
    unit: str
    took: str
    invalid: bool

    @property
    def rate(self) -> float:
        return float(self.value)


def io500_document(
    text: str, name: str, link: str | None = None, logs: Mapping[str, str] | None = None
) -> str:
    """The document of a summary, with the logs beside it by phase. Raises ValueError where it is none."""
    phases, score = _read(text)
    kept = {name: one for name, one in phases.items() if one.rate > 0}
    if not kept:
        raise ValueError(f"it has no line such as {_FORM}")
    made = TableMaker(f"IO500: {name}", _about(phases, score), "IO500")
    if score is not None:  # the first table is on the first screen
        of_all = {"bandwidth": "GiB/s", "metadata": "kIOPS", "total": "1"}
        made.table("scores", "Scores", ["of"], of_all, [["all", score[2], score[3], score[4]]])
    columns = {"took": {"unit": "s", "kind": "elapsed"}}
    for table, section, unit, kind in (
        ("bandwidth", "Bandwidth", "GiB/s", "rate"),
        ("metadata", "Metadata", "kIOPS", "operation_rate"),
    ):
        rows = [[phase, one.value, one.took] for phase, one in kept.items() if one.unit == unit]
        made.table(table, section, ["phase"], {"figure": {"unit": unit, "kind": kind}, **columns}, rows)
    if score is not None:
        _score(made, kept, score)
    confirmed = _beside(made, kept, logs or {})
    for formula, because in _between(kept, confirmed):
        made.check(formula, because)
    if link is not None:
        made.facts["link"] = link
        for phase, one in kept.items():
            if one.unit == "GiB/s":
                made.check(f"bandwidth.{phase}.figure <= facts.link", "nothing is faster than the links")
    return made.text()


def _read(text: str) -> tuple[dict[str, _Phase], re.Match[str] | None]:
    phases: dict[str, _Phase] = {}
    score: re.Match[str] | None = None
    for line in text.splitlines():
        if match := _PHASE.match(line.strip()):
            phase = match[2].replace("-", "_")
            invalid = _INVALID.search(match[1] + match[6]) is not None
            found = _Phase(match[3], _UNITS[match[4]], match[5], invalid)
            # The script's own output has each line when the phase ends, and again in its summary.
            if phases.setdefault(phase, found) != found:
                raise ValueError(f"it has {match[2]} twice, with other metrics: name the summary of one run")
        elif of_run := _SCORE.match(line.strip()):
            score = of_run
    return phases, score


def _about(phases: Mapping[str, _Phase], score: re.Match[str] | None) -> str:
    invalid = [phase for phase, one in phases.items() if one.invalid]
    said = []
    if invalid:
        said.append(f"IO500 itself calls {', '.join(invalid)} INVALID")
    elif score is not None and _INVALID.search(score[1] + score[5]):
        said.append("IO500 itself calls the run INVALID")
    if score is not None and _is_product(score):
        root = math.sqrt(float(score[2]) * float(score[3]))
        said.append(
            f"The TOTAL is the product of both scores, as early scripts printed it; its root is {root:.6g}"
        )
    return ". ".join(said)


def _is_product(score: re.Match[str]) -> bool:
    """True where TOTAL is the product itself, and so not its root."""
    product, total = float(score[2]) * float(score[3]), float(score[4])
    return abs(total - product) <= _NEAR * product and abs(total * total - product) > _NEAR * product


def _beside(made: TableMaker, kept: Mapping[str, _Phase], logs: Mapping[str, str]) -> frozenset[str]:
    """Hold each metric against that of its own log; the phases that have one."""
    found = [
        one for one in logged_metrics(logs, kept) if (one[2] == "MiB/s") == (kept[one[0]].unit == "GiB/s")
    ]
    for table, unit, kind in (("bandwidth", "MiB/s", "rate"), ("metadata", "IOPS", "operation_rate")):
        rows = [[phase, value] for phase, value, own in found if own == unit]
        columns = {"figure": {"unit": unit, "kind": kind, "quantity": f"log of {table}"}}
        made.table(f"logs_{table}", f"{table.capitalize()} in the logs", ["phase"], columns, rows)
        for phase, _ in rows:
            because = f"IO500 takes {phase} from its log {phase}.txt"
            summary, log = f"{table}.{phase}.figure", f"logs_{table}.{phase}.figure"
            made.check(f"{summary} <= {_LOG_NEAR} * {log}", because)
            made.check(f"{log} <= {_LOG_NEAR} * {summary}", because)
    return frozenset(phase for phase, _, _ in found)


def _score(made: TableMaker, kept: Mapping[str, _Phase], score: re.Match[str]) -> None:
    for table, phases, said in (("bandwidth", _BANDWIDTHS, score[2]), ("metadata", _RATES, score[3])):
        if all(phase in kept for phase in phases):
            product = " * ".join(f"{table}.{phase}.figure" for phase in phases)
            power = " * ".join([f"scores.all.{table}"] * len(phases))
            because = f"the score is the geometric mean of {len(phases)}"
            made.check(f"{product} / ({power}) == 1", because + _shifted(kept, phases, float(said)))
    if _is_product(score):
        return
    both = "scores.all.bandwidth / 1 GiB/s * scores.all.metadata / 1 kIOPS"
    made.check(f"scores.all.total * scores.all.total == {both}", "the total is the root of their product")


def _shifted(kept: Mapping[str, _Phase], phases: Sequence[str], said: float) -> str:
    """Which figure is a thousand times too large or small, where that alone explains the score."""
    if said <= 0:
        return ""
    mean = math.fsum(math.log(kept[phase].rate) for phase in phases) / len(phases)
    thousands = len(phases) * (mean - math.log(said)) / math.log(1000)
    if abs(abs(thousands) - 1) > _NEAR:
        return ""
    factor = 1000.0 if thousands > 0 else 1 / 1000
    found = min(phases, key=lambda phase: _misfit(kept, phase, factor))
    was = kept[found]
    return f", which fits with {found} at {was.rate / factor:.6g} in place of {was.rate:,.6g} {was.unit}"


def _misfit(kept: Mapping[str, _Phase], phase: str, factor: float) -> float:
    """How far a phase is from those that visit the same files, or from all, once it is put right; less what
    it was before."""
    same = [one for _, first, others in _SAME for one in (first, *others) if phase in (first, *others)]
    near = [kept[one] for one in same if one in kept and one != phase and float(kept[one].took) > 0]
    own = kept[phase]
    if near and float(own.took) > 0:
        amounts = [math.log(one.rate * float(one.took)) for one in near]
        amount = math.log(own.rate * float(own.took))
    else:
        amounts = [math.log(one.rate) for name, one in kept.items() if one.unit == own.unit and name != phase]
        amount = math.log(own.rate)
    middle = math.fsum(amounts) / len(amounts)
    return abs(amount - math.log(factor) - middle) - abs(amount - middle)


def _between(kept: Mapping[str, _Phase], confirmed: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Amounts of phases that visit the same, where no log confirms both metrics."""
    for table, first, others in _SAME:
        for other in others:
            if first in kept and other in kept and not {first, other} <= confirmed:
                written, visited = (f"{table}.{one}.figure * {table}.{one}.took" for one in (first, other))
                why = (
                    f"{other} goes over what {first} wrote, and its time has starts and the removal of trees,"
                    f" too: no run does that {_MORE} times as long"
                )
                yield f"{visited} <= {_MORE} * {written}", why
                yield f"{written} <= {_MORE} * {visited}", why
    if _RANDOM in kept and "ior_easy_read" in kept:
        yield (
            f"bandwidth.{_RANDOM}.figure <= bandwidth.ior_easy_read.figure",
            "random reads of 4 KiB that are faster than sequential ones come from a cache",
        )
