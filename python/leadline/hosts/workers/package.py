"""leadline itself as one archive: what a command copies to hosts that have none, and how it starts there.

Only an installation of the bundle, the .deb or the .rpm can be copied: it has a Python of its own.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from leadline.interpreter import executable

_READ_BYTES = 1 << 20
_SCRIPT = """\
umask 077
trap "" PIPE  # nobody may listen any more when it says why it ends, and it cleans up all the same
fail() {{ echo "$1" >&2; exit 3; }}
[ "$(uname -sm)" = "Linux {machine}" ] || fail "it runs $(uname -sm), and leadline here is for {machine}"
d=
for t in "${{TMPDIR:-/tmp}}" /var/tmp "$HOME"; do
  d=$(mktemp -d "$t/leadline-XXXXXXXX" 2>/dev/null) || {{ d=; continue; }}
  trap "rm -rf \\"$d\\"" EXIT
  trap "exit 1" HUP INT TERM
  printf "#!/bin/sh\\n" >"$d/x"; chmod 700 "$d/x"
  set -- $(df -Pk "$d" | tail -n 1)
  "$d/x" 2>/dev/null && [ "$4" -gt {need_kb} ] && break
  rm -rf "$d"; d=
done
[ -n "$d" ] || fail "no temporary directory has {need_mb} MB free and may start programs"
head -c {size} >"$d/a"
[ "$(sha256sum <"$d/a")" = "{digest}  -" ] || fail "the copy of leadline did not arrive whole"
tar -xzf "$d/a" -C "$d" && rm "$d/a" "$d/x" || exit 3
trap "" HUP INT TERM
"$d/{name}/python/bin/{python}" -I -m {server}
code=$?
while ls -l /proc/[0-9]*/exe 2>/dev/null | grep -q " $d/"; do sleep 1; done
exit $code
"""


@dataclass(frozen=True)
class Package:
    """An archive of an installation: `name` is its directory, `python` its interpreter.

    `size` and `unpacked` are bytes, `digest` is the SHA-256 in hex.
    """

    name: str
    python: str
    archive: Path
    size: int
    unpacked: int
    digest: str

    def start_line(self, server: str) -> str:
        """A shell's line that unpacks its input, the archive, in a private directory and runs `server`.

        The directory goes when the server and all that it started have ended, however they ended. Nothing is
        started from an archive that did not arrive whole.
        """
        need_kb = (self.size + self.unpacked) >> 10
        script = _SCRIPT.format(
            machine=platform.machine(),
            need_kb=need_kb,
            need_mb=need_kb >> 10,
            size=self.size,
            digest=self.digest,
            name=self.name,
            python=self.python,
            server=server,
        )
        return f"exec sh -c {shlex.quote(script)}"


def own_installation() -> Path | None:
    """The directory of the installation that runs here, where it can be copied; None of any other."""
    top = Path(sys.prefix).parent
    whole = Path(sys.prefix).name == "python" and (top / "bin" / "leadline").is_file()
    return top if sys.flags.isolated and whole else None


def pack(top: Path, directory: Path) -> Package:
    """Write an installation into an archive in `directory`: some seconds. Raises OSError."""
    archive, unpacked = directory / "leadline.tar.gz", 0

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        nonlocal unpacked
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        unpacked += member.size
        return member

    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(top, top.name, filter=owned)
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    python = Path(executable()).resolve().name
    return Package(top.name, python, archive, archive.stat().st_size, unpacked, digest.hexdigest())
