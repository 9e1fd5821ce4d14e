"""How long `leadline trend` takes over many results: python bench/trend.py [COUNT]; cleans up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from many_results import copy_results  # noqa: E402

STUDY = (
    "format: leadline.study/1\nblocks: 3\nlimits: {reserve: 1M}\n"
    "defaults: {size: 1M, runtime: 100ms, time_based: true, engine: psync, direct: false}\n"
    "works:\n  randread_4k: {rw: randread, bs: 4k}\n  write_64k: {rw: write, bs: 64k}\n"
)


def timed(*arguments: str) -> float:
    """Seconds of one command line, start-up included."""
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "leadline", *arguments], check=True, capture_output=True, timeout=900
    )
    return time.monotonic() - start


def main(count: int) -> None:
    """Print what a first look, which makes the summaries, and later looks take."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "study.yaml").write_text(STUDY)
        (place / "target").mkdir()
        run = [sys.executable, "-m", "leadline", "run", str(place / "study.yaml"), "--no-ceph", "--quiet"]
        subprocess.run(
            [*run, "--target", f"fuse={place / 'target'}", "--out", str(place / "one")],
            check=False,
            capture_output=True,
            timeout=120,
        )
        (place / "many").mkdir()
        copy_results(place / "one", place / "many", count, shift_at=count // 2)
        many = str(place / "many")
        print(f"{count} results")
        print(f"list, no summaries   {timed('list', many):6.2f} s")
        print(f"list --index (makes) {timed('list', many, '--index'):6.2f} s")
        for verb in (
            ("trend", "fuse.write_64k.bandwidth", many),
            ("trend", "*.iops", many, "--json"),
            ("list", many),
        ):
            print(f"{' '.join(verb[:2])[:20]:20} {min(timed(*verb) for _ in range(3)):6.2f} s, best of 3")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
