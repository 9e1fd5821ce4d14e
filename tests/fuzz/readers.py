"""Readers of stored and foreign bytes against anything: a result, or one clear error.

    python tests/fuzz/readers.py SECONDS READER...     (`make fuzz` runs every reader in turn)

Begins with true files. What ends a reader in another way is kept beside the corpus, in target/fuzz/READER; a
copy of it as tests/data/fuzz/READER-WHAT is tried by `make test` from then on.
"""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from mutations import mutated
from targets import READERS, ROOT

KEPT = ROOT / "target" / "fuzz"
MEMORY_MAX_MIB = 2048
ONE_INPUT_MAX_S = 30
_KNOWING = 0.5


def fuzz(name: str, seconds: int) -> None:
    """Read bytes that libFuzzer thinks of, for so long; does not return."""
    atheris: Any = importlib.import_module("atheris")
    reader = READERS[name]
    with atheris.instrument_imports(include=["leadline"]):
        importlib.import_module(reader.module)
    corpus, work = KEPT / name / "corpus", KEPT / name / "work"
    for directory in (corpus, work):
        directory.mkdir(parents=True, exist_ok=True)
    reader.seed(corpus, work)
    place = work / "input"

    def one(data: bytes) -> None:
        place.write_bytes(data)
        try:
            reader.read(place)
        except reader.errors:
            return

    true = [path.read_bytes() for path in sorted(corpus.iterdir())]

    def change(data: bytes, bytes_max: int, seed: int) -> bytes:
        """Half of the inputs are what somebody would make who knows the format.

        Of readers that are not Python libFuzzer keeps no corpus, as it does not see what they cover.
        """
        chance = random.Random(seed)  # noqa: S311 - libFuzzer's own seed
        known = b""
        if chance.random() < _KNOWING:
            known = mutated(chance.choice([data, *true]), chance)[:bytes_max]
        return known or bytes(atheris.Mutate(data, bytes_max))

    limits = [f"-max_total_time={seconds}", f"-timeout={ONE_INPUT_MAX_S}", f"-rss_limit_mb={MEMORY_MAX_MIB}"]
    kept = [f"-max_len={reader.bytes_max}", f"-artifact_prefix={KEPT / name}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *kept, str(corpus)], one, custom_mutator=change)
    atheris.Fuzz()


def main(seconds: int, names: list[str]) -> int:
    """Each reader in a process of its own, as one may die of an input; how many did."""
    if len(names) == 1:
        fuzz(names[0], seconds)
    command = [sys.executable, str(Path(__file__).resolve()), str(seconds)]
    failed = [name for name in names or READERS if subprocess.run([*command, name], check=False).returncode]
    sys.stdout.write(f"died or hung: {', '.join(failed) or 'none'}\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
