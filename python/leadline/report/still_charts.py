"""Charts as SVG, for readers without scripts: Vega draws them in a JavaScript engine, which starts slowly."""

from __future__ import annotations

import functools
import resource
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from leadline.interpreter import module_command, module_environment
from leadline.units import format_size

_LEAST: dict[str, Any] = {"mark": "point", "data": {"values": []}}

_TRIAL_MAX_S = 60


@functools.cache
def undrawable() -> tuple[str, str] | None:
    """Why this process cannot draw and what to do. Under a limit of address space a child tries it first."""
    if find_spec("vl_convert") is None:
        return "vl-convert is not installed", "Install it: pip install 'leadline[report]'"
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run(
            module_command("leadline.report.still_charts"),
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRIAL_MAX_S,
            check=False,
        )
        if tried.returncode == 0:
            return None
    return (
        f"the address space of this process is limited to {format_size(limit)} (ulimit -v),"
        " and the chart engine needs more",
        "Raise the limit: ulimit -v unlimited",
    )


def begin_drawing() -> None:
    """Start the engine in a thread: it is native, and holds no lock of Python's meanwhile."""
    threading.Thread(target=_start).start()


def _start() -> None:
    with suppress(Exception):  # whoever draws the first chart meets it again
        if not undrawable():
            svg_of(_LEAST)


def svg_of(spec: Mapping[str, Any]) -> str:
    """A chart of Vega-Lite as SVG. Ends the process where it is `undrawable`."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(spec)))


def main() -> None:
    """Draw one point: whoever started this sees by how it ended whether the chart engine lives here.

    Without a core file: where the engine gets too little address space, it ends the process by SIGTRAP.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    svg_of(_LEAST)


if __name__ == "__main__":
    main()
