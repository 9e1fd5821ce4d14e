"""The agent's file: which this installation carries, and how it comes to a host that has an SSH server.

All goes over the standard streams of one `ssh`. The login shell there may be any: it is handed one short
line without anything that shells read differently, which reads the script below from its input. The script
finds a private directory that starts programs, takes the file, says its SHA-256 and starts it. The directory
goes when the agent has ended, however that was.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import leadline
from leadline.errors import UsageError

VARIABLE = "LEADLINE_AGENT"
_DIRECTORY = Path(leadline.__file__).parent / "lib" / "agent"
_NAME = "leadline-agent-"
# ELF, e_machine, as `uname -m` calls them.
_MACHINES = {62: "x86_64", 183: "aarch64"}
_ELF = struct.Struct("<4s12x2xH")
FILE_BYTES_MAX = 64 << 20
_NOISE_BYTES_MAX = 1 << 16
_LINE_BYTES_MAX = 4096
_PIECE_BYTES = 1 << 18
_ROOM_KB = 32 << 10  # the agent, and the records of a trial
_SCRIPT = f"""\
umask 077
trap "" PIPE
LC_ALL=C; export LC_ALL
fail() {{ echo "$1" >&2; exit 3; }}
d= w=
for t in "${{TMPDIR:-/tmp}}" /tmp /var/tmp "$XDG_RUNTIME_DIR" "$HOME"; do
  [ -n "$t" ] || continue
  case ":$s:" in *":$t:"*) continue ;; esac
  s=$s:$t
  d=$(mktemp -d "$t/leadline-XXXXXXXX" 2>/dev/null) || {{ d=; w="$w; $t cannot be written"; continue; }}
  trap 'rm -rf "$d"' EXIT
  trap "exit 1" HUP INT TERM
  printf "#!/bin/sh\\n" 2>/dev/null >"$d/x" && chmod 700 "$d/x"
  set -- $(df -Pk "$d" 2>/dev/null | tail -n 1)
  if [ "${{4:-{_ROOM_KB}}}" -lt {_ROOM_KB} ]; then w="$w; $t has $4 kB free"
  elif "$d/x" 2>/dev/null; then break
  else w="$w; $t starts no programs (noexec)"; fi
  rm -rf "$d"; d=
done
[ -n "$d" ] || fail "no directory can hold the agent, which needs {_ROOM_KB >> 10} MiB and must be started$w"
rm -f "$d/x"
echo
echo "leadline-copy/1 $(uname -sm)"
read -r n || exit 3
a=$d/leadline-agent
e=$(head -c "$n" 2>&1 >"$a") || fail "the agent cannot be written to $d: $e"
h=none
for s in sha256sum "busybox sha256sum" "shasum -a 256" "openssl dgst -sha256 -r"; do
  set -- $($s 2>/dev/null <"$a")
  [ "${{#1}}" = 64 ] && h=$1 && break
done
set -- $(wc -c <"$a")
echo "leadline-copied/1 $1 $h"
[ "$h" != none ] || cat "$a"
read -r g && [ "$g" = go ] || exit 3
chmod 700 "$a"
trap "" HUP INT TERM
cd "$d" || exit 3
TMPDIR=$d "$a" serve
"""
LINE = f"exec sh -c 'eval \"$(head -c {len(_SCRIPT.encode())})\"'"


class CopyError(UsageError):
    """Why a host cannot be given the agent, in words that follow its name."""


@dataclass(frozen=True)
class AgentFile:
    """An agent, for machines of one kind."""

    machine: str
    path: Path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size


def carried(variables: Mapping[str, str] = os.environ, directory: Path = _DIRECTORY) -> dict[str, AgentFile]:
    """The agents that this installation carries, or LEADLINE_AGENT names (a file, or a directory of them).

    Raises CopyError where that names none.
    """
    named = variables.get(VARIABLE)
    if not named:
        return _in_directory(directory)
    place = Path(named)
    found = _in_directory(place) if place.is_dir() else {}
    if not found:
        machine = _machine_of(place)
        found = {machine: AgentFile(machine, place)} if machine is not None else {}
    if not found:
        raise CopyError(
            f"{VARIABLE}={named}: there is no agent for {' or '.join(_MACHINES.values())}",
            f"Name a file {_NAME}MACHINE, or a directory that has some.",
        )
    return found


def _in_directory(directory: Path) -> dict[str, AgentFile]:
    found = {}
    for path in sorted(directory.glob(f"{_NAME}*")):
        machine = path.name.removeprefix(_NAME)
        if _machine_of(path) == machine:
            found[machine] = AgentFile(machine, path)
    return found


def _machine_of(path: Path) -> str | None:
    """For which machine a program is; None where it is none, or cannot be read."""
    try:
        with path.open("rb") as file:
            magic, machine = _ELF.unpack(file.read(_ELF.size))
    except (OSError, struct.error):
        return None
    return _MACHINES.get(machine) if magic == b"\x7fELF" else None


def bring(files: Mapping[str, AgentFile], to: IO[bytes], answers: IO[bytes]) -> AgentFile:
    """Have the script there take the right one of the files, and start it. Raises CopyError, and OSError.

    `to` and `answers` are the streams of what runs `LINE` on the host; EOFError where that ended.
    """
    to.write(_SCRIPT.encode())
    to.flush()
    system, _, machine = _told(answers, b"leadline-copy/1 ").partition(" ")
    file = files.get(machine)
    if system != "Linux" or file is None:
        known = ", ".join(files) or "none"
        raise CopyError(
            f"it runs {system} on {machine}, and this installation carries no agent for that",
            f"agents are here for: {known}; install leadline there, or name an agent in {VARIABLE}",
        )
    data = file.path.read_bytes()
    if not 0 < len(data) <= FILE_BYTES_MAX:
        raise CopyError(f"{file.path} is no agent: it has {len(data):,} bytes", "install leadline again")
    to.write(f"{len(data)}\n".encode())
    for at in range(0, len(data), _PIECE_BYTES):
        to.write(data[at : at + _PIECE_BYTES])
    to.flush()
    size, _, digest = _told(answers, b"leadline-copied/1 ").partition(" ")
    if digest == "none":  # no program there computes it: what was written is read back
        whole = size == str(len(data)) and answers.read(len(data)) == data
    else:
        whole = size == str(len(data)) and digest == hashlib.sha256(data).hexdigest()
    if not whole:
        raise CopyError(
            f"the copy of the agent did not arrive whole: {size} of {len(data)} bytes, SHA-256 {digest}",
            "see whether its disk is full, then try again",
        )
    to.write(b"go\n")
    to.flush()
    return file


def _told(answers: IO[bytes], begin: bytes) -> str:
    """The rest of the line that begins so; what a login shell prints before it is passed over."""
    noise = 0
    while line := answers.readline(_LINE_BYTES_MAX):
        if line.startswith(begin):
            return line[len(begin) :].decode("ascii", "replace").strip()
        noise += len(line)
        if noise > _NOISE_BYTES_MAX:
            raise CopyError(
                "it prints without end when it is logged in to", "see what its shell's files print"
            )
    raise EOFError
