"""Checks the installation of leadline: the parts of its package, and the extras that pip adds."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import leadline
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.observe.capabilities import Capability

PACKAGE = Path(leadline.__file__).resolve().parent
# Name, a pattern below the package, used for.
_PARTS = (
    ("tracer", "lib/libleadline_tracer.so", "`leadline trace` and `profile` without root"),
    ("XRootD reader", "lib/libleadline_xrootd.so", "targets that begin with root://"),
    ("charts", "report/templates/vega-*.js", "charts in pages of `leadline report`"),
)
# Name, the modules that it adds, used for.
_EXTRAS = (
    ("report", ("vl_convert",), "charts in pages of `leadline report` for readers without scripts"),
    ("hosts", ("distributed",), "`leadline run --scheduler`"),
    ("darshan", ("darshan",), "`leadline import darshan`"),
    ("search", ("optuna",), "`leadline tune search`"),
)


def require_core() -> None:
    """Raises UsageError where the extension cannot be loaded: every check needs it."""
    try:
        importlib.import_module("leadline._core")
    except ImportError as error:
        raise UsageError(f"leadline's load engine cannot be loaded: {error}", remedy()) from None


def installation_checks() -> list[Capability]:
    """A check for each part and each extra."""
    return [*(_part(*one) for one in _PARTS), *(_extra(*one) for one in _EXTRAS), _kernel_tracer()]


def remedy() -> str:
    """How to install a missing part of leadline."""
    if (PACKAGE.parents[1] / "pyproject.toml").is_file():
        return "Build it: make setup, in leadline's directory."
    return "Install leadline again, from a wheel of `make wheel` or an archive of `make bundle`."


def _part(name: str, pattern: str, used_for: str) -> Capability:
    from leadline.observe.capabilities import Capability

    found = next((path for path in PACKAGE.glob(pattern) if path.stat().st_size), None)
    if found is None:
        why = f"this installation lacks {PACKAGE / pattern}"
        return Capability("leadline", name, "missing", why, used_for, remedy())
    return Capability("leadline", name, "works", str(found), used_for)


def _extra(name: str, modules: tuple[str, ...], used_for: str) -> Capability:
    from leadline.observe.capabilities import Capability

    lacking = [module for module in modules if find_spec(module) is None]
    if not lacking:
        return Capability("extras", name, "works", f"installed: {', '.join(modules)}", used_for)
    add = f"pip install 'leadline[{name}]'"
    if (Path(sys.prefix).parent / "install.sh").is_file():
        add = f"The bundle has no extras. Install the wheel instead: {add}"
    return Capability("extras", name, "missing", f"not installed: {', '.join(lacking)}", used_for, add)


def _kernel_tracer() -> Capability:
    from leadline.observe.capabilities import Capability
    from leadline.tracing.sources.bpf import unavailable

    used_for, why = "`leadline trace --via bpf`, and every call in `leadline watch`", unavailable()
    if why:
        return Capability("kernel", "tracer in the kernel (BPF)", "missing", why, used_for, "Run it as root.")
    return Capability("kernel", "tracer in the kernel (BPF)", "works", "its programs load", used_for)
