"""Ten searches of settings on a lab, each beside random search with as many proposals: bench/search.jsonl.

    python bench/search_lab.py                 # seeds that are not there yet, on several labs at once
    python bench/search.py lab                 # the section of bench/search.md, from these lines

Reading ahead over a long way: OSDs hold each message of a client for 0.2 s, so that a stream is as fast as
what is asked for ahead, until the link is full; the cache must hold that. The default was made a bad one.
Both sides begin with the same proposals, as in the product, and are proved in the same fresh blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tuning import TuningLab, lab, leadline

RUNS = Path(__file__).with_name("search.jsonl")
SEEDS, LABS = 10, 3
CLIENT = "near"
STUDY = """
format: leadline.study/1
defaults: {runtime: 2s, time_based: true}
works:
  stream: {rw: read, bs: 64k, size: 128M, direct: false}
"""
MADE = {
    "osd": {
        "ms_inject_delay_type": "client",
        "ms_inject_delay_max": "0.4",
        "ms_inject_delay_probability": "1",
    },
    "client": {"client_readahead_max_bytes": "131072"},
}
SPACE = (
    "client_readahead_max_bytes=16k..16M",
    "client_readahead_max_periods=1..16",
    "client_oc_size=1M..256M",
)
PROPOSALS, BUDGET, SEARCH_S = "12", "8m", 900.0
WRITING = threading.Lock()


def searched(there: TuningLab, seed: int) -> dict[str, Any]:
    """One search by the verb itself, and what its result says."""
    with tempfile.TemporaryDirectory(prefix="search-") as place:
        study, out = Path(place) / "stream.yaml", Path(place) / "out"
        study.write_text(STUDY)
        words = ["tune", "search", str(study), "--target", f"a={there.target(CLIENT, 'libcephfs')}"]
        words += [word for one in SPACE for word in ("--space", one)]
        words += ["--proposals", PROPOSALS, "--budget", BUDGET, "--compare-random", "--seed", str(seed)]
        words += ["--out", str(out), "--quiet"]
        start = time.monotonic()
        there.inside(CLIENT, sys.executable, "-m", "leadline", *words, timeout=SEARCH_S, allowed=(0, 3))
        seconds = round(time.monotonic() - start)
        found = json.loads(leadline("show", str(out), "--json", allowed=(0, 3)))["search"]
    return {"seed": seed, "seconds": seconds, "load": os.getloadavg()[0], "search": found}


def worker(number: int, left: list[int], runs: Path) -> None:
    """Searches on a lab of its own until no seed is left."""
    with lab(None, runs, name=f"search{number}") as there:
        for who, options in MADE.items():
            for option, value in options.items():
                there.ceph("config", "set", who, option, value)
        for option, value in MADE["osd"].items():
            there.in_force(option, value)
        while True:
            with WRITING:
                if not left:
                    return
                seed = left.pop(0)
            try:
                found = searched(there, seed)
            except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
                print(f"seed {seed}: {error}", flush=True)
                continue
            with WRITING, runs.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(seed, found["seconds"], found["search"].get("winner"), flush=True)


def main() -> int:
    """Search with the seeds that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--labs", type=int, default=LABS, help="at once")
    asked = parser.parse_args()
    lines = asked.runs.read_text().splitlines() if asked.runs.exists() else []
    done = {json.loads(line)["seed"] for line in lines}
    left = [seed for seed in range(1, SEEDS + 1) if seed not in done]
    threads = [
        threading.Thread(target=worker, args=(number, left, asked.runs)) for number in range(asked.labs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
