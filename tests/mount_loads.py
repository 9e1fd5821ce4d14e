"""Loads of a mount that a test knows: one Python process each, until it is told to stop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BEGIN = "import os, sys\nplace = sys.argv[1]\nos.chdir(place)\n"
LOADS = {
    "small_writes": (
        "file = os.open('small', os.O_WRONLY | os.O_CREAT)\n"
        "print('begun', flush=True)\n"
        "for turn in range(10**9):\n"
        "    os.write(file, b'x' * 4096)\n"
        "    if turn % 4096 == 0: os.lseek(file, 0, 0)\n"
    ),
    "metadata": (
        "here = os.open('.', os.O_RDONLY)\n"
        "print('begun', flush=True)\n"
        "for turn in range(10**9):\n"
        "    name = 'f%d' % (turn % 50)\n"
        "    os.close(os.open(name, os.O_CREAT | os.O_RDWR))\n"
        "    os.stat(name)\n"
        "    os.unlink(name)\n"
    ),
    "write_stream": (
        "file = os.open('stream', os.O_WRONLY | os.O_CREAT)\n"
        "block = os.urandom(4 << 20)\n"
        "print('begun', flush=True)\n"
        "for turn in range(10**9):\n"
        "    os.write(file, block)\n"
        "    if turn % 16 == 0: os.lseek(file, 0, 0)\n"
    ),
}


@contextmanager
def load(name: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """The load of this name in `directory`, begun; ended at the end, with its files."""
    command = [sys.executable, "-c", _BEGIN + LOADS[name], str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()
    for file in directory.iterdir():
        file.unlink()
