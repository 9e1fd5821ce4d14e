"""Who made the calls that strace saw: the loader's, and those inside `fchmodat`, are told from the program's.

The preloaded library takes the place of functions that a program calls by name, so it cannot see what the
loader does for itself. `strace -i` says from which instruction each call came.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_INTERPRETER = Path("/lib64/ld-linux-x86-64.so.2")
_LINE = re.compile(r"(\d+) +(\d+\.\d+) \[([0-9a-f]+|\?+)\] (.*)")
_BORN = re.compile(r"(\d+) .*\b(?:clone3?|v?fork)\b.*\) += (\d+)(?: <|$)")
_BECAME = re.compile(r"(?:execve\(|<\.\.\. execve resumed>).* = 0(?: <|$)")
_CODE = re.compile(r"mmap\([^,]*, (\d+), [^,]*PROT_EXEC.* \d+<.*>, .*\) += (0x[0-9a-f]+)")
_SHARED_FROM = 0x7E00_0000_0000  # where the kernel puts the interpreter; what it starts at is below
# What glibc's fchmodat does for AT_SYMLINK_NOFOLLOW, which the kernel's call has not.
_OPENED_ONLY = re.compile(r"openat\(.*O_PATH.* = (\d+)<")
_CHANGED = re.compile(r'chmod\("/proc/self/fd/(\d+)"')


@dataclass
class Image:
    """A process's code as far as it is known: its first call's instruction, and what was mapped as code."""

    first: int | None = None
    code: list[range] = field(default_factory=list)

    def is_loader(self, instruction: int) -> bool:
        """The kernel maps the interpreter, so that no call shows it; an image's first call is its own."""
        if self.first is None:
            self.first = instruction
        extent = _INTERPRETER.stat().st_size
        near = self.first >= _SHARED_FROM and abs(instruction - self.first) < extent
        return near and not any(instruction in part for part in self.code)


@dataclass
class Told:
    """The log of strace without what the program itself did not call, and what was taken out, by rule."""

    lines: list[str]
    taken: dict[str, Counter[str]]


def strace_callers(command: Sequence[str], log: Path, directory: Path, environment: dict[str, str]) -> Told:
    """Run a command under strace; its calls by who made them."""
    options = ["-f", "-q", "-i", "-ttt", "-T", "-y", "-e", "signal=none", "-o", str(log)]
    subprocess.run(
        ["strace", *options, *command],
        check=True,
        capture_output=True,
        cwd=directory,
        env=environment,
        timeout=120,
    )
    return told(log.read_text(errors="replace").splitlines())


def told(lines: Sequence[str]) -> Told:
    """The same of a log that is there."""
    taken: dict[str, Counter[str]] = {"loader": Counter(), "fchmodat": Counter()}
    own = list(_without_loader(lines, taken["loader"]))
    return Told(_without_emulation(own, taken["fchmodat"]), taken)


def _without_loader(lines: Sequence[str], taken: Counter[str]) -> Iterator[str]:
    parents = {found[2]: found[1] for line in lines if (found := _BORN.match(line))}
    images: dict[str, Image] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            yield line
            continue
        pid, time, instruction, body = found.groups()
        if pid not in images:
            parent = images.get(parents.get(pid, ""), Image())
            images[pid] = Image(parent.first, list(parent.code))
        if _BECAME.match(body):
            images[pid] = Image()
        elif instruction[0] != "?" and images[pid].is_loader(int(instruction, 16)):
            taken[body.split("(")[0]] += 1
            mapped = _CODE.match(body)
            if mapped:
                start = int(mapped[2], 16)
                images[pid].code.append(range(start, start + int(mapped[1])))
            continue
        yield f"{pid} {time} {body}"


def _without_emulation(lines: Sequence[str], taken: Counter[str]) -> list[str]:
    """Without what an `fchmodat` makes before and after its one `chmod`, all on one descriptor."""
    kept = []
    place = 0
    while place < len(lines):
        bodies = [line.split(" ", 2)[-1] for line in lines[place : place + 4]]
        opened = _OPENED_ONLY.match(bodies[0])
        changed = _CHANGED.match(bodies[2]) if len(bodies) == 4 else None
        if opened and changed and bodies[3].startswith(f"close({opened[1]}<") and changed[1] == opened[1]:
            taken.update(body.split("(")[0] for body in bodies)
            place += 4
            continue
        kept.append(lines[place])
        place += 1
    return kept
