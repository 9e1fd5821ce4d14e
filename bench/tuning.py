"""`make tuning-bench`: does `leadline tune prove` say of settings what a lab makes true of them?

    python bench/tuning.py run                           # lines in bench/tuning.jsonl; goes on there
    python bench/tuning.py judge                         # bench/tuning.md, from these lines alone

First the cases whose effect is known, then proofs of placebos, four at once on clients of their own.
`--lab DIR` takes a lab that stays up between pieces, `--for MINUTES` begins nothing after that time.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import PROGRAM, CommandError, Lab, Row, Runs, bench, cases, lab, scratch, table
from leadline.analysis.statistics.means import paired_ratio
from leadline.store.reader import open_result
from leadline.units import format_ratio_interval
from leadline.verdict.findings import proof_of

PROOF_S = 600.0
BY_HAND_S = "3"
SIZES = (4096, 262144)  # of the objects that rados bench reads
CLIENTS, DAEMONS = ("pair1", "pair2", "near", "wide"), ("mon", "mgr", "osd", "mds")
PROOFS_EACH = 5
TOPOLOGY = """
ec: 2+1
mtu: 1500
switches:
  core:
hosts:
  head1: {switch: core, runs: [mon, mgr, mds]}
  host[1-3]: {switch: core, link: 400Mbit, osds: 1}
clients:
  near: {switch: core, link: 200Mbit}
  wide: {switch: core, link: 1Gbit}
  pair[1-2]: {switch: core, link: 100Mbit}
"""
STUDY = """
format: leadline.study/1
blocks: 4
defaults: {{runtime: {runtime}, time_based: true}}
works:
{works}
"""
VERDICTS = {
    "helps": "helps",
    "not_by_mechanism": "helps, not by its mechanism",
    "nothing": "does nothing",
    "harms": "harms",
    "undecided": "inconclusive",
    "unusable": "cannot be judged",
}
_WORDS = """
`bench/tuning.py` proves settings on a lab with `leadline tune prove`, as anybody runs it, from a client
behind its link: four blocks (A B B A), trials of 2 s to 6 s. What a setting must do is known by how the lab
is made, and was written (`bench/cases/tuning.yaml`) before the case was proved. **Right**: the verdict is
what it must be. **Undecided**: the intervals allow several, or the work's figures are INVALID.
**Otherwise**: what must be was thought wrongly, as is explained below the table. **Wrong**: any other
verdict. No threshold was chosen by these proofs. Of some cases the work as it was first written could not
show the effect: these stay, with why, before the case as it was written then. The host has two cores, which
others used, too: most cells are DOUBTFUL for that.
"""
_PLACEBOS = """
Eight settings that cannot matter for reads and writes of objects, proved {proofs} times each, every time
with {works} works; four proofs of different settings ran at once on clients of their own, each a load to the
others on the host's two cores. A comparison is one work in one proof. The verdict of a proof errs for any of
its works in at most 5 % of proofs: "helps" in at most 2.5 %. A comparison alone, at its own 95 %, is above 1
by chance in 2.5 %. Trials of 1 s on a host of two cores, whose four proofs share them: so wide are their
intervals that "does nothing" could hardly be said. Alone, settings that must do nothing are among the
cases above.
"""


@dataclass(frozen=True)
class TuningCase:
    """A setting whose effect is known: see cases/tuning.yaml."""

    name: str
    setting: str
    value: str
    must: str
    why: str
    way: str
    work: str
    client: str = "near"
    late: str = ""
    made: Sequence[Sequence[str]] = ()
    kernel: Sequence[Sequence[str]] = ()
    allow: Sequence[str] = ()
    by_hand: Mapping[str, Any] | None = None
    found: str = ""
    thought_wrongly: bool = False
    runtime: str = "2s"

    @property
    def set_before(self) -> list[Sequence[str]]:
        """What the lab has besides: (who, option, value)."""
        held = {"type": "client", "max": self.late, "probability": "1"} if self.late else {}
        return [*(("osd", f"ms_inject_delay_{name}", value) for name, value in held.items()), *self.made]


_TABLE = cases("tuning")
CASES = {one["name"]: TuningCase(**one) for one in _TABLE["cases"]}
PLACEBOS = {one["setting"]: one for one in _TABLE["placebos"]}


class TuningLab(Lab):
    """A lab whose clients may change settings."""

    def target(self, client: str, way: str) -> str:
        """A way as that client sees it; two clients at once must not write the same objects."""
        return self.targets(client)[way].replace("rados://objects", f"rados://objects/{client}")

    def in_force(self, option: str, value: str) -> None:
        """Wait until the OSDs have what the monitors keep."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            asked = (self.ceph("tell", f"osd.{number}", "config", "get", option) for number in range(3))
            found = [json.loads(one)[option] for one in asked]
            if all(_same(one, value) for one in found):
                return
            time.sleep(0.2)
        raise CommandError(f"{option} is not {value} at the OSDs: {found}")


def _same(found: str, value: str) -> bool:
    try:
        return float(found) == float(value)
    except ValueError:
        return found == value


@contextmanager
def tuning_lab(name: str, directory: Path | None = None) -> Iterator[TuningLab]:
    """A lab of its own, gone afterwards; one in a directory stays up."""
    with lab(name, topology=TOPOLOGY, directory=directory) as up:
        there = TuningLab(up.directory)
        for client in CLIENTS:  # the verb changes settings as the target's own user
            caps = (word for who in DAEMONS for word in (who, "allow *"))
            there.ceph("auth", "caps", f"client.{client}", *caps)
        there.settle()
        yield there


@contextmanager
def made(there: TuningLab, case: TuningCase) -> Iterator[None]:
    """The lab as a case wants it; as it was afterwards."""
    with ExitStack() as stack:
        for who, option, value in case.set_before:
            stack.callback(there.ceph, "config", "rm", who, option)
            there.ceph("config", "set", who, option, value)
            if who == "osd":
                there.in_force(option, value)
        for key, value in case.kernel:
            stack.enter_context(kernel_set(there, case.client, key, value))
        if case.way == "ceph-fuse":
            there.leadline("lab", "mount", case.client)
            stack.callback(there.leadline, "lab", "unmount", case.client)
        yield


@contextmanager
def kernel_set(there: Lab, client: str, key: str, value: str) -> Iterator[None]:
    """A sysctl of a client."""
    before = there.inside(client, "sysctl", "-n", key).strip()
    there.inside(client, "sysctl", "-qw", f"{key}={value}")
    try:
        yield
    finally:
        there.inside(client, "sysctl", "-qw", f"{key}={before}")


def prove(
    there: TuningLab, client: str, way: str, setting: str, value: str, works: Mapping[str, str], **more: Any
) -> Row:
    """One proof by the verb itself, and what its result says."""
    with scratch("tuning", "/tmp") as place:
        study, out = place / "study.yaml", place / "out"
        lines = "\n".join(f"  {name}: {text}" for name, text in works.items())
        study.write_text(STUDY.format(works=lines, runtime=more["runtime"]))
        words = [
            "tune",
            "prove",
            study,
            "--target",
            f"a={there.target(client, way)}",
            "--out",
            out,
            "--quiet",
        ]
        words += ["--with", f"{setting}={value}", "--seed", str(more["seed"])]
        words += ["--state", place / "journal"]  # several proofs run at once, of other settings
        words += [word for kind in more["allow"] for word in ("--allow", kind)]
        start = time.monotonic()
        there.inside(client, *PROGRAM, *words, timeout=PROOF_S, allowed=(0, 3))
        return {"seconds": round(time.monotonic() - start, 1), **said(out)}


def said(out: Path) -> Row:
    """Verdict, ratios, mechanisms and each block's rates of a result."""
    result = open_result(out)
    found = proof_of(result)
    if found is None:
        raise CommandError(f"{out} proves nothing")
    rates: dict[str, dict[str, dict[int, float]]] = {}
    for row in result.trials():
        if row.measured_ns:
            count = row.read_operations + row.write_operations
            work = row.cell.partition(".")[2]
            rates.setdefault(work, {}).setdefault(row.target, {})[row.block] = 1e9 * count / row.measured_ns
    return {
        "outcome": found.outcome,
        "compared": [
            {name: getattr(one, name) for name in ("work", "metric", "ratio", "low", "high", "verdict")}
            for one in found.comparisons
        ],
        "moved": [
            {
                name: getattr(one, name)
                for name in ("work", "figure", "direction", "moved", "ratio", "low", "high")
            }
            for one in found.mechanisms
        ],
        "codes": {
            cell.id: [code.code for code in cell.validity.codes]
            for cell in found.cells
            if cell.validity.codes
        },
        "rates": rates,
    }


def by_hand(there: TuningLab, case: TuningCase) -> dict[str, float]:
    """Operations a second of `rados bench` in both states, set without leadline."""
    asked, found = case.by_hand or {}, {}
    base = ["rados", "-p", "objects", "bench", BY_HAND_S, asked["what"], "-t", str(asked["at_once"])]
    size = asked["size"]
    base += ["-b", str(size)] if asked["what"] == "write" else ["--run-name", f"by-hand-{size}"]
    with made(there, case):
        for state in ("without", "with"):
            with ExitStack() as stack:
                words = list(base)
                if state == "with" and case.setting.startswith("objecter"):
                    words.append(f"--{case.setting}={case.value}")
                elif state == "with":
                    stack.enter_context(set_by_hand(there, case))
                text = there.inside(case.client, *words)
            found[state] = float(text.split("Average IOPS:")[1].split()[0])
    return found


@contextmanager
def set_by_hand(there: TuningLab, case: TuningCase) -> Iterator[None]:
    """A setting of OSDs or of the client's kernel, by their own tools."""
    if case.setting.startswith("net."):
        with kernel_set(there, case.client, case.setting, case.value):
            yield
        return
    was = next((value for _, option, value in case.made if option == case.setting), None)
    there.ceph("config", "set", "osd", case.setting, case.value.replace("64M", "67108864"))
    try:
        time.sleep(1)
        yield
    finally:
        words = ("rm", "osd", case.setting) if was is None else ("set", "osd", case.setting, was)
        there.ceph("config", *words)


def run_case(there: TuningLab, case: TuningCase, seed: int) -> Row:
    """A case proved."""
    with made(there, case):
        more = {"runtime": case.runtime, "seed": seed, "allow": case.allow}
        found = prove(there, case.client, case.way, case.setting, case.value, {"work": case.work}, **more)
    there.settle()
    return {"case": case.name, "seed": seed, **found}


def attempted(runs: Runs, what: str, attempt: Callable[[], Row]) -> None:
    """Keep what an attempt gives; one that fails is tried again the next time."""
    try:
        found = attempt()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{what}: {error}", flush=True)
        return
    runs.keep(found)
    names = ("case", "placebo", "by_hand", "seed", "outcome", "iops", "seconds")
    print({name: found[name] for name in names if found.get(name) is not None}, flush=True)


def measure_cases(there: TuningLab, asked: argparse.Namespace, runs: Runs, end: float) -> None:
    """Those that are not there yet."""
    done = runs.done("case", "seed")
    for case in CASES.values():
        wanted = (case.name, asked.seed) not in done and asked.only in case.name
        if wanted and time.monotonic() < end:
            attempted(runs, case.name, lambda case=case: run_case(there, case, asked.seed))


def measure_by_hand(there: TuningLab, asked: argparse.Namespace, runs: Runs, end: float) -> None:
    """The same by rados bench, of the cases where that can see it."""
    done = runs.done("by_hand")
    left = [
        one for one in CASES.values() if one.by_hand and (one.name,) not in done and asked.only in one.name
    ]
    if left and time.monotonic() < end:  # what rados bench reads afterwards
        words = ("rados", "-p", "objects", "bench", BY_HAND_S, "write", "-t", "4", "--no-cleanup")
        for size in SIZES:
            there.inside("wide", *words, "-b", str(size), "--run-name", f"by-hand-{size}")
    for case in left:
        if time.monotonic() < end:
            words = f"{case.name} by hand"
            attempted(runs, words, lambda case=case: {"by_hand": case.name, "iops": by_hand(there, case)})


def measure_placebos(there: TuningLab, _asked: argparse.Namespace, runs: Runs, end: float) -> None:
    """A proof on each client at once, never of one setting: each would find the other's value."""
    done = runs.done("placebo", "seed")
    every = [{"placebo": name, "seed": seed} for seed in range(1, PROOFS_EACH + 1) for name in PLACEBOS]
    left = [one for one in every if tuple(one.values()) not in done]
    choosing, at_work = threading.Lock(), set[str]()

    def proved(client: str, one: Row) -> Row:
        row = PLACEBOS[one["placebo"]]
        more = {"runtime": "1s", "seed": one["seed"], "allow": row["allow"]}
        works = _TABLE["placebo_works"]
        return {**one, **prove(there, client, "rados", row["setting"], row["value"], works, **more)}

    def work(client: str) -> None:
        while time.monotonic() < end:
            with choosing:
                one = next((one for one in left if one["placebo"] not in at_work), None)
                if one is None:
                    return
                left.remove(one)
                at_work.add(one["placebo"])
            attempted(runs, str(one), lambda one=one: proved(client, one))
            with choosing:
                at_work.discard(one["placebo"])

    threads = [threading.Thread(target=work, args=(client,)) for client in CLIENTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


WHAT = {"cases": measure_cases, "by-hand": measure_by_hand, "placebos": measure_placebos}


def run(asked: argparse.Namespace) -> None:
    """Prove what is not there yet."""
    end, runs = time.monotonic() + 60 * asked.minutes, asked.lines
    with tuning_lab("tuning", asked.lab) as there:
        for name, measure in WHAT.items():
            if asked.what in (None, name):
                measure(there, asked, runs, end)


# -- the page ------------------------------------------------------------------------------------------


def page(runs: Sequence[Row]) -> Iterator[str]:
    """The page's lines."""
    yield "# Proofs of settings whose effect is known, and of placebos"
    yield from [*_WORDS.splitlines(), ""]
    hand = {one["by_hand"]: one["iops"] for one in runs if isinstance(one.get("by_hand"), str)}
    yield from _cases([one for one in runs if "case" in one], hand)
    yield "## Placebos"
    yield from _placebos([one for one in runs if "placebo" in one])
    yield from ["## Not proved here", ""]
    done = {one.get("case") for one in runs}
    for case in CASES.values():
        if case.name not in done:
            yield f"- {case.name} (`{case.setting}={case.value}`): a case that waits for its turn."
    yield from (f"- {name}: {why}." for name, why in _TABLE["left_out"].items())


def judged(case: TuningCase, outcome: str) -> str:
    """Right, inconclusive or wrong; `otherwise` where the case expected wrongly, which `found` explains."""
    if outcome in ("undecided", "unusable"):
        return "inconclusive"
    if outcome == case.must:
        return "right"
    return "otherwise" if case.thought_wrongly else "wrong"


def _cases(runs: Sequence[Row], hand: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    runs = sorted((one for one in runs if one["case"] in CASES), key=lambda one: [*CASES].index(one["case"]))
    counts = Counter(judged(CASES[one["case"]], one["outcome"]) for one in runs)
    numbers = ", ".join(f"{counts[name]} {name}" for name in ("right", "inconclusive", "otherwise", "wrong"))
    yield f"{len(runs)} proofs of {len({one['case'] for one in runs})} cases: {numbers}."
    yield ""
    rows = (
        (
            case.name,
            f"`{case.setting}={case.value}`",
            VERDICTS[case.must],
            VERDICTS[one["outcome"]],
            _rate(one),
            "; ".join(_moved(row) for row in one["moved"]) or "none known",
            _by_hand(hand.get(case.name, {})),
            judged(case, one["outcome"]),
        )
        for one in runs
        for case in [CASES[one["case"]]]
    )
    yield from table("case | setting | must | verdict | rate, times | its figure | >by hand, times |", rows)
    yield from ["", "Why it must be so:", ""]
    for case in CASES.values():
        besides = ", ".join(f"`{option}={value}`" for _, option, value in case.set_before)
        besides += ", ".join(f"`{key}={value}`" for key, value in case.kernel)
        has = f"; the lab has {besides}" if besides else ""
        yield f"- **{case.name}** ({case.way}, client `{case.client}`{has}): {case.why}.{_after(case.found)}"
    yield ""


_RATES = ("iops", "bandwidth", "stat_iops")


def _rate(one: Mapping[str, Any]) -> str:
    """Of a proof's rates, as they may be compared."""
    if one["outcome"] == "unusable":
        return "not comparable"
    return "; ".join(_times(row) for row in one["compared"] if row["metric"] in _RATES)


def _after(words: str) -> str:
    return f" *Found otherwise*: {words}." if words else ""


def _times(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None:
        return "not comparable"
    span = "" if row["low"] is None else f" ({format_ratio_interval(row['low'], row['high'])})"
    return f"{row['ratio']:.3g}{span}"


def _moved(row: Mapping[str, Any]) -> str:
    head = f"`{row['figure']}` must go {row['direction']}"
    if row["moved"] == "not seen":
        return f"{head}: not seen"
    if row["ratio"] is None:
        return f"{head}: {row['moved']}"
    return f"{head}: {row['moved']}, {_times(row)}"


def _by_hand(found: Mapping[str, float]) -> str:
    return f"{found['with'] / found['without']:.2g}" if found and found["without"] else "-"


def _placebos(runs: Sequence[Row]) -> Iterator[str]:
    each = list(Counter(one["placebo"] for one in runs).values())
    least, most = min(each, default=0), max(each, default=0)
    proofs = f"{least}" if least == most else f"{least} to {most}"
    yield from _PLACEBOS.format(proofs=proofs, works=len(_TABLE["placebo_works"])).splitlines()
    yield ""
    counted = {name: _counts([one for one in runs if one["placebo"] == name]) for name in PLACEBOS}
    whole = sum(counted.values(), Counter[str]())
    headings = "setting | why it cannot matter | >proofs | >helps | >harms | >does nothing"
    headings += " | >inconclusive or not judged | >comparisons | >alone above 1 | >alone below 1"
    rows = [(f"`{name}={PLACEBOS[name]['value']}`", PLACEBOS[name]["why"], c) for name, c in counted.items()]
    shown = ("proofs", "helps", "harms", "nothing", "open", "comparisons", "above", "below")
    yield from table(
        headings,
        ((name, why, *(c[one] for one in shown)) for name, why, c in [*rows, ("**all**", "", whole)]),
    )
    yield ""
    if whole["proofs"]:
        proofs, comparisons = whole["proofs"], whole["comparisons"]
        yield (
            f'By chance alone at most {0.025 * whole["proofs"]:.1f} of {proofs} proofs say "helps":'
            f" {whole['helps']} did."
        )
        yield f'At most as many say "harms": {whole["harms"]} did.'
        yield (
            f"About {0.025 * comparisons:.1f} of {comparisons} comparisons alone are above 1, and as many"
            f" below: {whole['above']} and {whole['below']} were."
        )
        seconds = sum(one["seconds"] for one in runs)
        yield f"A proof took {seconds / len(runs):.0f} s on average."
        yield ""


_COUNTED_AS = {"not_by_mechanism": "helps", "undecided": "open", "unusable": "open"}


def _counts(runs: Sequence[Row]) -> Counter[str]:
    counts: Counter[str] = Counter(proofs=len(runs))
    for one in runs:
        counts[_COUNTED_AS.get(one["outcome"], one["outcome"])] += 1
        for sides in one["rates"].values():
            interval = alone(sides)
            if interval is not None:
                counts["comparisons"] += 1
                counts["above"] += interval[0] > 1
                counts["below"] += interval[1] < 1
    return counts


def alone(sides: Mapping[str, Mapping[str, float]]) -> tuple[float, float] | None:
    """The 95 % interval of with/without of one work, as if nothing else had been compared."""
    if {"without", "with"} - sides.keys():
        return None
    shared = sorted(sides["without"].keys() & sides["with"].keys(), key=int)
    pairs = [[float(sides[state][block]) for block in shared] for state in ("without", "with")]
    ratio = paired_ratio(pairs[0], pairs[1], [int(block) for block in shared])
    if ratio is None or ratio.count < 2:
        return None
    estimate = ratio.estimate(0.05)
    return estimate.low or 0.0, estimate.high or math.inf


def moved_here(runs: Sequence[Row]) -> dict[str, str]:
    """By setting what it moved on this bench's lab, in a few words."""
    found = dict[str, list[str]]()
    for one in runs:
        if case := CASES.get(one.get("case", "")):
            moved = [f"`{row['figure']}` {_times(row)}" for row in one["moved"] if row["ratio"] is not None]
            words = f"{case.value}: {VERDICTS[one['outcome']]}, {'; '.join([f'rate {_rate(one)}', *moved])}"
            found.setdefault(case.setting, []).append(words)
    for name, row in PLACEBOS.items():
        counts = _counts([one for one in runs if one.get("placebo") == name])
        if counts["proofs"]:
            words = f"{row['value']}: helps in {counts['helps']} and harms in {counts['harms']} of "
            found.setdefault(name, []).append(f"{words}{counts['proofs']} proofs")
    return {name: ". ".join(words) for name, words in found.items()}


OPTIONS: dict[str, dict[str, Any]] = {
    "--lab": {"type": Path, "help": "a lab that stays up between pieces"},
    "--seed": {"type": int, "default": 1, "help": "of the cases"},
    "--only": {"default": "", "help": "cases with this in their name"},
    "--what": {"choices": tuple(WHAT), "help": "nothing else"},
    "--for": {"dest": "minutes", "type": float, "default": 600.0, "help": "begin nothing later"},
}

if __name__ == "__main__":
    bench("tuning", __doc__, run, page, OPTIONS)
