"""The one way in which the package starts a Python process: no module of the working directory runs in it.

`python -m` puts the working directory first on the module path, and another account may have made that
directory. `-P` leaves it out. `-I` would also drop PYTHONPATH and the user's own site directory, which an
installation may need and which SECURITY.md trusts; so it is for programs of the standard library, and for
an installation with a Python of its own, which was itself started with `-I`: a site's PYTHONPATH is for
another Python, and its modules would stand before those of the standard library.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import leadline


def executable() -> str:
    """The Python that runs here."""
    return sys.executable


def module_command(module: str, *arguments: str) -> list[str]:
    """Arguments that run a module in the Python that runs here; see `module_environment`."""
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", module, *arguments]


def script_command(*words: str) -> list[str]:
    """Arguments that run `-c TEXT` or a file which needs nothing but the standard library."""
    return [sys.executable, "-I", *words]


def remote_python(python: str | None) -> str:
    """The beginning of a shell's line that runs a module on another host, by the Python named or the same."""
    isolated = sys.flags.isolated and python is None
    return f"{python or sys.executable} {'-I' if isolated else '-P'}"


def remote_command(remote: str, module: str, *arguments: str) -> str:
    """A shell's line that runs a module by `remote_python`'s words; nothing in it needs quotes."""
    return " ".join((remote, "-m", module, *arguments))


def module_environment() -> dict[str, str]:
    """The environment in which `module_command` finds this very package."""
    if sys.flags.isolated:  # the module is in this Python's own directory
        return dict(os.environ)
    root = _root()
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not inherited else f"{root}{os.pathsep}{inherited}"}


def user_environment() -> dict[str, str]:
    """The inverse of `module_environment`, in a child: what the user's own programs are to be given."""
    found = dict(os.environ)
    first, _, rest = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == _root():
        found.pop("PYTHONPATH")
        found |= {"PYTHONPATH": rest} if rest else {}
    return found


def _root() -> str:
    return str(Path(leadline.__file__).resolve().parents[1])
