"""`make tuning-bench`: does `leadline tune prove` say of settings what a lab makes true of them?

    python bench/tuning.py run                           # lines in bench/tuning.jsonl; goes on there
    python bench/tuning.py judge                         # bench/tuning.md, from these lines alone

First the cases whose effect is known, then proofs of placebos, four at once on clients of their own.
`--lab DIR` takes a lab that stays up between pieces, `--for MINUTES` begins nothing after that time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from leadline.store.reader import open_result
from leadline.verdict.findings import proof_of
from tuning_cases import CASES, PLACEBO_WORKS, PLACEBOS, PROOFS_EACH, STUDY, TOPOLOGY, TuningCase
from tuning_proofs import RUNS, kept, page

HERE = Path(__file__).parent
PAGE = HERE / "tuning.md"
LAB = "tuning"
SETTLED_S = 60.0
PROOF_S = 600.0
BY_HAND_S = "3"
SIZES = (4096, 262144)  # of the objects that rados bench reads
CLIENTS, DAEMONS = ("pair1", "pair2", "near", "wide"), ("mon", "mgr", "osd", "mds")
WRITING = threading.Lock()


def command(*words: str, timeout: float = 300, allowed: Sequence[int] = (0,)) -> str:
    """What a program printed. Ends the bench's run, in words, where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{(done.stderr or done.stdout)[-1500:]}")
    return done.stdout


def leadline(*words: str, **options: Any) -> str:
    """The program itself, from outside."""
    return command(sys.executable, "-m", "leadline", *words, **options)


class TuningLab:
    """The lab's directory, how its cluster and clients are asked, and the file that proofs are kept in."""

    def __init__(self, directory: Path, runs: Path) -> None:
        self.directory, self.runs = directory, runs

    def ceph(self, *words: str) -> str:
        """As an administrator."""
        return command("ceph", "--conf", str(self.directory / "ceph.conf"), *words, timeout=60)

    def inside(self, client: str, *words: str, **options: Any) -> str:
        """On a client, behind its link."""
        return leadline("lab", "exec", client, "--dir", str(self.directory), "--", *words, **options)

    def target(self, client: str, way: str) -> str:
        """A way as that client sees it."""
        found = json.loads(
            leadline("lab", "targets", "--dir", str(self.directory), "--host", client, "--json")
        )
        where = next(one["where"] for one in found["targets"] if one["name"] == way)
        # Two clients at once must not write the same objects.
        return where.replace("rados://objects", f"rados://objects/{client}")

    def rest(self) -> None:
        """Wait until every placement group is active+clean."""
        end = time.monotonic() + SETTLED_S
        while time.monotonic() < end:
            status = json.loads(self.ceph("status", "-f", "json"))
            if {one["state_name"] for one in status["pgmap"]["pgs_by_state"]} == {"active+clean"}:
                return
            time.sleep(0.5)
        raise RuntimeError("the lab does not come to rest")

    def in_force(self, option: str, value: str) -> None:
        """Wait until the OSDs have what the monitors keep."""
        end = time.monotonic() + SETTLED_S
        while time.monotonic() < end:
            found = [
                json.loads(self.ceph("tell", f"osd.{number}", "config", "get", option))[option]
                for number in range(3)
            ]
            if all(_same(one, value) for one in found):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{option} is not {value} at the OSDs: {found}")


def _same(found: str, value: str) -> bool:
    try:
        return float(found) == float(value)
    except ValueError:
        return found == value


@contextmanager
def lab(kept: Path | None, runs: Path, name: str = LAB) -> Iterator[TuningLab]:
    """A lab of its own, gone afterwards; one that is kept is started where it is not there yet."""
    place = Path(tempfile.mkdtemp(prefix="tuning-lab-", dir="/var/tmp"))
    topology, directory = place / "centre.yaml", kept or place / "lab"
    topology.write_text(TOPOLOGY)
    try:
        if not (directory / "lab.json").exists():
            leadline("lab", "up", name, "--topology", str(topology), "--dir", str(directory))
        found = TuningLab(directory, runs)
        for client in CLIENTS:  # the verb changes settings as the target's own user
            found.ceph(
                "auth", "caps", f"client.{client}", *(word for who in DAEMONS for word in (who, "allow *"))
            )
        found.rest()
        yield found
    finally:
        if kept is None:
            leadline("lab", "down", "--dir", str(directory), allowed=(0, 1, 2))
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def made(lab: TuningLab, case: TuningCase) -> Iterator[None]:
    """The lab as a case wants it; as it was afterwards."""
    with ExitStack() as stack:
        for who, option, value in case.made:
            stack.callback(lab.ceph, "config", "rm", who, option)
            lab.ceph("config", "set", who, option, value)
            if who == "osd":
                lab.in_force(option, value)
        for key, value in case.kernel:
            before = lab.inside(case.client, "sysctl", "-n", key).strip()
            stack.callback(lab.inside, case.client, "sysctl", "-qw", f"{key}={before}")
            lab.inside(case.client, "sysctl", "-qw", f"{key}={value}")
        if case.way == "ceph-fuse":
            leadline("lab", "mount", case.client, "--dir", str(lab.directory))
            stack.callback(leadline, "lab", "unmount", case.client, "--dir", str(lab.directory))
        yield


def prove(
    lab: TuningLab, client: str, target: str, setting: str, value: str, works: Mapping[str, str], **more: Any
) -> dict[str, Any]:
    """One proof by the verb itself, and what its result says."""
    with tempfile.TemporaryDirectory(prefix="tuning-") as place:
        study, out = Path(place) / "study.yaml", Path(place) / "out"
        lines = "\n".join(f"  {name}: {text}" for name, text in works.items())
        study.write_text(STUDY.format(works=lines, runtime=more["runtime"]))
        words = ["tune", "prove", str(study), "--target", f"a={target}", "--with", f"{setting}={value}"]
        words += ["--seed", str(more["seed"]), "--out", str(out), "--quiet"]
        words += ["--state", str(Path(place) / "journal")]  # several proofs run at once, of other settings
        words += [word for kind in more.get("allow", ()) for word in ("--allow", kind)]
        start = time.monotonic()
        lab.inside(client, sys.executable, "-m", "leadline", *words, timeout=PROOF_S, allowed=(0, 3))
        seconds = time.monotonic() - start
        return {"seconds": round(seconds, 1), **said(out)}


def said(out: Path) -> dict[str, Any]:
    """Verdict, ratios, mechanisms and each block's rates of a result."""
    result = open_result(out)
    found = proof_of(result)
    if found is None:
        raise RuntimeError(f"{out} proves nothing")
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


def by_hand(lab: TuningLab, case: TuningCase) -> dict[str, float]:
    """Operations a second of `rados bench` in both states, set without leadline."""
    asked = case.by_hand
    if asked is None:
        return {}
    found = {}
    base = ["rados", "-p", "objects", "bench", BY_HAND_S, asked.what, "-t", str(asked.at_once)]
    base += ["-b", str(asked.size)] if asked.what == "write" else ["--run-name", _objects(asked.size)]
    with made(lab, case):
        for state in ("without", "with"):
            with ExitStack() as stack:
                words = list(base)
                if case.setting.startswith("objecter"):
                    words += [f"--{case.setting}={case.value}"] if state == "with" else []
                elif state == "with":
                    stack.enter_context(set_by_hand(lab, case))
                text = lab.inside(case.client, *words)
                found[state] = float(text.split("Average IOPS:")[1].split()[0])
    return found


def _objects(size: int) -> str:
    return f"by-hand-{size}"


def write_objects(lab: TuningLab) -> None:
    """What rados bench reads afterwards."""
    words = ("rados", "-p", "objects", "bench", BY_HAND_S, "write", "-t", "4", "--no-cleanup")
    for size in SIZES:
        lab.inside("wide", *words, "-b", str(size), "--run-name", _objects(size))


@contextmanager
def set_by_hand(lab: TuningLab, case: TuningCase) -> Iterator[None]:
    """A setting of OSDs or of the client's kernel, by their own tools."""
    if case.setting.startswith("net."):
        before = lab.inside(case.client, "sysctl", "-n", case.setting).strip()
        lab.inside(case.client, "sysctl", "-qw", f"{case.setting}={case.value}")
        try:
            yield
        finally:
            lab.inside(case.client, "sysctl", "-qw", f"{case.setting}={before}")
    else:
        was = next((value for _, option, value in case.made if option == case.setting), None)
        lab.ceph("config", "set", "osd", case.setting, case.value.replace("64M", "67108864"))
        try:
            time.sleep(1)
            yield
        finally:
            words = ("rm", "osd", case.setting) if was is None else ("set", "osd", case.setting, was)
            lab.ceph("config", *words)


def run_case(lab: TuningLab, case: TuningCase, seed: int) -> dict[str, Any]:
    """A case proved."""
    with made(lab, case):
        target = lab.target(case.client, case.way)
        more = {"runtime": case.runtime, "seed": seed, "allow": case.allow}
        found = prove(lab, case.client, target, case.setting, case.value, {"work": case.work}, **more)
    lab.rest()
    return {"case": case.name, "seed": seed, **found}


def run_placebo(lab: TuningLab, client: str, one: dict[str, Any]) -> dict[str, Any]:
    """A proof of a placebo, of all its works."""
    value, _, allow = next(found[1:] for found in PLACEBOS if found[0] == one["placebo"])
    target = lab.target(client, "rados")
    more = {"runtime": "1s", "seed": one["seed"], "allow": allow}
    return {**one, **prove(lab, client, target, one["placebo"], value, PLACEBO_WORKS, **more)}


def keep(runs: Path, found: dict[str, Any]) -> None:
    """One line more."""
    with WRITING, runs.open("a") as file:
        file.write(json.dumps(found) + "\n")
        file.flush()
        os.fsync(file.fileno())
    words = {
        name: found.get(name) for name in ("case", "placebo", "by_hand", "seed", "outcome", "iops", "seconds")
    }
    print({name: value for name, value in words.items() if value is not None}, flush=True)


def measure_cases(lab: TuningLab, end: float, seed: int, only: str) -> None:
    """Those that are not there yet."""
    done = {(one["case"], one["seed"]) for one in kept(lab.runs) if "case" in one}
    for case in CASES:
        if (case.name, seed) in done or only not in case.name or time.monotonic() > end:
            continue
        try:
            keep(lab.runs, run_case(lab, case, seed))
        except (RuntimeError, subprocess.TimeoutExpired) as error:  # it is tried again the next time
            print(f"{case.name}: {error}", flush=True)


def measure_by_hand(lab: TuningLab, end: float, only: str) -> None:
    """The same by rados bench, of the cases where that can see it."""
    done = {one["by_hand"] for one in kept(lab.runs) if isinstance(one.get("by_hand"), str)}
    left = [case for case in CASES if case.by_hand and case.name not in done and only in case.name]
    if left and time.monotonic() < end:
        write_objects(lab)
    for case in left:
        if time.monotonic() > end:
            return
        try:
            keep(lab.runs, {"by_hand": case.name, "iops": by_hand(lab, case)})
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{case.name} by hand: {error}", flush=True)


def measure_placebos(lab: TuningLab, end: float) -> None:
    """A proof on each client at once, never of one setting: each would find the other's value."""
    done = {(one["placebo"], one["seed"]) for one in kept(lab.runs) if "placebo" in one}
    left = [{"placebo": one[0], "seed": seed} for seed in range(1, PROOFS_EACH + 1) for one in PLACEBOS]
    left = [one for one in left if (one["placebo"], one["seed"]) not in done]
    choosing, at_work = threading.Lock(), set[str]()

    def work(client: str) -> None:
        while time.monotonic() < end:
            with choosing:
                one = next((one for one in left if one["placebo"] not in at_work), None)
                if one is None:
                    return
                left.remove(one)
                at_work.add(one["placebo"])
            try:
                keep(lab.runs, run_placebo(lab, client, one))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{one}: {error}", flush=True)
            with choosing:
                at_work.discard(one["placebo"])

    threads = [threading.Thread(target=work, args=(client,)) for client in CLIENTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> int:
    """Prove what is not there yet, or judge what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=("run", "judge"))
    parser.add_argument("--lab", type=Path, help="a lab that stays up between pieces")
    parser.add_argument("--seed", type=int, default=1, help="of the cases")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--what", choices=("cases", "by-hand", "placebos"), help="nothing else")
    parser.add_argument("--for", dest="minutes", type=float, default=600.0, help="begin nothing later")
    parser.add_argument(
        "--runs", type=Path, default=RUNS, help="another file of lines, to try the bench itself"
    )
    asked = parser.parse_args()
    if asked.do == "judge":
        PAGE.write_text("\n".join(page(kept(asked.runs))) + "\n")
        return 0
    end = time.monotonic() + 60 * asked.minutes
    with lab(asked.lab, asked.runs) as there:
        if asked.what in (None, "cases"):
            measure_cases(there, end, asked.seed, asked.only)
        if asked.what in (None, "by-hand"):
            measure_by_hand(there, end, asked.only)
        if asked.what in (None, "placebos"):
            measure_placebos(there, end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
